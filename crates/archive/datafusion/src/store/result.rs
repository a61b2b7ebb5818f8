//! Results as Parquet with a VOTable header (VOParquet 1.0): the columns' metadata as a VOTable document in the file's
//! key-value metadata, whether rows were withheld in another key.

use std::sync::Arc;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use trifid_archive_model::batch;
use trifid_archive_model::votable;
use trifid_archive_model::write::{End, Head, TableWriter, WriteError};

/// The key of the header.
pub(super) const HEADER_KEY: &str = "IVOA.VOTable-Parquet.content";

/// The key of the version of the convention.
const VERSION_KEY: &str = "IVOA.VOTable-Parquet.version";

/// The key of what DALI calls QUERY_STATUS.
const STATUS_KEY: &str = "QUERY_STATUS";

/// Rows of a row group: what the writer holds in memory.
const GROUP_ROWS: usize = 16_384;

/// A result on its way into Parquet.
pub struct ParquetResult {
    writer: Option<ArrowWriter<Vec<u8>>>,
    rows: u64,
    fields: usize,
}

impl ParquetResult {
    /// A writer of one result.
    pub fn new(head: Head) -> Self {
        let fields = Arc::clone(&head.fields);
        let header = header(head);
        let level = ZstdLevel::try_new(1).map(Compression::ZSTD).unwrap_or(Compression::SNAPPY);
        let properties = WriterProperties::builder()
            .set_compression(level)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_key_value_metadata(Some(vec![
                KeyValue::new(VERSION_KEY.into(), Some("1.0".into())),
                KeyValue::new(HEADER_KEY.into(), Some(header)),
            ]))
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), batch::schema(&fields), Some(properties));
        // Every physical type of ours has a Parquet form, but for a column of nothing.
        Self { writer: writer.ok(), rows: 0, fields: fields.len() }
    }
}

/// The head as a VOTable without rows.
fn header(head: Head) -> String {
    let mut bytes = Vec::new();
    let mut writer =
        Box::new(votable::Writer::new(votable::Options::default(), Head { rendered: None, ..head }));
    writer.begin(&mut bytes);
    writer.finish(&End::Complete, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

impl TableWriter for ParquetResult {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.drain(out);
    }

    fn rows(
        &mut self,
        batch: &RecordBatch,
        rows: std::ops::Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let count = rows.len();
        let piece = batch.slice(rows.start, count);
        let refused = || WriteError::Physical {
            column: "the result".into(),
            expected: format!("{} columns that Parquet has a form for", self.fields),
            found: "another".into(),
        };
        let writer = self.writer.as_mut().ok_or_else(refused)?;
        writer.write(&piece).map_err(|_| refused())?;
        self.rows += count as u64;
        self.drain(out);
        Ok(())
    }

    fn finish(mut self: Box<Self>, end: &End, out: &mut Vec<u8>) {
        let Some(mut writer) = self.writer.take() else { return };
        let (status, message) = match end {
            End::Complete => ("OK", None),
            End::Overflow => ("OVERFLOW", None),
            End::Failed(message) => ("ERROR", Some(message)),
        };
        writer.append_key_value_metadata(KeyValue::new(STATUS_KEY.into(), Some(status.into())));
        if let Some(message) = message {
            writer.append_key_value_metadata(KeyValue::new("QUERY_ERROR".into(), Some(message.to_string())));
        }
        // A buffer in memory takes everything; without a footer the file is no Parquet, which a reader notices.
        if let Ok(bytes) = writer.into_inner() {
            out.extend_from_slice(&bytes);
        }
    }
}

impl ParquetResult {
    /// Hands on what the writer has put out.
    fn drain(&mut self, out: &mut Vec<u8>) {
        if let Some(writer) = &mut self.writer {
            out.append(writer.inner_mut());
        }
    }
}
