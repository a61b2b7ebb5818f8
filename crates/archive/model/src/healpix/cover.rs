//! The cells of a region: which rows can be in it, and which are without a test.
//!
//! A cell is judged by its centre and an upper bound of its radius against the region's edges: outside, inside, or
//! partly inside. Cells that are partly inside are parted again as long as the number of ranges stays within the
//! budget; the children of the last ones still shorten their ranges at both ends. A cone starts at the
//! nine cells around its centre, so that its cost does not depend on its size: some hundred judgements
//! of twenty nanoseconds.
//!
//! What holds: every position in the region has its [`hash29`](super::hash29) in a range, and every position with
//! its hash in a range marked `inside` is in the region. [`MARGIN`] pays for rounding on both sides.

use super::{Cell, MARGIN, ORDER_MAX, bucket_order, buckets_around};
use crate::sphere::{Cap, Geometry, Point, Polygon, Range, Region, Shape, Vec3};

/// Order-29 cells from a first to a last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRange {
    /// The first cell.
    pub first: u64,
    /// The last cell.
    pub last: u64,
    /// Whether every position of these cells is in the region.
    pub inside: bool,
}

/// Fewer ranges than the base cells cannot be promised.
const BUDGET_MIN: usize = 12;

/// The cells of a region as at most `budget` (or 12) ranges, ascending, without a common cell. Eight to 32 are good
/// for a search among sorted rows.
pub fn cover(region: &Region, budget: usize) -> Vec<CellRange> {
    cover_probes(region.shapes().iter().map(Probe::new).collect(), &region.cap(), budget)
}

/// The same for any geometry.
pub fn cover_geometry(geometry: &Geometry, budget: usize) -> Vec<CellRange> {
    let probe = match geometry {
        Geometry::Point(point) => Probe::cap(Cap::new(point.vector(), 0.0)),
        Geometry::Circle(circle) => Probe::cap(circle.cap()),
        Geometry::Polygon(polygon) => {
            Probe { cap: polygon.cap(), form: Form::Polygon(polygon), limits: Limits::default() }
        }
        Geometry::Region(region) => return cover(region, budget),
    };
    let cap = probe.cap;
    cover_probes(vec![probe], &cap, budget)
}

fn cover_probes(mut probes: Vec<Probe<'_>>, cap: &Cap, budget: usize) -> Vec<CellRange> {
    let budget = budget.max(BUDGET_MIN);
    let mut cells = Cells::start(&mut probes, cap);
    loop {
        let parted = cells.part(&mut probes);
        if parted.partial.is_empty() || parted.inside.len() + parted.partial.len() > budget {
            return cells.ranges(&parted);
        }
        cells = parted;
        if cells.order == ORDER_MAX {
            let same = cells.clone();
            return cells.ranges(&same);
        }
    }
}

/// Cells judged, all partial ones of one order.
#[derive(Clone)]
struct Cells {
    order: u8,
    inside: Vec<Cell>,
    partial: Vec<Cell>,
}

