//! DISTANCE, and conditions on it.
//!
//! `DISTANCE(...) < r` decides most rows by a look at the latitudes and most others by a chord; only what is within
//! rounding of `r` is measured. The answer is the same as that of measuring and comparing.

use arrow_array::types::Float64Type;
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::lift::is_constant;
use trifid_archive_adql::tree::{Comparison, Expr, Kind};
use trifid_archive_adql::types::Type;
use trifid_archive_model::sphere::{self, Vec3};

use super::cells::{Cells, Shape, Side, any_null, boolean_array, nulls, primitive, primitive_array, sides};
use super::compare::{Ordered as _, each, satisfies};
use super::geometry::somewhere;
use super::node::{Evaluator, child};
use crate::error::QueryError;

/// By how much a chord that was computed from two unit vectors may be off, and some more.
const CHORD_SLACK: f64 = 1e-14;

/// By how much a difference of latitudes in degrees may be off, and some more.
const LATITUDE_SLACK: f64 = 1e-9;

/// The four coordinates as operands of a loop.
struct Arcs<'a> {
    lon1: Side<'a, f64>,
    lat1: Side<'a, f64>,
    lon2: Side<'a, f64>,
    lat2: Side<'a, f64>,
}

impl<'a> Arcs<'a> {
    fn new(arguments: &'a [Cells; 4], shape: Shape) -> Result<Self, QueryError> {
        let [lon1, lat1, lon2, lat2] = arguments;
        Ok(Self {
            lon1: sides::<Float64Type>(lon1, shape)?,
            lat1: sides::<Float64Type>(lat1, shape)?,
            lon2: sides::<Float64Type>(lon2, shape)?,
            lat2: sides::<Float64Type>(lat2, shape)?,
        })
    }

    fn measure(&self, row: usize) -> f64 {
        sphere::distance(self.lon1.get(row), self.lat1.get(row), self.lon2.get(row), self.lat2.get(row))
    }

    /// The null mask: NULL too where an end is nowhere.
    fn nulls(&self, arguments: &[Cells; 4], shape: Shape) -> Option<arrow_buffer::NullBuffer> {
        let given = nulls(&arguments.each_ref(), shape);
        let first = somewhere(self.lon1, self.lat1, shape.len, given);
        somewhere(self.lon2, self.lat2, shape.len, first)
    }
}

/// DISTANCE of four Doubles.
pub(super) fn distance(arguments: Vec<Cells>) -> Result<Cells, QueryError> {
    let arguments = four(arguments)?;
    let rows = arguments[0].rows();
    if any_null(&arguments.each_ref()) {
        return Ok(Cells::null(Type::Double, rows));
    }
    let shape = Shape::of(&arguments.each_ref(), rows);
    let arcs = Arcs::new(&arguments, shape)?;
    let values = (0..shape.len).map(|row| arcs.measure(row)).collect();
    Ok(shape.cells(primitive_array::<Float64Type>(values, arcs.nulls(&arguments, shape))))
}

fn four(arguments: Vec<Cells>) -> Result<[Cells; 4], QueryError> {
    arguments.try_into().map_err(|wrong: Vec<Cells>| super::call::count(wrong.len()))
}

/// A comparison of DISTANCE with a constant, if the comparison is one.
pub(super) fn comparison(
    evaluator: &Evaluator<'_>,
    comparison: Comparison,
    left: &Expr,
    right: &Expr,
    path: u64,
) -> Result<Option<Cells>, QueryError> {
    let (comparison, arguments, bound, places) = match (&left.kind, &right.kind) {
        (Kind::Call(Function::Distance, arguments), _) => (comparison, arguments, right, (0, 1)),
        (_, Kind::Call(Function::Distance, arguments)) => (flipped(comparison), arguments, left, (1, 0)),
        _ => return Ok(None),
    };
    if !is_constant(bound) || matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
        return Ok(None);
    }
    let bound = evaluator.cells(bound, child(path, places.1))?;
    let arguments = four(evaluator.all(arguments, child(path, places.0))?)?;
    if bound.is_null() || any_null(&arguments.each_ref()) {
        return Ok(Some(Cells::null(Type::Boolean, evaluator.rows())));
    }
    let bound = primitive::<Float64Type>(&bound)?.value(0);
    within(comparison, &arguments, bound, evaluator.rows()).map(Some)
}

/// The comparison with its sides changed.
const fn flipped(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Equal => Comparison::Equal,
        Comparison::NotEqual => Comparison::NotEqual,
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
    }
}

fn within(
    comparison: Comparison,
    arguments: &[Cells; 4],
    bound: f64,
    rows: usize,
) -> Result<Cells, QueryError> {
    let shape = Shape::of(&arguments.each_ref(), rows);
    let arcs = Arcs::new(arguments, shape)?;
    let ring = Ring::new(bound);
    let closer = satisfies(comparison, std::cmp::Ordering::Less);
    let ends = (Ends::new(arcs.lon1, arcs.lat1), Ends::new(arcs.lon2, arcs.lat2));
    let values = each(shape.len, |row| {
        let apart = (arcs.lat1.get(row) - arcs.lat2.get(row)).abs();
        let decided = if apart > ring.latitudes {
            Some(false)
        } else {
            ring.holds(ends.0.vector(row).chord_squared(ends.1.vector(row)))
        };
        match decided {
            Some(near) => near == closer,
            None => satisfies(comparison, arcs.measure(row).order(bound)),
        }
    });
    Ok(shape.cells(boolean_array(values, arcs.nulls(arguments, shape))))
}

/// One end of the arcs, as unit vectors; a constant one is made once.
enum Ends<'a> {
    One(Vec3),
    Many(Side<'a, f64>, Side<'a, f64>),
}

impl<'a> Ends<'a> {
    fn new(lon: Side<'a, f64>, lat: Side<'a, f64>) -> Self {
        match (lon, lat) {
            (Side::One(lon), Side::One(lat)) => Self::One(Vec3::from_degrees(lon, lat)),
            (lon, lat) => Self::Many(lon, lat),
        }
    }

    #[inline]
    fn vector(&self, row: usize) -> Vec3 {
        match self {
            Self::One(vector) => *vector,
            Self::Many(lon, lat) => Vec3::from_degrees(lon.get(row), lat.get(row)),
        }
    }
}

/// What is surely closer than a bound, and what is surely farther.
struct Ring {
    /// Squares of chords.
    closer: f64,
    farther: f64,
    /// Latitudes farther apart than this are surely too far.
    latitudes: f64,
}

impl Ring {
    fn new(bound: f64) -> Self {
        if !(0.0..180.0).contains(&bound) {
            // Nothing is sure: measure.
            return Self { closer: -1.0, farther: f64::INFINITY, latitudes: f64::INFINITY };
        }
        let chord = sphere::chord_squared(bound).sqrt();
        let (low, high) = (chord - CHORD_SLACK, chord + CHORD_SLACK);
        Self {
            closer: if low > 0.0 { low * low } else { -1.0 },
            farther: high * high,
            latitudes: bound + LATITUDE_SLACK,
        }
    }

    fn holds(&self, chord_squared: f64) -> Option<bool> {
        if chord_squared < self.closer {
            Some(true)
        } else if chord_squared > self.farther {
            Some(false)
        } else {
            None
        }
    }
}
