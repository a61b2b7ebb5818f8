//! Which loop a function stands for.

use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{Comparison, Expr};
use trifid_archive_adql::types::Type;
use trifid_archive_model::time::Timestamp;
use trifid_archive_model::{dali, sphere};

use super::cells::Cells;
use super::node::Evaluator;
use super::{
    arithmetic, conditional, distance, geometry, instants, math, pattern, random, regions, sky, text,
};
use crate::error::QueryError;

/// A function called with so many arguments as it never has: the resolver's fault.
pub(super) fn count(found: usize) -> QueryError {
    QueryError::internal(format_args!("a function was called with {found} arguments"))
}

/// A call at `path`.
pub(super) fn call(
    evaluator: &Evaluator<'_>,
    function: Function,
    arguments: &[Expr],
    ty: Type,
    path: u64,
) -> Result<Cells, QueryError> {
    match function {
        Function::Coalesce => conditional::coalesce(evaluator, ty, arguments, path),
        Function::Contains | Function::Intersects => {
            geometry::predicate(evaluator, function, arguments, path)
        }
        Function::GeometryTransform => regions::transformed(evaluator, arguments, path),
        // Spelled out, so that a function that is new to the language cannot be forgotten here.
        Function::Abs
        | Function::Mod
        | Function::Pi
        | Function::Round
        | Function::Truncate
        | Function::Power
        | Function::Atan2
        | Function::Rand
        | Function::NormalRandom
        | Function::Lower
        | Function::Upper
        | Function::Left
        | Function::NullIf
        | Function::Greatest
        | Function::Least
        | Function::HasWord
        | Function::HashListHas
        | Function::Match
        | Function::Ceiling
        | Function::Degrees
        | Function::Exp
        | Function::Floor
        | Function::Log
        | Function::Log10
        | Function::Radians
        | Function::Sqrt
        | Function::Sin
        | Function::Cos
        | Function::Tan
        | Function::Cot
        | Function::Asin
        | Function::Acos
        | Function::Atan
        | Function::Point
        | Function::Circle
        | Function::Box
        | Function::Polygon
        | Function::Region
        | Function::Centroid
        | Function::Area
        | Function::Coord1
        | Function::Coord2
        | Function::CoordSys
        | Function::Distance
        | Function::HealpixIndex
        | Function::HealpixCenter
        | Function::GaiaHealpixIndex
        | Function::EpochPropagate
        | Function::EpochPropagatePosition
        | Function::ToJd
        | Function::ToMjd
        | Function::HmsToDegrees
        | Function::DmsToDegrees
        | Function::IntervalOverlaps => strict(evaluator, function, arguments, ty, path),
    }
}

/// A function that needs all its arguments for all rows.
fn strict(
    evaluator: &Evaluator<'_>,
    function: Function,
    exprs: &[Expr],
    ty: Type,
    path: u64,
) -> Result<Cells, QueryError> {
    let arguments = evaluator.all(exprs, path)?;
    let rows = evaluator.rows();
    match (function, &*arguments) {
        (Function::Abs, [value]) => arithmetic::absolute(ty, value),
        (Function::Mod, [left, right]) => arithmetic::modulo(ty, left, right),
        (Function::Pi, []) => Ok(math::pi(rows)),
        (Function::Round | Function::Truncate, _) => math::cut(function, &arguments),
        (Function::Power, _) => math::two(f64::powf, &arguments),
        (Function::Atan2, _) => math::two(f64::atan2, &arguments),
        (Function::Rand, _) => random::rand(evaluator, &arguments, path),
        (Function::NormalRandom, _) => random::normal(evaluator, &arguments, path),
        (Function::Lower, [value]) => text::lower(value),
        (Function::Upper, [value]) => text::upper(value),
        (Function::Left, [value, count]) => text::left(value, count),
        (Function::NullIf, [left, right]) => conditional::null_if(ty, left, right),
        (Function::Greatest, _) => conditional::extreme(Comparison::Greater, ty, &arguments, rows),
        (Function::Least, _) => conditional::extreme(Comparison::Less, ty, &arguments, rows),
        (Function::HasWord, [haystack, needle]) => text::pairs(haystack, needle, text::has_word),
        (Function::HashListHas, [list, item]) => text::pairs(list, item, text::hash_list_has),
        (Function::Match, [pattern, text]) => pattern::matches(pattern, text),
        _ => match real(function) {
            Some(f) => math::one(f, &arguments),
            None => sky(function, &arguments, exprs.first().map_or(Type::Null, |first| first.ty)),
        },
    }
}

/// The functions of one Double.
fn real(function: Function) -> Option<fn(f64) -> f64> {
    Some(match function {
        Function::Ceiling => f64::ceil,
        Function::Degrees => f64::to_degrees,
        Function::Exp => f64::exp,
        Function::Floor => f64::floor,
        Function::Log => f64::ln,
        Function::Log10 => f64::log10,
        Function::Radians => f64::to_radians,
        Function::Sqrt => f64::sqrt,
        Function::Sin => f64::sin,
        Function::Cos => f64::cos,
        Function::Tan => f64::tan,
        Function::Cot => math::cotangent,
        Function::Asin => f64::asin,
        Function::Acos => f64::acos,
        Function::Atan => f64::atan,
        _ => return None,
    })
}

/// The functions about the sky; `of` is the type of the first argument.
fn sky(function: Function, arguments: &[Cells], of: Type) -> Result<Cells, QueryError> {
    match (function, arguments) {
        (Function::Point, [lon, lat]) => {
            geometry::points(&geometry::Positions::new(lon.clone(), lat.clone()))
        }
        (Function::Circle, _) => geometry::circles(arguments),
        (Function::Box, [_, _, _, _]) => {
            geometry::polygons(arguments, |n| sphere::Polygon::from_box(n[0], n[1], n[2], n[3]))
        }
        (Function::Polygon, _) => geometry::polygons(arguments, sphere::Polygon::new),
        (Function::Region, [text]) => geometry::regions(text),
        (Function::Centroid, [shape]) => geometry::position(shape, of, sphere::Geometry::centroid),
        (Function::Area, [shape]) => geometry::measure(shape, of, sphere::Geometry::area),
        (Function::Coord1, [point]) => geometry::coordinate(point, 0),
        (Function::Coord2, [point]) => geometry::coordinate(point, 1),
        (Function::CoordSys, [shape]) => geometry::system(shape),
        (Function::Distance, _) => distance::distance(arguments.to_vec()),
        (Function::HealpixIndex, _) => sky::healpix_index(arguments),
        (Function::HealpixCenter, _) => sky::healpix_center(arguments),
        (Function::GaiaHealpixIndex, _) => sky::gaia_index(arguments),
        (Function::EpochPropagate, _) => sky::propagated(arguments),
        (Function::EpochPropagatePosition, _) => sky::propagated_position(arguments),
        (Function::ToJd, [instant]) => instants::date(instant, Timestamp::to_jd),
        (Function::ToMjd, [instant]) => instants::date(instant, Timestamp::to_mjd),
        (Function::HmsToDegrees, [text]) => instants::angle(text, dali::hms_to_degrees),
        (Function::DmsToDegrees, [text]) => instants::angle(text, dali::dms_to_degrees),
        (Function::IntervalOverlaps, [low1, high1, low2, high2]) => {
            instants::overlap(low1, high1, low2, high2)
        }
        _ => Err(count(arguments.len())),
    }
}
