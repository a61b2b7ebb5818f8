//! Produce: publish at once, answer when the records are as durable as their stream promises.
//!
//! `acks=1` and `acks=all` wait for the same thing, which the stream's durability says; there are no replicas to tell
//! them apart. `acks=0` has no answer: a refusal closes the connection, which is all that can be said.
//!
//! Records are a slice of the request. A large request has a buffer of its own, and nothing else holds it by the time
//! the engine writes the offset into the batch: so the one batch of a large request is not copied on its way into the
//! stream. That is why topics are looked up, and their names let go of, before anything is published.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use kafka_protocol::ResponseError;
use smallvec::SmallVec;
use trifid_stream_engine::{Ack, Admitted, Checked, PublishError, Shard};
use trifid_stream_model::limits::BATCH_BYTES_MAX;

use super::caller::Caller;
use super::{Answer, Started, codes};
use crate::server::{Counts, End};
use crate::wire::produce::{Outcome, Terms, read, write};

/// A request whose records are published.
pub(crate) struct Producing {
    fared: Fared,
    /// What is waited for, the last first: which outcome, and its acknowledgement.
    acks: SmallVec<[(usize, Ack); 1]>,
}

/// How a request fared.
#[derive(Debug)]
pub(crate) struct Fared {
    version: i16,
    correlation: i32,
    acks: i16,
    outcomes: SmallVec<[Outcome; 1]>,
}

impl Fared {
    pub(crate) fn write(&self, out: &mut BytesMut) {
        write(out, self.version, self.correlation, &self.outcomes);
    }
}

impl Producing {
    /// Asks whether every acknowledgement is there.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        while let Some((at, ack)) = self.acks.last_mut() {
            let Poll::Ready(fate) = Pin::new(ack).poll(cx) else { return Poll::Pending };
            if let (Err(failure), Some(outcome)) = (fate, self.fared.outcomes.get_mut(*at)) {
                outcome.refuse(codes::commit(failure), failure.to_string());
            }
            self.acks.pop();
        }
        Poll::Ready(self.answer())
    }

    fn answer(&mut self) -> Answer {
        let fared = &mut self.fared;
        if fared.acks != 0 {
            let outcomes = std::mem::take(&mut fared.outcomes);
            return Answer::Produced(Fared { outcomes, ..*fared });
        }
        let is_well = fared.outcomes.iter().all(|outcome| outcome.code == 0);
        if is_well { Answer::Nothing } else { Answer::End(End::Unacknowledged) }
    }
}

/// One partition's records, and where they go.
struct Part {
    topic: Bytes,
    index: i32,
    records: Bytes,
    target: Result<Arc<Shard>, ResponseError>,
}

/// Publishes the records of a request whose shape has been checked. Gives `whole` back if the connection has so much
/// unacknowledged that the request has to wait for that; without `whole`, it is refused.
pub(crate) fn start(
    caller: &Rc<Caller>,
    (version, correlation): (i16, i32),
    body: Bytes,
    whole: Option<Bytes>,
    counts: &Counts,
) -> Result<Started, End> {
    let (terms, parts) = read_parts(caller, body, version)?;
    let refusal = refusal(caller, terms);
    let admitted = match refusal {
        Some(_) => Ok(SmallVec::new()),
        None => admit(caller, &parts),
    };
    if let (Err(_), Some(whole)) = (&admitted, &whole) {
        return Ok(Started::Postponed(whole.clone()));
    }
    drop(whole);
    let fared =
        Fared { version, correlation, acks: terms.acks, outcomes: SmallVec::with_capacity(parts.len()) };
    let mut producing = Producing { fared, acks: SmallVec::with_capacity(parts.len()) };
    match (refusal, admitted) {
        (Some(error), _) => producing.refuse_all(parts, error, "", counts),
        (None, Err(error)) => {
            counts.overloaded.add(parts.len() as u64);
            producing.refuse_all(parts, codes::publish(&error), &error.to_string(), counts);
        }
        (None, Ok(admitted)) => {
            for (part, admitted) in parts.into_iter().zip(admitted) {
                producing.publish(caller, part, admitted, counts);
            }
        }
    }
    // The last is popped first.
    producing.acks.reverse();
    Ok(Started::Producing(producing))
}

fn read_parts(caller: &Caller, body: Bytes, version: i16) -> Result<(Terms, SmallVec<[Part; 1]>), End> {
    let mut terms = Terms { is_transactional: false, acks: 0 };
    let mut parts: SmallVec<[Part; 1]> = SmallVec::new();
    let begin = |read| terms = read;
    read(body, version, begin, |topic, index, records| {
        let (topic, target) = match caller.remembered(topic, index) {
            Ok((topic, shard)) => (topic, Ok(shard)),
            Err(error) => (Bytes::copy_from_slice(topic), Err(error)),
        };
        parts.push(Part { topic, index, records: records.unwrap_or_default(), target });
    })?;
    Ok((terms, parts))
}

/// Why nothing of a request is taken.
fn refusal(caller: &Caller, terms: Terms) -> Option<ResponseError> {
    if !caller.may_write() {
        return Some(ResponseError::TopicAuthorizationFailed);
    }
    if terms.is_transactional {
        return Some(ResponseError::TransactionalIdAuthorizationFailed);
    }
    (!(-1..=1).contains(&terms.acks)).then_some(ResponseError::InvalidRequiredAcks)
}

