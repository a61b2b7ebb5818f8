//! HEALPix in nested order: the index of the archive's rows.
//!
//! The sphere in 12 base cells of equal area, each parted into 4 again and again: at order `k` there are
//! `12 * 4^k` cells, and the cells of a region are few ranges of order-29 numbers (Gorski et al. 2005). This is
//! our own writing of it, over the plane in which cells are squares: a base cell number and two coordinates of
//! 29 bits, interleaved. It needs one square root and no arc function either way, so that the number of a
//! position is the same on every machine.
//!
//! - [`hash`] is always computed at order 29 and shortened: parents agree by construction.
//! - A position off a cell's edge by rounding is within [`MARGIN`] of its cell; [`cover`] allows for it, so a
//!   range never misses a row whose exact test would be true, and `inside` never answers for one whose would
//!   be false.

mod cell;
mod cover;
mod neighbours;
mod plane;

pub use cell::Cell;
pub use cover::{CellRange, cover, cover_around, cover_geometry};
pub use neighbours::{Buckets, bucket_order, buckets_around};

use crate::sphere::Point;

/// The deepest order: cells of 0.4 milli-arcseconds.
pub const ORDER_MAX: u8 = 29;

/// How far, in radians, a position may lie outside of the cell that it is counted to.
pub const MARGIN: f64 = 1e-13;

/// How many cells an order has.
pub const fn cell_count(order: u8) -> u64 {
    12 << (2 * order as u32)
}

/// The number of the order-29 cell of a position in degrees. Any longitude; `None` for NaN and for a latitude
/// beyond a pole.
#[inline]
pub fn hash29(lon: f64, lat: f64) -> Option<u64> {
    plane::project(lon, lat).map(|(face, x, y)| plane::number(face, x, y))
}

/// The number of the cell of a position at an order up to 29 (IVOA UDF catalogue, `ivo_healpix_index`).
#[inline]
pub fn hash(order: u8, lon: f64, lat: f64) -> Option<u64> {
    if order > ORDER_MAX {
        return None;
    }
    Some(hash29(lon, lat)? >> (2 * (ORDER_MAX - order)))
}

/// The order-29 numbers of columns of degrees, appended; a position without one gets `absent`.
pub fn hash29_many(lon: &[f64], lat: &[f64], absent: u64, out: &mut Vec<u64>) {
    out.extend(lon.iter().zip(lat).map(|(lon, lat)| hash29(*lon, *lat).unwrap_or(absent)));
}

/// The centre of a cell (IVOA UDF catalogue, `ivo_healpix_center`); `None` if the order has no such cell.
pub fn center(order: u8, number: u64) -> Option<Point> {
    Cell::new(order, number).map(|cell| Point::from_vector(cell.center()))
}

#[cfg(test)]
mod tests;
