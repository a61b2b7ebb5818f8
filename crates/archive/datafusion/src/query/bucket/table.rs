//! The buckets: positions by the cells that their circles touch.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use arrow_array::{Array as _, Float64Array};
use trifid_archive_model::healpix::{self, Cell};
use trifid_archive_model::sphere::Point;

/// A bucket order has cells at least so many times as wide as the circles: the wider, the fewer cells a circle touches
/// and the more candidates a bucket has.
const CELLS_PER_RADIUS: f64 = 3.0;

/// Beyond this many classes of radii, further ones join the next wider class.
const CLASSES_MAX: usize = 6;

/// What the margins of arithmetic add to a chord.
const CHORD_SLACK: f64 = 4e-15;

/// A unit vector.
type Vector = [f64; 3];

/// Rows with their positions and radii.
type Members = Vec<(u32, Point, f64)>;

type CellMap = HashMap<u64, (u32, u32), BuildHasherDefault<Mix>>;

/// Rows by where they are.
pub(super) struct Buckets {
    classes: Vec<Class>,
    /// Rows that may be near anything.
    everywhere: Vec<u32>,
    vectors: Vec<Vector>,
    /// The square of the longest chord to a partner.
    limits: Vec<f64>,
}

/// Rows with circles of about one size.
struct Class {
    order: u8,
    /// Where in `rows` the rows of a cell are.
    cells: CellMap,
    rows: Vec<u32>,
}

/// A radius for each row, or one for all.
pub(super) enum Radii {
    One(Option<f64>),
    Each(Float64Array),
}

impl Radii {
    fn of(&self, row: usize) -> Option<f64> {
        match self {
            Self::One(radius) => *radius,
            Self::Each(radii) => radii.is_valid(row).then(|| radii.value(row)),
        }
    }
}

impl Buckets {
    /// Puts rows into buckets. A row that is nowhere, or whose circle is NULL, is in none.
    pub(super) fn new(lon: &Float64Array, lat: &Float64Array, radii: &Radii) -> Self {
        let rows = lon.len();
        let mut vectors = vec![[0.0; 3]; rows];
        let mut limits = vec![0.0; rows];
        let mut everywhere = Vec::new();
        let mut by_order: HashMap<u8, Members> = HashMap::new();
        for row in 0..rows {
            let (Some(point), Some(radius)) = (position(lon, lat, row), radii.of(row)) else { continue };
            vectors[row] = vector(&point);
            limits[row] = chord_square(radius);
            match order(radius) {
                Some(order) => by_order.entry(order).or_default().push((row as u32, point, radius)),
                None => everywhere.push(row as u32),
            }
        }
        let classes = classes(by_order);
        Self { classes: classes.into_iter().map(Class::new).collect(), everywhere, vectors, limits }
    }

    /// Appends to `found` the rows that may be within their radius of a position.
    pub(super) fn candidates(&self, lon: f64, lat: f64, found: &mut Vec<u32>) {
        let Ok(point) = Point::new(lon, lat) else { return };
        let at = vector(&point);
        let near = |row: &u32| {
            let row = *row as usize;
            square(&self.vectors[row], &at) <= self.limits[row]
        };
        for class in &self.classes {
            let cell = healpix::hash(class.order, lon, lat);
            if let Some((start, end)) = cell.and_then(|cell| class.cells.get(&cell)) {
                let bucket = &class.rows[*start as usize..*end as usize];
                found.extend(bucket.iter().copied().filter(|row| near(row)));
            }
        }
        found.extend(self.everywhere.iter().copied().filter(|row| near(row)));
    }

    /// The order-29 cells where a partner can be, as ranges in order; `None` if it can be nearly anywhere.
    pub(super) fn ranges(&self) -> Option<Vec<(u64, u64)>> {
        if !self.everywhere.is_empty() {
            return None;
        }
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut share = 0.0;
        for class in &self.classes {
            share += class.cells.len() as f64 / healpix::cell_count(class.order) as f64;
            ranges
                .extend(class.cells.keys().filter_map(|cell| Some(Cell::new(class.order, *cell)?.range29())));
        }
        if share > WORTH_SHARE {
            return None;
        }
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let touches = next.0 <= last.1.saturating_add(1);
            if touches {
                last.1 = last.1.max(next.1);
            }
            touches
        });
        Some(ranges)
    }

    /// Memory held.
    pub(super) fn bytes(&self) -> usize {
        let class = |class: &Class| class.rows.len() * 4 + class.cells.capacity() * 17;
        self.vectors.len() * 32 + self.classes.iter().map(class).sum::<usize>()
    }
}

