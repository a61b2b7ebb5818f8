//! Arcs of circles: what every shape is bounded by.
//!
//! An edge of a polygon, a meridian, a parallel and the edge of a circle are all positions at one radius from
//! an axis, over a range of angles around it. Where two such circles cross is a triangle with three known
//! sides; its half-angle formula keeps its digits for circles of a milli-arcsecond as for great ones. Arcs
//! are parted where others cross them, and each part is judged by its middle: a crossing that is
//! ill-conditioned (edges that nearly coincide) may then be found at the wrong place without a wrong answer.

use std::f64::consts::{PI, TAU};

use super::cap::{Cap, TOUCH};
use super::{Vec3, angle};

/// What an end of an arc may be off by, in radians.
const END: f64 = 4.0 * TOUCH;

/// How near another arc must come for an arc to be parted there. More than it could be off: a part too many does
/// no harm, one that another arc leaves in its middle has no side.
pub(crate) const NEAR: f64 = 1e-12;

/// An arc, run through counter-clockwise around its axis as seen from outside: the axis is to the left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arc {
    axis: Vec3,
    /// Where it starts, at a right angle to the axis, and a quarter turn on.
    u: Vec3,
    v: Vec3,
    radius: f64,
    sin_radius: f64,
    cos_radius: f64,
    /// How far it extends around the axis, a whole turn at most.
    extent: f64,
    /// Nothing of it is farther than so long a chord from this place.
    middle: Vec3,
    reach: f64,
}

impl Arc {
    /// The shorter arc of a great circle between two positions.
    pub(crate) fn great(start: Vec3, end: Vec3, normal: Vec3) -> Self {
        Self::of_extent(normal, start, 90.0, start.angle(end))
    }

    /// The edge of a cap.
    pub(crate) fn edge(cap: &Cap) -> Self {
        let axis = cap.center();
        let u = axis.perpendicular();
        Self::of_extent(axis, u, cap.radius_degrees(), TAU)
    }

    /// A parallel from a longitude eastward, all in degrees.
    pub(crate) fn parallel(lon: f64, extent: f64, lat: f64) -> Self {
        let axis = Vec3 { x: 0.0, y: 0.0, z: 1.0 };
        Self::of_extent(axis, Vec3::from_degrees(lon, 0.0), 90.0 - lat, extent.to_radians())
    }

    /// A meridian from a latitude northward, all in degrees.
    pub(crate) fn meridian(lon: f64, south: f64, north: f64) -> Self {
        let (sine, cosine) = angle::sin_cos(lon);
        let normal = Vec3 { x: sine, y: -cosine, z: 0.0 };
        Self::of_extent(normal, Vec3::from_degrees(lon, south), 90.0, (north - south).to_radians())
    }

    fn of_extent(axis: Vec3, u: Vec3, radius_degrees: f64, extent: f64) -> Self {
        let (sin_radius, cos_radius) = angle::sin_cos(radius_degrees);
        let radius = radius_degrees.to_radians();
        let (v, middle, reach) = (axis.cross(u), axis * cos_radius, sin_radius);
        let mut arc = Self { axis, u, v, radius, sin_radius, cos_radius, extent, middle, reach };
        if extent < PI {
            (arc.middle, arc.reach) = (arc.at(extent / 2.0), 2.0 * sin_radius * (extent / 4.0).sin());
        }
        arc
    }

    /// The position at an angle.
    pub(crate) fn at(&self, angle: f64) -> Vec3 {
        let (sine, cosine) = angle.sin_cos();
        self.axis * self.cos_radius + (self.u * cosine + self.v * sine) * self.sin_radius
    }

    /// The direction at an angle that points to the left, towards the axis.
    pub(crate) fn left(&self, angle: f64) -> Vec3 {
        let (sine, cosine) = angle.sin_cos();
        self.axis * self.sin_radius - (self.u * cosine + self.v * sine) * self.cos_radius
    }

    /// The position where it starts.
    pub(crate) fn start(&self) -> Vec3 {
        self.at(0.0)
    }

    pub(crate) fn axis(&self) -> Vec3 {
        self.axis
    }

    pub(crate) fn radius(&self) -> f64 {
        self.radius
    }

    pub(crate) fn is_great(&self) -> bool {
        self.cos_radius == 0.0
    }

    /// The length of the part between two angles.
    pub(crate) fn length(&self, from: f64, to: f64) -> f64 {
        (to - from) * self.sin_radius
    }

    fn is_whole(&self) -> bool {
        self.extent >= TAU
    }

    /// The angle of a position, 0 to a whole turn.
    fn angle_of(&self, p: Vec3) -> f64 {
        p.dot(self.v).atan2(p.dot(self.u)).rem_euclid(TAU)
    }

    /// Whether an angle is within the arc, its ends included; it is then brought into the extent.
    fn within(&self, angle: f64, slack: f64) -> Option<f64> {
        let slack = (slack / self.sin_radius.max(slack)).min(1.0);
        let angle = angle.rem_euclid(TAU);
        if angle <= self.extent + slack {
            Some(angle.min(self.extent))
        } else {
            (angle >= TAU - slack).then_some(0.0)
        }
    }

