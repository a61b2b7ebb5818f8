//! The reader's port: a table out of a stream of bytes.
//!
//! A reader is made over any [`std::io::BufRead`], has read the head when it is made, and is then asked for batch
//! after batch. It holds one batch and one token, never the document.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Field;

use crate::write::Info;

/// A table being read.
pub trait TableReader: Send {
    /// The columns. Fixed once the reader is made.
    fn fields(&self) -> &Arc<[Field]>;

    /// The next rows, at most `max_rows` and fewer only where the reader bounds a batch by bytes or the table ends;
    /// nothing after the last row. A batch is in the physical form of [`crate::batch`] and never empty.
    fn next_batch(&mut self, max_rows: usize) -> Result<Option<RecordBatch>, ReadError>;

    /// What the table says of itself: its name, description and facts, as far as read.
    fn about(&self) -> About {
        About::default()
    }
}

/// What a document says of its table beside the columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The table's name.
    pub name: Option<Arc<str>>,
    /// What it is, for people.
    pub description: Option<Arc<str>>,
    /// Facts, in the order of the document.
    pub infos: Vec<Info>,
    /// How many rows the document announced.
    pub rows: Option<u64>,
}

/// Where in a document something went wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// Nowhere in particular.
    #[default]
    Document,
    /// A line of text, from 1.
    Line(u64),
    /// A byte, from 0.
    Byte(u64),
    /// A row, from 1, and a column by name.
    Cell {
        /// Ordinal of the row, from 1.
        row: u64,
        /// Name of the column.
        column: Arc<str>,
        /// The line of text, in formats that have lines.
        line: Option<u64>,
    },
    /// A row, from 1.
    Row(u64),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document => f.write_str("document"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
            Self::Row(row) => write!(f, "row {row}"),
            Self::Cell { row, column, line: None } => write!(f, "row {row}, column {column}"),
            Self::Cell { row, column, line: Some(line) } => {
                write!(f, "line {line} (row {row}, column {column})")
            }
        }
    }
}

/// Why a table could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{at}: {fault}")]
pub struct ReadError {
    /// Where.
    pub at: At,
    /// What.
    pub fault: Fault,
}

/// What was wrong.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The source of bytes failed.
    #[error("the input could not be read: {0}")]
    Io(std::io::Error),
    /// The document breaks the rules of its format.
    #[error("{0}")]
    Malformed(String),
    /// The document ended too early.
    #[error("the document ends inside {0}")]
    Truncated(&'static str),
    /// The document is larger than a limit allows.
    #[error("{what} exceeds the limit of {limit}")]
    Limit {
        /// What is too large or too many.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The document is well formed and uses something that this reader does not support.
    #[error("{0}")]
    Unsupported(String),
    /// A value is not of its column's type.
    #[error("{text:?} is not {expected}")]
    Value {
        /// The value, shortened.
        text: String,
        /// What was expected, with its article.
        expected: &'static str,
    },
}

impl ReadError {
    /// An error at a place.
    pub fn new(at: At, fault: Fault) -> Self {
        Self { at, fault }
    }

    /// A breach of the format at a place.
    pub fn malformed(at: At, message: impl Into<String>) -> Self {
        Self::new(at, Fault::Malformed(message.into()))
    }
}
