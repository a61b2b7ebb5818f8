//! Setting records aside: they are published to the dead-letter stream like any other record, with headers
//! that tell where they come from, and are done when that counts.
//!
//! ```text
//!  trifid-stream      the stream that they come from
//!  trifid-shard       its shard
//!  trifid-offset      the offset there
//!  trifid-deliveries  how often they were delivered
//!  trifid-reason      ack-timeout, nack, member-lost
//!  trifid-group       the group
//! ```
//!
//! Numbers are decimal text. Key, value, time and headers stay as they are. A batch that cannot be opened
//! (damaged, or compressed in a way that this build does not read) is set aside whole, as the value of one
//! record with the header `trifid-batch`, for each range.

use std::sync::Arc;

use bytes::Bytes;
use trifid_stream_model::batch::{BatchBuilder, BuildError, BuildOptions, RecordData, Rules, open};
use trifid_stream_model::limits::{BATCH_BYTES_MAX, HEADERS_PER_RECORD_MAX, INFLATED_BYTES_DEFAULT};
use trifid_stream_model::names::StreamName;

use super::window::{Range, Reason, State};
use crate::ack::Ack;
use crate::admission::Admitted;
use crate::checked::Checked;
use crate::error::{FetchError, PublishError};
use crate::shard::Shard;
use crate::stream::Stream;

/// Records of one shard that were delivered too often.
pub(super) struct Dead {
    pub(super) place: u64,
    pub(super) stream: StreamName,
    pub(super) number: u32,
    pub(super) shard: Arc<Shard>,
    pub(super) start: u64,
    pub(super) range: Range,
}

/// What became of them.
pub(super) enum Fate {
    /// They are being published: up to here, done when this counts.
    Published { end: u64, ack: Ack },
    /// Retention took them, up to here.
    Lost { end: u64 },
    /// There are none, up to here: compaction took them, or their stream is gone.
    Vanished { end: u64 },
    /// The dead-letter stream does not take them, up to here, and never will.
    Refused { end: u64 },
    /// Not now: the disk is full, or too much is under way.
    Later,
}

impl Dead {
    pub(super) fn reason(&self) -> Reason {
        match self.range.state {
            State::Dead { reason } => reason,
            State::Leased { .. } | State::Waiting { .. } | State::Leaving | State::Done => Reason::Refused,
        }
    }

    /// Publishes the records of the range that lie in its first batch. May wait for the disk.
    pub(super) fn publish(&self, to: &Stream, group: &str, now_ms: i64) -> Fate {
        let entry = match self.shard.fetch(self.start, 1) {
            Ok(fetched) => match fetched.batches.into_iter().next() {
                Some(entry) => entry,
                None => return Fate::Vanished { end: fetched.next.clamp(self.start + 1, self.range.end) },
            },
            Err(FetchError::TooOld { first }) => {
                return Fate::Lost { end: first.clamp(self.start + 1, self.range.end) };
            }
            Err(FetchError::Gone | FetchError::InFuture { .. }) => {
                return Fate::Vanished { end: self.range.end };
            }
            Err(error) => {
                tracing::error!(stream = %self.stream, shard = self.number, offset = self.start, %error,
                    "a record that was delivered too often cannot be read");
                return Fate::Later;
            }
        };
        if entry.base > self.start {
            return Fate::Vanished { end: entry.base.min(self.range.end) };
        }
        let end = entry.end.min(self.range.end);
        match self.send(&entry.bytes, end, to, group, now_ms) {
            Ok(Some(ack)) => Fate::Published { end, ack },
            Ok(None) => Fate::Vanished { end },
            Err(error @ (PublishError::TooLarge { .. } | PublishError::Invalid(_))) => {
                tracing::error!(stream = %self.stream, shard = self.number, offset = self.start, %error,
                    "the dead-letter stream does not take a record, which is passed over");
                Fate::Refused { end }
            }
            Err(error) => {
                tracing::debug!(stream = %to.name(), %error, "records cannot be set aside yet");
                Fate::Later
            }
        }
    }

