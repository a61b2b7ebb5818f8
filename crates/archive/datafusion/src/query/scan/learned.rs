//! What a scan is told once the query runs.
//!
//! A join that has read its smaller side knows which rows of the larger one can have a partner: their keys, or
//! where on the sky they are. It tells the scan of the larger side before it reads from it, and the scan asks its
//! indexes again: a hundred uploaded positions touch a hundred places of a billion rows. Nobody relies on it: the
//! join looks at what comes all the same.

use std::sync::{Arc, OnceLock};

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, Column, DynamicFilterPhysicalExpr, InListExpr, Literal,
};
use trifid_archive_adql::tree::{ColumnRef, Comparison, Expr, Kind, Literal as Constant};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::access::select;
use trifid_archive_engine::table::Table;

use super::pieces::{Cells, Piece, both, pieces, within};
use crate::query::source::tree_value;

/// Where on the sky rows are wanted; said by a join, read by a scan.
#[derive(Debug, Default)]
pub(crate) struct Sky(OnceLock<Option<Vec<Cells>>>);

impl Sky {
    /// Says where, ascending; `None` for everywhere.
    pub(crate) fn tell(&self, cells: Option<Vec<Cells>>) {
        // Who says it twice says the same.
        let _ = self.0.set(cells);
    }

    fn cells(&self) -> Option<&[Cells]> {
        self.0.get()?.as_deref()
    }
}

/// Who tells a scan what.
#[derive(Clone, Debug, Default)]
pub(super) struct Learned {
    /// Where on the sky.
    pub(super) sky: Option<Arc<Sky>>,
    /// Conditions that joins complete while they run, over the columns that the scan gives.
    pub(super) filters: Vec<Arc<dyn PhysicalExpr>>,
}

impl Learned {
    /// The rows that are left of these.
    pub(super) fn narrow(
        &self,
        table: &Table,
        projection: &[usize],
        ours: &[Piece],
    ) -> Result<Option<Vec<Piece>>, QueryError> {
        let mut left: Option<Vec<Piece>> = None;
        if let Some(cells) = self.sky.as_ref().and_then(|sky| sky.cells()) {
            left = Some(within(table, ours, cells)?);
        }
        let conjuncts = self.conjuncts(table, projection);
        if !conjuncts.is_empty() {
            let selected = pieces(table, select(table, &conjuncts)?);
            left = Some(both(left.as_deref().unwrap_or(ours), &selected));
        }
        Ok(left)
    }

    /// What the filters say by now that an index understands.
    fn conjuncts(&self, table: &Table, projection: &[usize]) -> Vec<Expr> {
        let mut all = Vec::new();
        for filter in &self.filters {
            let dynamic = filter.downcast_ref::<DynamicFilterPhysicalExpr>();
            let current = dynamic.and_then(|one| one.current().ok());
            let columns = Columns { table, projection };
            columns.conjuncts(current.as_ref().unwrap_or(filter), &mut all);
        }
        all
    }
}

/// The columns that a scan gives.
struct Columns<'a> {
    table: &'a Table,
    projection: &'a [usize],
}

impl Columns<'_> {
    fn conjuncts(&self, expr: &Arc<dyn PhysicalExpr>, into: &mut Vec<Expr>) {
        if let Some(both) = expr.downcast_ref::<BinaryExpr>()
            && *both.op() == Operator::And
        {
            self.conjuncts(both.left(), into);
            self.conjuncts(both.right(), into);
            return;
        }
        into.extend(self.compared(expr).or_else(|| self.listed(expr)));
    }

    fn compared(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Expr> {
        let compared = expr.downcast_ref::<BinaryExpr>()?;
        let comparison = match compared.op() {
            Operator::GtEq => Comparison::GreaterOrEqual,
            Operator::LtEq => Comparison::LessOrEqual,
            Operator::Eq => Comparison::Equal,
            _ => return None,
        };
        let column = self.column(compared.left())?;
        let value = constant(compared.right().downcast_ref::<Literal>()?.value(), column.ty)?;
        let kind = Kind::Compare(comparison, Box::new(column), Box::new(value));
        Some(Expr { kind, ty: Type::Boolean })
    }

    fn listed(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Expr> {
        let listed = expr.downcast_ref::<InListExpr>()?;
        if listed.negated() {
            return None;
        }
        let column = self.column(listed.expr())?;
        let value = |one: &Arc<dyn PhysicalExpr>| constant(one.downcast_ref::<Literal>()?.value(), column.ty);
        let list = listed.list().iter().map(value).collect::<Option<Vec<_>>>()?;
        Some(Expr { kind: Kind::InList(Box::new(column), list), ty: Type::Boolean })
    }

    /// A column of a type for which DataFusion and we mean the same by order: reals have two zeroes.
    fn column(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Expr> {
        let place = *self.projection.get(expr.downcast_ref::<Column>()?.index())?;
        let ty = self.table.head.fields.get(place)?.ty;
        let column = ColumnRef { depth: 0, relation: 0, column: place as u32 };
        (ty.is_integer() || ty == Type::Text).then_some(Expr { kind: Kind::Column(column), ty })
    }
}

fn constant(value: &ScalarValue, ty: Type) -> Option<Expr> {
    if value.is_null() {
        return None;
    }
    Some(Expr { kind: Kind::Literal(Constant { value: tree_value(value)?, slot: None }), ty })
}
