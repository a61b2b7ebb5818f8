//! Positions at another epoch: uniform straight motion in space, rigorously.
//!
//! The formulas of the Hipparcos catalogue (ESA SP-1200 volume 1, section 1.5.5), which the IVOA catalogue of
//! user-defined functions asks for (`ivo_epoch_prop_pos`) and the Gaia archive uses: the star moves on a
//! line, all six parameters follow. Light time is left out on both sides, as the standard says.

use crate::sphere::{Vec3, sin_cos};

/// An astronomical unit in a Julian year, in km/s: 149,597,870.7 km in 365.25 days.
const AU_PER_YEAR: f64 = 149_597_870.7 / (365.25 * 86_400.0);

/// Radians of a milli-arcsecond.
const MAS: f64 = std::f64::consts::PI / (180.0 * 3600.0 * 1000.0);

/// The six parameters of a star at an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Astrometry {
    /// Longitude in degrees.
    pub ra: f64,
    /// Latitude in degrees.
    pub dec: f64,
    /// Parallax in mas. Zero or less: infinitely remote, and the radial velocity has no effect.
    pub parallax: f64,
    /// Proper motion in longitude, times the cosine of the latitude, in mas a year.
    pub pmra: f64,
    /// Proper motion in latitude in mas a year.
    pub pmdec: f64,
    /// Radial velocity in km/s.
    pub radial_velocity: f64,
}

/// The parameters after so many Julian years. NaN in what they depend on is NaN in the result; NULLs of
/// parallax, proper motions and radial velocity are to be given as 0 (IVOA UDF catalogue,
/// `ivo_epoch_prop_pos`).
pub fn propagate(star: &Astrometry, years: f64) -> Astrometry {
    let ((sin_ra, cos_ra), (sin_dec, cos_dec)) = (sin_cos(star.ra), sin_cos(star.dec));
    let east = Vec3 { x: -sin_ra, y: cos_ra, z: 0.0 };
    let north = Vec3 { x: -sin_dec * cos_ra, y: -sin_dec * sin_ra, z: cos_dec };
    let here = Vec3::from_degrees(star.ra, star.dec);
    let motion = east * (star.pmra * MAS) + north * (star.pmdec * MAS);
    let speed_squared = motion.norm_squared();
    // The relative change of distance a year.
    let near = star.parallax > 0.0 || star.parallax.is_nan();
    let receding = if near { star.radial_velocity * star.parallax * MAS / AU_PER_YEAR } else { 0.0 };

    let along = 1.0 + receding * years;
    // The square of the distance then to that now, and the factors that follow from it.
    let squared = along * along + speed_squared * years * years;
    let f = 1.0 / squared.sqrt();
    let there = (here * along + motion * years) * f;
    let motion = (motion * along - here * (speed_squared * years)) * (f * f * f);
    let receding = (receding + (speed_squared + receding * receding) * years) * (f * f);
    let parallax = star.parallax * f;

    let (ra, dec) = there.to_degrees();
    let (east, north) = tangents(there, east);
    let radial_velocity = if near { receding * AU_PER_YEAR / (parallax * MAS) } else { star.radial_velocity };
    let (pmra, pmdec) = (motion.dot(east) / MAS, motion.dot(north) / MAS);
    Astrometry { ra, dec, parallax, pmra, pmdec, radial_velocity }
}

