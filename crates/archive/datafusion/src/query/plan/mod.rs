//! From the tree to a logical plan.
//!
//! The plan is nearly what it will be when it runs: columns that nobody reads are never mentioned, conditions stand as
//! deep as they can, joins have their keys, subqueries are joins. DataFusion's optimiser is left with what only it
//! can see: conditions that sink through derived tables, limits, columns that are needed for a condition only.
//!
//! - A relation (leaf of FROM, output of a grouping, of a subquery) has a number, unique in the plan; its columns are
//!   called `t<number>.c<place>`. So a column of a select further out needs no special form: it is the same name.
//! - An expression is a bare column or one function of ours ([`super::scalar`]).
//! - A subquery that depends on nothing around it and stands for one value is a plan of its own, run first
//!   ([`Value`]); its value is a constant of the main plan. All others become joins ([`subquery`]).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{EmptyRelation, Expr as Logical, LogicalPlan, Projection};
use trifid_archive_adql::tree::{ColumnRef, Expr, Query, Select};
use trifid_archive_adql::types::Type;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::catalogue::Tables;
use trifid_archive_model::batch::physical;

use super::session::Width;
use super::source::column_name;
use crate::limits::{PLAN_RELATIONS, WIDE_ROWS};

mod bound;
mod expr;
mod from;
pub(crate) mod near;
mod select;
mod set;
mod subquery;

/// Why a tree has no plan.
#[derive(Debug)]
pub(crate) enum Refused {
    /// DataFusion has no plan for it; the words are for us.
    Unsupported(&'static str),
    /// The query cannot be answered.
    Query(QueryError),
    /// DataFusion found something wrong.
    Engine(DataFusionError),
}

impl From<DataFusionError> for Refused {
    fn from(error: DataFusionError) -> Self {
        Self::Engine(error)
    }
}

impl From<QueryError> for Refused {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

/// A query's plan: columns `c0`, `c1`, ... are the shown ones.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// The plan.
    pub(crate) plan: LogicalPlan,
    /// What must be run first, by number; the values stand in the plan as placeholders.
    pub(crate) values: Vec<Value>,
    /// How many threads are worth it.
    pub(crate) width: Width,
    /// Whether the plan would be the same with other constants.
    pub(crate) reusable: bool,
}

/// A subquery that is run before the plan that needs its value.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// Its plan.
    pub(crate) planned: Planned,
    /// What is taken from its rows.
    pub(crate) take: Take,
    /// The type of the value.
    pub(crate) ty: Type,
}

/// What a subquery's rows are to the plan around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// The value of the only row: NULL without rows, an error with several.
    Only,
    /// Whether there are rows.
    Any,
}

/// Plans a query over these tables. With `limit`, no more rows than that are needed.
pub(crate) fn plan(
    query: &Query,
    tables: &Tables,
    seed: u64,
    limit: Option<u64>,
) -> Result<Planned, Refused> {
    let mut translator = Translator::new(tables, seed);
    let number = translator.number(1)?;
    let plan = translator.query(query, number, None, limit)?;
    Ok(translator.planned(plan))
}

/// Where the selects that enclose an expression have their columns.
struct Scope<'t> {
    /// The select.
    select: &'t Select,
    /// The number of its first leaf.
    base: u32,
    /// Once it is grouped: the number of the grouping.
    group: Option<u32>,
}

/// An expression by its address, in a select by the number of its first leaf: a select may be translated twice.
type Here = (*const Expr, u32);

struct Translator<'t> {
    tables: &'t Tables,
    seed: u64,
    next: u32,
    places: u32,
    scopes: Vec<Scope<'t>>,
    /// The columns that subqueries in expressions became.
    attached: HashMap<Here, Logical>,
    /// Columns that stand for columns of selects further out, inside a subquery that was cut loose from them.
    stand_ins: HashMap<(u32, usize), Column>,
    values: Vec<Value>,
    /// Rows of the tables that are read.
    rows: u64,
    /// Whether the order of rows matters to an aggregate.
    ordered: bool,
    reusable: bool,
}

