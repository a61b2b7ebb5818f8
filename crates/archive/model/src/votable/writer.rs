//! A result under way as VOTable.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::column::Column;
use super::limits::GATHER_BYTES;
use super::plan::Plan;
use super::{base64, binary, head, tabledata};
use crate::batch::physical;
use crate::write::{End, Head, TableWriter, WriteError};

/// How rows are carried (VOTable 1.5 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Serialization {
    /// Text in elements.
    TableData,
    /// Big-endian values in base64, without a mask of nulls.
    Binary,
    /// Big-endian values in base64, with a mask of nulls.
    #[default]
    Binary2,
}

/// Which version a document says it is. What we write is the same in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Version {
    /// 1.3, of 2013.
    V1_3,
    /// 1.4, of 2019.
    #[default]
    V1_4,
    /// 1.5, of 2025.
    V1_5,
}

impl Version {
    /// As written in the document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_3 => "1.3",
            Self::V1_4 => "1.4",
            Self::V1_5 => "1.5",
        }
    }
}

/// What kind of VOTable is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// How rows are carried.
    pub serialization: Serialization,
    /// What the document says it is.
    pub version: Version,
}

/// Writes one result. Between calls it holds less than a line of base64.
pub struct Writer {
    options: Options,
    head: Head,
    plans: Vec<Plan>,
    /// Binary rows that do not yet make a line.
    raw: Vec<u8>,
    written: u64,
}

impl Writer {
    /// A writer of this result.
    pub fn new(options: Options, head: Head) -> Self {
        let plans = head.fields.iter().map(|field| Plan::new(field, options.serialization)).collect();
        Self { options, head, plans, raw: Vec::new(), written: 0 }
    }

    fn columns<'a>(&self, batch: &'a RecordBatch) -> Result<Vec<Column<'a>>, WriteError> {
        if batch.num_columns() != self.plans.len() {
            return Err(WriteError::Physical {
                column: Arc::from(""),
                expected: format!("{} columns", self.plans.len()),
                found: format!("{} columns", batch.num_columns()),
            });
        }
        let column = |(array, plan): (&'a _, &Plan)| {
            Column::new(array, plan.ty).ok_or_else(|| WriteError::Physical {
                column: Arc::clone(&plan.name),
                expected: physical(plan.ty).to_string(),
                found: arrow_array::Array::data_type(array).to_string(),
            })
        };
        batch.columns().iter().zip(&self.plans).map(column).collect()
    }

    fn refuse(&self, (column, reason): (usize, &'static str)) -> WriteError {
        WriteError::Value { row: self.written, column: Arc::clone(&self.plans[column].name), reason }
    }

    fn text_rows(
        &mut self,
        columns: &[Column<'_>],
        rows: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        for row in rows {
            let start = out.len();
            if let Err(fault) = tabledata::row(&self.plans, columns, row, out) {
                out.truncate(start);
                return Err(self.refuse(fault));
            }
            self.written += 1;
        }
        Ok(())
    }

    fn binary_rows(
        &mut self,
        columns: &[Column<'_>],
        rows: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let encode = match self.options.serialization {
            Serialization::Binary => binary::plain_row,
            _ => binary::masked_row,
        };
        for row in rows {
            let start = self.raw.len();
            if let Err(fault) = encode(&self.plans, columns, row, &mut self.raw) {
                self.raw.truncate(start);
                return Err(self.refuse(fault));
            }
            self.written += 1;
            if self.raw.len() >= GATHER_BYTES {
                base64::encode_lines(&mut self.raw, out);
            }
        }
        base64::encode_lines(&mut self.raw, out);
        Ok(())
    }
}

impl TableWriter for Writer {
    fn begin(&mut self, out: &mut Vec<u8>) {
        head::begin(&self.head, self.options.serialization, self.options.version, out);
    }

    fn rows(&mut self, batch: &RecordBatch, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let rows = rows.start..rows.end.min(batch.num_rows());
        let columns = self.columns(batch)?;
        match self.options.serialization {
            Serialization::TableData => self.text_rows(&columns, rows, out),
            Serialization::Binary | Serialization::Binary2 => self.binary_rows(&columns, rows, out),
        }
    }

    fn finish(mut self: Box<Self>, end: &End, out: &mut Vec<u8>) {
        base64::encode_rest(&mut self.raw, out);
        head::finish(&self.head, self.options.serialization, end, out);
    }
}
