//! Keeping what the broker itself must remember in streams of its own: one shard, compacted by key, so that
//! the last record of a key is its state and a record without a value its end.

use std::sync::Arc;

use trifid_stream_model::batch::{BatchBuilder, BuildError, BuildOptions, Record, RecordData, Rules, open};
use trifid_stream_model::limits::{BATCH_BYTES_MAX, INFLATED_BYTES_DEFAULT};
use trifid_stream_model::names::StreamName;
use trifid_stream_model::spec::{Durability, StreamKind, StreamSpec};

use crate::admission::Admitted;
use crate::checked::Checked;
use crate::error::{OpenError, PublishError};
use crate::limits::PAGE_BYTES_MAX;
use crate::shard::{Published, Shard};

/// A stream of the broker's own.
pub(crate) fn spec(durability: Durability) -> StreamSpec {
    StreamSpec {
        shards: 1,
        durability,
        retention_ms: None,
        retention_bytes: None,
        compact: durability.is_durable(),
        max_batch_bytes: BATCH_BYTES_MAX as u32,
        kind: StreamKind::Internal,
    }
}

/// Its name.
pub(crate) fn name(text: &str) -> StreamName {
    StreamName::new(text).expect("the broker's own names are valid")
}

/// Makes one batch of the records and publishes it: they count together or not at all.
pub(crate) fn publish(shard: &Arc<Shard>, records: &[RecordData<'_>]) -> Result<Published, PublishError> {
    let options = BuildOptions { max_bytes: BATCH_BYTES_MAX, ..BuildOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for record in records {
        builder.append(record).map_err(|error| refused(&error))?;
    }
    let Some(batch) = builder.finish(None).map_err(|error| refused(&error))? else {
        return Err(PublishError::Failed);
    };
    // Built a moment ago: its records need not be walked again.
    let rules = Rules { records: false, ..Rules::PRODUCED };
    shard.publish(Checked::batch(batch, rules)?, Admitted::unmetered())
}

fn refused(error: &BuildError) -> PublishError {
    match *error {
        BuildError::Full => PublishError::TooLarge { bytes: BATCH_BYTES_MAX + 1, limit: BATCH_BYTES_MAX },
        BuildError::TooLarge { len, max } => PublishError::TooLarge { bytes: len, limit: max },
        BuildError::Headers(_) | BuildError::Time(_) | BuildError::Compression(_) => PublishError::Failed,
    }
}

/// Reads everything back, from the first record to the last.
pub(crate) fn replay(shard: &Shard, mut take: impl FnMut(&Record<'_>)) -> Result<(), OpenError> {
    let failed = |error: &dyn std::fmt::Display| OpenError::Internal(error.to_string());
    let mut from = shard.start_offset();
    loop {
        let fetched = shard.fetch(from, PAGE_BYTES_MAX).map_err(|error| failed(&error))?;
        for entry in &fetched.batches {
            let batch = open(&entry.bytes, INFLATED_BYTES_DEFAULT).map_err(|error| failed(&error))?;
            for record in batch.records() {
                take(&record.map_err(|error| failed(&error))?);
            }
        }
        if fetched.next <= from {
            return Ok(());
        }
        from = fetched.next;
    }
}
