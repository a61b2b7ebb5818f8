//! Entry points that take any bytes: the bodies of the fuzz targets under `fuzz/`, and of the tests that
//! replay their corpus on the stable toolchain.
//!
//! Each returns normally for every input. What it asserts is a law of this crate, so a panic is a defect.

use std::sync::Arc;

use bytes::Bytes;
use trifid_base_runtime::ManualClock;
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::StreamSpec;

use crate::{Admitted, Broker, Checked, Options, PublishError};

/// Target `stream_publish`: any bytes as the payload of a publish. What is taken is read back byte for byte
/// but for offset and epoch, at the offsets that were answered, and found by its time.
pub fn publish(bytes: &[u8]) {
    let Ok(checked) = Checked::payload(&Bytes::copy_from_slice(bytes), 1 << 20) else { return };
    let options = Options { clock: Arc::new(ManualClock::default()), ..Options::memory() };
    let Ok(broker) = Broker::open(options) else { return };
    let name = StreamName::new("fuzzed").expect("the name is valid");
    let stream = broker.create(&Tenant::default(), &name, StreamSpec::memory(1)).expect("there is room");
    let shard = &stream.shards()[0];
    let (records, batches) = (checked.records(), checked.batches());
    match shard.publish(checked, Admitted::unmetered()) {
        Ok(published) => {
            assert_eq!(published.end - published.base_offset, records);
            let fetched = shard.fetch(0, usize::MAX).expect("what was taken is there");
            assert_eq!((fetched.batches.len(), fetched.next), (batches, records));
            let mut at = 0;
            for entry in &fetched.batches {
                assert_eq!(entry.bytes[16..], bytes[at + 16..at + entry.bytes.len()]);
                at += entry.bytes.len();
            }
            let found = shard.offset_for_time(0).expect("memory is read without error");
            assert!(found.is_none_or(|(offset, _)| offset < records));
        }
        // Claims of an idempotent producer that begin elsewhere, or do not follow one another.
        Err(PublishError::OutOfSequence { .. }) => assert_eq!(shard.end_offset(), 0),
        Err(error) => panic!("a checked batch is refused: {error}"),
    }
}

/// Target `stream_stored`: any bytes as a stored snapshot of producers, or as a record of the catalogue, of
/// committed offsets, or of the definitions of caches. What
/// is read is written and read again as the same.
pub fn stored(bytes: &[u8]) {
    if let Some(read) = crate::snapshot::decode(bytes, 100) {
        let none = std::iter::empty;
        let again = crate::snapshot::encode(read.offset, read.cleaned, &read.producers, none());
        let again = crate::snapshot::decode(&again, 100).expect("what was written is read");
        assert_eq!(again.producers.without(none()), read.producers.without(none()));
    }
    crate::catalogue::fuzz(bytes);
    crate::groups::fuzz(bytes);
    crate::cache::fuzz(bytes);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use crate::testing::{START_MS, batch_at};

    #[test]
    fn the_corpus_is_read() {
        let replay = |target: &str, body: fn(&[u8])| {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target);
            let inputs: Vec<_> = fs::read_dir(folder).expect("the corpus").collect();
            assert!(!inputs.is_empty());
            inputs.into_iter().for_each(|input| body(&fs::read(input.unwrap().path()).unwrap()));
        };
        replay("stream_publish", super::publish);
        replay("stream_stored", super::stored);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            super::publish(&bytes);
            super::stored(&bytes);
        }

        #[test]
        fn batches_with_a_changed_byte(
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..5),
            sequences in prop::collection::vec(prop::option::of(0..4_i32), 1..4),
            change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
            let batch = |sequence: &Option<i32>| batch_at(START_MS, &values, sequence.map(|at| (1, 0, at)));
            let mut payload: Vec<u8> = sequences.iter().flat_map(batch).collect();
            if let Some((at, to)) = change {
                let at = at.index(payload.len());
                payload[at] = to;
            }
            super::publish(&payload);
        }

        #[test]
        fn records_of_the_catalogue(id in any::<u64>(), shards in any::<u32>(), cut in 0..200_usize) {
            let json = format!(r#"{{"v":1,"stream":{{"id":{id},"tenant":"t","name":"a.b","shards":{shards},
                "durability":"on_commit","compact":false,"max_batch_bytes":1,"kind":"events",
                "created_ms":0}}}}"#);
            super::stored(json.as_bytes());
            super::stored(&json.as_bytes()[..cut.min(json.len())]);
        }
    }
}
