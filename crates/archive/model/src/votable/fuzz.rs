//! Laws of this module for any bytes: the bodies of fuzz targets.

use std::sync::Arc;

use arrow_array::RecordBatch;
use trifid_archive_adql::types::Field;

use super::read::scan_all;
use super::{Options, ReadOptions, Reader, Serialization, Version, Writer, error_document};
use crate::read::{Fault, TableReader};
use crate::write::{End, Head, TableWriter};

/// Rows that are read of a document.
const ROWS: usize = 64;

/// Any bytes are read or refused. What was read and can be written is read back and written the same again; and
/// whatever the bytes say makes a well-formed error.
pub(crate) fn document(bytes: &[u8]) {
    let mut out = Vec::new();
    error_document(Version::V1_4, &String::from_utf8_lossy(bytes), &[], &mut out);
    scan_all(&out).expect("an error document is well formed");

    let Some((fields, batches)) = read(bytes, false) else { return };
    for serialization in [Serialization::TableData, Serialization::Binary, Serialization::Binary2] {
        let Some(first) = write(&fields, &batches, serialization) else { continue };
        // What a serialisation cannot hold, as the bits of a NaN in BINARY, is lost the first time.
        let second = again(&first, serialization);
        let third = again(&second, serialization);
        for (second, third) in second.split(|byte| *byte == b'\n').zip(third.split(|byte| *byte == b'\n')) {
            assert_eq!(String::from_utf8_lossy(second), String::from_utf8_lossy(third));
        }
        assert_eq!(second.len(), third.len());
    }
}

/// What we have written, read and written again.
fn again(document: &[u8], serialization: Serialization) -> Vec<u8> {
    let (fields, batches) = read(document, true).expect("what was written is read");
    write(&fields, &batches, serialization).expect("what was read is written")
}

fn read(document: &[u8], is_ours: bool) -> Option<(Arc<[Field]>, Vec<RecordBatch>)> {
    let refused = |error: crate::read::ReadError| {
        assert!(!is_ours || matches!(error.fault, Fault::Limit { .. }), "{error}");
    };
    let mut reader = Reader::new(document, ReadOptions::default()).map_err(refused).ok()?;
    let mut batches = Vec::new();
    let mut rows = 0;
    while rows < ROWS
        && let Some(batch) = reader.next_batch(ROWS - rows).map_err(refused).ok()?
    {
        rows += batch.num_rows();
        batches.push(batch);
    }
    Some((Arc::clone(reader.fields()), batches))
}

fn write(fields: &Arc<[Field]>, batches: &[RecordBatch], serialization: Serialization) -> Option<Vec<u8>> {
    let options = Options { serialization, version: Version::V1_4 };
    let mut writer = Box::new(Writer::new(options, Head::new(Arc::clone(fields))));
    let mut out = Vec::new();
    writer.begin(&mut out);
    for batch in batches {
        writer.rows(batch, 0..batch.num_rows(), &mut out).ok()?;
    }
    writer.finish(&End::Complete, &mut out);
    Some(out)
}
