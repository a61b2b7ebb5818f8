//! Conjuncts that an index or a chunk's statistics can do something with.

use std::ops::Bound as End;
use std::sync::Arc;

use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{ColumnRef, Comparison, Expr, Kind, Value};
use trifid_archive_adql::types::Type;
use trifid_archive_model::dali;
use trifid_archive_model::healpix::{self, CellRange};
use trifid_archive_model::sphere::{Circle, Geometry, Polygon};

use super::constant::{Scalar, is_constant, scalar};
use crate::table::TableHead;

/// The most cells that a region's cover is made of.
pub(super) const COVER_CELLS: usize = 32;

/// What a conjunct asks, as far as an index understands it. Expressions are constants.
#[derive(Clone, Debug)]
pub enum Condition {
    /// A column compared with a constant.
    Compare(usize, Comparison, Expr),
    /// A column between two constants.
    Between(usize, Expr, Expr),
    /// A column that is one of some constants.
    OneOf(usize, Vec<Expr>),
    /// A text column that is LIKE a pattern.
    Like(usize, Expr),
    /// The table's position within so many degrees of a place: longitude, latitude, radius; and whether the condition
    /// is the circle itself, not a distance that is compared.
    Cone([Expr; 3], bool),
    /// The table's position within a polygon given by coordinates.
    Polygon(Vec<Expr>),
    /// The table's position within a region given by text.
    Region(Expr),
}

/// A condition with its constants in place.
#[derive(Clone, Debug)]
pub enum Bound {
    /// No row fulfils it: it compares with NULL.
    Never,
    /// A column's values lie between bounds.
    Interval(usize, End<Scalar>, End<Scalar>),
    /// A column has one of these values.
    OneOf(usize, Vec<Scalar>),
    /// A column's text begins so.
    Prefix(usize, Arc<str>),
    /// The position lies in one of these cells, sorted and disjoint.
    Sky(Vec<CellRange>),
    /// The position lies in a circle, whose cells are found when it is known how many are worth it.
    Cone(Cone),
}

/// A circle around a place.
#[derive(Clone, Copy, Debug)]
pub struct Cone {
    /// The circle.
    pub circle: Circle,
    /// Whether to be in it is all that is asked. A distance may be compared otherwise, and is rounded otherwise.
    pub exact: bool,
}

/// What a conjunct over the first relation of a select asks of a table.
pub fn condition(expr: &Expr, head: &TableHead) -> Option<Condition> {
    match &expr.kind {
        Kind::Compare(comparison, left, right) => {
            distance(*comparison, left, right, head).or_else(|| compared(*comparison, left, right))
        }
        Kind::Between(value, low, high) => {
            let column = column(value)?;
            (is_constant(low) && is_constant(high))
                .then(|| Condition::Between(column, (**low).clone(), (**high).clone()))
        }
        Kind::InList(value, list) => {
            let column = column(value)?;
            list.iter().all(is_constant).then(|| Condition::OneOf(column, list.clone()))
        }
        Kind::Like { value, pattern, ignore_case: false } => {
            let column = column(value)?;
            is_constant(pattern).then(|| Condition::Like(column, (**pattern).clone()))
        }
        Kind::Call(Function::Contains, arguments) => within(arguments, head),
        Kind::Call(Function::Intersects, arguments) => {
            let [left, right] = arguments.as_slice() else { return None };
            within(&[left.clone(), right.clone()], head)
                .or_else(|| within(&[right.clone(), left.clone()], head))
        }
        _ => None,
    }
}

/// The column that an expression is, also where it was only widened.
fn column(expr: &Expr) -> Option<usize> {
    match &expr.kind {
        Kind::Column(ColumnRef { depth: 0, relation: 0, column }) => Some(*column as usize),
        Kind::Cast(inner) if widened(inner.ty, expr.ty) => column(inner),
        _ => None,
    }
}

/// Whether a conversion keeps the order of all values and loses none.
fn widened(from: Type, to: Type) -> bool {
    match to {
        Type::Int => matches!(from, Type::UnsignedByte | Type::Short),
        Type::Long => matches!(from, Type::UnsignedByte | Type::Short | Type::Int),
        Type::Double => matches!(from, Type::UnsignedByte | Type::Short | Type::Int | Type::Float),
        _ => false,
    }
}

fn compared(comparison: Comparison, left: &Expr, right: &Expr) -> Option<Condition> {
    if comparison == Comparison::NotEqual {
        return None;
    }
    match (column(left), column(right)) {
        (Some(column), None) if is_constant(right) => {
            Some(Condition::Compare(column, comparison, right.clone()))
        }
        (None, Some(column)) if is_constant(left) => {
            Some(Condition::Compare(column, turned(comparison), left.clone()))
        }
        _ => None,
    }
}

/// The comparison with its sides changed.
const fn turned(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        Comparison::Equal => Comparison::Equal,
        Comparison::NotEqual => Comparison::NotEqual,
    }
}

