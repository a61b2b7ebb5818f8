//! The cells of a region: which rows can be in it, and which are without a test.
//!
//! A cell is judged by its centre and an upper bound of its radius against the region's edges: outside,
//! inside, or partly inside. Cells that are partly inside are parted again as long as the number of ranges
//! stays within the budget; of the last ones, those with their centre outside are still shortened at both
//! ends. A cone starts at the nine cells around its centre, so that its cost does not depend on its size:
//! some hundred judgements of twenty nanoseconds. Where rows are few those nine alone are the cheaper answer
//! ([`cover_around`]).
//!
//! What holds: every position in the region has its [`hash29`](super::hash29) in a range, and every position
//! with its hash in a range marked `inside` is in the region. [`MARGIN`] pays for rounding on both sides, so
//! that the ranges of a circle also have every position whose computed distance is at most its radius.

use super::cell::Kind;
use super::{Cell, MARGIN, ORDER_MAX, bucket_order, buckets_around};
use crate::sphere::{Cap, Circle, Geometry, Point, Polygon, Range, Region, Shape, Vec3};

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

/// The cells of a region as at most `budget` (or 12) ranges, ascending, without a common cell. Eight to 32
/// are good for a search among sorted rows.
pub fn cover(region: &Region, budget: usize) -> Vec<CellRange> {
    cover_probes(region.shapes().iter().map(Probe::new).collect(), &region.cap(), budget)
}

/// The same for any geometry.
pub fn cover_geometry(geometry: &Geometry, budget: usize) -> Vec<CellRange> {
    let probe = match geometry {
        Geometry::Point(point) => Probe::cap(Cap::new(point.vector(), 0.0)),
        Geometry::Circle(circle) => Probe::cap(circle.cap()),
        Geometry::Polygon(polygon) => {
            Probe { cap: polygon.cap(), form: Form::Polygon(polygon), limits: Default::default() }
        }
        Geometry::Region(region) => return cover(region, budget),
    };
    let cap = probe.cap;
    cover_probes(vec![probe], &cap, budget)
}

/// The cells of a circle as they are found at once: those around its centre that are about as wide as its
/// radius, nine or fewer. Up to some ten times the area of the circle for a tenth of the work of [`cover`]: good
/// where the rows in them are few enough to be tested one by one. `None` if the circle is wider than such cells
/// can be.
pub fn cover_around(circle: &Circle) -> Option<Vec<CellRange>> {
    let order = bucket_order(circle.radius())?;
    let buckets = buckets_around(&circle.center(), order);
    let mut ranges: Vec<CellRange> = Vec::with_capacity(buckets.as_slice().len());
    for cell in buckets.as_slice().iter().filter_map(|number| Cell::new(order, *number)) {
        let (first, last) = cell.range29();
        match ranges.last_mut() {
            Some(before) if before.last + 1 == first => before.last = last,
            _ => ranges.push(CellRange { first, last, inside: false }),
        }
    }
    Some(ranges)
}

fn cover_probes(mut probes: Vec<Probe<'_>>, cap: &Cap, budget: usize) -> Vec<CellRange> {
    let budget = budget.max(BUDGET_MIN);
    let mut cells = Cells::start(&mut probes, cap);
    while cells.order < ORDER_MAX && cells.has_partial() && cells.count_parted() <= budget {
        let parted = cells.part(&mut probes);
        if parted.count() > budget {
            break;
        }
        cells = parted;
    }
    cells.ranges(&mut probes)
}

/// Cells judged, those partly inside all of one order.
struct Cells {
    order: u8,
    inside: Vec<Cell>,
    /// Partly inside, their centre inside.
    mostly: Vec<Cell>,
    /// Partly inside, their centre outside.
    barely: Vec<Cell>,
}

