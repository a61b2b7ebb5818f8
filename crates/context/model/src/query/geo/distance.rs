//! Distances in metres on the sphere, by the haversine formula (4.23.1; 4.10 leaves the figure open).
//!
//! A line between two positions is straight in longitude and latitude (RFC 7946 section 3.1.1), not a great
//! circle. The nearest point on it is found in a plane scaled at the latitudes in question, and for long
//! lines refined by interval search; distances between points are exact on the sphere.

use geo::{Distance, Haversine, Intersects};
use geo_types::{Coord, Geometry, Line, Point};

/// Lines longer than this many degrees are refined.
const LONG: f64 = 0.5;

/// Distance between two positions.
pub(crate) fn between(a: Coord, b: Coord) -> f64 {
    Haversine.distance(Point(a), Point(b))
}

/// The least distance between two geometries, whose segments are given; zero when they have a point in
/// common. Costs the product of the numbers of segments.
pub(crate) fn least(a: &Geometry, a_lines: &[Line], b: &Geometry, b_lines: &[Line]) -> f64 {
    if let (Geometry::Point(a), Geometry::Point(b)) = (a, b) {
        return between(a.0, b.0);
    }
    if a.intersects(b) {
        return 0.0;
    }
    // Segments that do not meet are nearest at an end of one of them.
    nearest_ends(a_lines, b_lines).min(nearest_ends(b_lines, a_lines))
}

fn nearest_ends(ends: &[Line], lines: &[Line]) -> f64 {
    let mut best = f64::INFINITY;
    for end in ends.iter().flat_map(|line| [line.start, line.end]) {
        best = lines.iter().map(|line| to_line(end, *line)).fold(best, f64::min);
    }
    best
}

/// The least distance from a position to a line.
pub(crate) fn to_line(from: Coord, line: Line) -> f64 {
    let ends = between(from, line.start).min(between(from, line.end));
    let (dx, dy) = (line.end.x - line.start.x, line.end.y - line.start.y);
    if dx == 0.0 && dy == 0.0 {
        return ends;
    }
    let at = |share: f64| between(from, Coord { x: line.start.x + share * dx, y: line.start.y + share * dy });
    let inner = at(nearest_share(from, line));
    let best = ends.min(inner);
    if dx.abs() + dy.abs() > LONG { best.min(refine(&at)) } else { best }
}

/// Where on the line, from 0 to 1, the nearest point lies in a plane scaled at the middle latitude.
fn nearest_share(from: Coord, line: Line) -> f64 {
    let (dx, dy) = (line.end.x - line.start.x, line.end.y - line.start.y);
    let x = wrapped(line.start.x - from.x);
    let y = line.start.y - from.y;
    let mut share = 0.5;
    for _ in 0..3 {
        let latitude = from.y + (y + share * dy) / 2.0;
        let scale = latitude.to_radians().cos();
        let (sx, sdx) = (x * scale, dx * scale);
        let length = sdx * sdx + dy * dy;
        share = if length == 0.0 { 0.0 } else { (-(sx * sdx + y * dy) / length).clamp(0.0, 1.0) };
    }
    share
}

/// The shorter way around the globe.
fn wrapped(degrees: f64) -> f64 {
    (degrees + 540.0).rem_euclid(360.0) - 180.0
}

/// Searches the least value on the line by thirds, in each of a few parts of it.
fn refine(at: &dyn Fn(f64) -> f64) -> f64 {
    const PARTS: u32 = 8;
    let search = |part: u32| {
        let (mut low, mut high) =
            (f64::from(part) / f64::from(PARTS), f64::from(part + 1) / f64::from(PARTS));
        for _ in 0..40 {
            let third = (high - low) / 3.0;
            if at(low + third) < at(high - third) { high -= third } else { low += third }
        }
        at((low + high) / 2.0)
    };
    (0..PARTS).map(search).fold(f64::INFINITY, f64::min)
}
