//! CSV and TSV: the formats that everything reads.
//!
//! Written: a line of names, then a line per row, LF at its end, quoted as RFC 4180 quotes, in both: a tab or
//! a line end inside a cell of TSV is safe between quotes. NULL is nothing at all, an empty string is `""`,
//! NaN and the infinities are words. No line can say that rows were withheld or that the query failed after
//! the first byte: that is for the transport to say.
//!
//! Read: the types of the columns are guessed from a bounded beginning ([`infer`]), or given. What CSV cannot
//! say is lost: units, UCDs, and which type a column of nothing but NULL had.

use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Field;

use crate::read::{ReadError, TableReader};
use crate::write::TableWriter;

mod column;
mod infer;
mod json;
mod read;
mod split;
mod value;
mod write;

pub(crate) use infer::unique;
pub use infer::{Inference, infer};
pub use read::{Header, Options, Reader};
pub(crate) use value::{integer as parse_integer, real as parse_real};
pub use write::Writer;

/// What stands between two cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delimiter {
    /// CSV.
    #[default]
    Comma,
    /// TSV.
    Tab,
    /// CSV where the comma is the decimal point's.
    Semicolon,
    /// Columns of catalogues on paper.
    Pipe,
}

impl Delimiter {
    /// The byte.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Tab => b'\t',
            Self::Semicolon => b';',
            Self::Pipe => b'|',
        }
    }
}

#[cfg(test)]
mod tests;

/// Body of a fuzz target: whatever the bytes, they are read or refused, and what is read can be written and
/// read again as the same.
pub fn fuzz(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let delimiter =
        [Delimiter::Comma, Delimiter::Tab, Delimiter::Semicolon, Delimiter::Pipe][usize::from(first % 4)];
    let header = if first & 4 == 0 { Header::Present } else { Header::Absent };
    let options = Options { header, ..Options::new(delimiter) };
    let Ok(read) = read_all(data, &options) else { return };
    let mut written = Vec::new();
    let mut writer = Writer::new(read.fields.clone(), Delimiter::Comma);
    writer.begin(&mut written);
    for batch in &read.batches {
        writer.rows(batch, 0..batch.num_rows(), &mut written).expect("what was read can be written");
    }
    if read.fields.is_empty() {
        return;
    }
    let options = Options { declared: read.fields.to_vec(), ..Options::default() };
    let again = read_all(&written, &options).expect("what was written can be read");
    assert_eq!(format!("{:?}", again.batches), format!("{:?}", read.batches), "it is the same table");
}

struct Read {
    fields: Arc<[Field]>,
    batches: Vec<RecordBatch>,
}

fn read_all(data: &[u8], options: &Options) -> Result<Read, ReadError> {
    let mut reader = Reader::new(data, options)?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next_batch(usize::MAX)? {
        batches.push(batch);
    }
    Ok(Read { fields: reader.fields().clone(), batches })
}