    /// Whether a position is on it, or not farther beside it.
    pub(crate) fn touches(&self, p: Vec3, slack: f64) -> bool {
        let across = self.axis.angle(p) - self.radius;
        across.abs() <= slack && self.within(self.angle_of(p), END).is_some()
    }

    /// Whether a position is on the whole circle, nearly.
    #[cfg(test)]
    pub(crate) fn nearly(&self, p: Vec3) -> bool {
        (self.axis.angle(p) - self.radius).abs() < 1e-13
    }

    /// The angles, on this arc, where another crosses it, touches it, or begins or ends on it, to within `slack`.
    ///
    /// The place of a crossing is found once for both arcs, and one that cannot be told from an end is that
    /// end: then edges that were parted still close.
    pub(crate) fn crossings(&self, other: &Self, slack: f64, found: &mut Vec<f64>) {
        let reach = self.reach + other.reach + slack;
        if self.middle.chord_squared(other.middle) > reach * reach {
            return;
        }
        for end in other.ends().into_iter().flatten() {
            let across = self.axis.angle(end) - self.radius;
            if across.abs() <= slack {
                found.extend(self.within(self.angle_of(end), slack));
            }
        }
        let swapped = self.axis.x.total_cmp(&other.axis.x).then(self.axis.y.total_cmp(&other.axis.y)).is_gt();
        let (one, two) = if swapped { (other, self) } else { (self, other) };
        let Some(half) = one.half_angle(two, slack) else { return };
        let towards = one.angle_of(two.axis);
        for angle in [towards - half, towards + half] {
            let place = one.at(angle);
            let unsure = one.uncertainty(two, place);
            let ends = one.ends().into_iter().chain(two.ends()).flatten();
            let place =
                ends.into_iter().find(|end| end.chord_squared(place) <= unsure * unsure).unwrap_or(place);
            if let Some(angle) = self.within(self.angle_of(place), slack)
                && other.within(other.angle_of(place), slack).is_some()
            {
                found.push(angle);
            }
        }
    }

    /// How far along the circles the place where they cross may be off: as far as they are not apart by more
    /// than an end may be off. They part with the angle that they make, and with the difference of their
    /// curvatures.
    fn uncertainty(&self, other: &Self, place: Vec3) -> f64 {
        let sine = self.axis.robust_cross(other.axis).dot(place) / (self.sin_radius * other.sin_radius);
        let side = if self.inward(place).dot(other.inward(place)) < 0.0 { -1.0 } else { 1.0 };
        let bend = self.cos_radius / self.sin_radius - side * other.cos_radius / other.sin_radius;
        (END / sine.abs().max(END)).min((2.0 * END / bend.abs().max(END)).sqrt())
    }

    /// The direction towards the axis at a place, not of length 1.
    fn inward(&self, place: Vec3) -> Vec3 {
        self.axis - place * self.axis.dot(place)
    }

    /// Where it begins and ends; a whole circle does not.
    fn ends(&self) -> [Option<Vec3>; 2] {
        if self.is_whole() { [None; 2] } else { [0.0, self.extent].map(|angle| Some(self.at(angle))) }
    }

    /// Whether the two have a position in common.
    pub(crate) fn meets(&self, other: &Self, scratch: &mut Vec<f64>) -> bool {
        scratch.clear();
        self.crossings(other, END, scratch);
        if scratch.is_empty() && !self.is_whole() {
            // One that lies on the other within its ends shows only from the other.
            other.crossings(self, END, scratch);
        }
        !scratch.is_empty()
    }

    /// The angle, at this axis, between the other axis and where the circles cross; `None` if they do not
    /// meet.
    fn half_angle(&self, other: &Self, slack: f64) -> Option<f64> {
        let (own, far, apart) = (self.radius, other.radius, self.axis.angle(other.axis));
        let s = (own + far + apart) / 2.0;
        let differences = [s - own, s - far, s - apart, PI - s];
        if differences.iter().any(|difference| *difference < -slack) {
            return None;
        }
        let [own, far, apart, rest] = differences.map(|difference| difference.max(0.0).sin());
        Some(2.0 * (own * apart).sqrt().atan2((rest * far).sqrt()))
    }

    /// Half the integral of the position times its direction, between two angles.
    pub(crate) fn moment(&self, from: f64, to: f64) -> Vec3 {
        let ((sin_from, cos_from), (sin_to, cos_to)) = (from.sin_cos(), to.sin_cos());
        let outward = self.u * (sin_to - sin_from) + self.v * (cos_from - cos_to);
        let along = self.axis * (self.sin_radius * (to - from)) - outward * self.cos_radius;
        along * (0.5 * self.sin_radius)
    }

    /// The parts between sorted angles, the ends of the arc among them: from, to. Parts without length are
    /// left out.
    pub(crate) fn parts(&self, mut angles: Vec<f64>) -> Vec<(f64, f64)> {
        angles.extend([0.0, self.extent]);
        angles.sort_unstable_by(f64::total_cmp);
        let long = |part: &(f64, f64)| self.length(part.0, part.1) > END;
        angles.iter().copied().zip(angles.iter().copied().skip(1)).filter(long).collect()
    }
}
