//! Whole trees on DataFusion.
//!
//! ```text
//! plan       from the tree to a logical plan
//! scalar     expressions of the tree as functions; `aggregate`, `normal`, `only`: the other functions
//! source     a table in a logical plan; scan: its rows
//! bucket     the join by place on the sky
//! planner    from our logical nodes to plans that run
//! session    DataFusion set up: rules, memory, threads
//! ```

mod aggregate;
mod bucket;
mod error;
mod fallible;
mod normal;
mod only;
mod plan;
mod planner;
mod scalar;
mod scan;
mod session;
mod source;
#[cfg(test)]
mod tests;
mod walk;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use futures_util::StreamExt as _;
use trifid_archive_adql::types::Field;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::backend::{BatchStream, QueryBackend, Run};
use trifid_archive_model::batch;
use trifid_base_runtime::entropy::Entropy;

use error::outward;
use plan::{Planned, Refused, Take, Value};
pub use session::Options;
use session::{Session, Width, bind};

/// DataFusion behind the engine's port.
pub struct DataFusionBackend {
    session: Session,
    entropy: Arc<dyn Entropy>,
}

impl DataFusionBackend {
    /// DataFusion with these options.
    pub fn new(options: &Options, entropy: Arc<dyn Entropy>) -> Result<Self, QueryError> {
        Ok(Self { session: Session::new(options).map_err(|error| outward(&error))?, entropy })
    }

    async fn start(&self, run: Run) -> Result<BatchStream, QueryError> {
        let planned = self.plan(&run)?;
        let rows = self.rows(&planned, Width::All).await?;
        Ok(shaped(rows, &run.query.fields))
    }

    fn plan(&self, run: &Run) -> Result<Planned, QueryError> {
        let planned = plan::plan(&run.query, &run.tables, self.entropy.next_u64(), run.limit);
        planned.and_then(|planned| self.optimized(planned)).map_err(refused)
    }

    fn optimized(&self, planned: Planned) -> Result<Planned, Refused> {
        let Planned { plan, values } = planned;
        let value = |value: Value| Ok(Value { planned: self.optimized(value.planned)?, ..value });
        let values = values.into_iter().map(value).collect::<Result<_, Refused>>()?;
        Ok(Planned { plan: self.session.optimize(plan)?, values })
    }

    /// The rows of a plan, once the values that it needs have been run.
    fn rows<'a>(
        &'a self,
        planned: &'a Planned,
        width: Width,
    ) -> Pin<Box<dyn Future<Output = Result<SendableRecordBatchStream, QueryError>> + Send + 'a>> {
        Box::pin(async move {
            let mut values = Vec::new();
            for value in &planned.values {
                values.push(self.value(value, width).await?);
            }
            self.run_plan(planned.plan.clone(), &values, width).await.map_err(|error| outward(&error))
        })
    }

    async fn run_plan(
        &self,
        plan: LogicalPlan,
        values: &[ScalarValue],
        width: Width,
    ) -> datafusion::error::Result<SendableRecordBatchStream> {
        let plan = bind(plan, values)?;
        let physical = self.session.physical(&plan, width).await?;
        self.session.execute(physical, width)
    }

    async fn value(&self, value: &Value, width: Width) -> Result<ScalarValue, QueryError> {
        let mut rows = self.rows(&value.planned, width).await?;
        let mut found: Option<ArrayRef> = None;
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(|error| outward(&error))?;
            if batch.num_rows() == 0 {
                continue;
            }
            match value.take {
                Take::Any => return Ok(ScalarValue::Boolean(Some(true))),
                Take::Only if found.is_some() || batch.num_rows() > 1 => return Err(only::several()),
                Take::Only => found = Some(batch.column(0).clone()),
            }
        }
        let array = match value.take {
            Take::Any => return Ok(ScalarValue::Boolean(Some(false))),
            Take::Only => found.unwrap_or_else(|| arrow_array::new_null_array(&batch::physical(value.ty), 1)),
        };
        ScalarValue::try_from_array(&array, 0).map_err(|error| outward(&error))
    }
}

impl QueryBackend for DataFusionBackend {
    fn run(&self, run: Run) -> Pin<Box<dyn Future<Output = Result<BatchStream, QueryError>> + Send + '_>> {
        Box::pin(self.start(run))
    }
}

fn refused(refused: Refused) -> QueryError {
    match refused {
        Refused::Query(error) => error,
        Refused::Engine(error) => outward(&error),
        Refused::Unsupported(what) => QueryError::invalid(format!("the archive cannot run {what}")),
    }
}

/// Rows under the names of the query's fields.
fn shaped(rows: SendableRecordBatchStream, fields: &[Field]) -> BatchStream {
    let schema = batch::schema(fields);
    let rows = rows.map(move |batch| match batch {
        Ok(batch) => reshape(&batch, &schema),
        Err(error) => Err(outward(&error)),
    });
    Box::pin(rows)
}

fn reshape(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, QueryError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
        .map_err(QueryError::internal)
}
