//! Entry points that take any bytes: the body of the fuzz target `stream_session` under `fuzz/`, and of the
//! test that replays its corpus on the stable toolchain.
//!
//! It returns normally for every input. What it asserts is a law of this crate, so a panic is a defect.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use bytes::BytesMut;
use trifid_stream_engine::{Broker, CreatePolicy, Options as BrokerOptions};
use trifid_stream_model::frame::{Capabilities, Decoder, PREFACE_LEN, Preface, Reply, Request, request};
use trifid_stream_model::spec::StreamSpec;

use crate::account::Account;
use crate::core::Core;
use crate::options::Options;
use crate::session::Session;
use crate::stats::Stats;

/// Rounds in which a conversation that was left has to come to its end.
const ROUNDS_TO_END: usize = 20_000;

/// Target `stream_session`: what a client sends, after the greeting if the first byte is even, in pieces of
/// as many bytes as the second byte says. Whatever it is, everything that is answered is a reply, and the
/// conversation can end.
pub fn session(bytes: &[u8]) {
    let [mode, step, bytes @ ..] = bytes else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        let mut talk = Talk::new();
        if mode % 2 == 0 {
            talk.greet();
        }
        for piece in bytes.chunks(usize::from(*step).max(1)) {
            talk.hear(piece);
        }
        talk.end().await;
    });
}

/// A conversation without a socket.
struct Talk {
    session: Session,
    said: Decoder,
    has_preface: bool,
}

impl Talk {
    fn new() -> Self {
        let create = CreatePolicy { auto_create: true, spec: StreamSpec::memory(2) };
        let broker = Broker::open(BrokerOptions { create, ..BrokerOptions::memory() });
        let resolved = Options::default().limits();
        let core = Core {
            broker: broker.expect("a broker in memory reads nothing"),
            tokens: None,
            limits: resolved.expect("the defaults hold together"),
            stats: Stats::new(1),
        };
        let session = Session::new(Arc::new(core), 0, Rc::new(Account::new(None)));
        Self { session, said: Decoder::with_max(usize::MAX), has_preface: false }
    }

    fn greet(&mut self) {
        let mut greeting = BytesMut::from(&Preface::new(Capabilities::ALL).encode()[..]);
        let hello = request::Hello {
            token: None,
            tenant: None,
            client: "fuzz".to_owned(),
            required: Capabilities::STREAMS,
            max_frame_bytes: 1 << 20,
        };
        Request::from(hello).encode(1).append_to(&mut greeting);
        self.hear(&greeting);
    }

    /// Takes a piece of what a client sends, and lets the session do what it can.
    fn hear(&mut self, piece: &[u8]) {
        if self.session.wants_input() {
            self.session.input().extend_from_slice(piece);
            self.session.received(piece.len());
        }
        self.round();
    }

    fn round(&mut self) {
        let _ = self.session.poll(&mut Context::from_waker(Waker::noop()));
        self.listen();
    }

    /// Everything that is said is the preface, and then replies.
    fn listen(&mut self) {
        let outbox = self.session.output();
        let bytes = outbox.len();
        let (mut count, mut taken) = (0, 0);
        for chunk in outbox.chunks() {
            self.said.buffer().extend_from_slice(chunk);
            count += 1;
            taken += chunk.len();
        }
        assert_eq!(taken, bytes, "the outbox counts its bytes");
        outbox.took(count, taken);
        self.session.sent(taken);
        if !self.has_preface && self.said.buffered() >= PREFACE_LEN {
            self.has_preface = self.said.preface().expect("our own preface").is_some();
        }
        while let Some(frame) = self.said.next_frame().expect("our own frames") {
            let _: Reply = Reply::decode(&frame).expect("our own replies");
        }
    }

