use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;

use super::reply::{self, Batch, Done};
use super::request::{self, Ping, Publish, Token};
use super::sample::{Sample, Source};
use super::*;
use crate::limits::{FRAME_BYTES_MAX, HELLO_BYTES_MAX};
use crate::names::StreamName;
use crate::spec::StreamSpec;

mod golden;

/// The one frame in these bytes.
fn frame(bytes: &[u8]) -> Frame {
    let mut decoder = Decoder::with_max(FRAME_BYTES_MAX);
    decoder.buffer().put_slice(bytes);
    let frame = decoder.next_frame().unwrap().expect("a whole frame");
    assert_eq!(decoder.buffered(), 0);
    frame
}

#[track_caller]
fn check_request(message: &Request, id: u32) {
    let frame = frame(&message.encode(id).into_bytes());
    assert_eq!((frame.kind, frame.id), (message.kind(), id));
    assert_eq!(Request::decode(&frame).as_ref(), Ok(message));
    if frame.kind < 0x80 {
        assert_eq!(Reply::decode(&frame), Err(FrameError::Kind(frame.kind)));
    }
}

#[track_caller]
fn check_reply(message: &Reply, id: u32) {
    let frame = frame(&message.encode(id).into_bytes());
    assert_eq!((frame.kind, frame.id), (message.kind(), id));
    assert_eq!(Reply::decode(&frame).as_ref(), Ok(message));
    assert_eq!(Request::decode(&frame), Err(FrameError::Kind(frame.kind)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_encoded_is_decoded(seed: u64, id: u32) {
        let mut source = Source(seed);
        Request::samples(&mut source).iter().for_each(|message| check_request(message, id));
        Reply::samples(&mut source).iter().for_each(|message| check_reply(message, id));
    }

    /// A body that ends early or goes on is refused, but for batches, which are the rest of the frame.
    #[test]
    fn a_body_is_exactly_its_message(seed: u64, cut: prop::sample::Index) {
        let mut source = Source(seed);
        for message in Request::samples(&mut source) {
            let whole = frame(&message.encode(1).into_bytes());
            if whole.kind != request::kind::PUBLISH && !whole.body.is_empty() {
                let body = whole.body.slice(..cut.index(whole.body.len()));
                prop_assert!(Request::decode(&Frame { body, ..whole.clone() }).is_err(), "{message:?}");
                let body = Bytes::from([&whole.body[..], &[0]].concat());
                prop_assert!(Request::decode(&Frame { body, ..whole.clone() }).is_err(), "{message:?}");
            }
        }
        for message in Reply::samples(&mut source) {
            let whole = frame(&message.encode(1).into_bytes());
            if whole.kind != reply::kind::BATCH && !whole.body.is_empty() {
                let body = whole.body.slice(..cut.index(whole.body.len()));
                prop_assert!(Reply::decode(&Frame { body, ..whole.clone() }).is_err(), "{message:?}");
                let body = Bytes::from([&whole.body[..], &[0]].concat());
                prop_assert!(Reply::decode(&Frame { body, ..whole.clone() }).is_err(), "{message:?}");
            }
        }
    }

    /// However the bytes come, the frames are the same.
    #[test]
    fn frames_come_in_pieces(seed: u64, sizes in prop::collection::vec(1_usize..50, 1..20)) {
        let mut source = Source(seed);
        let messages = Request::samples(&mut source);
        let mut bytes = BytesMut::from(&Preface::new(Capabilities::ALL).encode()[..]);
        for (id, message) in (0..).zip(&messages) {
            message.encode(id).append_to(&mut bytes);
        }
        let (mut decoder, mut rest, mut read) = (Decoder::new(), &bytes[..], Vec::new());
        let mut preface = None;
        for size in sizes.iter().cycle() {
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            decoder.buffer().put_slice(piece);
            rest = after;
            if preface.is_none() {
                preface = decoder.preface().unwrap();
            }
            if preface.is_some() {
                while let Some(frame) = decoder.next_frame().unwrap() {
                    prop_assert_eq!(frame.id as usize, read.len());
                    read.push(Request::decode(&frame).unwrap());
                }
            }
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(read, messages);
        prop_assert_eq!((decoder.buffered(), decoder.missing()), (0, 0));
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(kind: u8, body: Vec<u8>) {
        let frame = Frame { kind, id: 0, body: body.into() };
        let _ = (Request::decode(&frame), Reply::decode(&frame));
    }
}

#[test]
fn each_message_has_a_number_of_its_own() {
    let mut kinds: Vec<u8> = Request::KINDS.iter().chain(Reply::KINDS).map(|(kind, _)| *kind).collect();
    let count = kinds.len();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), count);
    assert!(Request::KINDS.iter().all(|(kind, _)| *kind < 0x80));
    assert!(Reply::KINDS.iter().all(|(kind, _)| *kind >= 0x80));
}

/// What the faces write on the stack is what the messages encode.
#[test]
fn heads_on_the_stack_are_those_of_the_messages() {
    let batches = Bytes::from_static(b"some batches");
    for ack in [Ack::None, Ack::One] {
        let publish = Publish { handle: 1, shard: 2, epoch: 3, ack, batches: batches.clone() };
        let pieces = Request::from(publish).encode(9);
        assert_eq!(pieces.head[..], publish_head(9, 1, 2, 3, ack, batches.len()));
        assert_eq!(pieces.tail, std::slice::from_ref(&batches));
    }
    let batch = Batch { shard: 2, epoch: 3, base_offset: 1 << 40, batches: batches.clone() };
    let pieces = Reply::from(batch).encode(9);
    assert_eq!(pieces.head[..], batch_head(9, 2, 3, 1 << 40, batches.len()));
    assert_eq!(pieces.len(), BATCH_HEAD_LEN + 12);
    assert_eq!(pieces.slices().len(), 2);
}

/// From the producer's bytes to the buffer that is read into: no copy on either side.
#[test]
fn batches_are_not_copied() {
    let batches = Bytes::from(vec![7; 1000]);
    let publish = Publish { handle: 1, shard: 0, epoch: 0, ack: Ack::One, batches: batches.clone() };
    assert_eq!(Request::from(publish.clone()).encode(1).tail[0].as_ptr(), batches.as_ptr());
    let mut decoder = Decoder::new();
    Request::from(publish).encode(1).append_to(decoder.buffer());
    let place = decoder.buffer().as_ptr_range();
    let frame = decoder.next_frame().unwrap().unwrap();
    let Ok(Request::Publish(read)) = Request::decode(&frame) else { panic!() };
    assert!(place.contains(&read.batches.as_ptr()));
    assert_eq!(read.batches, batches);
}

#[track_caller]
fn refused(bytes: &[u8]) -> FrameError {
    let mut decoder = Decoder::new();
    decoder.buffer().put_slice(bytes);
    decoder.next_frame().unwrap_err()
}

#[test]
fn what_is_not_defined_is_refused() {
    assert_eq!(refused(&[0, 0, 0, 0, 2, 1, 0, 0, 1, 0, 0, 0]), FrameError::Reserved(1));
    assert_eq!(refused(&[0, 0, 0, 0, 2, 0, 0, 0x80, 1, 0, 0, 0]), FrameError::Flags(0x8000));
    let max = HELLO_BYTES_MAX;
    assert_eq!(
        refused(&[0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 1, 0, 0, 0]),
        FrameError::TooLarge { len: u32::MAX as usize, max }
    );
    let body = Bytes::new();
    assert_eq!(Request::decode(&Frame { kind: 0x7f, id: 0, body }), Err(FrameError::Kind(0x7f)));
}

#[test]
fn lists_are_bounded_before_they_are_read() {
    let body = |len: u32| Bytes::from([&len.to_le_bytes()[..], &[0; 100]].concat());
    let pulled = |len| Reply::decode(&Frame { kind: reply::kind::PULLED, id: 0, body: body(len) });
    assert_eq!(pulled(65_537), Err(FrameError::TooMany { what: "a pull", len: 65_537, max: 65_536 }));
    assert_eq!(pulled(10_000), Err(FrameError::Truncated("a pull")));
    let results = |len| Reply::decode(&Frame { kind: reply::kind::CACHE_RESULTS, id: 0, body: body(len) });
    assert!(matches!(results(u32::MAX), Err(FrameError::TooMany { .. })));
    assert_eq!(results(200), Err(FrameError::Truncated("a list")));
}

#[test]
fn values_are_checked_where_they_are_read() {
    let spec = StreamSpec { shards: 0, ..StreamSpec::default() };
    let create = request::CreateStream { name: StreamName::new("a").unwrap(), spec };
    let frame = frame(&Request::from(create).encode(1).into_bytes());
    assert!(matches!(Request::decode(&frame), Err(FrameError::Spec(_))));
    let name = |text: &[u8]| {
        let body = [&(text.len() as u16).to_le_bytes()[..], text].concat().into();
        Request::decode(&Frame { kind: request::kind::OPEN, id: 0, body }).unwrap_err()
    };
    assert!(matches!(name(b"default.x"), FrameError::Name(_)));
    assert_eq!(name(b"\xff"), FrameError::Utf8);
    assert!(matches!(name(&[b'a'; 5000]), FrameError::TooMany { .. }));
    assert_eq!(frame_body_error(request::kind::PING, &[1, 2]), FrameError::Truncated("a number"));
    assert!(matches!(frame_body_error(request::kind::LIST_STREAMS, &[0, 0]), FrameError::Truncated(_)));
}

fn frame_body_error(kind: u8, body: &[u8]) -> FrameError {
    Request::decode(&Frame { kind, id: 0, body: Bytes::copy_from_slice(body) }).unwrap_err()
}

/// The decoder says how much to read, and takes what fits the negotiated limit.
#[test]
fn a_large_frame_is_announced() {
    let mut decoder = Decoder::new();
    decoder.set_max(1 << 20);
    let head = frame_head(request::kind::PUBLISH, 1, 500_000);
    decoder.buffer().put_slice(&head);
    assert_eq!((decoder.next_frame(), decoder.missing()), (Ok(None), 500_000));
    decoder.buffer().put_bytes(0, 100_000);
    assert_eq!((decoder.next_frame(), decoder.missing()), (Ok(None), 400_000));
    decoder.buffer().put_bytes(0, 400_000);
    assert_eq!(decoder.next_frame().unwrap().unwrap().body.len(), 500_000);
}

#[test]
fn a_preface_says_who_speaks() {
    let bytes = Preface::new(Capabilities::ALL).encode();
    assert_eq!(Preface::decode(&bytes), Ok(Preface { version: 1, capabilities: Capabilities::ALL }));
    assert_eq!(Preface::decode(b"GET / HTTP/1.1\r\n"), Err(FrameError::Preface));
    let mut zero = bytes;
    zero[6] = 0;
    assert_eq!(Preface::decode(&zero), Err(FrameError::Version(0)));
    let newer = Preface { version: 2, capabilities: Capabilities(u64::MAX) };
    let read = Preface::decode(&newer.encode()).unwrap();
    assert_eq!(read, newer);
    assert_eq!(read.capabilities.and(Capabilities::ALL), Capabilities::ALL);
    assert!(!Capabilities::STREAMS.or(Capabilities::GROUPS).has(Capabilities::ALL));
}

#[test]
fn codes_survive_the_wire() {
    for (number, name) in Code::NUMBERS {
        let code = Code::from_wire(*number, 7);
        assert!(format!("{code:?}").starts_with(name));
        assert_eq!(code.number(), *number);
        assert_eq!(Code::from_wire(code.number(), code.detail()), code);
    }
    assert_eq!(Code::from_wire(999, 7), Code::Other(999));
    assert_eq!(Code::OffsetTooOld { first: 5 }.detail(), 5);
    assert_eq!(Code::Overloaded { shed: 0 }.retry(), Retry::Later);
}

#[test]
fn long_messages_are_cut_at_a_character() {
    let refusal = Refusal::new(Code::Internal, "ö".repeat(40_000)).after(10);
    let frame = frame(&Reply::from(refusal).encode(1).into_bytes());
    let Ok(Reply::Error(read)) = Reply::decode(&frame) else { panic!() };
    assert_eq!((read.message, read.retry_after_ms), ("ö".repeat(2048), 10));
}

#[test]
fn a_token_is_not_printed() {
    assert_eq!(format!("{:?}", Some(Token("secret".into()))), "Some(Token(…))");
}

#[test]
fn who_is_answered() {
    let publish = |ack| Request::from(Publish { handle: 0, shard: 0, epoch: 0, ack, batches: Bytes::new() });
    assert!(publish(Ack::One).is_answered() && !publish(Ack::None).is_answered());
    assert!(Request::from(Ping { nonce: 1 }).is_answered());
    assert!(!Request::from(request::Credit { subscription: 1, bytes: 1 }).is_answered());
    assert!(!Reply::from(Done {}).is_push());
    assert!(Reply::from(Batch::sample(&mut Source(1))).is_push());
}
