//! UNION, INTERSECT and EXCEPT, as groupings: rows of both sides with a mark of where they are from.
//!
//! A grouping finds equal rows by all columns at once, NULL equal to NULL, whatever their types; a join would not. With
//! ALL, the n-th of some equal rows on the left is the partner of the n-th on the right (SQL's multiset semantics):
//! rows are numbered among their equals and the number is one more column.

use std::sync::Arc;

use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Aggregate as Grouping, Expr as Logical, Filter, LogicalPlan, Union, Window, WindowFrame,
    WindowFunctionDefinition, lit,
};
use trifid_archive_adql::functions::Aggregator;
use trifid_archive_adql::tree::{Aggregate, ColumnRef, Expr, Kind, Query, SetOperator};
use trifid_archive_adql::types::Type;

use super::select::distinct;
use super::{Refused, Translator, column, named, project};
use crate::query::aggregate;
use crate::query::normal::normal;

impl<'t> Translator<'t> {
    /// A set operation; its columns are those of relation `number`.
    pub(super) fn set(
        &mut self,
        operator: SetOperator,
        all: bool,
        sides: [&'t Arc<Query>; 2],
        number: u32,
    ) -> Result<LogicalPlan, Refused> {
        let count = sides[0].fields.len();
        let mut plans = Vec::new();
        for side in sides {
            let own = self.number(1)?;
            let plan = self.query(side, own, None, None)?;
            plans.push((plan, own));
        }
        let types: Vec<Type> = sides[0].fields.iter().map(|field| field.ty).collect();
        if operator == SetOperator::Union {
            let plan = union(plans, &types, number, !all)?;
            return if all { Ok(plan) } else { distinct(plan, number, 0..count) };
        }
        self.matched(operator, all, plans, &types, number)
    }

    fn matched(
        &mut self,
        operator: SetOperator,
        all: bool,
        plans: Vec<(LogicalPlan, u32)>,
        types: &[Type],
        number: u32,
    ) -> Result<LogicalPlan, Refused> {
        let count = types.len();
        let mut marked = Vec::new();
        for (mark, (plan, own)) in (0i64..).zip(plans) {
            let again = self.number(1)?;
            let plan = normalised(plan, own, types, again)?;
            let plan = if all { numbered(plan, again, count)? } else { plan };
            let mut columns: Vec<_> = (0..count).map(|at| Logical::Column(column(again, at))).collect();
            columns.push(named(if all { row_place(&plan) } else { lit(0u64) }, again, count));
            columns.push(named(lit(mark), again, count + 1));
            marked.push((project(columns, plan)?, again));
        }
        let mut wide = types.to_vec();
        // The number among equals and the mark are whole numbers, which need no normal form.
        wide.extend([Type::Long, Type::Long]);
        let together = self.number(1)?;
        let plan = union(marked, &wide, together, false)?;
        let keys = (0..=count).map(|at| Logical::Column(column(together, at))).collect();
        let marks = self.number(1)?;
        let least = named(extreme(Aggregator::Min, together, count + 1), marks, 0);
        let greatest = named(extreme(Aggregator::Max, together, count + 1), marks, 1);
        let grouping = Grouping::try_new(Arc::new(plan), keys, vec![least, greatest])?;
        let (least, greatest) = (Logical::Column(column(marks, 0)), Logical::Column(column(marks, 1)));
        let wanted = match operator {
            SetOperator::Except => greatest.eq(lit(0i64)),
            SetOperator::Union | SetOperator::Intersect => least.eq(lit(0i64)).and(greatest.eq(lit(1i64))),
        };
        let plan = Filter::try_new(wanted, Arc::new(LogicalPlan::Aggregate(grouping)))?;
        let columns = (0..count).map(|at| named(Logical::Column(column(together, at)), number, at)).collect();
        project(columns, LogicalPlan::Filter(plan))
    }
}

/// The rows of all plans, as the columns of relation `number`.
fn union(
    plans: Vec<(LogicalPlan, u32)>,
    types: &[Type],
    number: u32,
    normal_form: bool,
) -> Result<LogicalPlan, Refused> {
    let mut inputs = Vec::new();
    for (plan, own) in plans {
        let form = |at: usize, ty: Type| {
            let expr = Logical::Column(column(own, at));
            named(if normal_form { normal(expr, ty) } else { expr }, number, at)
        };
        let columns = types.iter().enumerate().map(|(at, ty)| form(at, *ty)).collect();
        inputs.push(Arc::new(project(columns, plan)?));
    }
    let union = Union::try_new(inputs)?;
    let columns = union.schema.columns().into_iter().enumerate();
    let columns = columns.map(|(at, found)| named(Logical::Column(found), number, at)).collect();
    project(columns, LogicalPlan::Union(union))
}

fn normalised(plan: LogicalPlan, own: u32, types: &[Type], number: u32) -> Result<LogicalPlan, Refused> {
    let form = |(at, ty): (usize, &Type)| named(normal(Logical::Column(column(own, at)), *ty), number, at);
    project(types.iter().enumerate().map(form).collect(), plan)
}

/// The number of each row among its equals.
fn row_number(relation: u32, count: usize) -> Logical {
    let partition_by = (0..count).map(|at| Logical::Column(column(relation, at))).collect();
    Logical::WindowFunction(Box::new(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(row_number_udwf()),
        params: WindowFunctionParams {
            args: Vec::new(),
            partition_by,
            order_by: Vec::new(),
            window_frame: WindowFrame::new(None),
            filter: None,
            null_treatment: None,
            distinct: false,
        },
    }))
}

/// The column that a window put last.
fn row_place(plan: &LogicalPlan) -> Logical {
    let last = plan.schema().columns().pop();
    last.map_or_else(|| lit(0u64), Logical::Column)
}

fn numbered(plan: LogicalPlan, relation: u32, count: usize) -> Result<LogicalPlan, Refused> {
    let window = Window::try_new(vec![row_number(relation, count)], Arc::new(plan))?;
    Ok(LogicalPlan::Window(window))
}

fn extreme(aggregator: Aggregator, relation: u32, at: usize) -> Logical {
    let place = ColumnRef { depth: 0, relation: 0, column: at as u32 };
    let argument = Expr { kind: Kind::Column(place), ty: Type::Long };
    let aggregate = Aggregate { aggregator, arguments: vec![argument], distinct: false, ty: Type::Long };
    aggregate::call(&aggregate, vec![Logical::Column(column(relation, at))])
}
