//! Caps: all positions within an arc of a centre. Circles are caps, and every shape is bounded by one.

use std::f64::consts::PI;

use super::{Vec3, angle};

/// What a position may be off and still lie on a boundary, in radians: a boundary belongs to its region,
/// although few positions of it have coordinates in f64. Two nano-arcseconds are 1e-14.
pub(crate) const TOUCH: f64 = 2e-15;

/// A cap, ready for tests.
///
/// The test is one chord: `|p - c|^2 <= 4 sin^2(r / 2)`, which keeps its digits where a scalar product
/// against `cos r` loses them all. Beyond 90 degrees it is made at the opposite pole, where the chord is
/// short again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cap {
    /// The centre.
    center: Vec3,
    /// The radius in radians, at most pi.
    radius: f64,
    /// The pole of the test: the centre or its antipode.
    pole: Vec3,
    /// 1 at the centre, -1 at the antipode.
    sign: f64,
    /// What the signed square of the chord may be.
    limit: f64,
}

impl Cap {
    /// The cap around a position with a radius in degrees; above 180 it is the whole sphere. The radius is
    /// not negative.
    pub fn new(center: Vec3, radius_degrees: f64) -> Self {
        let radius = radius_degrees.clamp(0.0, 180.0);
        // Rounding must not put out what lies on the edge; a radius of zero is equality.
        let slack = if radius == 0.0 { 0.0 } else { TOUCH / 4.0 };
        let chord = |degrees: f64| angle::chord_squared(degrees).sqrt();
        let (pole, sign, limit) = if radius <= 90.0 {
            (center, 1.0, square(chord(radius) + slack))
        } else if radius < 180.0 {
            (-center, -1.0, -square((chord(180.0 - radius) - slack).max(0.0)))
        } else {
            (center, 1.0, f64::MAX)
        };
        Self { center, radius: radius.to_radians(), pole, sign, limit }
    }

    /// The cap with a radius in radians.
    pub(crate) fn from_radians(center: Vec3, radius: f64) -> Self {
        Self { radius: radius.clamp(0.0, PI), ..Self::new(center, radius.to_degrees()) }
    }

    /// The whole sphere.
    pub fn whole() -> Self {
        Self::new(Vec3 { x: 1.0, y: 0.0, z: 0.0 }, 180.0)
    }

    /// A small cap that holds all these positions, if one below 88 degrees is found.
    pub(crate) fn around(points: &(impl Iterator<Item = Vec3> + Clone)) -> Option<Self> {
        let first = points.clone().next()?;
        let farthest = |from: Vec3| {
            points.clone().fold((from, 0.0), |best: (Vec3, f64), p| {
                let chord = from.chord_squared(p);
                if chord > best.1 { (p, chord) } else { best }
            })
        };
        let one = farthest(first).0;
        let other = farthest(one).0;
        let mean = points.clone().fold(Vec3::default(), |sum, p| sum + p);
        let centers = [(one + other).normalized(), mean.normalized()];
        let (center, chord) = centers
            .into_iter()
            .flatten()
            .map(|center| (center, farthest(center).1))
            .min_by(|a, b| a.1.total_cmp(&b.1))?;
        let radius = 2.0 * (chord.sqrt() / 2.0).min(1.0).asin();
        (radius.to_degrees() < 88.0).then(|| Self::from_radians(center, radius * (1.0 + 1e-15) + TOUCH))
    }

    /// The centre.
    pub fn center(&self) -> Vec3 {
        self.center
    }

    /// The radius in radians.
    pub fn radius(&self) -> f64 {
        self.radius
    }

    /// The radius in degrees.
    pub fn radius_degrees(&self) -> f64 {
        self.radius.to_degrees()
    }

    /// Whether it is the whole sphere.
    pub fn is_whole(&self) -> bool {
        self.limit == f64::MAX
    }

    /// Whether a position is in it, its edge included. NaN is not.
    #[inline]
    pub fn contains(&self, p: Vec3) -> bool {
        self.sign * self.pole.chord_squared(p) <= self.limit
    }

    /// Whether the two have a position in common.
    pub fn meets(&self, other: &Self) -> bool {
        self.center.angle(other.center) <= self.radius + other.radius + TOUCH
    }

    /// Whether the other is within this one.
    pub fn holds(&self, other: &Self) -> bool {
        self.is_whole()
            || (!other.is_whole() && self.center.angle(other.center) + other.radius <= self.radius + TOUCH)
    }
}

fn square(x: f64) -> f64 {
    x * x
}
