use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::error::RecordProblem;
use super::golden::{all, named};
use super::*;

/// A record that owns what it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owned {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Owned {
    fn of(record: &Record<'_>) -> Self {
        Self {
            timestamp: record.timestamp,
            key: record.key.map(Into::into),
            value: record.value.map(Into::into),
            headers: record
                .headers
                .map(|h| (String::from_utf8(h.key.to_vec()).unwrap(), h.value.map(Into::into)))
                .collect(),
        }
    }

    fn append_to(&self, builder: &mut BatchBuilder) -> Result<u32, BuildError> {
        let headers: Vec<_> = self.headers.iter().map(|(k, v)| (k.as_str(), v.as_deref())).collect();
        builder.append(&RecordData {
            timestamp: self.timestamp,
            key: self.key.as_deref(),
            value: self.value.as_deref(),
            headers: &headers,
        })
    }
}

fn built(records: &[Owned], compression: Compression, producer: Option<Producer>) -> Bytes {
    let mut builder = BatchBuilder::new(BuildOptions { compression, ..BuildOptions::default() });
    for record in records {
        record.append_to(&mut builder).unwrap();
    }
    builder.finish(producer).unwrap().unwrap()
}

fn read(batch: &Bytes) -> Vec<Owned> {
    let opened = open(batch, 1 << 24).unwrap();
    opened.records().map(|record| Owned::of(&record.unwrap())).collect()
}

