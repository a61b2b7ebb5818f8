//! From the logical nodes that are ours to the plans that run.

use std::sync::Arc;

use arrow_schema::{Field as ArrowField, Schema};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, UserDefinedLogicalNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use super::bucket::{BucketJoin, BucketJoinExec, Conditions, Side};
use super::error::inward;
use super::scan::{Asked, Scan};
use super::sift::{Sift, SiftExec};
use super::source::Source;

/// Plans our nodes.
pub(crate) struct Planner;

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let exprs =
            |expr: &Expr, schema: &DFSchema| planner.create_physical_expr(expr, schema, session, context);
        if let (Some(sift), [input]) = (node.as_any().downcast_ref::<Sift>(), inputs) {
            let predicate = exprs(&sift.predicate, sift.input.schema())?;
            return Ok(Some(Arc::new(SiftExec::new(predicate, input.clone()))));
        }
        let Some(join) = node.as_any().downcast_ref::<BucketJoin>() else { return Ok(None) };
        let [left, right] = inputs else { return internal_err!("a bucket join has two inputs") };
        let conditions = conditions(join, left, right, &exprs)?;
        let schema = Arc::new(join.schema.as_arrow().clone());
        let exec = BucketJoinExec::new(left.clone(), right.clone(), Arc::new(conditions), schema)?;
        Ok(Some(Arc::new(exec)))
    }

    async fn plan_table_scan(
        &self,
        _: &dyn PhysicalPlanner,
        scan: &TableScan,
        session: &dyn Session,
        _: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(source) = scan.source.downcast_ref::<Source>() else { return Ok(None) };
        let Some(filters) = source.filters(&scan.filters) else {
            return internal_err!("a scan was given a condition that it cannot decide");
        };
        let every = || (0..source.table.head.fields.len()).collect();
        let asked = Asked {
            projection: scan.projection.clone().unwrap_or_else(every),
            filters,
            fetch: scan.fetch,
            partitions: session.config().target_partitions(),
        };
        let schema = datafusion::logical_expr::TableSource::schema(source);
        Ok(Some(Arc::new(Scan::new(source.table.clone(), &schema, asked).map_err(inward)?)))
    }
}

/// Makes expressions over a schema ready to run.
type Exprs<'a> = dyn Fn(&Expr, &DFSchema) -> Result<Arc<dyn PhysicalExpr>> + 'a;

/// What a join's conditions are over the columns that come in.
fn conditions(
    join: &BucketJoin,
    left: &Arc<dyn ExecutionPlan>,
    right: &Arc<dyn ExecutionPlan>,
    exprs: &Exprs<'_>,
) -> Result<Conditions> {
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    let place = &join.place;
    let of_left = !place.radius.column_refs().is_empty()
        && place.radius.column_refs().iter().all(|column| left_schema.has_column(column));
    let of_right = !place.radius.column_refs().is_empty() && !of_left;
    let build_left = of_left || !of_right && is_smaller(left.as_ref(), right.as_ref());
    let left_at = [exprs(&place.left[0], left_schema)?, exprs(&place.left[1], left_schema)?];
    let right_at = [exprs(&place.right[0], right_schema)?, exprs(&place.right[1], right_schema)?];
    let (build_at, probe_at) = if build_left { (left_at, right_at) } else { (right_at, left_at) };
    let radius = exprs(&place.radius, if build_left { left_schema } else { right_schema })?;
    let mut fields = Vec::new();
    let mut filter_columns = Vec::new();
    for column in place.filter.column_refs() {
        let (schema, is_left) =
            if left_schema.has_column(column) { (left_schema, true) } else { (right_schema, false) };
        let at = schema.index_of_column(column)?;
        let (qualifier, field) = schema.qualified_field(at);
        fields.push((qualifier.cloned(), field.clone()));
        filter_columns.push((if is_left == build_left { Side::Build } else { Side::Probe }, at));
    }
    let plain: Vec<ArrowField> =
        fields.iter().map(|(_, field)| field.as_ref().clone().with_nullable(true)).collect();
    let filter_schema = DFSchema::new_with_metadata(fields, std::collections::HashMap::new())?;
    let filter = exprs(&place.filter, &filter_schema)?;
    let filter_schema = Arc::new(Schema::new(plain));
    Ok(Conditions {
        kind: join.kind,
        build_left,
        build_at,
        probe_at,
        radius,
        filter,
        filter_columns,
        filter_schema,
    })
}

/// Whether the left has fewer rows than the right, as far as one knows.
fn is_smaller(left: &dyn ExecutionPlan, right: &dyn ExecutionPlan) -> bool {
    let rows = |plan: &dyn ExecutionPlan| {
        let statistics = StatisticsContext::new().compute(plan, &StatisticsArgs::new()).ok()?;
        match statistics.num_rows {
            Precision::Exact(rows) | Precision::Inexact(rows) => Some(rows),
            Precision::Absent => None,
        }
    };
    match (rows(left), rows(right)) {
        (Some(left), Some(right)) => left < right,
        (known, _) => known.is_some(),
    }
}
