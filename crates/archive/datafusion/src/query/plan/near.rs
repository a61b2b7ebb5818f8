//! Conditions that say that two rows lie near each other on the sky, in all their spellings (ADQL 2.1 4.2.7).
//!
//! `DISTANCE(a, b) < r` and `<= r`, either way round, with points or numbers; a point of one side that is in, or
//! intersects, a circle around a point of the other; two circles that intersect. The radius is a constant or of one
//! side alone. What is recognised is only where partners may be found; the condition itself is still evaluated for
//! every candidate, so a spelling can never change an answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::logical_expr::{Expr as Logical, Extension, LogicalPlan};
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::lift;
use trifid_archive_adql::tree::{Comparison, Expr, Kind, Operator};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::eval::{Constant, constant};

use super::{Refused, Translator};
use crate::query::bucket::BucketJoin;

/// Radii up to this many degrees make buckets that beat an equation of unknown worth.
const CLOSE_DEGREES: f64 = 0.1;

/// Where two rows must lie.
pub(super) struct Near {
    /// Longitude and latitude of the row on the left.
    pub(super) left: [Expr; 2],
    /// Of the row on the right.
    pub(super) right: [Expr; 2],
    /// How far apart at most, in degrees.
    pub(super) radius: Expr,
}

/// The same in terms of the plan, with the whole condition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) struct Place {
    /// Longitude and latitude over the left side.
    pub(crate) left: [Logical; 2],
    /// Over the right side.
    pub(crate) right: [Logical; 2],
    /// Over one of them.
    pub(crate) radius: Logical,
    /// What must be true of both rows together, the distance included.
    pub(crate) filter: Logical,
}

impl Near {
    /// What a condition says about where a row of the left and one of the right lie.
    pub(super) fn of(
        expr: &Expr,
        left: &BTreeSet<u32>,
        right: &BTreeSet<u32>,
        relations: &dyn Fn(&Expr) -> Option<BTreeSet<u32>>,
    ) -> Option<Self> {
        let plain = !lift::is_volatile(expr) && !lift::has_query(expr);
        let (one, other, radius) = if plain { positions(expr)? } else { return None };
        let within = |position: &[Expr; 2], side: &BTreeSet<u32>| {
            let read: Option<Vec<_>> = position.iter().map(relations).collect();
            read.is_some_and(|read| {
                let read: BTreeSet<u32> = read.into_iter().flatten().collect();
                !read.is_empty() && read.is_subset(side)
            })
        };
        let (left_at, right_at) = if within(&one, left) && within(&other, right) {
            (one, other)
        } else if within(&other, left) && within(&one, right) {
            (other, one)
        } else {
            return None;
        };
        let of = relations(&radius)?;
        (of.is_subset(left) || of.is_subset(right)).then_some(Self { left: left_at, right: right_at, radius })
    }

    /// Whether partners are few, however many rows there are.
    pub(super) fn is_close(&self) -> bool {
        matches!(constant(&self.radius), Ok(Some(Constant::Double(radius))) if radius.abs() <= CLOSE_DEGREES)
    }
}

/// Whether a condition looks like one about nearness.
pub(super) fn may_be_near(expr: &Expr) -> bool {
    positions(expr).is_some()
}

/// Two positions and how far apart they are at most.
fn positions(expr: &Expr) -> Option<([Expr; 2], [Expr; 2], Expr)> {
    match &expr.kind {
        Kind::Compare(comparison, left, right) => {
            let less = matches!(comparison, Comparison::Less | Comparison::LessOrEqual | Comparison::Equal);
            let greater =
                matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual | Comparison::Equal);
            match (&left.kind, &right.kind) {
                (Kind::Call(Function::Distance, points), _) if less => apart(points, right),
                (_, Kind::Call(Function::Distance, points)) if greater => apart(points, left),
                _ => None,
            }
        }
        Kind::Call(Function::Contains, parts) => match parts.as_slice() {
            [inner, outer] => {
                let (center, radius) = circle(outer)?;
                Some((point(inner)?, center, radius))
            }
            _ => None,
        },
        Kind::Call(Function::Intersects, parts) => match parts.as_slice() {
            [one, other] => touching(one, other),
            _ => None,
        },
        _ => None,
    }
}

fn apart(points: &[Expr], radius: &Expr) -> Option<([Expr; 2], [Expr; 2], Expr)> {
    let [lon1, lat1, lon2, lat2] = points else { return None };
    Some(([lon1.clone(), lat1.clone()], [lon2.clone(), lat2.clone()], radius.clone()))
}

fn touching(one: &Expr, other: &Expr) -> Option<([Expr; 2], [Expr; 2], Expr)> {
    match (circle(one), circle(other)) {
        (Some((center, radius)), None) => Some((center, point(other)?, radius)),
        (None, Some((center, radius))) => Some((point(one)?, center, radius)),
        (Some((center, radius)), Some((other, more))) => {
            let kind = Kind::Arithmetic(Operator::Add, Box::new(radius), Box::new(more));
            Some((center, other, Expr { kind, ty: Type::Double }))
        }
        (None, None) => None,
    }
}

/// Longitude and latitude of a point.
fn point(expr: &Expr) -> Option<[Expr; 2]> {
    if expr.ty != Type::Point {
        return None;
    }
    if let Kind::Call(Function::Point, parts) = &expr.kind
        && let [lon, lat] = parts.as_slice()
    {
        return Some([lon.clone(), lat.clone()]);
    }
    let part = |function| Expr { kind: Kind::Call(function, vec![expr.clone()]), ty: Type::Double };
    Some([part(Function::Coord1), part(Function::Coord2)])
}

/// Centre and radius of a circle that is spelled out.
fn circle(expr: &Expr) -> Option<([Expr; 2], Expr)> {
    match &expr.kind {
        Kind::Call(Function::Circle, parts) => match parts.as_slice() {
            [lon, lat, radius] => Some(([lon.clone(), lat.clone()], radius.clone())),
            _ => None,
        },
        _ => None,
    }
}

impl Translator<'_> {
    /// Where the partners of rows lie, with the whole condition.
    pub(super) fn near_place(&mut self, near: &Near, conditions: &[&Expr]) -> Result<Place, Refused> {
        Ok(Place {
            left: [self.expr(&near.left[0])?, self.expr(&near.left[1])?],
            right: [self.expr(&near.right[0])?, self.expr(&near.right[1])?],
            radius: self.expr(&near.radius)?,
            filter: self.pinned(conditions)?,
        })
    }
}

/// A join by place.
pub(super) fn bucket_join(
    kind: JoinType,
    left: &LogicalPlan,
    right: &LogicalPlan,
    place: Place,
) -> Result<LogicalPlan, Refused> {
    super::select::check_columns(&place.left, &[left])?;
    super::select::check_columns(&place.right, &[right])?;
    super::select::check_columns([&place.radius, &place.filter], &[left, right])?;
    let node = BucketJoin::new(kind, left.clone(), right.clone(), place)?;
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}
