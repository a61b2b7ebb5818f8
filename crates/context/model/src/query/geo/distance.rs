//! Distances in metres on the sphere, by the haversine formula (4.23.1; 4.10 leaves the figure open).
//!
//! A line between two positions is straight in longitude and latitude (RFC 7946 section 3.1.1), not a great
//! circle. The nearest point on it is found in a plane scaled at the latitudes in question; the line that
//! proves nearest is then searched once more by intervals, which matters for long ones. Distances between
//! points are exact on the sphere.
//!
//! Cost: lines are sorted by latitude, and the search from a position ends where the latitude alone is
//! farther than the best line found. Shapes made to defeat that cost the product of their positions, hence
//! the limits on both.

use std::ops::ControlFlow;

use geo::{Distance, Haversine, Intersects};
use geo_types::{Coord, Geometry, Line, Point};

/// A degree of latitude is at least this long.
const METRES_PER_DEGREE: f64 = 111_000.0;

/// Distance between two positions.
pub(crate) fn between(a: Coord, b: Coord) -> f64 {
    Haversine.distance(Point(a), Point(b))
}

/// The segments of a shape by their lower latitude.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Lines {
    sorted: Vec<Line>,
    /// The greatest difference of latitude within one segment.
    span: f64,
}

impl Lines {
    pub(crate) fn new(lines: Vec<Line>) -> Self {
        let upward =
            |line: Line| if line.start.y > line.end.y { Line::new(line.end, line.start) } else { line };
        let mut sorted: Vec<Line> = lines.into_iter().map(upward).collect();
        sorted.sort_by(|a, b| a.start.y.total_cmp(&b.start.y));
        let span = sorted.iter().map(|line| line.end.y - line.start.y).fold(0.0, f64::max);
        Lines { sorted, span }
    }

    fn ends(&self) -> impl Iterator<Item = Coord> + '_ {
        self.sorted.iter().flat_map(|line| [line.start, line.end])
    }
}

/// The nearest line found so far.
struct Nearest {
    metres: f64,
    pair: Option<(Coord, Line)>,
    /// The search may end when it is not farther than this.
    enough: f64,
}

impl Nearest {
    fn new(enough: f64) -> Self {
        Nearest { metres: f64::INFINITY, pair: None, enough }
    }

    fn consider(&mut self, from: Coord, line: Line) -> ControlFlow<()> {
        let metres = to_line(from, line);
        if metres < self.metres {
            (self.metres, self.pair) = (metres, Some((from, line)));
        }
        if self.metres <= self.enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Considers every line that can be nearer than the nearest so far, outward from the same latitude.
    fn search(&mut self, from: Coord, lines: &Lines) -> ControlFlow<()> {
        let middle = lines.sorted.partition_point(|line| line.start.y < from.y);
        let (below, above) = lines.sorted.split_at(middle);
        for line in above {
            if (line.start.y - from.y) * METRES_PER_DEGREE > self.metres {
                break;
            }
            self.consider(from, *line)?;
        }
        for line in below.iter().rev() {
            if (from.y - line.start.y - lines.span) * METRES_PER_DEGREE > self.metres {
                break;
            }
            self.consider(from, *line)?;
        }
        ControlFlow::Continue(())
    }

    fn result(self) -> f64 {
        match self.pair {
            Some((from, line)) if self.metres > self.enough => self.metres.min(searched(from, line)),
            _ => self.metres,
        }
    }
}

/// The least distance between two shapes with the given lines; zero when they have a point in common. The
/// answer may be too great when it is not more than `enough`.
pub(crate) fn least(a: &Geometry, a_lines: &Lines, b: &Geometry, b_lines: &Lines, enough: f64) -> f64 {
    if a.intersects(b) {
        return 0.0;
    }
    // Segments that do not meet are nearest at an end of one of them.
    let mut nearest = Nearest::new(enough);
    let mut all = a_lines.ends().try_for_each(|end| nearest.search(end, b_lines));
    if all.is_continue() {
        all = b_lines.ends().try_for_each(|end| nearest.search(end, a_lines));
    }
    let _ = all;
    nearest.result()
}

/// The same from one position.
pub(crate) fn least_from(from: Coord, b: &Geometry, b_lines: &Lines, enough: f64) -> f64 {
    if let Geometry::Point(b) = b {
        return between(from, b.0);
    }
    if b.intersects(&from) {
        return 0.0;
    }
    let mut nearest = Nearest::new(enough);
    let _ = nearest.search(from, b_lines);
    nearest.result()
}

/// The least distance from a position to a line, nearly.
fn to_line(from: Coord, line: Line) -> f64 {
    let ends = between(from, line.start).min(between(from, line.end));
    if line.start == line.end {
        return ends;
    }
    ends.min(between(from, at(line, nearest_share(from, line))))
}

/// The position at a share, from 0 to 1, of a line.
fn at(line: Line, share: f64) -> Coord {
    let by = line.end - line.start;
    Coord { x: line.start.x + share * by.x, y: line.start.y + share * by.y }
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

/// The least distance from a position to a line, searched by thirds in each of a few parts of it.
fn searched(from: Coord, line: Line) -> f64 {
    const PARTS: u32 = 8;
    let metres = |share: f64| between(from, at(line, share));
    let search = |part: u32| {
        let (mut low, mut high) =
            (f64::from(part) / f64::from(PARTS), f64::from(part + 1) / f64::from(PARTS));
        for _ in 0..40 {
            let third = (high - low) / 3.0;
            if metres(low + third) < metres(high - third) { high -= third } else { low += third }
        }
        metres((low + high) / 2.0)
    };
    (0..PARTS).map(search).fold(f64::INFINITY, f64::min)
}