/// `DISTANCE(position, place) < radius` in any order of its parts: a cone.
fn distance(comparison: Comparison, left: &Expr, right: &Expr, head: &TableHead) -> Option<Condition> {
    let (comparison, distance, radius) = match (&left.kind, &right.kind) {
        (Kind::Call(Function::Distance, arguments), _) => (comparison, arguments, right),
        (_, Kind::Call(Function::Distance, arguments)) => (turned(comparison), arguments, left),
        _ => return None,
    };
    let near = matches!(comparison, Comparison::Less | Comparison::LessOrEqual | Comparison::Equal);
    let [lon1, lat1, lon2, lat2] = distance.as_slice() else { return None };
    let place = if is_position(lon1, lat1, head) {
        [lon2, lat2]
    } else if is_position(lon2, lat2, head) {
        [lon1, lat1]
    } else {
        return None;
    };
    let constants = is_constant(place[0]) && is_constant(place[1]) && is_constant(radius);
    (near && constants).then(|| Condition::Cone([place[0].clone(), place[1].clone(), radius.clone()], false))
}

fn is_position(lon: &Expr, lat: &Expr, head: &TableHead) -> bool {
    head.position
        .is_some_and(|position| column(lon) == Some(position.lon) && column(lat) == Some(position.lat))
}

/// `CONTAINS(POINT(position), constant region)`.
fn within(arguments: &[Expr], head: &TableHead) -> Option<Condition> {
    let [inner, outer] = arguments else { return None };
    let Kind::Call(Function::Point, place) = &inner.kind else { return None };
    let [lon, lat] = place.as_slice() else { return None };
    if !is_position(lon, lat, head) {
        return None;
    }
    match &outer.kind {
        Kind::Call(Function::Circle, parts) if parts.iter().all(is_constant) => {
            parts.as_slice().try_into().ok().map(|parts: &[Expr; 3]| Condition::Cone(parts.clone(), true))
        }
        Kind::Call(Function::Polygon, parts) if parts.iter().all(is_constant) => {
            Some(Condition::Polygon(parts.clone()))
        }
        Kind::Call(Function::Region, text) => match text.as_slice() {
            [text] if is_constant(text) => Some(Condition::Region(text.clone())),
            _ => None,
        },
        _ => None,
    }
}

impl Condition {
    /// The condition with these literals; `None` where only the evaluator can tell (and say what is wrong).
    pub fn bind(&self, literals: &[Value]) -> Option<Bound> {
        match self {
            Self::Compare(column, comparison, value) => {
                Some(interval(*column, *comparison, scalar(value, literals)?))
            }
            Self::Between(column, low, high) => match (scalar(low, literals)?, scalar(high, literals)?) {
                (Scalar::Null, _) | (_, Scalar::Null) => Some(Bound::Never),
                (low, high) => Some(Bound::Interval(*column, End::Included(low), End::Included(high))),
            },
            Self::OneOf(column, list) => {
                let values: Option<Vec<Scalar>> = list.iter().map(|value| scalar(value, literals)).collect();
                let known = values?.into_iter().filter(|value| *value != Scalar::Null).collect();
                Some(Bound::OneOf(*column, known))
            }
            Self::Like(column, pattern) => match scalar(pattern, literals)? {
                Scalar::Text(pattern) => Some(liked(*column, &pattern)),
                Scalar::Null => Some(Bound::Never),
                _ => None,
            },
            Self::Cone(parts, exact) => {
                let [Some(lon), Some(lat), Some(radius)] =
                    [0, 1, 2].map(|part| scalar(&parts[part], literals).and_then(|value| value.double()))
                else {
                    return None;
                };
                Some(Bound::Cone(Cone { circle: Circle::new(lon, lat, radius).ok()?, exact: *exact }))
            }
            Self::Polygon(parts) => {
                let numbers: Option<Vec<f64>> = parts
                    .iter()
                    .map(|part| scalar(part, literals).and_then(|value| value.double()))
                    .collect();
                Some(sky(&Geometry::Polygon(Polygon::new(&numbers?).ok()?)))
            }
            Self::Region(text) => match scalar(text, literals)? {
                Scalar::Text(text) => Some(sky(&Geometry::Region(dali::region(&text).ok()?))),
                _ => None,
            },
        }
    }
}

fn sky(region: &Geometry) -> Bound {
    Bound::Sky(healpix::cover_geometry(region, COVER_CELLS))
}

fn interval(column: usize, comparison: Comparison, value: Scalar) -> Bound {
    if value == Scalar::Null {
        return Bound::Never;
    }
    let (low, high) = match comparison {
        Comparison::Equal => (End::Included(value.clone()), End::Included(value)),
        Comparison::Less => (End::Unbounded, End::Excluded(value)),
        Comparison::LessOrEqual => (End::Unbounded, End::Included(value)),
        Comparison::Greater => (End::Excluded(value), End::Unbounded),
        Comparison::GreaterOrEqual => (End::Included(value), End::Unbounded),
        Comparison::NotEqual => (End::Unbounded, End::Unbounded),
    };
    Bound::Interval(column, low, high)
}

/// What a pattern's beginning tells: everything before the first `%` or `_`.
fn liked(column: usize, pattern: &str) -> Bound {
    match pattern.find(['%', '_']) {
        None => Bound::OneOf(column, vec![Scalar::Text(pattern.into())]),
        Some(end) => Bound::Prefix(column, pattern[..end].into()),
    }
}
