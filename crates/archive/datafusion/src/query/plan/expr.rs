//! Expressions: a bare column, a constant, or one function over columns.

use std::sync::Arc;

use arrow_array::ArrayRef;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr as Logical;
use trifid_archive_adql::lift;
use trifid_archive_adql::tree::{ColumnRef, Expr, Kind, Literal, Value};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::eval::{self, Cells, Context, Input};
use trifid_archive_model::batch::physical;

use super::{Refused, Translator, column};
use crate::query::scalar::{Failure, Scalar, argument};
use crate::query::walk;

impl Translator<'_> {
    /// The expression in the plan; failures end the query.
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<Logical, Refused> {
        self.expr_with(expr, Failure::Raise)
    }

    /// The expression in the plan.
    pub(super) fn expr_with(&mut self, expr: &Expr, failure: Failure) -> Result<Logical, Refused> {
        if let Some(leaf) = self.leaf(expr)? {
            return Ok(leaf);
        }
        if let Kind::Literal(Literal { value, slot: None }) = &expr.kind
            && let Some(value) = literal(value, expr.ty)
        {
            return Ok(Logical::Literal(value, None));
        }
        let mut arguments = Vec::new();
        let renumbered = self.renumber(expr, &mut arguments)?;
        Ok(self.function(renumbered, failure).call(arguments))
    }

    /// All conditions as one that no planner moves.
    pub(super) fn pinned(&mut self, all: &[&Expr]) -> Result<Logical, Refused> {
        let mut arguments = Vec::new();
        let conditions =
            all.iter().map(|one| self.renumber(one, &mut arguments)).collect::<Result<_, _>>()?;
        let whole =
            walk::all_of(conditions).ok_or_else(|| QueryError::internal("a filter without conditions"))?;
        Ok(self.function(whole, Failure::Raise).pinned().call(arguments))
    }

    fn function(&mut self, expr: Expr, failure: Failure) -> Scalar {
        let place = if lift::is_volatile(&expr) { self.chance() } else { 0 };
        let context = Context { seed: self.seed, place };
        Scalar::new(Arc::new(expr), failure, context)
    }

    /// What tells one source of random numbers from another.
    fn chance(&mut self) -> u32 {
        self.places += 1;
        self.places
    }

    /// What is a column of the plan already.
    fn leaf(&self, expr: &Expr) -> Result<Option<Logical>, Refused> {
        match &expr.kind {
            Kind::Column(at) => Ok(Some(self.column(*at)?)),
            Kind::Key(index) => self.grouped(*index).map(Some),
            Kind::Aggregate(index) => {
                let scope =
                    self.scopes.last().ok_or_else(|| QueryError::internal("an aggregate of no select"))?;
                self.grouped(scope.select.keys.len() + index).map(Some)
            }
            Kind::Exists(_) | Kind::Scalar(_) | Kind::InQuery(..) => {
                let known = self.attached.get(&self.here(expr));
                known.cloned().map(Some).ok_or(Refused::Unsupported("a subquery in this place"))
            }
            _ => Ok(None),
        }
    }

    /// A column of a select.
    pub(super) fn column(&self, at: ColumnRef) -> Result<Logical, Refused> {
        let relation = self.relation(at)?;
        let place = at.column as usize;
        if let Some(stand_in) = self.stand_ins.get(&(relation, place)) {
            return Ok(Logical::Column(stand_in.clone()));
        }
        let scope = &self.scopes[self.scopes.len() - 1 - usize::from(at.depth)];
        if scope.group.is_none() {
            return Ok(Logical::Column(column(relation, place)));
        }
        // A subquery of a grouped select reaches for a column: it must be one of the keys.
        let is_key = |key: &Expr| match &key.kind {
            Kind::Column(own) => *own == ColumnRef { depth: 0, ..at },
            _ => false,
        };
        let key = scope.select.keys.iter().position(is_key);
        let key = key.ok_or(Refused::Unsupported("a subquery over a column that is no key"))?;
        Ok(Logical::Column(column(scope.group.unwrap_or_default(), key)))
    }

    /// A column of the last select's grouping.
    fn grouped(&self, place: usize) -> Result<Logical, Refused> {
        let group = self.scopes.last().and_then(|scope| scope.group);
        let group = group.ok_or_else(|| QueryError::internal("a key outside of a grouped select"))?;
        Ok(Logical::Column(column(group, place)))
    }

    /// The expression over arguments, which are collected.
    fn renumber(&self, expr: &Expr, arguments: &mut Vec<Logical>) -> Result<Expr, Refused> {
        let Some(leaf) = self.leaf(expr)? else {
            return walk::map_operands(expr, &mut |one| self.renumber(one, arguments));
        };
        let known = arguments.iter().position(|one| *one == leaf);
        let place = known.unwrap_or_else(|| {
            arguments.push(leaf);
            arguments.len() - 1
        });
        Ok(Expr { kind: Kind::Column(argument(place as u32)), ty: expr.ty })
    }
}

/// A constant of the tree as one of DataFusion's; `None` if only the evaluator knows.
fn literal(value: &Value, ty: Type) -> Option<ScalarValue> {
    let expr = Expr { kind: Kind::Literal(Literal { value: value.clone(), slot: None }), ty };
    let array = constant(&expr).ok()?;
    if array.data_type() != &physical(ty) {
        return None;
    }
    ScalarValue::try_from_array(&array, 0).ok()
}

/// The value of an expression without columns, as an array of one.
pub(crate) fn constant(expr: &Expr) -> Result<ArrayRef, QueryError> {
    struct Nothing;
    impl Input for Nothing {
        fn rows(&self) -> usize {
            1
        }
        fn column(&self, _: ColumnRef) -> Result<Cells, QueryError> {
            Err(QueryError::internal("a constant has no columns"))
        }
    }
    eval::evaluate(expr, &Nothing, &Context::default())
}
