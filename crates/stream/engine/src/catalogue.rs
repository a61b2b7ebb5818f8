//! Which streams there are, durably.
//!
//! A small log of its own (number 0, in the same directory, so its changes ride the same flushes): each
//! change is one record of JSON, and now and then all of it is written as one record and what lies before is
//! dropped. A change counts when it is flushed; only then is it made in memory, so nothing is ever
//! acknowledged that a restart would not know.
//!
//! Deleting is a promise kept in two steps: the record that a stream is deleted, then the removal of its
//! files, then the record that they are gone. A restart between them goes on with the removal. Nothing else
//! removes files: a log that no record names is left alone, told, and its number is never used.

use std::collections::BTreeMap;
use std::error::Error;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use trifid_base_log::{AppendError, CommitError, Frame, Log, LogOptions, Position, Replay, ReplayFrom};
use trifid_stream_model::names::{StreamName, Tenant};
use trifid_stream_model::spec::{Durability, StreamKind, StreamSpec};

use crate::error::{CreateError, DeleteError, OpenError};
use crate::limits::{CATALOGUE_SLACK, PRODUCER_IDS_BLOCK};
use crate::store::{CATALOGUE, Dir};
use crate::wait::block_on;

const VERSION: u32 = 1;
const SEGMENT_BYTES: u64 = 1 << 20;

/// A stream as the catalogue has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: u64,
    pub(crate) tenant: Tenant,
    pub(crate) name: StreamName,
    pub(crate) spec: StreamSpec,
    pub(crate) created_ms: i64,
}

