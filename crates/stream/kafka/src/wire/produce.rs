//! Produce by hand: records are slices of the request, and the answer is written without a structure in between.

use bytes::{Bytes, BytesMut};
use kafka_protocol::ResponseError;

use super::Malformed;
use super::reader::Reader;
use super::writer::{Writer, close};

/// The first version with compact lengths.
const FLEXIBLE_SINCE: i16 = 9;

/// What a produce request says besides its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) is_transactional: bool,
    /// 0: no answer; 1 or -1: when the records are as durable as their stream promises.
    pub(crate) acks: i16,
}

/// Reads a request, showing each partition's records to `take` in their order. The request's shape has been checked.
pub(crate) fn read(
    body: Bytes,
    version: i16,
    mut begin: impl FnMut(Terms),
    mut take: impl FnMut(&Bytes, i32, Option<Bytes>),
) -> Result<(), Malformed> {
    let mut reader = Reader::new(body, version >= FLEXIBLE_SINCE);
    let is_transactional = reader.text()?.is_some();
    let acks = reader.i16()?;
    let _timeout_ms = reader.i32()?;
    begin(Terms { is_transactional, acks });
    for _ in 0..reader.count()? {
        let topic = reader.text()?.unwrap_or_default();
        for _ in 0..reader.count()? {
            let index = reader.i32()?;
            let records = reader.bytes()?;
            reader.tags(|_, _| ())?;
            take(&topic, index, records);
        }
        reader.tags(|_, _| ())?;
    }
    reader.tags(|_, _| ())
}

/// How one partition of a request fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) topic: Bytes,
    pub(crate) index: i32,
    pub(crate) code: i16,
    /// The offset of the first record; -1 where there is none.
    pub(crate) base_offset: i64,
    pub(crate) log_start: i64,
    /// Why it was refused, for whoever reads the client's log.
    pub(crate) message: Option<String>,
}

impl Outcome {
    pub(crate) fn refused(topic: Bytes, index: i32, code: i16, message: Option<String>) -> Self {
        Self { topic, index, code, base_offset: -1, log_start: -1, message }
    }

    /// Turns it into a refusal.
    pub(crate) fn refuse(&mut self, error: ResponseError, message: String) {
        (self.code, self.base_offset, self.message) = (error.code(), -1, Some(message));
    }
}

/// Writes the answer: outcomes of one topic follow each other.
pub(crate) fn write(out: &mut BytesMut, version: i16, correlation: i32, outcomes: &[Outcome]) {
    let start = out.len();
    let mut writer = Writer::new(out, version >= FLEXIBLE_SINCE);
    writer.head(correlation);
    let topics = || outcomes.chunk_by(|one, next| one.topic == next.topic);
    writer.length(topics().count());
    for partitions in topics() {
        writer.text(partitions.first().map_or(&[], |first| &first.topic));
        writer.length(partitions.len());
        for outcome in partitions {
            partition(&mut writer, version, outcome);
        }
        writer.tags();
    }
    writer.i32(0); // throttle_time_ms: nobody is throttled, a refusal says so
    writer.tags();
    close(out, start, 0);
}

fn partition(writer: &mut Writer<'_>, version: i16, outcome: &Outcome) {
    writer.i32(outcome.index);
    writer.i16(outcome.code);
    writer.i64(outcome.base_offset);
    writer.i64(-1); // log_append_time_ms: records keep the time of their producer
    if version >= 5 {
        writer.i64(outcome.log_start);
    }
    if version >= 8 {
        writer.length(0); // record_errors: a batch is taken or refused as a whole
        match &outcome.message {
            Some(message) => writer.text(message.as_bytes()),
            None => writer.no_text(),
        }
    }
    writer.tags();
}