impl<'t> Translator<'t> {
    fn new(tables: &'t Tables, seed: u64) -> Self {
        Self {
            tables,
            seed,
            next: 0,
            places: 0,
            scopes: Vec::new(),
            attached: HashMap::new(),
            stand_ins: HashMap::new(),
            values: Vec::new(),
            rows: 0,
            ordered: false,
            reusable: true,
        }
    }

    fn planned(self, plan: LogicalPlan) -> Planned {
        let width = if self.ordered || self.rows < WIDE_ROWS { Width::One } else { Width::All };
        Planned { plan, values: self.values, width, reusable: self.reusable }
    }

    fn here(&self, expr: &Expr) -> Here {
        (std::ptr::from_ref(expr), self.scopes.last().map_or(0, |scope| scope.base))
    }

    fn is_attached(&self, expr: &Expr) -> bool {
        self.attached.contains_key(&self.here(expr))
    }

    fn put_attached(&mut self, expr: &Expr, column: Logical) {
        self.attached.insert(self.here(expr), column);
    }

    /// Numbers for so many relations; the first of them.
    fn number(&mut self, count: usize) -> Result<u32, Refused> {
        let first = self.next;
        self.next = first.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        if self.next as usize > PLAN_RELATIONS {
            let words = format!(
                "the query reads more than {PLAN_RELATIONS} tables and subqueries, each use of a WITH table \
                 counted; split it"
            );
            return Err(QueryError::TooLarge(words.into()).into());
        }
        Ok(first)
    }

    /// The number of the leaf that a column is of.
    fn relation(&self, column: ColumnRef) -> Result<u32, Refused> {
        let outwards = usize::from(column.depth) + 1;
        let scope = self.scopes.len().checked_sub(outwards).and_then(|at| self.scopes.get(at));
        let scope = scope.ok_or_else(|| QueryError::internal("a column of no select"))?;
        Ok(scope.base + u32::from(column.relation))
    }

    /// The leaves that an expression reads, those of selects further out too.
    fn relations(&self, expr: &Expr) -> Result<BTreeSet<u32>, Refused> {
        let mut all = BTreeSet::new();
        let mut failed = None;
        super::walk::columns(expr, 0, &mut |level, column| {
            if let Some(depth) = column.depth.checked_sub(level) {
                match self.relation(ColumnRef { depth, ..column }) {
                    Ok(relation) => {
                        all.insert(relation);
                    }
                    Err(error) => failed = Some(error),
                }
            }
        });
        failed.map_or(Ok(all), Err)
    }
}

/// A column of a numbered relation.
fn column(relation: u32, place: usize) -> Column {
    Column::new(Some(qualifier(relation)), column_name(place))
}

fn qualifier(relation: u32) -> TableReference {
    TableReference::bare(format!("t{relation}"))
}

/// An expression as a column of a numbered relation.
fn named(expr: Logical, relation: u32, place: usize) -> Logical {
    if expr == Logical::Column(column(relation, place)) {
        return expr;
    }
    expr.alias_qualified(Some(qualifier(relation)), column_name(place))
}

/// The constant that a value run first will be.
fn placeholder(number: usize, ty: Type) -> Logical {
    let field = Arc::new(ArrowField::new(format!("v{number}"), physical(ty), true));
    Logical::Placeholder(Placeholder::new_with_field(format!("$v{number}"), Some(field)))
}

/// The number of the value that a placeholder is for.
pub(crate) fn placeholder_number(id: &str) -> Option<usize> {
    id.strip_prefix("$v")?.parse().ok()
}

fn project(exprs: Vec<Logical>, input: LogicalPlan) -> Result<LogicalPlan, Refused> {
    Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
}

/// One row without columns.
fn one_row() -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema: Arc::new(DFSchema::empty()) })
}

fn is_null_type(ty: Type) -> bool {
    physical(ty) == DataType::Null
}
