//! HEALPix cells in the nested numbering (Gorski et al. 2005, section 5), computed independently of the server.
//! Positions on the very edge of a cell may go to either side.

use std::f64::consts::FRAC_PI_2;

/// The deepest order that 64 bits hold.
pub(super) const DEEPEST: u32 = 29;

/// The cell of a position in degrees.
pub(super) fn nested(order: u32, ra: f64, dec: f64) -> u64 {
    let side = 1_i64 << order;
    let z = dec.to_radians().sin();
    // Right ascension in quarter turns, from 0 to below 4.
    let quarter = (ra.to_radians() / FRAC_PI_2).rem_euclid(4.0);
    let (face, x, y) = if z.abs() <= 2.0 / 3.0 {
        equatorial(order, side, quarter, z)
    } else {
        polar(side, quarter, z, dec.to_radians().cos())
    };
    ((face as u64) << (2 * order)) + spread(x) + (spread(y) << 1)
}

fn equatorial(order: u32, side: i64, quarter: f64, z: f64) -> (i64, i64, i64) {
    let (along, across) = (side as f64 * (0.5 + quarter), side as f64 * z * 0.75);
    let (rising, falling) = ((along - across) as i64, (along + across) as i64);
    let (up, down) = (rising >> order, falling >> order);
    let face = match up.cmp(&down) {
        std::cmp::Ordering::Equal => up | 4,
        std::cmp::Ordering::Less => up,
        std::cmp::Ordering::Greater => down + 8,
    };
    (face, falling & (side - 1), side - 1 - (rising & (side - 1)))
}

fn polar(side: i64, quarter: f64, z: f64, cos_dec: f64) -> (i64, i64, i64) {
    let column = (quarter as i64).min(3);
    let within = quarter - column as f64;
    // The root of 3 (1 - |z|), without losing digits near the pole.
    let height = side as f64 * cos_dec / ((1.0 + z.abs()) / 3.0).sqrt();
    let rising = ((within * height) as i64).min(side - 1);
    let falling = (((1.0 - within) * height) as i64).min(side - 1);
    if z >= 0.0 { (column, side - 1 - falling, side - 1 - rising) } else { (column + 8, rising, falling) }
}

/// The bits of a number with a zero before each.
fn spread(value: i64) -> u64 {
    (0..DEEPEST).map(|bit| (value as u64 >> bit & 1) << (2 * bit)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_cells() {
        for (order, ra, dec, cell) in [
            (0, 45.0, 60.0, 0),
            (0, 315.0, 60.0, 3),
            (0, 0.0, 0.0, 4),
            (0, 359.0, 1.0, 4),
            (0, 90.0, 0.0, 5),
            (0, 45.0, -60.0, 8),
            (0, 10.0, 90.0, 0),
        ] {
            assert_eq!(nested(order, ra, dec), cell, "{order} {ra} {dec}");
        }
    }

    /// Cells as the library of the CDS (`cdshealpix` 0.10) numbers them.
    #[test]
    fn cells_are_those_of_the_library() {
        for (order, ra, dec, cell) in [
            (1, 0.0, -7.1776, 16),
            (1, 148.0137, 47.189, 5),
            (1, 26.2974, -66.2854, 32),
            (4, 271.8903, -3.2618, 1853),
            (4, 241.7107, 67.6962, 729),
            (4, 337.6677, -29.795, 2940),
            (4, 54.7885, -23.153, 2259),
            (8, 165.377, 25.079, 454_301),
            (8, 357.3085, -43.5949, 742_527),
            (8, 53.0745, 10.55, 1508),
            (8, 10.0, 89.8, 65_535),
            (8, 123.0, -89.99, 589_824),
            (8, 45.0, 41.8103, 16_383),
            (8, 359.9999, -41.8104, 742_741),
            (8, 180.0, 90.0, 196_607),
            (12, 102.2356, 16.579, 97_733_611),
            (12, 94.8554, 64.6727, 29_348_311),
            (12, 321.3868, -37.9534, 191_593_099),
        ] {
            assert_eq!(nested(order, ra, dec), cell, "{order} {ra} {dec}");
        }
        for (ra, dec, cell) in [
            (303.7496, -22.6975, 3_426_342_059_730_581_651),
            (170.0742, -73.156, 2_613_817_540_497_934_827),
            (351.5404, 73.4544, 1_114_347_889_155_554_070),
        ] {
            // The last bits are a matter of rounding.
            assert_eq!(nested(DEEPEST, ra, dec) >> 12, cell >> 12, "{ra} {dec}");
        }
    }

    proptest! {
        #[test]
        fn a_cell_lies_within_its_parent(ra in 0.0..360.0f64, dec in -90.0..90.0f64) {
            let cell = nested(DEEPEST, ra, dec);
            prop_assert_eq!(cell >> (2 * (DEEPEST - 4)), nested(4, ra, dec));
        }
    }
}