impl Cells {
    fn new(order: u8, inside: Vec<Cell>) -> Self {
        Self { order, inside, mostly: Vec::new(), barely: Vec::new() }
    }

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
        let mut cells = Self::new(order, Vec::new());
        cells.judge(probes, numbers.into_iter().filter_map(|number| Cell::new(order, number)));
        cells
    }

    fn partial(&self) -> impl Iterator<Item = &Cell> {
        self.mostly.iter().chain(&self.barely)
    }

    fn has_partial(&self) -> bool {
        self.partial().next().is_some()
    }

    fn count(&self) -> usize {
        self.inside.len() + self.partial().count()
    }

    /// About as many there will be if the partial cells are parted: the edge is twice as many cells long.
    fn count_parted(&self) -> usize {
        self.inside.len() + self.partial().count() * 7 / 4
    }

    /// Sorts cells of this order by where they are.
    fn judge(&mut self, probes: &mut [Probe<'_>], cells: impl Iterator<Item = Cell>) {
        let scales = Scale::of_order(self.order, probes);
        for cell in cells {
            match judge(probes, cell, &scales) {
                Side::Outside => {}
                Side::Barely => self.barely.push(cell),
                Side::Mostly => self.mostly.push(cell),
                Side::Inside => self.inside.push(cell),
            }
        }
    }

    /// The partial cells parted once.
    fn part(&self, probes: &mut [Probe<'_>]) -> Self {
        let mut parted = Self::new(self.order + 1, self.inside.clone());
        parted.judge(probes, self.partial().filter_map(Cell::children).flatten());
        parted
    }

    /// The ranges of these cells. Of the children of a cell that is barely inside, the first and the last
    /// with any of the region bound the range.
    fn ranges(&self, probes: &mut [Probe<'_>]) -> Vec<CellRange> {
        let whole = |cell: &Cell, inside: bool| {
            let (first, last) = cell.range29();
            CellRange { first, last, inside }
        };
        let mut ranges = Vec::with_capacity(self.count());
        ranges.extend(self.inside.iter().map(|cell| whole(cell, true)));
        ranges.extend(self.mostly.iter().map(|cell| whole(cell, false)));
        let scales = Scale::of_order((self.order + 1).min(ORDER_MAX), probes);
        for cell in &self.barely {
            let Some(children) = cell.children() else {
                ranges.push(whole(cell, false));
                continue;
            };
            let mut parts =
                children.into_iter().filter(|child| judge(probes, *child, &scales) != Side::Outside);
            if let Some(first) = parts.next() {
                let last = parts.next_back().unwrap_or(first);
                ranges.push(CellRange { first: first.range29().0, last: last.range29().1, inside: false });
            }
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

/// Where a cell is to a shape; the later is the more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Outside,
    /// Perhaps partly inside; its centre is outside.
    Barely,
    /// Partly inside, as its centre.
    Mostly,
    Inside,
}

/// Where a cell is to the union of some shapes. What is inside only of several together counts as partly
/// inside.
#[inline]
fn judge(probes: &[Probe<'_>], cell: Cell, scales: &[Scale; 3]) -> Side {
    let (center, kind) = (cell.center(), cell.kind() as usize);
    let mut most = Side::Outside;
    for probe in probes {
        most = most.max(probe.judge(center, kind, &scales[kind]));
        if most == Side::Inside {
            break;
        }
    }
    most
}

/// The size of cells of an order and a kind, with the margin.
struct Scale {
    radius: f64,
    chord_squared: f64,
}

impl Scale {
    /// The sizes of an order's cells, for which the probes are set.
    fn of_order(order: u8, probes: &mut [Probe<'_>]) -> [Self; 3] {
        let scales = Kind::ALL.map(|kind| {
            let radius = kind.radius(order) + 2.0 * MARGIN;
            Self { radius, chord_squared: chord_squared(radius) }
        });
        for probe in probes {
            probe.limits = [0, 1, 2].map(|kind| Limits::new(&probe.cap, &scales[kind]));
        }
        scales
    }
}

/// A shape with what cells of one order are compared with.
struct Probe<'a> {
    cap: Cap,
    form: Form<'a>,
    limits: [Limits; 3],
}

enum Form<'a> {
    Cap,
    Polygon(&'a Polygon),
    Range(&'a Range),
}

/// Squares of chords from the cap's centre: beyond the first a cell is outside the cap, within the second
/// inside.
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
                Self { cap: polygon.cap(), form: Form::Polygon(polygon), limits: Default::default() }
            }
            Shape::Range(range) => {
                Self { cap: range.cap(), form: Form::Range(range), limits: Default::default() }
            }
        }
    }

    fn cap(cap: Cap) -> Self {
        Self { cap, form: Form::Cap, limits: Default::default() }
    }

    #[inline]
    fn judge(&self, center: Vec3, kind: usize, scale: &Scale) -> Side {
        let limits = &self.limits[kind];
        let chord = self.cap.center().chord_squared(center);
        if chord > limits.outside {
            return Side::Outside;
        }
        let near = match self.form {
            Form::Cap if chord < limits.inside => return Side::Inside,
            Form::Cap => true,
            Form::Polygon(polygon) => polygon.edge_within(center, scale.chord_squared),
            Form::Range(range) => range.edge_distance(center) <= scale.radius,
        };
        let contains = match self.form {
            Form::Cap => self.cap.contains(center),
            Form::Polygon(polygon) => polygon.contains(center),
            Form::Range(range) => range.contains(center),
        };
        match (near, contains) {
            (true, true) => Side::Mostly,
            (true, false) => Side::Barely,
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