    /// The client says no more: what is under way is answered, and then it is over.
    async fn end(mut self) {
        self.session.leave();
        for _ in 0..ROUNDS_TO_END {
            self.round();
            if self.session.is_done() {
                return;
            }
            // What may block is done by a thread of its own.
            tokio::time::sleep(std::time::Duration::from_micros(50)).await;
        }
        panic!("a conversation that was left does not come to its end");
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use trifid_stream_model::batch::{BatchBuilder, BuildOptions, RecordData};
    use trifid_stream_model::frame::{
        Ack, CacheOp, Expect, JoinSettings, OffsetRange, Page, Policy, Start, Ttl,
    };
    use trifid_stream_model::names::{CacheName, GroupName, StreamName};
    use trifid_stream_model::spec::CacheSpec;

    use super::*;

    fn batch() -> Bytes {
        let mut builder = BatchBuilder::new(BuildOptions::default());
        builder.append(&RecordData { value: Some(b"v"), ..RecordData::default() }).unwrap();
        builder.finish(None).unwrap().unwrap()
    }

    /// A bit of everything.
    fn script() -> Vec<Request> {
        let stream = || StreamName::new("s").unwrap();
        let group = || GroupName::new("g").unwrap();
        let page = || Page { after: String::new(), limit: 3 };
        let key = || Bytes::from_static(b"k");
        let ranges = || vec![OffsetRange { stream: 0, shard: 0, first: 0, last: 0 }];
        let publish = |ack| request::Publish { handle: 0, shard: 0, epoch: 0, ack, batches: batch() };
        let settings = JoinSettings {
            ack_timeout_ms: 1000,
            max_deliveries: 2,
            dead_letter: None,
            start: Start::Earliest,
        };
        vec![
            request::Open { name: stream() }.into(),
            Request::Publish(publish(Ack::One)),
            Request::Publish(publish(Ack::None)),
            request::Subscribe {
                stream: stream(),
                shard: None,
                start: Start::Earliest,
                resume: Vec::new(),
                policy: Policy::DropOld,
                budget_bytes: 100,
                credit_bytes: 100,
                max_frame_bytes: 0,
            }
            .into(),
            request::Credit { subscription: 4, bytes: 1000 }.into(),
            request::ListStreams { prefix: String::new(), page: page() }.into(),
            request::OffsetFor { stream: stream(), shard: None, at: Start::Time(5) }.into(),
            request::InitProducer { renew: None }.into(),
            request::GroupJoin { group: group(), client: String::new(), streams: vec![stream()], settings }
                .into(),
            request::GroupPull { handle: 0, max_records: 5, max_bytes: 500, wait_ms: 0 }.into(),
            request::GroupNack { handle: 0, delay_ms: 0, ranges: ranges() }.into(),
            request::GroupAck { handle: 0, ranges: ranges() }.into(),
            request::GroupDescribe { group: group() }.into(),
            request::GroupLeave { handle: 0 }.into(),
            request::FetchOffsets { group: group(), stream: None }.into(),
            request::CacheCreate { name: CacheName::new("c").unwrap(), spec: CacheSpec::default() }.into(),
            request::CacheOpen { name: CacheName::new("c").unwrap() }.into(),
            request::CacheWatch { handle: 0, key: key(), prefix: true, credit_bytes: 50 }.into(),
            request::CachePut { handle: 0, key: key(), value: key(), ttl: Ttl::Ms(1), expect: Expect::Any }
                .into(),
            request::CacheBatch { handle: 0, ops: vec![CacheOp::Get { key: key() }] }.into(),
            request::CacheScan { handle: 0, prefix: key(), after: key(), limit: 9, keys_only: true }.into(),
            request::Unsubscribe { subscription: 4 }.into(),
            request::DeleteStream { name: stream() }.into(),
            request::Ping { nonce: 1 }.into(),
        ]
    }

    fn bytes_of(script: &[Request]) -> Vec<u8> {
        let frames = (1..).zip(script).map(|(id, request)| request.encode(id).into_bytes());
        frames.flatten().collect()
    }

    #[test]
    fn a_whole_script_comes_to_its_end() {
        for step in [1, 7, 255] {
            let mut input = vec![0, step];
            input.extend(bytes_of(&script()));
            session(&input);
        }
    }

    /// Every input of the corpus, on the stable toolchain.
    #[test]
    fn the_corpus_is_read() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/stream_session");
        let mut count = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            session(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count > 0);
    }

    /// Writes the corpus anew: `cargo test -p trifid-stream-face write_the_corpus -- --ignored`.
    #[test]
    #[ignore = "writes files"]
    fn write_the_corpus() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/stream_session");
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: String, script: &[Request]| {
            let mut input = vec![0, 255];
            input.extend(bytes_of(script));
            std::fs::write(folder.join(name), input).unwrap();
        };
        write("whole".to_owned(), &script());
        for (at, some) in script().chunks(6).enumerate() {
            write(format!("part-{at}"), some);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// Requests in any order, some of their bytes changed.
        #[test]
        fn a_script_that_is_torn_comes_to_its_end(
            order in proptest::collection::vec(any::<prop::sample::Index>(), 1..30),
            flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            step: u8,
        ) {
            let all = script();
            let chosen: Vec<Request> = order.iter().map(|at| at.get(&all).clone()).collect();
            let mut input = vec![0, step];
            input.extend(bytes_of(&chosen));
            for (at, byte) in flips {
                let at = at.index(input.len() - 2) + 2;
                input[at] = byte;
            }
            session(&input);
        }

        #[test]
        fn any_bytes_come_to_their_end(input in proptest::collection::vec(any::<u8>(), 0..300)) {
            session(&input);
        }
    }
}
