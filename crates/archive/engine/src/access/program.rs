//! What a query over one table needs, worked out once per plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use trifid_archive_adql::lift;
use trifid_archive_adql::tree::{Body, Expr, Join, Literal, OrderKey, Query, Relation, Select, Value};
use trifid_archive_model::batch;

use super::condition::{Bound, Condition, condition};
use super::constant::bound;
use super::run::Running;
use super::selection::narrow;
use super::sky::sifted;
use crate::catalogue::Tables;
use crate::error::QueryError;
use crate::table::Table;

/// A query over one table without grouping, duplicates to remove, or queries within.
#[derive(Debug)]
pub struct Program {
    pub(super) table: Arc<Table>,
    pub(super) conjuncts: Vec<Conjunct>,
    pub(super) items: Vec<Expr>,
    /// How many of the items are shown.
    pub(super) shown: usize,
    pub(super) order: Vec<OrderKey>,
    offset: Option<Literal>,
    top: Option<Literal>,
    pub(super) fields: Arc<[trifid_archive_adql::types::Field]>,
    /// The schema of its batches.
    pub(super) schema: SchemaRef,
    /// Whether any literal stands in the items, so that they must be bound.
    items_vary: bool,
    /// The columns that filter and items use.
    pub(super) columns: Vec<usize>,
}

/// A part of WHERE that must be true.
#[derive(Debug)]
pub(super) struct Conjunct {
    pub(super) expr: Expr,
    /// What an index can make of it.
    pub(super) condition: Option<Condition>,
}

impl Program {
    /// The program of a query, if it is of this kind.
    pub fn compile(query: &Query, tables: &Tables) -> Option<Self> {
        let Body::Select(select) = &query.body else { return None };
        let table = single_table(select, tables)?;
        let filter = select.filter.as_ref();
        let parts = filter.map(|filter| lift::conjuncts(filter)).unwrap_or_default();
        if parts.iter().copied().chain(&select.items).any(lift::has_query) {
            return None;
        }
        let conjuncts = parts
            .iter()
            .map(|expr| Conjunct { condition: condition(expr, &table.head), expr: (*expr).clone() });
        let used = columns(parts.iter().copied().chain(&select.items));
        let conjuncts: Vec<Conjunct> = conjuncts.collect();
        Some(Self {
            conjuncts,
            columns: used,
            items_vary: select.items.iter().any(lift::has_slot),
            items: select.items.clone(),
            shown: query.fields.len(),
            order: query.order.clone(),
            offset: query.offset.clone(),
            top: query.top.clone(),
            fields: Arc::clone(&query.fields),
            schema: batch::schema(&query.fields),
            table,
        })
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Prepares a run with these literals, for at most `limit` rows. `None` if a column would have to be read for
    /// that and may not be.
    pub fn begin(
        self: &Arc<Self>,
        literals: &[Value],
        limit: Option<u64>,
        may_read: bool,
    ) -> Result<Option<Running>, QueryError> {
        let bounds: Vec<Option<Bound>> =
            self.conjuncts.iter().map(|conjunct| conjunct.condition.as_ref()?.bind(literals)).collect();
        let Some(selected) = narrow(&self.table, &bounds, may_read)? else { return Ok(None) };
        let selected = sifted(selected, &self.table, &bounds, may_read)?;
        let undecided = self.conjuncts.iter().enumerate().filter(|(at, _)| selected.decided != Some(*at));
        let filter = bound_all(undecided.map(|(_, conjunct)| &conjunct.expr), literals)?;
        let items = self.items_vary.then(|| bound_all(self.items.iter(), literals)).transpose()?;
        let count =
            |literal: &Option<Literal>| literal.as_ref().and_then(|literal| whole(bound(literal, literals)));
        let top = count(&self.top).unwrap_or(u64::MAX).min(limit.unwrap_or(u64::MAX));
        let running = Running::new(Arc::clone(self), selected.selection, filter, items);
        Ok(Some(running.cut(count(&self.offset).unwrap_or(0), top)))
    }
}

/// Expressions with the literals of this run. That those fit was checked when the plan was found.
fn bound_all<'a>(exprs: impl Iterator<Item = &'a Expr>, literals: &[Value]) -> Result<Vec<Expr>, QueryError> {
    let strange = || QueryError::internal("a literal does not fit its place");
    exprs.map(|expr| lift::bind_expr(expr, literals).ok_or_else(strange)).collect()
}

fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(value) => u64::try_from(*value).ok(),
        _ => None,
    }
}

fn single_table(select: &Select, tables: &Tables) -> Option<Arc<Table>> {
    let [Relation::Table(table)] = select.relations.as_slice() else { return None };
    if select.grouped || select.distinct || !matches!(select.from, Some(Join::Leaf(0))) {
        return None;
    }
    tables.get(&table.schema, &table.table).cloned()
}

/// The columns that expressions over one table use.
fn columns<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> Vec<usize> {
    let mut found = BTreeSet::new();
    for expr in exprs {
        lift::each_column(expr, 0, &mut |at| {
            found.insert(at.column as usize);
        });
    }
    found.into_iter().collect()
}
