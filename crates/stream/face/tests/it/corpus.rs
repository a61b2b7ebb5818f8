//! One script of requests, over both transports: the answers are the same.

use bytes::Bytes;
use trifid_stream_client::{Policy, Start, StreamName, StreamSpec};
use trifid_stream_model::frame::{Ack, Page, Reply, Request, ShardOffset, request};

use crate::harness::{BOTH, House, on_runtime};
use crate::raw::{Raw, batch};

fn script() -> Vec<Request> {
    let name = |name: &str| StreamName::new(name).unwrap();
    let page = |limit| Page { after: String::new(), limit };
    let publish =
        |handle, shard, epoch, ack, batches| request::Publish { handle, shard, epoch, ack, batches };
    let mut damaged = batch(&[b"d"]).to_vec();
    damaged[70 - 5] ^= 0x40;
    let two = [batch(&[b"one", b"two"]), batch(&[b"three"])].concat();
    let subscribe = |start, resume, credit_bytes| request::Subscribe {
        stream: name("c.log"),
        shard: None,
        start,
        resume,
        policy: Policy::Block,
        budget_bytes: 1 << 20,
        credit_bytes,
        max_frame_bytes: 0,
    };
    vec![
        request::Ping { nonce: 1 }.into(),
        request::CreateStream { name: name("c.log"), spec: StreamSpec::memory(2) }.into(),
        request::CreateStream { name: name("c.log"), spec: StreamSpec::memory(2) }.into(),
        request::CreateStream { name: name("c.log"), spec: StreamSpec::memory(3) }.into(),
        request::CreateStream { name: name("_internal.log"), spec: StreamSpec::memory(1) }.into(),
        request::ListStreams { prefix: String::new(), page: page(1) }.into(),
        request::ListStreams { prefix: "x".to_owned(), page: page(0) }.into(),
        request::DescribeStream { name: name("c.log") }.into(),
        request::DescribeStream { name: name("c.none") }.into(),
        request::Open { name: name("c.log") }.into(),
        request::Open { name: name("c.log") }.into(),
        request::Open { name: name("c.none") }.into(),
        Request::Publish(publish(0, 0, 0, Ack::One, batch(&[b"zero"]))),
        Request::Publish(publish(0, 0, 0, Ack::One, two.into())),
        Request::Publish(publish(0, 1, 0, Ack::None, batch(&[b"quiet"]))),
        Request::Publish(publish(0, 9, 0, Ack::One, batch(&[b"x"]))),
        Request::Publish(publish(5, 0, 0, Ack::One, batch(&[b"x"]))),
        Request::Publish(publish(0, 0, 1234, Ack::One, batch(&[b"x"]))),
        Request::Publish(publish(0, 0, 0, Ack::One, damaged.into())),
        Request::Publish(publish(0, 0, 0, Ack::One, Bytes::new())),
        Request::Publish(publish(
            0,
            0,
            0,
            Ack::One,
            Bytes::from_static(b"no batch at all, but long enough for one"),
        )),
        request::OffsetFor { stream: name("c.log"), shard: None, at: Start::Latest }.into(),
        request::OffsetFor { stream: name("c.log"), shard: Some(0), at: Start::Time(0) }.into(),
        request::OffsetFor { stream: name("c.log"), shard: Some(7), at: Start::Earliest }.into(),
        subscribe(Start::Offset(99), Vec::new(), 0).into(),
        subscribe(Start::Earliest, vec![ShardOffset { shard: 0, offset: 2 }], 0).into(),
        subscribe(Start::Time(0), Vec::new(), 0).into(),
        request::InitProducer { renew: Some(3) }.into(),
        request::Credit { subscription: 4711, bytes: 1 }.into(),
        request::Unsubscribe { subscription: 4711 }.into(),
        request::DeleteStream { name: name("c.none") }.into(),
        request::DeleteStream { name: name("_internal.log") }.into(),
        request::Ping { nonce: 2 }.into(),
    ]
}

#[test]
fn both_transports_give_the_same_answers() {
    let mut all: Vec<Vec<(u32, Reply)>> = Vec::new();
    for scheme in BOTH {
        let house = House::new();
        on_runtime(async {
            let mut raw = Raw::connect(&house, scheme).await;
            raw.greet().await;
            let mut answers = Vec::new();
            for request in script() {
                let is_answered = request.is_answered();
                let id = raw.send(request).await;
                if is_answered {
                    let (answered, reply) = raw.read().await.unwrap();
                    assert_eq!(answered, id, "{reply:?}");
                    answers.push((id, reply));
                }
            }
            all.push(answers);
        });
    }
    assert_eq!(all[0], all[1]);
    let refusals = all[0].iter().filter(|(_, reply)| matches!(reply, Reply::Error(_))).count();
    assert!((10..all[0].len() - 10).contains(&refusals), "{:#?}", all[0]);
}