impl Cells {
    /// The cells around a cap's centre that are as wide as its radius, or all base cells.
    fn start(probes: &mut [Probe<'_>], cap: &Cap) -> Self {
        let (lon, lat) = cap.center().to_degrees();
        let around = bucket_order(cap.radius_degrees())
            .zip(Point::new(lon, lat).ok())
            .map(|(order, center)| (order, buckets_around(&center, order)));
        let (order, numbers): (u8, Vec<u64>) = match around {
            Some((order, buckets)) => (order, buckets.as_slice().to_vec()),
            None => (0, (0..12).collect()),
        };
        let mut cells = Self { order, inside: Vec::new(), partial: Vec::new() };
        cells.judge(probes, numbers.into_iter().filter_map(|number| Cell::new(order, number)));
        cells
    }

    /// Sorts cells of this order into those inside and those partly inside.
    fn judge(&mut self, probes: &mut [Probe<'_>], cells: impl Iterator<Item = Cell>) {
        let scale = Scale::new(self.order);
        for probe in &mut *probes {
            probe.limits = Limits::new(&probe.cap, &scale);
        }
        for cell in cells {
            let center = cell.center();
            let mut partial = false;
            let inside = probes.iter().any(|probe| match probe.judge(center, &scale) {
                Side::Inside => true,
                Side::Partial => {
                    partial = true;
                    false
                }
                Side::Outside => false,
            });
            if inside {
                self.inside.push(cell);
            } else if partial {
                self.partial.push(cell);
            }
        }
    }

    /// The partial cells parted once; the same cells at the deepest order.
    fn part(&self, probes: &mut [Probe<'_>]) -> Self {
        if self.order == ORDER_MAX {
            return self.clone();
        }
        let mut parted = Self { order: self.order + 1, inside: self.inside.clone(), partial: Vec::new() };
        parted.judge(probes, self.partial.iter().filter_map(Cell::children).flatten());
        parted
    }

    /// The ranges of these cells, the partial ones from the first to the last of their parts that have any of the
    /// region.
    fn ranges(&self, parted: &Self) -> Vec<CellRange> {
        let range = |cell: &Cell, inside: bool| {
            let (first, last) = cell.range29();
            CellRange { first, last, inside }
        };
        let mut parts: Vec<CellRange> = parted.partial.iter().map(|cell| range(cell, false)).collect();
        let fresh = parted.inside.iter().skip(if parted.order > self.order { self.inside.len() } else { 0 });
        parts.extend(fresh.map(|cell| range(cell, parted.order > self.order)));
        parts.sort_unstable_by_key(|range| range.first);
        let mut ranges: Vec<CellRange> = self.inside.iter().map(|cell| range(cell, true)).collect();
        for cell in &self.partial {
            let (first, last) = cell.range29();
            let from = parts.partition_point(|part| part.first < first);
            let to = parts.partition_point(|part| part.first <= last);
            let Some((one, more)) = parts[from..to].split_first() else { continue };
            let end = more.last().unwrap_or(one);
            let inside = one.inside && more.is_empty();
            ranges.push(CellRange { first: one.first, last: end.last, inside });
        }
        merge(ranges)
    }
}

/// Sorts ranges and joins those that touch and are alike.
fn merge(mut ranges: Vec<CellRange>) -> Vec<CellRange> {
    ranges.sort_unstable_by_key(|range| range.first);
    ranges.dedup_by(|next, before| {
        let joined = next.inside == before.inside && before.last + 1 == next.first;
        if joined {
            before.last = next.last;
        }
        joined
    });
    ranges
}

/// Where a cell is to a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Outside,
    Partial,
    Inside,
}

/// The size of cells of an order, with the margin.
struct Scale {
    radius: f64,
    chord_squared: f64,
}

impl Scale {
    fn new(order: u8) -> Self {
        let radius = Cell::radius(order) + 2.0 * MARGIN;
        Self { radius, chord_squared: chord_squared(radius) }
    }
}

/// A shape with what cells of one order are compared with.
struct Probe<'a> {
    cap: Cap,
    form: Form<'a>,
    limits: Limits,
}

enum Form<'a> {
    Cap,
    Polygon(&'a Polygon),
    Range(&'a Range),
}

/// Squares of chords from the cap's centre: beyond the first a cell is outside the cap, within the second inside.
#[derive(Clone, Copy, Default)]
struct Limits {
    outside: f64,
    inside: f64,
}

impl Limits {
    fn new(cap: &Cap, scale: &Scale) -> Self {
        let (most, least) = (cap.radius() + scale.radius, cap.radius() - scale.radius);
        Self {
            outside: if most < std::f64::consts::PI { chord_squared(most) } else { f64::INFINITY },
            inside: if cap.is_whole() {
                f64::INFINITY
            } else if least > 0.0 {
                chord_squared(least)
            } else {
                -1.0
            },
        }
    }
}

impl<'a> Probe<'a> {
    fn new(shape: &'a Shape) -> Self {
        match shape {
            Shape::Circle(circle) => Self::cap(circle.cap()),
            Shape::Polygon(polygon) => {
                Self { cap: polygon.cap(), form: Form::Polygon(polygon), limits: Limits::default() }
            }
            Shape::Range(range) => {
                Self { cap: range.cap(), form: Form::Range(range), limits: Limits::default() }
            }
        }
    }

    fn cap(cap: Cap) -> Self {
        Self { cap, form: Form::Cap, limits: Limits::default() }
    }

    #[inline]
    fn judge(&self, center: Vec3, scale: &Scale) -> Side {
        let chord = self.cap.center().chord_squared(center);
        if chord > self.limits.outside {
            return Side::Outside;
        }
        let (edge_near, contains) = match self.form {
            Form::Cap if chord < self.limits.inside => return Side::Inside,
            Form::Cap => return Side::Partial,
            Form::Polygon(polygon) => {
                (polygon.edge_within(center, scale.chord_squared), polygon.contains(center))
            }
            Form::Range(range) => (range.edge_distance(center) <= scale.radius, range.contains(center)),
        };
        match (edge_near, contains) {
            (true, _) => Side::Partial,
            (false, true) => Side::Inside,
            (false, false) => Side::Outside,
        }
    }
}

/// The square of the chord under an arc in radians.
fn chord_squared(radians: f64) -> f64 {
    let half = (radians.clamp(0.0, std::f64::consts::PI) / 2.0).sin();
    4.0 * half * half
}
