//! What is written by hand is what `kafka-protocol` reads, and the other way round.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::*;
use kafka_protocol::protocol::{Decodable as _, Encodable as _, StrBytes};
use proptest::collection::vec;
use proptest::prelude::*;
use uuid::Uuid;

use super::fetch::{Given, Topic, Wanted};
use super::produce::{Outcome, Terms};
use super::{fetch, frame, head, produce};

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..2000).prop_map(Bytes::from)
}

fn tags() -> impl Strategy<Value = Vec<(i32, Bytes)>> {
    vec((100..300i32, vec(any::<u8>(), 0..200).prop_map(Bytes::from)), 0..3)
}

/// A topic and its partitions' records.
type Part = (i32, Option<Bytes>);

fn topics() -> impl Strategy<Value = Vec<(String, Vec<Part>)>> {
    let part = (any::<i32>(), proptest::option::of(bytes()));
    vec(("[a-z.]{0,200}", vec(part, 0..4)), 0..4)
}

fn produce_request(version: i16, acks: i16, topics: &[(String, Vec<Part>)], tags: &[(i32, Bytes)]) -> Bytes {
    use produce_request::{PartitionProduceData, TopicProduceData};
    let tags = if version >= 9 { tags.iter().cloned().collect() } else { Default::default() };
    let part = |(index, records): &Part| {
        PartitionProduceData::default().with_index(*index).with_records(records.clone())
    };
    let topic = |(name, parts): &(String, Vec<Part>)| {
        TopicProduceData::default()
            .with_name(TopicName(text(name)))
            .with_partition_data(parts.iter().map(part).collect())
            .with_unknown_tagged_fields(Clone::clone(&tags))
    };
    let request = ProduceRequest::default()
        .with_transactional_id(None)
        .with_acks(acks)
        .with_topic_data(topics.iter().map(topic).collect());
    let mut out = BytesMut::new();
    request.encode(&mut out, version).unwrap();
    out.freeze()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn produce_requests_are_read(version in 3i16..=12, acks in any::<i16>(), topics in topics(), tags in tags()) {
        let mut terms = None;
        let mut got = Vec::new();
        produce::read(
            produce_request(version, acks, &topics, &tags),
            version,
            |read| terms = Some(read),
            |topic, index, records| got.push((topic.clone(), index, records)),
        ).unwrap();
        prop_assert_eq!(terms, Some(Terms { is_transactional: false, acks }));
        let expected: Vec<_> = topics
            .iter()
            .flat_map(|(name, parts)| {
                parts.iter().map(move |(index, records)| (Bytes::from(name.clone()), *index, records.clone()))
            })
            .collect();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn produce_answers_are_written(
        version in 3i16..=12,
        outcomes in vec(("[ab]", any::<i32>(), any::<i16>(), any::<i64>(), proptest::option::of("[a-z ]{0,50}")), 0..6),
    ) {
        let outcomes: Vec<_> = outcomes
            .into_iter()
            .map(|(topic, index, code, base_offset, message)| Outcome {
                topic: topic.into(), index, code, base_offset, log_start: 5, message,
            })
            .collect();
        let mut out = BytesMut::new();
        produce::write(&mut out, version, 7, &outcomes);
        let mut answer = whole(out);
        ResponseHeader::decode(&mut answer, ProduceResponse::header(version)).unwrap();
        let read = ProduceResponse::decode(&mut answer, version).unwrap();
        prop_assert!(answer.is_empty());
        let got: Vec<_> = read
            .responses
            .iter()
            .flat_map(|topic| {
                topic.partition_responses.iter().map(move |part| {
                    (topic.name.to_string(), part.index, part.error_code, part.base_offset)
                })
            })
            .collect();
        let expected: Vec<_> = outcomes
            .iter()
            .map(|one| (String::from_utf8(one.topic.to_vec()).unwrap(), one.index, one.code, one.base_offset))
            .collect();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn fetch_requests_are_read(
        version in 4i16..=16,
        numbers in (any::<i32>(), any::<i32>(), any::<i32>()),
        topics in vec(("[a-z.]{1,200}", any::<u128>(), vec((any::<i32>(), any::<i64>(), any::<i32>()), 0..4)), 0..4),
    ) {
        use fetch_request::{FetchPartition, FetchTopic};
        let part = |&(index, offset, most): &(i32, i64, i32)| {
            FetchPartition::default().with_partition(index).with_fetch_offset(offset).with_partition_max_bytes(most)
        };
        let topic = |(name, id, parts): &(String, u128, Vec<(i32, i64, i32)>)| {
            let topic = FetchTopic::default().with_partitions(parts.iter().map(part).collect());
            match version {
                ..=12 => topic.with_topic(TopicName(text(name))),
                _ => topic.with_topic_id(Uuid::from_u128(*id)),
            }
        };
        let request = FetchRequest::default()
            .with_max_wait_ms(numbers.0)
            .with_min_bytes(numbers.1)
            .with_max_bytes(numbers.2)
            .with_topics(topics.iter().map(topic).collect());
        let mut out = BytesMut::new();
        request.encode(&mut out, version).unwrap();
        let read = fetch::read(out.freeze(), version).unwrap();
        prop_assert_eq!((read.wait_ms_max, read.bytes_min, read.bytes_max), numbers);
        prop_assert_eq!((read.session, read.session_epoch), (0, -1));
        let expected: Vec<_> = topics
            .iter()
            .flat_map(|(name, id, parts)| {
                parts.iter().map(move |&(index, offset, bytes_max)| {
                    let topic = match version {
                        ..=12 => Topic::Name(Bytes::from(name.clone())),
                        _ => Topic::Id(id.to_be_bytes()),
                    };
                    Wanted { topic, index, offset, epoch: -1, bytes_max }
                })
            })
            .collect();
        prop_assert_eq!(read.wanted, expected);
    }

    #[test]
    fn fetch_answers_are_written(
        version in 4i16..=16,
        code in any::<i16>(),
        given in vec((0u8..3, any::<i32>(), any::<i16>(), any::<i64>(), vec(bytes(), 0..3)), 0..6),
    ) {
        let topic = |pick: u8| match version {
            ..=12 => Topic::Name(Bytes::from(vec![b'a' + pick])),
            _ => Topic::Id([pick; 16]),
        };
        let given: Vec<_> = given
            .into_iter()
            .map(|(pick, index, code, end, batches)| Given { topic: topic(pick), index, code, end, start: 3, batches })
            .collect();
        let mut pieces = Vec::new();
        let mut out = BytesMut::new();
        fetch::write(&mut out, version, 7, code, &given, |piece| pieces.push(piece));
        pieces.push(out.freeze());
        let mut answer = whole(BytesMut::from(&pieces.concat()[..]));
        ResponseHeader::decode(&mut answer, FetchResponse::header(version)).unwrap();
        let read = FetchResponse::decode(&mut answer, version).unwrap();
        prop_assert!(answer.is_empty());
        prop_assert_eq!(read.error_code, if version >= 7 { code } else { 0 });
        let parts = read.responses.iter().flat_map(|topic| &topic.partitions);
        let got: Vec<_> = parts
            .map(|part| (part.partition_index, part.error_code, part.high_watermark, part.records.clone()))
            .collect();
        let expected: Vec<_> = given
            .iter()
            .map(|one| (one.index, one.code, one.end, Some(Bytes::from(one.batches.concat()))))
            .collect();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..200), version in 0i16..20) {
        let bytes = Bytes::from(bytes);
        let _ = produce::read(bytes.clone(), version, |_| (), |_, _, _| ());
        let _ = fetch::read(bytes.clone(), version);
        let _ = head::split(bytes.clone(), |_, version| version > 8);
        let _ = frame::next(&mut BytesMut::from(&bytes[..]), 100);
    }
}

/// The answer behind its length, which is right.
fn whole(mut written: BytesMut) -> Bytes {
    let frame::Next::Frame(answer) = frame::next(&mut written, usize::MAX).unwrap() else {
        panic!("not a whole frame")
    };
    assert!(written.is_empty());
    answer
}

/// The version of the head of an answer.
trait Headed {
    fn header(version: i16) -> i16;
}

impl<R: kafka_protocol::protocol::HeaderVersion> Headed for R {
    fn header(version: i16) -> i16 {
        R::header_version(version)
    }
}
