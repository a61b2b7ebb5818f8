//! Which loop a function stands for.

use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{Comparison, Expr};
use trifid_archive_adql::types::Type;

use super::cells::Cells;
use super::node::Evaluator;
use super::{arithmetic, conditional, math, random, text};
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
        _ => strict(evaluator, function, &evaluator.all(arguments, path)?, ty, path),
    }
}

/// A function that needs all its arguments for all rows.
fn strict(
    evaluator: &Evaluator<'_>,
    function: Function,
    arguments: &[Cells],
    ty: Type,
    path: u64,
) -> Result<Cells, QueryError> {
    let rows = evaluator.rows();
    match (function, arguments) {
        (Function::Abs, [value]) => arithmetic::absolute(ty, value),
        (Function::Mod, [left, right]) => arithmetic::modulo(ty, left, right),
        (Function::Pi, []) => Ok(math::pi(rows)),
        (Function::Ceiling, _) => math::one(f64::ceil, arguments),
        (Function::Degrees, _) => math::one(f64::to_degrees, arguments),
        (Function::Exp, _) => math::one(f64::exp, arguments),
        (Function::Floor, _) => math::one(f64::floor, arguments),
        (Function::Log, _) => math::one(f64::ln, arguments),
        (Function::Log10, _) => math::one(f64::log10, arguments),
        (Function::Power, _) => math::two(f64::powf, arguments),
        (Function::Radians, _) => math::one(f64::to_radians, arguments),
        (Function::Round | Function::Truncate, _) => math::cut(function, arguments),
        (Function::Sqrt, _) => math::one(f64::sqrt, arguments),
        (Function::Sin, _) => math::one(f64::sin, arguments),
        (Function::Cos, _) => math::one(f64::cos, arguments),
        (Function::Tan, _) => math::one(f64::tan, arguments),
        (Function::Cot, _) => math::one(math::cotangent, arguments),
        (Function::Asin, _) => math::one(f64::asin, arguments),
        (Function::Acos, _) => math::one(f64::acos, arguments),
        (Function::Atan, _) => math::one(f64::atan, arguments),
        (Function::Atan2, _) => math::two(f64::atan2, arguments),
        (Function::Rand, _) => random::rand(evaluator, arguments, path),
        (Function::NormalRandom, _) => random::normal(evaluator, arguments, path),
        (Function::Lower, [value]) => text::lower(value),
        (Function::Upper, [value]) => text::upper(value),
        (Function::Left, [value, count]) => text::left(value, count),
        (Function::NullIf, [left, right]) => conditional::null_if(ty, left, right),
        (Function::Greatest, _) => conditional::extreme(Comparison::Greater, ty, arguments, rows),
        (Function::Least, _) => conditional::extreme(Comparison::Less, ty, arguments, rows),
        (Function::HasWord, [haystack, needle]) => text::pairs(haystack, needle, text::has_word),
        (Function::HashListHas, [list, item]) => text::pairs(list, item, text::hash_list_has),
        _ => Err(count(arguments.len())),
    }
}