/// East and north at a position; at a pole, east as it was before.
fn tangents(at: Vec3, before: Vec3) -> (Vec3, Vec3) {
    let east = Vec3 { x: -at.y, y: at.x, z: 0.0 }.normalized().unwrap_or(before);
    (east, at.cross(east))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sphere::distance;

    const STAR: Astrometry = Astrometry {
        ra: 7.606083572,
        dec: 11.79044105,
        parallax: 125.0,
        pmra: 300.0,
        pmdec: -428.8,
        radial_velocity: 52.51,
    };

    /// The examples of the IVOA catalogue of user-defined functions.
    #[test]
    fn examples_of_the_udf_catalogue() {
        let still = Astrometry { radial_velocity: 0.0, ..STAR };
        let cases = [
            (STAR, 1992.25, (7.604061404627978, 11.7932703828279), 1e-12),
            (STAR, 1875.0, (7.594068213694308, 11.807251375203935), 1e-12),
            (still, 1875.0, (7.594079587029898, 11.807235464326332), 1e-12),
            (Astrometry { pmdec: 0.0, ..still }, 1875.0, (7.594080321498365, 11.790440798509207), 1e-12),
            (Astrometry { parallax: 0.0, ..STAR }, 1875.0, (7.594079587020846, 11.807235464339055), 1e-10),
        ];
        for (star, epoch, (ra, dec), slack) in cases {
            let found = propagate(&star, epoch - 2016.0);
            assert!((found.ra - ra).abs() < slack && (found.dec - dec).abs() < slack, "{star:?}: {found:?}");
        }
    }

    #[test]
    fn what_is_infinitely_remote_keeps_its_radial_velocity() {
        for parallax in [0.0, -3.0] {
            let found = propagate(&Astrometry { parallax, ..STAR }, 100.0);
            assert_eq!(found.radial_velocity, STAR.radial_velocity);
            assert!((found.parallax - parallax).abs() < 1e-6);
        }
        let still = propagate(&Astrometry { ra: 370.0, dec: -3.0, ..Astrometry::default() }, 1e4);
        assert!(distance(still.ra, still.dec, 10.0, -3.0) < 1e-13 && still.pmra == 0.0 && still.pmdec == 0.0);
    }

    /// What astropy's `apply_space_motion` gives for Barnard's star, from 2016.0 to 1950.0. It counts light
    /// time in, half a milli-arcsecond here.
    #[test]
    fn as_astropy() {
        let star = Astrometry {
            ra: 269.448_502_525_438_4,
            dec: 4.739_420_051_112_412,
            parallax: 546.975_939_730_3,
            pmra: -801.551,
            pmdec: 10362.394,
            radial_velocity: -110.1,
        };
        let found = propagate(&star, -66.0);
        let expected = ASTROPY_BARNARD;
        assert!(distance(found.ra, found.dec, expected.0, expected.1) * 3.6e6 < 0.6, "{found:?}");
        assert!((found.parallax - expected.2).abs() < 1e-3, "{found:?}");
        assert!((found.pmra - expected.3).abs() < 0.1 && (found.pmdec - expected.4).abs() < 0.1, "{found:?}");
        assert!((found.radial_velocity - expected.5).abs() < 0.01, "{found:?}");
    }

    const ASTROPY_BARNARD: (f64, f64, f64, f64, f64, f64) = (
        269.463_184_317_574_87,
        4.550_212_625_239_95,
        544.757_857_892_689,
        -794.850_831_224_931,
        10_278.548_515_297_052,
        -110.397_850_359_122_97,
    );

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// There and back again.
        #[test]
        fn a_line_runs_both_ways(
            ra in 0.0..360.0_f64,
            dec in prop_oneof![-90.0..90.0_f64, Just(90.0), Just(-90.0)],
            parallax in 0.01..800.0_f64,
            pmra in -1e4..1e4_f64,
            pmdec in -1e4..1e4_f64,
            radial_velocity in -500.0..500.0_f64,
            years in -5e3..5e3_f64,
        ) {
            let star = Astrometry { ra, dec, parallax, pmra, pmdec, radial_velocity };
            let back = propagate(&propagate(&star, years), -years);
            prop_assert!(distance(ra, dec, back.ra, back.dec) < 1e-9, "{:?}", back);
            prop_assert!((back.parallax / parallax - 1.0).abs() < 1e-9);
            prop_assert!((back.radial_velocity - radial_velocity).abs() < 1e-6 / parallax.min(1.0));
            let speed = |star: &Astrometry| star.pmra.hypot(star.pmdec);
            prop_assert!((speed(&back) - speed(&star)).abs() < 1e-5);
        }
    }
}
