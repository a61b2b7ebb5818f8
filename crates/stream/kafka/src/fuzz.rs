//! An entry point for fuzzing: whatever a connection sends is answered in whole frames, or ends the connection.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bytes::{Bytes, BytesMut};
use tokio::runtime::{Builder, LocalOptions};
use trifid_base_web::auth;
use trifid_stream_engine::{Broker, CreatePolicy, Limits, Options as EngineOptions};
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::StreamSpec;

use crate::api::{Answer, Session, Started};
use crate::options::Options;
use crate::server::{Outbox, Shared, Worker};
use crate::wire::frame::{Next, next};

/// Requests that one input is read as.
const REQUESTS_MAX: usize = 32;

/// How often a request that waits is asked again before it is left, as if its client had gone.
const PATIENCE: usize = 64;

/// Reads `data` as what a connection sends: frames, of which each is begun and waited for a little. The broker has
/// one stream, `orders`, and makes others on first use.
///
/// # Panics
/// When an answer is not a whole frame, which is a defect.
pub fn requests(data: &[u8]) {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let Ok(runtime) = runtime else { return };
    runtime.block_on(async {
        if let Some(worker) = worker() {
            converse(&worker, data).await;
        }
    });
}

/// A worker over a broker in memory.
pub(crate) fn worker() -> Option<Rc<Worker>> {
    let options = EngineOptions {
        create: CreatePolicy { auto_create: true, spec: StreamSpec::memory(1) },
        limits: Limits { streams_max: 16, ..Limits::default() },
        ..EngineOptions::memory()
    };
    let broker = Broker::open(options).ok()?;
    broker.create(&Tenant::default(), &StreamName::new("orders").ok()?, StreamSpec::memory(2)).ok()?;
    let resolved = Options::default().resolve(&auth::Options::default()).ok()?;
    Some(Worker::new(0, Shared::new(resolved, broker, None)))
}

async fn converse(worker: &Rc<Worker>, data: &[u8]) {
    let address = ([127, 0, 0, 1], 9092).into();
    let mut session = Session::new(worker, address, address);
    let mut input = BytesMut::from(data);
    for _ in 0..REQUESTS_MAX {
        let limit = session.request_bytes_max(&worker.shared);
        let Ok(Next::Frame(frame)) = next(&mut input, limit) else { return };
        let mut started = session.start(frame, worker);
        if let Started::Postponed(frame) = started {
            started = session.start_refusing(frame, worker);
        }
        match wait(started).await {
            Some(Answer::End(_)) => return,
            Some(answer) => check(answer),
            None => {}
        }
    }
}

/// The answer, if it comes soon.
async fn wait(mut started: Started) -> Option<Answer> {
    for _ in 0..PATIENCE {
        let answer = poll_fn(|cx| match started.poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => Poll::Ready(None),
        });
        if let Some(answer) = answer.await {
            return Some(answer);
        }
        // What touches the disk is on another thread.
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
    None
}

/// An answer is one frame, as long as it says.
fn check(answer: Answer) {
    let mut outbox = Outbox::default();
    match answer {
        Answer::Frame(frame) | Answer::Last(frame, _) => outbox.push(frame),
        Answer::Produced(produced) => outbox.write(|out, _| produced.write(out)),
        Answer::Fetched(fetched) => outbox.write(|out, piece| fetched.write(out, piece)),
        Answer::Nothing | Answer::End(_) => return,
    }
    let mut written = Vec::new();
    let sent = pin!(poll_fn(|cx| outbox.poll_flush(&mut written, cx)));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(matches!(sent.poll(&mut cx), Poll::Ready(Ok(()))), "memory takes everything");
    let mut written = BytesMut::from(&*written);
    assert!(matches!(next(&mut written, usize::MAX), Ok(Next::Frame(_))), "an answer is a whole frame");
    assert!(written.is_empty(), "and nothing follows it");
}

/// A request with its length, for corpora.
pub fn framed(request: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(request.len() + 4);
    out.extend_from_slice(&i32::try_from(request.len()).unwrap_or(i32::MAX).to_be_bytes());
    out.extend_from_slice(request);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{framed, requests};
    use crate::api::table::APIS;
    use crate::samples;

    fn sample(pick: usize) -> Vec<u8> {
        let versions =
            APIS.iter().flat_map(|api| (api.oldest..=api.newest).map(|version| (api.key, version)));
        let all: Vec<_> = versions.collect();
        let (key, version) = all[pick % all.len()];
        framed(&samples::framed(key, version, &samples::body(key, version))).to_vec()
    }

    #[test]
    fn every_sample_is_answered() {
        (0..200).for_each(|pick| requests(&sample(pick)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn damaged_requests_are_survived(
            picks in proptest::collection::vec(any::<prop::sample::Index>(), 1..4),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut bytes: Vec<u8> = picks.iter().flat_map(|pick| sample(pick.index(200))).collect();
            for (at, byte) in damage {
                // The length stays, so that the damage is looked at and not just waited for.
                let at = 4 + at.index(bytes.len() - 4);
                bytes[at] = byte;
            }
            requests(&bytes);
        }

        #[test]
        fn anything_at_all_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            requests(&bytes);
            requests(&framed(&bytes));
        }
    }
}
