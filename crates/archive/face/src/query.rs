//! A query on its way from a request's parameters to the rows of its result.
//!
//! [`Checked`] is what a request means once nothing in it can be wrong any more: the query is resolved, the tables that
//! came with it are read, the format is known. A synchronous request runs it and sends the result; a job runs the
//! same thing and keeps the result in a file.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::QueryError;
use trifid_archive_engine::answer::Answer;
use trifid_archive_engine::archive::{Archive, Prepared};
use trifid_archive_engine::table::Table;
use trifid_archive_model::write::{Head, Info};

use crate::encode::Rows;
use crate::fault::Fault;
use crate::form::File;
use crate::format::{Chosen, Target};
use crate::limits::{INFO_BYTES_MAX, INLINE_CELLS_PER_WIDE, PREPARE_INLINE_BYTES_MAX};
use crate::params::Params;
use crate::{ArchiveFace, upload};

impl Rows for Answer {
    async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        Self::next(self).await
    }

    fn overflow(&self) -> bool {
        Self::overflow(self)
    }
}

/// A query that can be run, and the format of its result.
pub(crate) struct Checked {
    prepared: Prepared,
    /// The format of the result.
    pub(crate) chosen: Chosen,
    /// The most rows of the result.
    pub(crate) limit: u64,
    /// The text of the query, as the result tells it.
    text: Arc<str>,
    /// What the columns are said to be, where that is not what the query says.
    shown: Option<Arc<[Field]>>,
}

impl ArchiveFace {
    /// Checks everything that a request says of its query.
    pub(crate) async fn check(&self, params: &Params<'_>, files: &[File]) -> Result<Checked, Fault> {
        let chosen = self.formats.choose(params.format)?;
        let text = params.needed_query()?;
        let uploads = match params.uploads.is_empty() {
            true => Vec::new(),
            false => Box::pin(upload::tables(self, &params.uploads, files)).await?,
        };
        let prepared = self.prepare(text, params, uploads).await?;
        Ok(Checked { prepared, chosen, limit: self.limit(params), text: shortened(text), shown: None })
    }

    /// The most rows that a request gets (DALI 1.1 3.4.4).
    fn limit(&self, params: &Params<'_>) -> u64 {
        let wanted = params.max_rows.unwrap_or(self.settings.output_default);
        wanted.min(self.settings.output_limit)
    }

    /// A query whose text is long is parsed in the pool.
    async fn prepare(
        &self,
        text: &str,
        params: &Params<'_>,
        uploads: Vec<Arc<Table>>,
    ) -> Result<Prepared, Fault> {
        let language = params.language;
        if text.len() <= PREPARE_INLINE_BYTES_MAX {
            return Ok(self.archive.prepare(text, language, uploads)?);
        }
        let (archive, text) = (Arc::clone(&self.archive), text.to_owned());
        let work = async move { archive.prepare(&text, language, uploads) };
        self.archive.compute().spawn(work).await.map_err(Fault::internal)?.map_err(Fault::from)
    }
}

impl Checked {
    /// The columns of the result.
    pub(crate) fn fields(&self) -> &Arc<[Field]> {
        self.shown.as_ref().unwrap_or(&self.prepared.plan.fields)
    }

    /// The same query, whose columns say something else of themselves.
    pub(crate) fn showing(mut self, fields: Arc<[Field]>) -> Self {
        self.shown = Some(fields);
        self
    }

    /// Starts the query.
    pub(crate) fn start(&self, archive: &Archive, time: Duration) -> Result<Answer, Fault> {
        Ok(archive.start(&self.prepared, Some(self.limit), Some(time))?)
    }

    /// Starts the query of a job: it waits for its turn, and whoever runs jobs bounds its time.
    pub(crate) fn start_patiently(&self, archive: &Archive) -> Result<Answer, Fault> {
        Ok(archive.start_patiently(&self.prepared, Some(self.limit))?)
    }

    /// The way in which the result is written.
    pub(crate) fn target(&self) -> Target {
        self.chosen.format.target(self.head())
    }

    fn head(&self) -> Head {
        // What is kept with the plan is the plan's own columns.
        let plan = self.shown.is_none().then_some(&self.prepared.plan);
        let rendered = plan.and_then(|plan| self.chosen.format.rendered(plan));
        Head {
            rendered,
            infos: vec![Info::new("QUERY", Arc::clone(&self.text))],
            ..Head::new(Arc::clone(self.fields()))
        }
    }

    /// How many cells of a common size so many rows have: the work of encoding them.
    pub(crate) fn cells(&self, rows: usize) -> usize {
        self.fields().iter().map(cells).sum::<usize>().saturating_mul(rows)
    }
}

/// What a value of this column counts.
fn cells(field: &Field) -> usize {
    match field.ty {
        Type::Text | Type::Polygon | Type::Region | Type::Array(_) => INLINE_CELLS_PER_WIDE,
        Type::Null
        | Type::Boolean
        | Type::Bit
        | Type::UnsignedByte
        | Type::Short
        | Type::Int
        | Type::Long
        | Type::Float
        | Type::Double
        | Type::FloatComplex
        | Type::DoubleComplex
        | Type::Timestamp
        | Type::Point
        | Type::Circle => 1,
    }
}

/// The query as a result repeats it (TAP 1.1 3.1): at most so long, cut at a character.
fn shortened(text: &str) -> Arc<str> {
    if text.len() <= INFO_BYTES_MAX {
        return text.into();
    }
    let mut end = INFO_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end]).into()
}
