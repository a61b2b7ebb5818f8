//! Cells beside a cell, and the buckets of a join by distance.
//!
//! Two positions within a radius are in one bucket or in two that touch, if buckets are cells nowhere
//! narrower than the radius. A join puts one side into buckets and asks, for each row of the other, the row's
//! own bucket and those around it: nine, eight at the corners where three base cells meet, fewer at the
//! lowest orders.

use super::{Cell, ORDER_MAX, hash};
use crate::sphere::Point;

/// A lower bound of the width of any cell in radians, times the cells along a base cell's side. The narrowest
/// lie at the poles on the meridians between base cells: 0.688.
const WIDTH: f64 = 0.66;

/// The deepest order whose cells are nowhere narrower than a radius in degrees: then every position within
/// the radius of a position is in [`buckets_around`] it. `None` if the radius is negative, NaN or wider than
/// a base cell: there are too few cells then for buckets to help.
pub fn bucket_order(radius_degrees: f64) -> Option<u8> {
    // What distances, hashes and sums may be off by.
    let radius = radius_degrees.to_radians() * (1.0 + 1e-9) + 1e-12;
    if !(radius_degrees >= 0.0 && radius <= WIDTH) {
        return None;
    }
    let order = (WIDTH / radius).log2().floor();
    Some((order as u8).min(ORDER_MAX))
}

/// The numbers, at an order, of the cell of a position and of all cells that touch it, ascending, each once.
pub fn buckets_around(point: &Point, order: u8) -> Buckets {
    hash(order, point.lon(), point.lat()).and_then(|number| Cell::new(order, number)).map_or_else(
        Buckets::default,
        |cell| {
            let mut buckets = Buckets::default();
            for (dx, dy) in AROUND {
                if let Some(cell) = beside(&cell, dx, dy) {
                    buckets.insert(cell.number());
                }
            }
            buckets
        },
    )
}

/// The cell itself and the eight directions around it.
const AROUND: [(i64, i64); 9] =
    [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)];

/// At most nine numbers, ascending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    numbers: [u64; 9],
    count: u8,
}

impl Buckets {
    fn insert(&mut self, number: u64) {
        let count = usize::from(self.count);
        if let Err(place) = self.numbers[..count].binary_search(&number) {
            self.numbers[place..=count].rotate_right(1);
            self.numbers[place] = number;
            self.count += 1;
        }
    }

    /// The numbers.
    pub fn as_slice(&self) -> &[u64] {
        &self.numbers[..usize::from(self.count)]
    }
}

/// The cell a step away; `None` at a corner where three base cells meet.
fn beside(cell: &Cell, dx: i64, dy: i64) -> Option<Cell> {
    let (face, x, y) = cell.place();
    let side = 1_i64 << cell.order();
    let (x, y) = (i64::from(x) + dx, i64::from(y) + dy);
    let over = |value: i64| i8::from(value >= side) - i8::from(value < 0);
    let (face, x, y) = cross(face, over(x), over(y), x, y, side - 1)?;
    Some(Cell::at(cell.order(), face, x as u32, y as u32))
}

/// A place beyond the edges of a base cell as a place of the base cell there: which edges were crossed (-1, 0
/// or 1 along each axis), and the last coordinate of a base cell.
fn cross(face: u8, over_x: i8, over_y: i8, x: i64, y: i64, last: i64) -> Option<(u8, i64, i64)> {
    let column = face % 4;
    let (east, west, opposite) = ((column + 1) % 4, (column + 3) % 4, (column + 2) % 4);
    Some(match (face / 4, over_x, over_y) {
        (_, 0, 0) => (face, x, y),
        // Northern base cells: each other around the pole, turned a quarter; the belt to the south.
        (0, 1, 0) => (east, y, last),
        (0, 0, 1) => (west, last, x),
        (0, -1, 0) => (4 + column, last, y),
        (0, 0, -1) => (4 + east, x, last),
        (0, 1, 1) => (opposite, last, last),
        (0, -1, -1) => (8 + column, last, last),
        // The belt: northern ones above, southern ones below, its own to the sides.
        (1, 1, 0) => (column, 0, y),
        (1, 0, 1) => (west, x, 0),
        (1, -1, 0) => (8 + west, last, y),
        (1, 0, -1) => (8 + column, x, last),
        (1, 1, -1) => (4 + east, 0, last),
        (1, -1, 1) => (4 + west, last, 0),
        // Southern base cells.
        (2, 1, 0) => (4 + east, 0, y),
        (2, 0, 1) => (4 + column, x, 0),
        (2, -1, 0) => (8 + west, y, 0),
        (2, 0, -1) => (8 + east, 0, x),
        (2, 1, 1) => (column, 0, 0),
        (2, -1, -1) => (8 + opposite, 0, 0),
        _ => return None,
    })
}