/// Looking at rows by their cells pays if no more of the sky than this is asked for.
const WORTH_SHARE: f64 = 0.5;

/// The order for a radius; `None` for one too wide for cells, or that is none.
fn order(radius: f64) -> Option<u8> {
    healpix::bucket_order(radius * CELLS_PER_RADIUS)
}

/// Rows of each order, those of rare orders moved to wider cells.
fn classes(by_order: HashMap<u8, Members>) -> Vec<(u8, Members)> {
    let mut classes: Vec<_> = by_order.into_iter().collect();
    classes.sort_unstable_by_key(|(order, _)| *order);
    while classes.len() > CLASSES_MAX {
        let fewest = (1..classes.len()).min_by_key(|at| classes[*at].1.len()).unwrap_or(1);
        let (_, mut rows) = classes.remove(fewest);
        classes[fewest - 1].1.append(&mut rows);
    }
    classes
}

impl Class {
    fn new((order, members): (u8, Members)) -> Self {
        let mut entries: Vec<(u64, u32)> = Vec::with_capacity(members.len() * 2);
        for (row, point, radius) in members {
            for cell in touched(&point, radius, order) {
                entries.push((cell, row));
            }
        }
        entries.sort_unstable();
        let mut cells = CellMap::default();
        let mut start = 0;
        for bucket in entries.chunk_by(|one, next| one.0 == next.0) {
            cells.insert(bucket[0].0, (start as u32, (start + bucket.len()) as u32));
            start += bucket.len();
        }
        Self { order, cells, rows: entries.into_iter().map(|(_, row)| row).collect() }
    }
}

/// The cells that a circle may touch: those around its centre that are not too far from it.
fn touched(point: &Point, radius: f64, order: u8) -> impl Iterator<Item = u64> {
    let at = vector(point);
    let around = healpix::buckets_around(point, order);
    let own = healpix::hash(order, point.lon(), point.lat());
    let reach = radius.to_radians() + 2.0 * healpix::MARGIN;
    let near = move |number: &u64| {
        let Some(cell) = Cell::new(order, *number) else { return true };
        let center = cell.center();
        let limit = chord_square((reach + cell.radius()).to_degrees());
        Some(*number) == own || square(&[center.x, center.y, center.z], &at) <= limit
    };
    let cells: Vec<u64> = around.as_slice().iter().copied().filter(near).collect();
    cells.into_iter()
}

/// A position, if there is one.
fn position(lon: &Float64Array, lat: &Float64Array, row: usize) -> Option<Point> {
    if lon.is_null(row) || lat.is_null(row) {
        return None;
    }
    Point::new(lon.value(row), lat.value(row)).ok()
}

fn vector(point: &Point) -> Vector {
    let vector = point.vector();
    [vector.x, vector.y, vector.z]
}

fn square(one: &Vector, other: &Vector) -> f64 {
    let [x, y, z] = [one[0] - other[0], one[1] - other[1], one[2] - other[2]];
    x * x + y * y + z * z
}

/// The square of the chord of a radius in degrees, a hair more. A radius that is no radius lets everything pass: the
/// condition itself says what it means.
fn chord_square(radius: f64) -> f64 {
    if !(0.0..180.0).contains(&radius) {
        return f64::INFINITY;
    }
    let chord = 2.0 * (radius.to_radians() / 2.0).sin();
    let generous = chord * (1.0 + 1e-12) + CHORD_SLACK;
    generous * generous
}

/// A hash of one number: cells differ in their low bits, a multiplication spreads them.
#[derive(Default)]
pub(super) struct Mix(u64);

impl std::hash::Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
