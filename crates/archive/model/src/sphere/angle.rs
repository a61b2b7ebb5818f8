//! Angles in degrees: sine and cosine, longitudes, distances, directions.
//!
//! Sine and cosine are our own, for three reasons. The argument is reduced in degrees, where the quarter turn
//! is a whole number: `cos(90)` is 0 and the poles are one point whatever their longitude. The result is the
//! same on every machine, as it must be for a HEALPix index that was written to disk elsewhere. And it costs
//! some ten multiplications, so that a load of millions of rows is not spent here. The error is below two
//! units in the last place; `tests` compares with the platform's functions.

use super::Vec3;

/// The sum that rounds any number of up to 51 bits to a whole one, halves to even.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Arguments beyond this are brought into one turn first; below it the reduction is exact anyway.
const REDUCED: f64 = 720.0;

/// Sine and cosine of an angle in degrees.
#[inline]
pub fn sin_cos(degrees: f64) -> (f64, f64) {
    let degrees = if degrees.abs() <= REDUCED { degrees } else { degrees % 360.0 };
    let quarter = (degrees / 90.0 + ROUND) - ROUND;
    // Exact: the two differ by at most 45.
    let rest = (degrees - 90.0 * quarter).to_radians();
    let (sine, cosine) = (sine(rest), cosine(rest));
    match quarter as i64 & 3 {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

/// The sine of at most an eighth of a turn, in radians, by its series.
#[inline]
fn sine(x: f64) -> f64 {
    const S: [f64; 8] = [
        -1.0 / 6.0,
        1.0 / 120.0,
        -1.0 / 5_040.0,
        1.0 / 362_880.0,
        -1.0 / 39_916_800.0,
        1.0 / 6_227_020_800.0,
        -1.0 / 1_307_674_368_000.0,
        1.0 / 355_687_428_096_000.0,
    ];
    let s = x * x;
    let (low, high) = (S[0] + s * (S[1] + s * (S[2] + s * S[3])), S[4] + s * (S[5] + s * (S[6] + s * S[7])));
    x + x * s * (low + s * s * (s * s) * high)
}

/// The cosine of at most an eighth of a turn, in radians, by its series.
#[inline]
fn cosine(x: f64) -> f64 {
    const C: [f64; 8] = [
        1.0 / 24.0,
        -1.0 / 720.0,
        1.0 / 40_320.0,
        -1.0 / 3_628_800.0,
        1.0 / 479_001_600.0,
        -1.0 / 87_178_291_200.0,
        1.0 / 20_922_789_888_000.0,
        -1.0 / 6_402_373_705_728_000.0,
    ];
    let s = x * x;
    let (low, high) = (C[0] + s * (C[1] + s * (C[2] + s * C[3])), C[4] + s * (C[5] + s * (C[6] + s * C[7])));
    let half = 0.5 * s;
    let whole = 1.0 - half;
    // What the first difference lost is added again.
    whole + (((1.0 - whole) - half) + s * s * (low + s * s * (s * s) * high))
}

/// The longitude in 0 to 360, 360 excluded; NaN stays.
#[inline]
pub fn wrap_longitude(degrees: f64) -> f64 {
    if (0.0..360.0).contains(&degrees) {
        return degrees;
    }
    let rest = degrees % 360.0;
    let wrapped = if rest < 0.0 { rest + 360.0 } else { rest };
    // A tiny negative longitude rounds to the full turn; -0 becomes 0.
    if wrapped >= 360.0 { 0.0 } else { wrapped + 0.0 }
}

/// The arc between two positions in degrees (ADQL 2.1 4.2.16): exact from micro-arcseconds to antipodes.
///
/// Half-angle formulas of sums of squares only, so that nothing cancels; differences of coordinates are taken
/// before any function of them. NaN if a coordinate is NaN or a latitude is beyond a pole.
pub fn distance(lon1: f64, lat1: f64, lon2: f64, lat2: f64) -> f64 {
    if !(lat1.abs() <= 90.0 && lat2.abs() <= 90.0) {
        return f64::NAN;
    }
    let across = sin_cos(lat1).1 * sin_cos(lat2).1;
    let (sin_lon, cos_lon) = sin_cos((lon1 - lon2) / 2.0);
    let sin_difference = sin_cos((lat1 - lat2) / 2.0).0;
    let sin_sum = sin_cos((lat1 + lat2) / 2.0).0;
    let near = sin_difference * sin_difference + across * sin_lon * sin_lon;
    let far = sin_sum * sin_sum + across * cos_lon * cos_lon;
    (2.0 * near.sqrt().atan2(far.sqrt())).to_degrees()
}

/// The square of the chord under an arc of so many degrees.
#[inline]
pub fn chord_squared(degrees: f64) -> f64 {
    let half = sin_cos(degrees / 2.0).0;
    4.0 * half * half
}

/// The direction from the first position to the second, in degrees from north through east, 0 to 360.
pub fn position_angle(lon1: f64, lat1: f64, lon2: f64, lat2: f64) -> f64 {
    let (sin1, cos2) = (sin_cos(lat1).0, sin_cos(lat2).1);
    let half = sin_cos((lon2 - lon1) / 2.0).0;
    // cos(lat1) sin(lat2) - sin(lat1) cos(lat2) cos(lon2 - lon1), without losing a small difference of
    // latitudes.
    let north = sin_cos(lat2 - lat1).0 + 2.0 * sin1 * cos2 * half * half;
    let east = sin_cos(lon2 - lon1).0 * cos2;
    wrap_longitude(east.atan2(north).to_degrees())
}

/// Where one arrives who leaves a position into a direction (degrees from north through east) for so many
/// degrees. Longitude and latitude in degrees.
pub fn offset(lon: f64, lat: f64, position_angle: f64, degrees: f64) -> (f64, f64) {
    let ((sin_lon, cos_lon), (sin_lat, cos_lat)) = (sin_cos(lon), sin_cos(lat));
    let ((sin_angle, cos_angle), (sin_far, cos_far)) = (sin_cos(position_angle), sin_cos(degrees));
    let here = Vec3 { x: cos_lat * cos_lon, y: cos_lat * sin_lon, z: sin_lat };
    let east = Vec3 { x: -sin_lon, y: cos_lon, z: 0.0 };
    let north = Vec3 { x: -sin_lat * cos_lon, y: -sin_lat * sin_lon, z: cos_lat };
    let there = here * cos_far + (north * cos_angle + east * sin_angle) * sin_far;
    there.to_degrees()
}

#[cfg(test)]
mod tests;
