//! The writer's port: a result as a stream of bytes.
//!
//! First the head, then rows batch by batch, then the tail, which decides: whether rows were withheld and whether
//! the query failed are known only at the end (DALI 1.1 section 4.4.1), and a format that can say so says it
//! there. A writer appends to the caller's buffer and never holds more than a few rows back, so its memory is
//! bounded by the batch.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Field;

/// A named fact about a result: VOTable's INFO.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// What is said.
    pub name: Arc<str>,
    /// The value.
    pub value: Arc<str>,
    /// A remark for people.
    pub text: Option<Arc<str>>,
}

impl Info {
    /// A fact without a remark.
    pub fn new(name: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), value: value.into(), text: None }
    }

    /// The same fact with a remark.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<Arc<str>>) -> Self {
        self.text = Some(text.into());
        self
    }
}

/// What is known before the first row.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The columns.
    pub fields: Arc<[Field]>,
    /// The columns as the format renders them, where the caller has kept them from an earlier request for the same
    /// plan: what the format's `render_fields` gave. Nothing: rendered again.
    pub rendered: Option<Arc<[u8]>>,
    /// Facts of this request: the query, the time, the standard obeyed.
    pub infos: Vec<Info>,
    /// The name of the table, where it has one.
    pub name: Option<Arc<str>>,
    /// What the table is, for people.
    pub description: Option<Arc<str>>,
    /// Elements that follow the results in formats that can carry them: service descriptors as VOTable RESOURCE
    /// elements of type "meta" (DataLink 1.1 section 4), already rendered as XML.
    pub descriptors: Option<Arc<[u8]>>,
}

impl Head {
    /// A head that says nothing but the columns.
    pub fn new(fields: Arc<[Field]>) -> Self {
        Self { fields, ..Self::default() }
    }
}

/// How a result ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Every row was written.
    #[default]
    Complete,
    /// Rows were withheld: the limit was reached (DALI 1.1 section 4.4.1, OVERFLOW).
    Overflow,
    /// The query failed after rows had been written; the message is for people (ERROR).
    Failed(Arc<str>),
}

/// A value that the format cannot hold, or a batch that is not the one announced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The batch has another number of columns, or a column another physical type: our mistake, not the data's.
    #[error("column {column} is {found}, not the {expected} that was announced")]
    Physical {
        /// Name of the column.
        column: Arc<str>,
        /// The type announced.
        expected: String,
        /// The type found.
        found: String,
    },
    /// A value does not fit what the column declares of itself or what the format can express.
    #[error("row {row} of column {column}: {reason}")]
    Value {
        /// Ordinal of the row within the result, from 0.
        row: u64,
        /// Name of the column.
        column: Arc<str>,
        /// Why it cannot be written.
        reason: &'static str,
    },
    /// The result exceeds what the format can hold.
    #[error("{what} exceeds the {limit} that the format can hold")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The format's limit.
        limit: u64,
    },
}

/// A table format, one result of it under way.
pub trait TableWriter: Send {
    /// Appends all that precedes the first row.
    fn begin(&mut self, out: &mut Vec<u8>);

    /// Appends these rows of a batch. A fixed array takes its room even where it is NULL, so a caller that bounds its
    /// buffer passes some hundred rows at a time. On an error nothing of the refused row has been appended, and the
    /// result can still be ended with [`End::Failed`].
    fn rows(&mut self, batch: &RecordBatch, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), WriteError>;

    /// Appends all that follows the last row.
    fn finish(self: Box<Self>, end: &End, out: &mut Vec<u8>);
}
