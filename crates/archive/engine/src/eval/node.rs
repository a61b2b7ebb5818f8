//! One node of an expression: its operands first, then the loop that it stands for.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use trifid_archive_adql::tree::{Expr, Kind, Query, Value};
use trifid_archive_adql::types::Type;

use super::cells::Cells;
use super::constant::{Constant, one, quick};
use super::logic::Junction;
use super::subset::{Part, Rows};
use super::{Context, Input, Subquery};
use super::{arithmetic, call, cast, compare, conditional, distance, like, logic, text};
use crate::error::QueryError;

/// Computes expressions over one input.
#[derive(Clone, Copy)]
pub(super) struct Evaluator<'a> {
    pub(super) input: &'a dyn Input,
    pub(super) context: &'a Context,
}

/// Where a node's operand is in the whole expression. Calls of RAND at different places differ by it.
pub(super) const fn child(path: u64, place: usize) -> u64 {
    (path.wrapping_add(place as u64 + 1)).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17)
}

impl Evaluator<'_> {
    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.input.rows()
    }

    /// The values of an expression that stands at `path`.
    pub(super) fn cells(&self, expr: &Expr, path: u64) -> Result<Cells, QueryError> {
        let rows = self.rows();
        match &expr.kind {
            Kind::Column(at) => self.input.column(*at),
            Kind::Key(index) => self.input.key(*index),
            Kind::Aggregate(index) => self.input.aggregate(*index),
            Kind::Literal(literal) => literal_cells(&literal.value, expr.ty, rows),
            Kind::Arithmetic(operator, left, right) => {
                let [left, right] = self.operands([left, right], path)?;
                arithmetic::arithmetic(*operator, expr.ty, &left, &right)
            }
            Kind::Negate(operand) => arithmetic::negate(expr.ty, &self.operand(operand, path)?),
            Kind::Concat(parts) => text::concat(&self.all(parts, path)?, rows),
            Kind::Compare(comparison, left, right) => {
                if let Some(truths) = distance::comparison(self, *comparison, left, right, path)? {
                    return Ok(truths);
                }
                let ty = left.ty;
                let [left, right] = self.operands([left, right], path)?;
                compare::compare(*comparison, ty, &left, &right)
            }
            Kind::And(operands) => logic::junction(Junction::And, self, operands, path),
            Kind::Or(operands) => logic::junction(Junction::Or, self, operands, path),
            Kind::Not(operand) => logic::not(&self.operand(operand, path)?),
            Kind::IsNull(operand) => Ok(compare::is_null(&self.operand(operand, path)?)),
            Kind::Between(value, low, high) => {
                let ty = value.ty;
                let [value, low, high] = self.operands([value, low, high], path)?;
                compare::between(ty, &value, &low, &high)
            }
            Kind::InList(value, list) => {
                let found = self.operand(value, path)?;
                match list.iter().map(quick).collect::<Result<Option<Vec<_>>, _>>()? {
                    Some(constants) if value.ty != Type::Null => {
                        compare::in_constants(value.ty, &found, &constants)
                    }
                    _ => compare::in_list(value.ty, &found, &self.all(list, child(path, 1))?),
                }
            }
            Kind::InQuery(value, query) => self.in_query(value, query, path),
            Kind::Exists(query) => self.input.subquery(&Subquery::Exists(query), None),
            Kind::Scalar(query) => self.input.subquery(&Subquery::Value(query), None),
            Kind::Like { value, pattern, ignore_case } => {
                let [value, pattern] = self.operands([value, pattern], path)?;
                like::like(&value, &pattern, *ignore_case)
            }
            Kind::Case { branches, otherwise } => conditional::case(self, expr.ty, branches, otherwise, path),
            Kind::Cast(operand) => cast::cast(&self.operand(operand, path)?, operand.ty, expr.ty),
            Kind::Call(function, arguments) => call::call(self, *function, arguments, expr.ty, path),
        }
    }

    /// A node's only or first operand.
    pub(super) fn operand(&self, expr: &Expr, path: u64) -> Result<Cells, QueryError> {
        self.cells(expr, child(path, 0))
    }

    /// A node's few operands.
    fn operands<const N: usize>(&self, exprs: [&Expr; N], path: u64) -> Result<[Cells; N], QueryError> {
        let mut found = exprs.map(|_| None);
        for (place, (slot, expr)) in found.iter_mut().zip(exprs).enumerate() {
            *slot = Some(self.cells(expr, child(path, place))?);
        }
        Ok(found.map(|one| one.expect("every slot was filled or the loop returned")))
    }

    /// A node's many operands.
    pub(super) fn all(&self, exprs: &[Expr], path: u64) -> Result<Vec<Cells>, QueryError> {
        exprs.iter().enumerate().map(|(place, expr)| self.cells(expr, child(path, place))).collect()
    }

    /// Computes something for some of the rows.
    pub(super) fn within<R>(&self, rows: &Rows, f: impl FnOnce(&Evaluator<'_>) -> R) -> R {
        let part = Part::new(self.input, rows);
        f(&Evaluator { input: &part, context: self.context })
    }

    fn in_query(&self, value: &Expr, query: &Arc<Query>, path: u64) -> Result<Cells, QueryError> {
        let values: ArrayRef = self.operand(value, path)?.spread()?;
        self.input.subquery(&Subquery::Contains(query, &values), None)
    }
}

/// A literal for so many rows.
fn literal_cells(value: &Value, ty: Type, rows: usize) -> Result<Cells, QueryError> {
    match value {
        Value::Null => Ok(Cells::null(ty, rows)),
        Value::Boolean(truth) => Ok(Cells::constant(BooleanArray::from(vec![*truth]), rows)),
        Value::Integer(number) => Ok(Cells::Constant(one(&Constant::Integer(*number), ty)?, rows)),
        Value::Double(number) => Ok(Cells::Constant(one(&Constant::Double(*number), ty)?, rows)),
        Value::Text(text) => Ok(Cells::Constant(one(&Constant::Text(text.clone()), ty)?, rows)),
    }
}