    fn send(
        &self,
        batch: &Bytes,
        end: u64,
        to: &Stream,
        group: &str,
        now_ms: i64,
    ) -> Result<Option<Ack>, PublishError> {
        let labels = Labels::of(self, group);
        let limit = BATCH_BYTES_MAX.min(to.spec().max_batch_bytes as usize);
        let batches = match labels.relabel(batch, self.start, end, limit) {
            Some(batches) => batches,
            None => labels.wrap(batch, self.start, now_ms).map_err(|_| PublishError::Failed)?,
        };
        let shard = to.shard(0).ok_or(PublishError::Deleted)?;
        let mut last = None;
        for batch in batches {
            let checked = Checked::batch(batch, Rules::PRODUCED.max_bytes(BATCH_BYTES_MAX))?;
            // Acknowledgements of a shard come in order: the last stands for all.
            last = Some(shard.publish(checked, Admitted::unmetered())?.ack);
        }
        Ok(last)
    }
}

/// The headers that tell where a record comes from.
struct Labels<'a> {
    stream: &'a str,
    group: &'a str,
    shard: String,
    deliveries: String,
    reason: &'static str,
}

type Fields<'a> = Vec<(&'a str, Option<&'a [u8]>)>;

impl<'a> Labels<'a> {
    fn of(dead: &'a Dead, group: &'a str) -> Self {
        Labels {
            stream: dead.stream.as_str(),
            group,
            shard: dead.number.to_string(),
            deliveries: dead.range.attempt.to_string(),
            reason: dead.reason().name(),
        }
    }

    fn fields<'b>(&'b self, offset: &'b str) -> Fields<'b> {
        let fields = [
            ("trifid-stream", self.stream),
            ("trifid-shard", &self.shard),
            ("trifid-offset", offset),
            ("trifid-deliveries", &self.deliveries),
            ("trifid-reason", self.reason),
            ("trifid-group", self.group),
        ];
        fields.into_iter().map(|(name, value)| (name, Some(value.as_bytes()))).collect()
    }

    /// The records of the range, as batches for the dead-letter stream; `None`: the batch does not open.
    fn relabel(&self, batch: &Bytes, start: u64, end: u64, max_bytes: usize) -> Option<Vec<Bytes>> {
        let opened = open(batch, INFLATED_BYTES_DEFAULT).ok()?;
        let mut batches = Batches::new(max_bytes);
        for record in opened.records() {
            let record = record.ok()?;
            if !(start..end).contains(&record.offset) {
                continue;
            }
            let offset = record.offset.to_string();
            let mut fields = self.fields(&offset);
            let room = HEADERS_PER_RECORD_MAX - fields.len();
            // The names of headers are text in all clients; one that is not is not carried over.
            let own = record.headers.filter_map(|h| Some((std::str::from_utf8(h.key).ok()?, h.value)));
            fields.extend(own.take(room));
            let time = record.timestamp.max(0);
            batches.push(&RecordData { timestamp: time, ..record.to_data(&fields) }).ok()?;
        }
        batches.finish().ok()
    }

    fn wrap(&self, batch: &Bytes, offset: u64, now_ms: i64) -> Result<Vec<Bytes>, BuildError> {
        let offset = offset.to_string();
        let mut fields = self.fields(&offset);
        fields.push(("trifid-batch", Some(b"1")));
        let mut batches = Batches::new(BATCH_BYTES_MAX);
        batches.push(&RecordData {
            timestamp: now_ms.max(0),
            key: None,
            value: Some(batch),
            headers: &fields,
        })?;
        batches.finish()
    }
}

/// Records in as many batches as they need.
struct Batches {
    builder: BatchBuilder,
    done: Vec<Bytes>,
}

impl Batches {
    fn new(max_bytes: usize) -> Self {
        let builder = BatchBuilder::new(BuildOptions { max_bytes, ..BuildOptions::default() });
        Batches { builder, done: Vec::new() }
    }

    fn push(&mut self, record: &RecordData<'_>) -> Result<(), BuildError> {
        match self.builder.append(record) {
            Err(BuildError::Full) => {
                self.done.extend(self.builder.finish(None)?);
                self.builder.append(record).map(drop)
            }
            appended => appended.map(drop),
        }
    }

    fn finish(mut self) -> Result<Vec<Bytes>, BuildError> {
        self.done.extend(self.builder.finish(None)?);
        Ok(self.done)
    }
}
