use proptest::prelude::*;

use super::*;

#[test]
fn quarter_turns_are_exact() {
    for turn in -8_i32..=8 {
        let (sine, cosine) = sin_cos(f64::from(turn) * 90.0);
        let expected = match turn.rem_euclid(4) {
            0 => (0.0, 1.0),
            1 => (1.0, 0.0),
            2 => (0.0, -1.0),
            _ => (-1.0, 0.0),
        };
        assert_eq!((sine, cosine), expected, "{turn}");
    }
    assert!((sin_cos(30.0).0 - 0.5).abs() < 1e-16);
    assert!(sin_cos(f64::NAN).0.is_nan() && sin_cos(f64::INFINITY).1.is_nan());
}

#[test]
fn longitudes_wrap() {
    let cases = [
        (0.0, 0.0),
        (359.5, 359.5),
        (360.0, 0.0),
        (-10.0, 350.0),
        (-360.0, 0.0),
        (1085.0, 5.0),
        (-1e-300, 0.0),
        (-0.0, 0.0),
    ];
    for (given, expected) in cases {
        assert_eq!(wrap_longitude(given), expected, "{given}");
    }
    assert!(wrap_longitude(f64::NAN).is_nan() && wrap_longitude(f64::INFINITY).is_nan());
}

/// Separations that astropy's `angular_separation` gives, and some that are plain.
#[test]
fn known_distances() {
    let cases = [
        ((10.0, 20.0, 10.0, 20.0), 0.0),
        ((0.0, 90.0, 123.0, 90.0), 0.0),
        ((0.0, 0.0, 90.0, 0.0), 90.0),
        ((0.0, 0.0, 180.0, 0.0), 180.0),
        ((10.0, 30.0, 190.0, -30.0), 180.0),
        ((359.5, 0.0, 0.5, 0.0), 1.0),
        ((-0.5, 0.0, 0.5, 0.0), 1.0),
        ((0.0, 89.0, 180.0, 89.0), 2.0),
    ];
    for ((lon1, lat1, lon2, lat2), expected) in cases {
        let found = distance(lon1, lat1, lon2, lat2);
        assert!((found - expected).abs() < 1e-13, "{lon1} {lat1} {lon2} {lat2}: {found}");
    }
    for (lat1, lat2) in [(f64::NAN, 0.0), (91.0, 0.0), (0.0, -90.1)] {
        assert!(distance(0.0, lat1, 0.0, lat2).is_nan());
    }
}

/// A micro-arcsecond, and a micro-arcsecond less than half a turn.
#[test]
fn distances_keep_their_digits_at_both_ends() {
    let tiny = 1e-6 / 3600.0;
    for lat in [0.0, 33.0, -89.0] {
        let across = sin_cos(lat).1;
        let near = distance(0.0, lat, tiny, lat);
        assert!((near / (tiny * across) - 1.0).abs() < 1e-12, "{lat}: {near}");
        let far = distance(0.0, lat, 180.0, -lat + tiny);
        assert!(((180.0 - far) - tiny).abs() < 4e-14, "{lat}: {far}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Against the platform's functions, at the radian the argument stands for.
    #[test]
    fn sine_and_cosine_are_the_platforms(degrees in -720.0..720.0_f64) {
        let quarter = (degrees / 90.0).round();
        let rest = (degrees - quarter * 90.0).to_radians();
        let (sine, cosine) = rest.sin_cos();
        let expected = match (quarter as i64).rem_euclid(4) {
            0 => (sine, cosine),
            1 => (cosine, -sine),
            2 => (-sine, -cosine),
            _ => (-cosine, sine),
        };
        let found = sin_cos(degrees);
        prop_assert!((found.0 - expected.0).abs() <= 1.2e-16, "{} {}", found.0, expected.0);
        prop_assert!((found.1 - expected.1).abs() <= 1.2e-16, "{} {}", found.1, expected.1);
    }

    #[test]
    fn an_offset_is_found_again(
        lon in 0.0..360.0_f64,
        lat in -89.0..89.0_f64,
        direction in 0.0..360.0_f64,
        exponent in -6.0..2.25_f64,
    ) {
        let far = 10_f64.powf(exponent);
        let (lon2, lat2) = offset(lon, lat, direction, far);
        prop_assert!((distance(lon, lat, lon2, lat2) - far).abs() < 3e-13 / far.clamp(1e-2, 1.0));
        let turned = (position_angle(lon, lat, lon2, lat2) - direction + 180.0).rem_euclid(360.0) - 180.0;
        prop_assert!(turned.abs() * far.to_radians().sin() < 1e-10, "{turned}");
    }

    #[test]
    fn a_vector_has_its_coordinates_back(lon in 0.0..360.0_f64, lat in -90.0..90.0_f64) {
        let vector = Vec3::from_degrees(lon, lat);
        prop_assert!((vector.norm() - 1.0).abs() < 4e-16);
        let (lon2, lat2) = vector.to_degrees();
        prop_assert!(distance(lon, lat, lon2, lat2) < 1e-13);
    }
}
