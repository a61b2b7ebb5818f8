//! Whole trees on DataFusion.
//!
//! ```text
//! plan       from the tree to a logical plan
//! scalar     expressions of the tree as functions; `aggregate`, `normal`, `only`: the other functions
//! source     a table in a logical plan; scan: its rows
//! bucket     the join by place on the sky; sift: a filter that stays where it was put
//! pairs      joins of too many pairs; heed: joins that stop when they are told to
//! planner    from our logical nodes to plans that run
//! session    DataFusion set up: rules, memory, threads
//! plans      plans that are kept for other constants
//! ```

mod aggregate;
mod bucket;
mod error;
mod fallible;
mod heed;
mod normal;
mod only;
mod pairs;
mod plan;
mod planner;
mod plans;
mod scalar;
mod scan;
mod session;
mod sift;
mod source;
#[cfg(test)]
pub(crate) mod tests;
mod walk;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::execution::SendableRecordBatchStream;
use futures_util::StreamExt as _;
use trifid_archive_adql::types::Field;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::backend::{BatchStream, Cancel, QueryBackend, Run};
use trifid_archive_engine::reference::{Interpreter, Limits};
use trifid_archive_model::batch;
use trifid_base_runtime::entropy::Entropy;

use error::outward;
use plan::{Planned, Refused, Take, Value};
use plans::{Key, Plans};
pub use session::Options;
use session::{Session, bind};

/// DataFusion behind the engine's port.
pub struct DataFusionBackend {
    session: Session,
    entropy: Arc<dyn Entropy>,
    plans: Plans,
    /// For the few trees that DataFusion has no plan for.
    reference: Interpreter,
}

impl DataFusionBackend {
    /// DataFusion with these options.
    pub fn new(options: &Options, entropy: Arc<dyn Entropy>) -> Result<Self, QueryError> {
        let session = Session::new(options).map_err(|error| outward(&error))?;
        let bytes = usize::try_from(options.memory).unwrap_or(usize::MAX);
        let limits = Limits { bytes: bytes.min(Limits::default().bytes), ..Limits::default() };
        let reference = Interpreter::new(limits, entropy.next_u64());
        Ok(Self { session, entropy, plans: Plans::new(), reference })
    }

    async fn start(&self, run: Run) -> Result<BatchStream, QueryError> {
        let fields = run.query.fields.clone();
        match self.planned(&run).await {
            Ok(rows) => Ok(shaped(rows, &fields)),
            Err(Refused::Query(error)) => Err(error),
            Err(Refused::Engine(error)) => Err(outward(&error)),
            Err(Refused::Unsupported(what)) => {
                tracing::debug!(what, "a query is left to the interpreter");
                self.reference.run(run).await
            }
        }
    }

    async fn planned(&self, run: &Run) -> Result<SendableRecordBatchStream, Refused> {
        let planned = self.plan(run)?;
        Ok(self.rows(&planned, &run.cancel).await?)
    }

    fn plan(&self, run: &Run) -> Result<Planned, Refused> {
        let seed = self.entropy.next_u64();
        let key = Key::of(run);
        if let Some(key) = &key
            && let Some(planned) = self.plans.get(key, &run.query, seed)?
        {
            return Ok(planned);
        }
        let planned = self.optimized(plan::plan(&run.query, &run.tables, seed, run.limit)?)?;
        if let Some(key) = key.filter(|_| planned.reusable) {
            self.plans.put(key, &planned);
        }
        Ok(planned)
    }

    fn optimized(&self, planned: Planned) -> Result<Planned, Refused> {
        let value = |value: Value| Ok(Value { planned: self.optimized(value.planned)?, ..value });
        let values = planned.values.into_iter().map(value).collect::<Result<_, Refused>>()?;
        Ok(Planned { plan: self.session.optimize(planned.plan)?, values, ..planned })
    }

    /// The rows of a plan, once the values that it needs have been run.
    fn rows<'a>(
        &'a self,
        planned: &'a Planned,
        cancel: &'a Cancel,
    ) -> Pin<Box<dyn Future<Output = Result<SendableRecordBatchStream, QueryError>> + Send + 'a>> {
        Box::pin(async move {
            let mut values = Vec::new();
            for value in &planned.values {
                values.push(self.value(value, cancel).await?);
            }
            self.run_plan(planned, &values, cancel).await.map_err(|error| outward(&error))
        })
    }

    async fn run_plan(
        &self,
        planned: &Planned,
        values: &[ScalarValue],
        cancel: &Cancel,
    ) -> datafusion::error::Result<SendableRecordBatchStream> {
        let plan = bind(planned.plan.clone(), values)?;
        let physical = self.session.physical(&plan, planned.width).await?;
        pairs::check(&physical)?;
        self.session.execute(heed::heed(physical, cancel)?, planned.width)
    }

    async fn value(&self, value: &Value, cancel: &Cancel) -> Result<ScalarValue, QueryError> {
        let mut rows = self.rows(&value.planned, cancel).await?;
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
