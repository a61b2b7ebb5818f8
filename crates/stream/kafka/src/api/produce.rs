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