/// Memory for every part, or for none.
fn admit(caller: &Caller, parts: &[Part]) -> Result<SmallVec<[Admitted; 1]>, PublishError> {
    let all = parts.iter().map(|part| caller.budget.admit(part.records.len()));
    Ok(all.collect::<Result<_, _>>()?)
}

impl Producing {
    fn publish(&mut self, caller: &Caller, part: Part, admitted: Admitted, counts: &Counts) {
        let Part { topic, index, records, target } = part;
        let shard = match target {
            Ok(found) => found,
            Err(error) => return self.refuse(topic, index, error, None, counts),
        };
        // The shard itself knows the largest batch that its stream takes today.
        let checked = Checked::payload(&records, BATCH_BYTES_MAX);
        drop(records);
        let published = checked.map_err(PublishError::from).and_then(|checked| {
            let (batches, bytes) = (checked.batches() as u64, checked.bytes() as u64);
            let published = shard.publish(checked, admitted)?;
            counts.batches_in.add(batches);
            counts.bytes_in.add(bytes);
            Ok(published)
        });
        match published {
            Ok(published) => {
                let outcome = Outcome {
                    topic,
                    index,
                    code: 0,
                    base_offset: signed(published.base_offset),
                    log_start: signed(published.log_start),
                    message: None,
                };
                if !published.ack.is_ready() {
                    self.acks.push((self.fared.outcomes.len(), published.ack));
                }
                self.fared.outcomes.push(outcome);
            }
            Err(error) => {
                match error {
                    PublishError::Overloaded { .. } => counts.overloaded.bump(),
                    PublishError::Deleted => caller.forget(),
                    _ => {}
                }
                self.refuse(topic, index, codes::publish(&error), Some(error.to_string()), counts);
            }
        }
    }

    fn refuse(
        &mut self,
        topic: Bytes,
        index: i32,
        error: ResponseError,
        message: Option<String>,
        counts: &Counts,
    ) {
        counts.refused.bump();
        self.fared.outcomes.push(Outcome::refused(topic, index, error.code(), message));
    }

    fn refuse_all(
        &mut self,
        parts: SmallVec<[Part; 1]>,
        error: ResponseError,
        message: &str,
        counts: &Counts,
    ) {
        for part in parts {
            let message = (!message.is_empty()).then(|| message.to_owned());
            self.refuse(part.topic, part.index, error, message, counts);
        }
    }
}

/// An offset as the protocol writes it.
fn signed(offset: u64) -> i64 {
    i64::try_from(offset).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use trifid_stream_engine::Tail;
    use trifid_stream_model::batch::{BatchBuilder, BuildOptions, RecordData};
    use trifid_stream_model::names::{StreamName, Tenant};

    use super::*;
    use crate::api::Session;
    use crate::fuzz::worker;
    use crate::samples::framed;

    fn request(value: &[u8]) -> Bytes {
        use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
        use kafka_protocol::messages::{ApiKey, ProduceRequest, TopicName};
        use kafka_protocol::protocol::{Encodable as _, StrBytes};
        let mut builder = BatchBuilder::new(BuildOptions::default());
        builder.append(&RecordData { value: Some(value), ..RecordData::default() }).unwrap();
        let records = builder.finish(None).unwrap();
        let topic = TopicProduceData::default()
            .with_name(TopicName(StrBytes::from_static_str("orders")))
            .with_partition_data(vec![PartitionProduceData::default().with_records(records)]);
        let mut body = BytesMut::new();
        let request =
            ProduceRequest::default().with_transactional_id(None).with_acks(-1).with_topic_data(vec![topic]);
        request.encode(&mut body, 9).unwrap();
        framed(ApiKey::Produce, 9, &body)
    }

    #[test]
    fn the_batch_of_a_large_request_is_not_copied_in_nor_out() {
        let worker = worker().unwrap();
        let address = ([127, 0, 0, 1], 9092).into();
        let mut session = Session::new(&worker, address, address);
        let frame = request(&[7; 100_000]);
        let place = frame.as_ptr_range();
        let mut started = session.start(frame, &worker);
        let answer = started.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(answer, Poll::Ready(Answer::Produced(_))));
        let name = StreamName::new("orders").unwrap();
        let stream = worker.shared.broker.stream(&Tenant::default(), &name).unwrap();
        let Tail::Batches(found) = stream.shards()[0].try_fetch_tail(0, 1) else { panic!("nothing there") };
        let stored = &found.batches[0].bytes;
        assert!(place.contains(&stored.as_ptr()), "stored where it was read");

        let wanted = crate::wire::fetch::Given {
            topic: crate::wire::fetch::Topic::Name(Bytes::from_static(b"orders")),
            index: 0,
            code: 0,
            end: 1,
            start: 0,
            batches: vec![stored.clone()],
        };
        let mut pieces = Vec::new();
        crate::wire::fetch::write(&mut BytesMut::new(), 12, 1, 0, &[wanted], |piece| pieces.push(piece));
        assert!(pieces.iter().any(|piece| piece.as_ptr() == stored.as_ptr()), "and sent from there");
    }
}