/// On disk.
#[derive(Serialize, Deserialize)]
struct Record {
    v: u32,
    #[serde(flatten)]
    change: Change,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    /// All there is.
    Everything(Everything),
    /// A stream is there, or is otherwise from now on.
    Stream(StreamRecord),
    /// A stream is gone; its files are to be removed.
    Deleted { id: u64, shards: u32 },
    /// Its files are removed.
    Removed { id: u64 },
    /// Producer identities below this may have been given out.
    Producers { below: i64 },
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Everything {
    /// Random; tells this directory from others.
    installation: u64,
    next_id: u64,
    producers_below: i64,
    streams: Vec<StreamRecord>,
    deleted: Vec<(u64, u32)>,
}

#[derive(Clone, Serialize, Deserialize)]
struct StreamRecord {
    id: u64,
    tenant: String,
    name: String,
    shards: u32,
    durability: DurabilityRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retention_bytes: Option<u64>,
    compact: bool,
    max_batch_bytes: u32,
    kind: KindRecord,
    created_ms: i64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DurabilityRecord {
    Memory,
    Periodic { interval_ms: u32 },
    OnCommit,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindRecord {
    Events,
    DeadLetter,
    Internal,
}

impl From<&Listed> for StreamRecord {
    fn from(listed: &Listed) -> Self {
        let spec = &listed.spec;
        StreamRecord {
            id: listed.id,
            tenant: listed.tenant.to_string(),
            name: listed.name.to_string(),
            shards: spec.shards,
            durability: match spec.durability {
                Durability::Memory => DurabilityRecord::Memory,
                Durability::Periodic { interval_ms } => DurabilityRecord::Periodic { interval_ms },
                Durability::OnCommit => DurabilityRecord::OnCommit,
            },
            retention_ms: spec.retention_ms,
            retention_bytes: spec.retention_bytes,
            compact: spec.compact,
            max_batch_bytes: spec.max_batch_bytes,
            kind: match spec.kind {
                StreamKind::Events => KindRecord::Events,
                StreamKind::DeadLetter => KindRecord::DeadLetter,
                StreamKind::Internal => KindRecord::Internal,
            },
            created_ms: listed.created_ms,
        }
    }
}

impl TryFrom<StreamRecord> for Listed {
    type Error = Box<dyn Error + Send + Sync>;

    fn try_from(record: StreamRecord) -> Result<Self, Self::Error> {
        Ok(Listed {
            id: record.id,
            tenant: Tenant::new(&record.tenant)?,
            name: StreamName::new(&record.name)?,
            spec: StreamSpec {
                shards: record.shards,
                durability: match record.durability {
                    DurabilityRecord::Memory => Durability::Memory,
                    DurabilityRecord::Periodic { interval_ms } => Durability::Periodic { interval_ms },
                    DurabilityRecord::OnCommit => Durability::OnCommit,
                },
                retention_ms: record.retention_ms,
                retention_bytes: record.retention_bytes,
                compact: record.compact,
                max_batch_bytes: record.max_batch_bytes,
                kind: match record.kind {
                    KindRecord::Events => StreamKind::Events,
                    KindRecord::DeadLetter => StreamKind::DeadLetter,
                    KindRecord::Internal => StreamKind::Internal,
                },
            },
            created_ms: record.created_ms,
        })
    }
}

/// What the catalogue says.
#[derive(Debug, Default)]
struct Book {
    installation: u64,
    /// Every stream's number is below, also of those that are gone.
    next_id: u64,
    producers_below: i64,
    streams: BTreeMap<u64, Listed>,
    /// Deleted, their files not yet removed: how many shards they had.
    deleted: BTreeMap<u64, u32>,
    /// Records in the log since it was written anew.
    records: usize,
}

impl Book {
    fn apply(&mut self, change: Change) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.records += 1;
        match change {
            Change::Everything(all) => {
                *self = Book {
                    installation: all.installation,
                    next_id: all.next_id,
                    producers_below: all.producers_below,
                    deleted: all.deleted.into_iter().collect(),
                    ..Book::default()
                };
                for stream in all.streams {
                    self.list(stream.try_into()?);
                }
            }
            Change::Stream(stream) => self.list(stream.try_into()?),
            Change::Deleted { id, shards } => {
                self.streams.remove(&id);
                self.deleted.insert(id, shards);
            }
            Change::Removed { id } => {
                self.deleted.remove(&id);
            }
            Change::Producers { below } => self.producers_below = self.producers_below.max(below),
        }
        Ok(())
    }

    fn list(&mut self, listed: Listed) {
        self.next_id = self.next_id.max(listed.id.saturating_add(1));
        self.streams.insert(listed.id, listed);
    }

    fn everything(&self) -> Everything {
        Everything {
            installation: self.installation,
            next_id: self.next_id,
            producers_below: self.producers_below,
            streams: self.streams.values().map(StreamRecord::from).collect(),
            deleted: self.deleted.iter().map(|(id, shards)| (*id, *shards)).collect(),
        }
    }
}

impl Replay for Book {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let record: Record = serde_json::from_slice(frame.payload)?;
        match record.v {
            VERSION => self.apply(record.change),
            v => Err(format!("version {v} of the catalogue is not known").into()),
        }
    }
}

/// Any bytes as a record: what is taken is written and read again as the same.
pub(crate) fn fuzz(bytes: &[u8]) {
    let mut book = Book::default();
    let Ok(record) = serde_json::from_slice::<Record>(bytes) else { return };
    if book.apply(record.change).is_ok() {
        let all = Record { v: VERSION, change: Change::Everything(book.everything()) };
        let json = serde_json::to_vec(&all).expect("a record is written");
        let mut again = Book::default();
        let record: Record = serde_json::from_slice(&json).expect("what was written is read");
        again.apply(record.change).expect("what was taken is taken again");
        assert_eq!((again.next_id, again.streams, again.deleted), (book.next_id, book.streams, book.deleted));
    }
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unchanged {
    NoSpace,
    Closed,
    Failed,
}

impl From<Unchanged> for CreateError {
    fn from(unchanged: Unchanged) -> Self {
        match unchanged {
            Unchanged::NoSpace => CreateError::NoSpace,
            Unchanged::Closed => CreateError::ShuttingDown,
            Unchanged::Failed => CreateError::Failed,
        }
    }
}

impl From<Unchanged> for DeleteError {
    fn from(unchanged: Unchanged) -> Self {
        match unchanged {
            Unchanged::NoSpace => DeleteError::NoSpace,
            Unchanged::Closed => DeleteError::ShuttingDown,
            Unchanged::Failed => DeleteError::Failed,
        }
    }
}

/// The catalogue of a broker. Without a directory it lives in memory.
pub(crate) struct Catalogue {
    log: Option<Log>,
    /// Held while a change is made durable: changes are one after the other.
    book: Mutex<Book>,
    /// The next identity of a producer; those below the book's mark are ours to give.
    producers: Mutex<i64>,
}

impl Catalogue {
    /// One that forgets. Identities begin anywhere, so that they are not those of another life.
    pub(crate) fn in_memory(random: u64) -> Self {
        let first = (random >> 2) as i64;
        let book = Book { installation: random, next_id: 1, producers_below: i64::MAX, ..Book::default() };
        Catalogue { log: None, book: Mutex::new(book), producers: Mutex::new(first) }
    }

    /// Reads the catalogue of a directory, or begins it.
    pub(crate) fn open(dir: &Dir, random: u64) -> Result<Self, OpenError> {
        let mut book = Book { next_id: 1, ..Book::default() };
        let settings = LogOptions { segment_bytes: Some(SEGMENT_BYTES), ..LogOptions::journal() };
        let opened = dir.recover(CATALOGUE, settings, ReplayFrom::Start, &mut book);
        let (recovered, _) = opened.map_err(OpenError::Directory)?;
        let log = recovered.start(std::sync::Arc::new(()));
        let producers = Mutex::new(book.producers_below);
        if book.installation == 0 {
            book.installation = random.max(1);
        }
        let catalogue = Catalogue { log: Some(log), book: Mutex::new(book), producers };
        catalogue
            .write_anew(&mut catalogue.book.lock())
            .map_err(|error| OpenError::Catalogue(format!("it cannot be written: {error:?}")))?;
        Ok(catalogue)
    }

    /// All streams, in order of their numbers.
    pub(crate) fn streams(&self) -> Vec<Listed> {
        self.book.lock().streams.values().cloned().collect()
    }

    /// Deleted streams whose files may still be there, and how many shards they had.
    pub(crate) fn deleted(&self) -> Vec<(u64, u32)> {
        self.book.lock().deleted.iter().map(|(id, shards)| (*id, *shards)).collect()
    }

    /// Tells this directory from others.
    pub(crate) fn installation(&self) -> u64 {
        self.book.lock().installation
    }

    /// A number for a stream, never given before and never again, in this life or the next if the stream is
    /// listed.
    pub(crate) fn take_id(&self) -> u64 {
        let mut book = self.book.lock();
        book.next_id += 1;
        book.next_id - 1
    }

    /// Numbers up to this one belong to files that nobody knows.
    pub(crate) fn skip_id(&self, id: u64) {
        let mut book = self.book.lock();
        book.next_id = book.next_id.max(id + 1);
    }

    /// Lists a stream, or lists it otherwise.
    pub(crate) fn list(&self, listed: &Listed) -> Result<(), Unchanged> {
        self.change(Change::Stream(listed.into()))
    }

    /// The stream is gone.
    pub(crate) fn delete(&self, id: u64, shards: u32) -> Result<(), Unchanged> {
        self.change(Change::Deleted { id, shards })
    }

    /// Its files are gone too.
    pub(crate) fn removed(&self, id: u64) -> Result<(), Unchanged> {
        self.change(Change::Removed { id })
    }

    /// An identity for a producer that no other has or had.
    pub(crate) fn take_producer(&self) -> Result<i64, Unchanged> {
        let mut next = self.producers.lock();
        if *next >= self.book.lock().producers_below {
            self.change(Change::Producers { below: *next + PRODUCER_IDS_BLOCK })?;
        }
        *next += 1;
        Ok(*next - 1)
    }

    fn change(&self, change: Change) -> Result<(), Unchanged> {
        let mut book = self.book.lock();
        self.write(&Record { v: VERSION, change }, &mut book)?;
        if book.records > 2 * book.streams.len() + CATALOGUE_SLACK {
            self.write_anew(&mut book)?;
        }
        Ok(())
    }

    fn write(&self, record: &Record, book: &mut Book) -> Result<Position, Unchanged> {
        let json = serde_json::to_vec(record).map_err(|_| Unchanged::Failed)?;
        let position = match &self.log {
            None => Position::ZERO,
            Some(log) => {
                let ticket = log.append(&[&json]).map_err(|error| match error {
                    AppendError::NoSpace | AppendError::Overloaded { .. } => Unchanged::NoSpace,
                    AppendError::Closed => Unchanged::Closed,
                    _ => Unchanged::Failed,
                })?;
                let position = ticket.position;
                block_on(ticket.durable()).map_err(|error| match error {
                    CommitError::NoSpace => Unchanged::NoSpace,
                    _ => Unchanged::Failed,
                })?;
                position
            }
        };
        // What was written is read back: memory and disk cannot differ.
        let record: Record = serde_json::from_slice(&json).map_err(|_| Unchanged::Failed)?;
        book.apply(record.change).map_err(|_| Unchanged::Failed)?;
        Ok(position)
    }

    /// One record with everything; what lies before it may go.
    fn write_anew(&self, book: &mut Book) -> Result<(), Unchanged> {
        let Some(log) = &self.log else {
            book.records = 0;
            return Ok(());
        };
        let all = Record { v: VERSION, change: Change::Everything(book.everything()) };
        let position = self.write(&all, book)?;
        if let Err(error) = log.truncate_front(position) {
            tracing::warn!(%error, "an old part of the catalogue could not be removed");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
