//! Between the sphere and the plane of the cells.
//!
//! In the plane, `t` is the longitude in quarter turns and `h` the height: `3/4 sin(lat)` between latitudes
//! of `asin(2/3)`, and beyond them `1 - s/2` with `s = sqrt(3 (1 - |sin(lat)|))`, where a quarter shrinks to
//! a triangle of width `s`. The squares lie on their corners: `u` and `v` count along their sides, to the
//! north-east and to the north-west.

/// Cells along the side of a base cell at order 29.
const SIDE: f64 = (1_u32 << 29) as f64;
const LAST: u32 = (1 << 29) - 1;

/// The base cell and the coordinates in it at order 29, each less than 2^29.
#[inline]
pub(super) fn project(lon: f64, lat: f64) -> Option<(u8, u32, u32)> {
    if !(lat.abs() <= 90.0 && lon.is_finite()) {
        return None;
    }
    let turn = crate::sphere::wrap_longitude(lon) / 90.0;
    let (sine, cosine) = crate::sphere::sin_cos(lat);
    Some(if 3.0 * sine.abs() <= 2.0 { belt(turn, sine) } else { polar(turn, sine, cosine) })
}

/// Between the parallels where the base cells have their outer corners.
#[inline]
fn belt(turn: f64, sine: f64) -> (u8, u32, u32) {
    let height = 0.75 * sine;
    // Whole parts say in which rising and which falling row of base cells; both are from 0 to 4.
    let rising = SIDE * (turn + 0.5 + height);
    let falling = SIDE * (turn + 0.5 - height);
    let (rising, falling) = (rising as u64, falling as u64);
    let (row, column) = ((rising >> 29) as u8, (falling >> 29) as u8);
    let (x, y) = (rising as u32 & LAST, LAST - (falling as u32 & LAST));
    match row as i8 - column as i8 {
        0 => (4 + (row & 3), x, y),
        1 => (column & 3, x, y),
        -1 => (8 + (row & 3), x, y),
        // At an outer corner of the base cells rounding can step over both edges.
        2 => (column & 3, LAST, y),
        _ => (8 + (row & 3), x, 0),
    }
}

/// In the caps, where meridians converge. The square root is taken of the cosine: near a pole `1 - sin` has
/// none of its digits left.
#[inline]
fn polar(turn: f64, sine: f64, cosine: f64) -> (u8, u32, u32) {
    let quarter = (turn as u8).min(3);
    let part = turn - f64::from(quarter);
    let width = SIDE * cosine * (3.0 / (1.0 + sine.abs())).sqrt();
    let cut = |value: f64| (value as u32).min(LAST);
    let (east, west) = (cut(part * width), cut((1.0 - part) * width));
    if sine > 0.0 { (quarter, LAST - west, LAST - east) } else { (8 + quarter, east, west) }
}

/// Where on the sphere a place in a base cell is, `x` and `y` from 0 to 1: the longitude in quarter turns,
/// sine and cosine of the latitude.
#[inline]
pub(super) fn unproject(face: u8, x: f64, y: f64) -> (f64, f64, f64) {
    let (row, column) = (face / 4, f64::from(face % 4));
    let middle = if row == 1 { column } else { column + 0.5 };
    let height = 0.5 * (x + y - f64::from(row));
    let aside = 0.5 * (x - y);
    if height.abs() <= 0.5 {
        let sine = height / 0.75;
        return (middle + aside, sine, (1.0 - sine * sine).sqrt());
    }
    // From the corner at the pole, so that small widths keep their digits.
    let width = if row == 0 { (1.0 - x) + (1.0 - y) } else { x + y };
    let rest = width * width / 3.0;
    let cosine = width * ((2.0 - rest) / 3.0).sqrt();
    let turn = if width > 0.0 { middle + aside / width } else { middle };
    (turn, (1.0 - rest).copysign(height), cosine)
}

/// The number of a cell at order 29: the base cell, and the bits of `y` and `x` in turn.
#[inline]
pub(super) fn number(face: u8, x: u32, y: u32) -> u64 {
    u64::from(face) << 58 | part(x) | part(y) << 1
}

/// The bits of a number at the even places of another.
#[inline]
pub(super) fn part(value: u32) -> u64 {
    let mut bits = u64::from(value);
    bits = (bits | bits << 16) & 0x0000_ffff_0000_ffff;
    bits = (bits | bits << 8) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333;
    (bits | bits << 1) & 0x5555_5555_5555_5555
}

/// The bits at the even places.
#[inline]
pub(super) fn gather(value: u64) -> u32 {
    let mut bits = value & 0x5555_5555_5555_5555;
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333;
    bits = (bits | bits >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    bits = (bits | bits >> 4) & 0x00ff_00ff_00ff_00ff;
    bits = (bits | bits >> 8) & 0x0000_ffff_0000_ffff;
    (bits | bits >> 16) as u32
}