/// The records of the batches of `testdata/batches`.
fn golden_records() -> Vec<Owned> {
    let owned = |timestamp, key: Option<&str>, value: Option<&str>, headers: &[(&str, Option<&str>)]| Owned {
        timestamp,
        key: key.map(Into::into),
        value: value.map(Into::into),
        headers: headers.iter().map(|&(k, v)| (k.to_owned(), v.map(Into::into))).collect(),
    };
    let north = [("source", Some("north")), ("note", None)];
    vec![
        owned(1_764_547_200_000, Some("sensor-1"), Some(r#"{"temperature":21.5}"#), &north),
        owned(1_764_547_200_001, None, Some("no key"), &[]),
        owned(1_764_547_199_990, Some("sensor-2"), None, &[]),
        owned(
            1_764_547_260_000,
            Some("größe"),
            Some(&"x".repeat(300)),
            &[("a", Some("")), ("a", Some("twice"))],
        ),
    ]
}

#[test]
fn batches_of_other_clients_are_taken() {
    for (name, batch) in all() {
        let header = Rules::PRODUCED.check(&batch).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!((header.count, header.last_offset_delta, header.size), (4, 3, batch.len()), "{name}");
        assert_eq!(header.base_timestamp, 1_764_547_200_000, "{name}");
        assert_eq!(header.max_timestamp, 1_764_547_260_000, "{name}");
        assert_eq!(header.is_idempotent(), name.ends_with("idempotent"), "{name}");
        assert!(name.contains(header.attributes.compression.name()) || header.is_idempotent(), "{name}");
    }
}

#[test]
fn records_of_other_clients_are_read() {
    for (name, batch) in all() {
        let plain = BatchHeader::parse(&batch).unwrap().attributes.compression == Compression::None;
        if plain || cfg!(feature = "compression") {
            assert_eq!(read(&batch), golden_records(), "{name}");
        } else {
            assert!(matches!(open(&batch, 1 << 20), Err(BatchError::Compressed(_))), "{name}");
        }
    }
}

/// What is built here is what another client builds of the same records, but for what the broker writes.
#[test]
fn a_batch_is_built_as_others_build_it() {
    let ours = built(&golden_records(), Compression::None, None);
    let theirs = named("kafka-python-none");
    assert_eq!(ours[PATCHED_LEN..], theirs[PATCHED_LEN..]);
    assert_eq!(ours[..12], theirs[..12]);
    let header = BatchHeader::parse(&named("librdkafka-idempotent")).unwrap();
    let producer =
        Producer { id: header.producer_id, epoch: header.producer_epoch, sequence: header.base_sequence };
    let ours = built(&golden_records(), Compression::None, Some(producer));
    assert_eq!(ours[PATCHED_LEN..], named("librdkafka-idempotent")[PATCHED_LEN..]);
}

#[test]
fn headers_are_looked_up() {
    let batch = built(&golden_records(), Compression::None, None);
    let opened = open(&batch, 0).unwrap();
    let records: Vec<_> = opened.records().map(Result::unwrap).collect();
    assert_eq!(records[0].headers.get("source"), Some(Some(&b"north"[..])));
    assert_eq!(records[0].headers.get("note"), Some(None));
    assert_eq!(records[3].headers.get("a"), Some(Some(&b"twice"[..])));
    assert_eq!(records[1].headers.get("a"), None);
    assert_eq!((records[3].headers.len(), records[1].headers.is_empty()), (2, true));
}

/// A value can be kept without being copied.
#[test]
fn values_are_parts_of_the_batch() {
    let batch = built(&golden_records(), Compression::None, None);
    let opened = open(&batch, 0).unwrap();
    let record = opened.records().next().unwrap().unwrap();
    let kept = opened.body().slice_ref(record.value.unwrap());
    assert!(batch.as_ptr_range().contains(&kept.as_ptr()));
}

/// Changes a batch, makes its checksum right again, and says what is wrong with it.
#[track_caller]
fn refused(rules: Rules, change: impl FnOnce(&mut Vec<u8>)) -> BatchError {
    let mut bytes = built(&golden_records(), Compression::None, None).to_vec();
    change(&mut bytes);
    if let Some(rest) = bytes.get(21..) {
        let crc = crc32c::crc32c(rest).to_be_bytes();
        bytes[17..21].copy_from_slice(&crc);
    }
    rules.check(&bytes).unwrap_err()
}

fn set<const N: usize>(at: usize, bytes: [u8; N]) -> impl FnOnce(&mut Vec<u8>) {
    move |batch| batch[at..at + N].copy_from_slice(&bytes)
}

#[test]
fn lengths_are_checked() {
    let produced = Rules::PRODUCED;
    let size = built(&golden_records(), Compression::None, None).len();
    assert_eq!(refused(produced, |b| b.truncate(10)), BatchError::Truncated { needed: 61, have: 10 });
    assert_eq!(refused(produced, |b| b.truncate(60)), BatchError::Truncated { needed: 61, have: 60 });
    assert_eq!(
        refused(produced, |b| b.truncate(size - 1)),
        BatchError::Truncated { needed: size, have: size - 1 }
    );
    assert_eq!(refused(produced, |b| b.push(0)), BatchError::Trailing(1));
    assert_eq!(refused(produced, set(8, 48_i32.to_be_bytes())), BatchError::Length(48));
    assert_eq!(refused(produced, set(8, (-1_i32).to_be_bytes())), BatchError::Length(-1));
    assert_eq!(refused(produced.max_bytes(100), |_| {}), BatchError::TooLarge { len: size, max: 100 });
    assert_eq!(
        refused(produced, set(8, i32::MAX.to_be_bytes())),
        BatchError::TooLarge { len: i32::MAX as usize + 12, max: produced.max_bytes }
    );
}

#[test]
fn older_formats_are_named() {
    assert_eq!(refused(Rules::PRODUCED, set(16, [1])), BatchError::Magic(1));
    assert_eq!(refused(Rules::PRODUCED, set(16, [0])), BatchError::Magic(0));
    assert_eq!(refused(Rules::STORED, set(16, [3])), BatchError::Magic(3));
    // A message of format 0 may be shorter than a header of ours.
    let short = Bytes::from_static(&[
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 14, 1, 2, 3, 4, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0,
    ]);
    assert_eq!(validate(&short), Err(BatchError::Magic(0)));
    assert_eq!(split(&short).next(), Some(Err(BatchError::Magic(0))));
}

#[test]
fn a_flipped_bit_is_seen() {
    let batch = built(&golden_records(), Compression::None, None);
    for bit in 17 * 8..batch.len() * 8 {
        let mut bytes = batch.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(validate(&bytes).is_err(), "bit {bit}");
    }
    let damaged = refused_without_crc(|b| b[100] ^= 1);
    assert!(matches!(damaged, BatchError::Checksum { .. }));
}

fn refused_without_crc(change: impl FnOnce(&mut Vec<u8>)) -> BatchError {
    let mut bytes = built(&golden_records(), Compression::None, None).to_vec();
    change(&mut bytes);
    validate(&bytes).unwrap_err()
}

#[test]
fn kinds_are_checked() {
    let attributes = |bits: i16| refused(Rules::PRODUCED, set(21, bits.to_be_bytes()));
    assert_eq!(attributes(5), BatchError::Attributes(5));
    assert_eq!(attributes(1 << 7), BatchError::Attributes(128));
    assert_eq!(attributes(i16::MIN), BatchError::Attributes(i16::MIN));
    assert_eq!(attributes(1 << 3), BatchError::LogAppendTime);
    assert_eq!(attributes(1 << 4), BatchError::Transactional);
    assert_eq!(attributes(1 << 5), BatchError::Control);
    assert_eq!(attributes(1 << 6), BatchError::Attributes(64));
}

#[test]
fn counts_are_checked() {
    let count = |count: i32, delta: i32| {
        move |batch: &mut Vec<u8>| {
            batch[57..61].copy_from_slice(&count.to_be_bytes());
            batch[23..27].copy_from_slice(&delta.to_be_bytes());
        }
    };
    for (records, delta) in [(0, -1), (0, 0), (-1, -2), (4, 4), (4, 2), (i32::MIN, i32::MAX), (5, 3)] {
        let error = refused(Rules::PRODUCED, count(records, delta));
        assert_eq!(error, BatchError::Count { count: records, last_offset_delta: delta });
    }
    let trailing = BatchError::Record { index: 3, problem: RecordProblem::Trailing };
    assert_eq!(refused(Rules::PRODUCED, count(3, 2)), trailing);
    let cut = BatchError::Record { index: 4, problem: RecordProblem::Truncated };
    assert_eq!(refused(Rules::PRODUCED, count(5, 4)), cut);
    assert_eq!(refused(Rules::PRODUCED, count(100, 99)), BatchError::Dense { count: 100, len: 411 });
    assert_eq!(
        refused(Rules::PRODUCED, count(i32::MAX, i32::MAX - 1)),
        BatchError::TooManyRecords(i32::MAX as u32)
    );
    assert_eq!(
        refused(Rules::STORED, count(i32::MIN, i32::MAX)),
        BatchError::Count { count: i32::MIN, last_offset_delta: i32::MAX }
    );
    assert_eq!(refused(Rules::STORED, count(1, i32::MAX)), BatchError::TooManyRecords(1 << 31));
}

#[test]
fn producers_are_checked() {
    let producer = |id: i64, epoch: i16, sequence: i32| {
        let error = refused(Rules::PRODUCED, |batch| {
            batch[43..51].copy_from_slice(&id.to_be_bytes());
            batch[51..53].copy_from_slice(&epoch.to_be_bytes());
            batch[53..57].copy_from_slice(&sequence.to_be_bytes());
        });
        assert_eq!(error, BatchError::Producer { id, epoch, sequence });
    };
    producer(1, -1, 0);
    producer(1, 0, -1);
    producer(-2, -1, -1);
    producer(i64::MIN, i16::MIN, i32::MIN);
}

/// kafkajs leaves zeros beside the producer id that says that there is none; Sarama has left the largest time unset.
#[test]
fn what_clients_leave_unset_is_taken() {
    let mut bytes = built(&golden_records(), Compression::None, None).to_vec();
    bytes[51..57].fill(0);
    bytes[35..43].fill(0xff);
    let crc = crc32c::crc32c(&bytes[21..]).to_be_bytes();
    bytes[17..21].copy_from_slice(&crc);
    let header = validate(&bytes).unwrap();
    assert!(!header.is_idempotent());
    assert_eq!(header.max_timestamp, header.base_timestamp);
}

#[test]
fn times_are_checked() {
    let times = |base: i64, max: i64| {
        let error = refused(Rules::PRODUCED, |batch| {
            batch[27..35].copy_from_slice(&base.to_be_bytes());
            batch[35..43].copy_from_slice(&max.to_be_bytes());
        });
        assert_eq!(error, BatchError::Timestamps { base, max });
    };
    times(10, 9);
    times(-2, 9);
    times(i64::MIN, i64::MAX);
}

#[test]
fn sequences_go_round() {
    let mut header = BatchHeader::parse(&named("librdkafka-idempotent")).unwrap();
    assert_eq!((header.last_sequence(), header.next_sequence()), (3, 4));
    header.base_sequence = i32::MAX - 1;
    assert_eq!((header.last_sequence(), header.next_sequence()), (1, 2));
    header.base_sequence = i32::MAX - 3;
    assert_eq!((header.last_sequence(), header.next_sequence()), (i32::MAX, 0));
}

#[test]
fn a_payload_is_split_without_a_copy() {
    let batches: Vec<Bytes> = all().into_iter().map(|(_, batch)| batch).collect();
    let payload = Bytes::from(batches.concat());
    let parts: Vec<_> = split(&payload).map(Result::unwrap).collect();
    assert_eq!(parts, batches);
    assert!(parts.iter().all(|part| payload.as_ptr_range().contains(&part.as_ptr())));
    let cut = payload.slice(..payload.len() - 1);
    let results: Vec<_> = split(&cut).collect();
    assert_eq!(results.len(), batches.len());
    assert!(matches!(results.last(), Some(Err(BatchError::Truncated { .. }))));
}

#[test]
fn a_payload_has_so_many_batches() {
    let batch = built(&golden_records()[1..2], Compression::None, None);
    let payload = Bytes::from(batch.repeat(4097));
    let results: Vec<_> = split(&payload).collect();
    assert_eq!(results.len(), 4097);
    assert_eq!(results[4096], Err(BatchError::TooMany(4096)));
}

#[test]
fn a_broker_writes_twelve_bytes() {
    let batch = built(&golden_records(), Compression::None, None);
    let stamped = stamp(batch.clone(), 1 << 40, 7).unwrap();
    let header = validate(&stamped).unwrap();
    assert_eq!((header.base_offset, header.leader_epoch, header.next_offset()), (1 << 40, 7, (1 << 40) + 4));
    assert_eq!(batch[8..12], stamped[8..12]);
    assert_eq!(batch[16..], stamped[16..]);
    assert_eq!(PatchedHeader::of(&batch, 1 << 40, 7).unwrap().0, stamped[..16]);
    let offsets: Vec<_> = open(&stamped, 0).unwrap().records().map(|record| record.unwrap().offset).collect();
    assert_eq!(offsets, [1 << 40, (1 << 40) + 1, (1 << 40) + 2, (1 << 40) + 3]);
    let mut short = [0; 15];
    assert_eq!(patch(&mut short, 0, 0), Err(BatchError::Truncated { needed: 16, have: 15 }));
}

/// Where nobody else holds the bytes, they are written where they lie.
#[test]
fn stamping_what_is_ours_alone_copies_nothing() {
    let batch = built(&golden_records(), Compression::None, None);
    let place = batch.as_ptr();
    let stamped = stamp(batch, 5, 1).unwrap();
    assert_eq!(stamped.as_ptr(), place);
    let copy = stamp(stamped.clone(), 6, 1).unwrap();
    assert_ne!(copy.as_ptr(), place);
    assert_eq!(BatchHeader::parse(&stamped).unwrap().base_offset, 5);
}

#[test]
fn a_full_batch_says_so() {
    let mut builder = BatchBuilder::new(BuildOptions { max_bytes: 200, ..BuildOptions::default() });
    let record = |value| RecordData { value: Some(value), ..RecordData::default() };
    assert_eq!(builder.append(&record(&[0; 200])), Err(BuildError::TooLarge { len: 270, max: 200 }));
    assert_eq!(builder.append(&record(&[0; 100])), Ok(0));
    assert_eq!(builder.append(&record(&[0; 100])), Err(BuildError::Full));
    assert_eq!(builder.append(&record(&[0; 10])), Ok(1));
    let size = builder.size();
    let batch = builder.finish(None).unwrap().unwrap();
    assert_eq!((batch.len(), read(&batch).len()), (size, 2));
    assert_eq!(builder.finish(None), Ok(None));
    assert_eq!(builder.append(&record(&[0; 100])), Ok(0));
}

#[test]
fn what_no_batch_can_hold_is_not_taken() {
    let mut builder = BatchBuilder::new(BuildOptions::default());
    let past = RecordData { timestamp: -1, ..RecordData::default() };
    assert_eq!(builder.append(&past), Err(BuildError::Time(-1)));
    let headers = vec![("h", None); 1025];
    let many = RecordData { headers: &headers, ..RecordData::default() };
    assert_eq!(builder.append(&many), Err(BuildError::Headers(1025)));
    assert!(builder.is_empty());
}

#[test]
fn compaction_keeps_what_is_wanted() {
    let whole = stamp(built(&golden_records(), Compression::None, None), 100, 3).unwrap();
    assert_eq!(filter(&whole, 0, |_| true), Ok(Filtered::Whole));
    assert_eq!(filter(&whole, 0, |_| false), Ok(Filtered::Nothing));
    let Ok(Filtered::Part(part)) = filter(&whole, 0, |record| record.delta % 2 == 0) else { panic!() };
    let header = Rules { records: true, ..Rules::STORED }.check(&part).unwrap();
    assert_eq!((header.base_offset, header.last_offset_delta, header.count), (100, 3, 2));
    assert_eq!((header.leader_epoch, header.next_offset()), (3, 104));
    assert_eq!(header.max_timestamp, 1_764_547_200_000);
    let opened = open(&part, 0).unwrap();
    let offsets: Vec<_> = opened.records().map(|record| record.unwrap().offset).collect();
    assert_eq!(offsets, [100, 102]);
    let golden = golden_records();
    assert_eq!(read(&part), [golden[0].clone(), golden[2].clone()]);
    assert!(matches!(validate(&part), Err(BatchError::Count { .. })));
    let Ok(Filtered::Part(last)) = filter(&part, 0, |record| record.offset == 102) else { panic!() };
    assert_eq!(read(&last), [golden[2].clone()]);
    assert_eq!(BatchHeader::parse(&last).unwrap().max_timestamp, 1_764_547_199_990);
}

#[cfg(feature = "compression")]
mod compressed {
    use super::*;

    #[test]
    fn what_is_compressed_is_read_again() {
        for compression in Compression::ALL {
            let batch = built(&golden_records(), compression, None);
            assert_eq!(validate(&batch).unwrap().attributes.compression, compression);
            assert_eq!(read(&batch), golden_records(), "{compression}");
        }
    }

    #[test]
    fn compaction_compresses_again() {
        for compression in Compression::ALL {
            let batch = built(&golden_records(), compression, None);
            let Ok(Filtered::Part(part)) = filter(&batch, 1 << 20, |record| record.delta == 3) else {
                panic!()
            };
            let header = Rules::STORED.check(&part).unwrap();
            assert_eq!((header.attributes.compression, header.count), (compression, 1));
            assert_eq!(read(&part), golden_records()[3..]);
        }
    }

    #[test]
    fn what_is_inflated_is_bounded() {
        let zeros = Owned { timestamp: 0, key: None, value: Some(vec![0; 900_000]), headers: Vec::new() };
        for compression in &Compression::ALL[1..] {
            let batch = built(std::slice::from_ref(&zeros), *compression, None);
            assert!(batch.len() < 100_000, "{compression}: {}", batch.len());
            assert_eq!(open(&batch, 100_000).unwrap_err(), BatchError::Inflated(100_000), "{compression}");
            assert!(open(&batch, 900_100).is_ok());
        }
    }

    /// Blocks of Snappy that only say that they are long.
    #[test]
    fn snappy_lengths_are_not_believed() {
        let header = |bytes: &[u8]| codec::inflate(Compression::Snappy, bytes, 1 << 20);
        assert_eq!(header(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Err(BatchError::Inflated(1 << 20)));
        assert_eq!(header(&[0xff; 20]), Err(BatchError::Damaged(Compression::Snappy)));
        assert_eq!(header(b""), Err(BatchError::Damaged(Compression::Snappy)));
        assert_eq!(header(b"\x82SNAPPY\0\0\0"), Err(BatchError::Damaged(Compression::Snappy)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn damage_is_told(number in 1_usize..5, at: prop::sample::Index, flip in 1_u8.., cut: prop::sample::Index) {
            let compression = Compression::ALL[number];
            let plain = b"abcdefgh".repeat(40);
            let packed = codec::deflate(compression, &plain).unwrap();
            let mut flipped = packed.clone();
            flipped[at.index(packed.len())] ^= flip;
            for bytes in [&flipped[..], &packed[..cut.index(packed.len())]] {
                // Some bytes mean nothing to a decoder; whatever comes out is bounded.
                if let Ok(read) = codec::inflate(compression, bytes, 1000) {
                    prop_assert!(read.len() <= 1000);
                }
            }
        }
    }
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..max)
}

fn record() -> impl Strategy<Value = Owned> {
    let headers = vec(("[a-zé]{0,4}", option::of(bytes(5))), 0..3);
    (0..=i64::MAX, option::of(bytes(10)), option::of(bytes(200)), headers)
        .prop_map(|(timestamp, key, value, headers)| Owned { timestamp, key, value, headers })
}

fn producer() -> impl Strategy<Value = Option<Producer>> {
    option::of((0..i64::MAX, 0..i16::MAX, 0..i32::MAX).prop_map(|(id, epoch, sequence)| Producer {
        id,
        epoch,
        sequence,
    }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_built_is_valid_and_read(records in vec(record(), 1..20), producer in producer()) {
        let batch = built(&records, Compression::None, producer);
        let header = validate(&batch).unwrap();
        prop_assert_eq!(header.count as usize, records.len());
        prop_assert_eq!(header.is_idempotent(), producer.is_some());
        prop_assert_eq!(Some(header.max_timestamp), records.iter().map(|r| r.timestamp).max());
        prop_assert_eq!(read(&batch), records);
        prop_assert_eq!(split(&batch).collect::<Vec<_>>(), [Ok(batch)]);
    }

    #[test]
    fn filtering_is_filtering(records in vec(record(), 1..20), wanted in any::<u32>()) {
        let batch = built(&records, Compression::None, None);
        let keep = |delta: usize| wanted & 1 << delta != 0;
        let expected: Vec<_> =
            records.iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, r)| r.clone()).collect();
        match filter(&batch, 0, |record| keep(record.delta as usize)).unwrap() {
            Filtered::Whole => prop_assert_eq!(expected, records),
            Filtered::Nothing => prop_assert!(expected.is_empty()),
            Filtered::Part(part) => {
                Rules { records: true, ..Rules::STORED }.check(&part).unwrap();
                prop_assert_eq!(read(&part), expected);
            }
        }
    }

    /// Damage below the checksum, with a checksum that fits: no panic, and what is taken can be read.
    #[test]
    fn what_is_taken_can_be_read(
        records in vec(record(), 1..6),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = built(&records, Compression::None, None).to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let crc = crc32c::crc32c(&bytes[21..]).to_be_bytes();
        bytes[17..21].copy_from_slice(&crc);
        let batch = Bytes::from(bytes);
        if let Ok(header) = validate(&batch)
            && header.attributes.compression == Compression::None
        {
            prop_assert_eq!(open(&batch, 0).unwrap().records().filter(Result::is_ok).count(), header.count as usize);
        }
    }
}
