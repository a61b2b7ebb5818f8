//! Fetch by hand: the answer is a head in one buffer and batches that are shared with every other reader.
//!
//! An answer is written as pieces: bytes made for it (lengths, offsets, codes) and, in between, the batches as they
//! lie in memory. Nothing is encoded again, and a batch that a hundred consumers read is one allocation.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::Malformed;
use super::reader::Reader;
use super::writer::{Writer, close};
use crate::limits::JOINED_BYTES_MAX;

/// The first version with compact lengths.
const FLEXIBLE_SINCE: i16 = 12;
/// The first version that names topics by id (KIP-516).
const IDS_SINCE: i16 = 13;

/// How a topic is named: by its name, or since version 13 by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    Name(Bytes),
    Id([u8; 16]),
}

/// One partition that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) topic: Topic,
    pub(crate) index: i32,
    pub(crate) offset: i64,
    /// The epoch in which the client believes the partition to be; -1 where it does not say.
    pub(crate) epoch: i32,
    pub(crate) bytes_max: i32,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) wait_ms_max: i32,
    pub(crate) bytes_min: i32,
    pub(crate) bytes_max: i32,
    pub(crate) session: i32,
    pub(crate) session_epoch: i32,
    pub(crate) wanted: Vec<Wanted>,
}

/// Reads a request whose shape has been checked.
pub(crate) fn read(body: Bytes, version: i16) -> Result<Request, Malformed> {
    let mut reader = Reader::new(body, version >= FLEXIBLE_SINCE);
    if version <= 14 {
        reader.i32()?; // replica_id: there are no other brokers
    }
    let (wait_ms_max, bytes_min, bytes_max) = (reader.i32()?, reader.i32()?, reader.i32()?);
    reader.i8()?; // isolation_level: without transactions both levels are the same
    let (session, session_epoch) = if version >= 7 { (reader.i32()?, reader.i32()?) } else { (0, -1) };
    let mut wanted = Vec::new();
    for _ in 0..reader.count()? {
        let topic = topic(&mut reader, version)?;
        for _ in 0..reader.count()? {
            wanted.push(partition(&mut reader, version, &topic)?);
        }
        reader.tags(|_, _| ())?;
    }
    // What follows tells of sessions (forgotten topics) and racks, neither of which there are.
    Ok(Request { wait_ms_max, bytes_min, bytes_max, session, session_epoch, wanted })
}

fn topic(reader: &mut Reader, version: i16) -> Result<Topic, Malformed> {
    match version >= IDS_SINCE {
        true => Ok(Topic::Id(reader.uuid()?)),
        false => Ok(Topic::Name(reader.text()?.unwrap_or_default())),
    }
}

fn partition(reader: &mut Reader, version: i16, topic: &Topic) -> Result<Wanted, Malformed> {
    let index = reader.i32()?;
    let epoch = if version >= 9 { reader.i32()? } else { -1 };
    let offset = reader.i64()?;
    if version >= 12 {
        reader.i32()?; // last_fetched_epoch: for replicas
    }
    if version >= 5 {
        reader.i64()?; // log_start_offset: for replicas
    }
    let bytes_max = reader.i32()?;
    reader.tags(|_, _| ())?;
    Ok(Wanted { topic: topic.clone(), index, offset, epoch, bytes_max })
}

/// What one partition is answered.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) topic: Topic,
    pub(crate) index: i32,
    pub(crate) code: i16,
    /// The readable end; -1 where nothing is known.
    pub(crate) end: i64,
    pub(crate) start: i64,
    pub(crate) batches: Vec<Bytes>,
}

impl Given {
    pub(crate) fn bytes(&self) -> usize {
        self.batches.iter().map(Bytes::len).sum()
    }
}

/// Writes the answer as pieces: whatever is in `out` when a batch of some size comes is split off before it.
pub(crate) fn write(
    out: &mut BytesMut,
    version: i16,
    correlation: i32,
    code: i16,
    given: &[Given],
    mut piece: impl FnMut(Bytes),
) {
    let mut pieces = Pieces { start: out.len(), beyond: 0, cuts: Vec::new() };
    let mut writer = Writer::new(out, version >= FLEXIBLE_SINCE);
    writer.head(correlation);
    writer.i32(0); // throttle_time_ms
    if version >= 7 {
        writer.i16(code);
        writer.i32(0); // session_id: none was made, so the client asks in full each time (KIP-227)
    }
    let topics = || given.chunk_by(|one, next| one.topic == next.topic);
    writer.length(topics().count());
    for partitions in topics() {
        topic_name(&mut writer, partitions);
        writer.length(partitions.len());
        for given in partitions {
            partition_head(&mut writer, version, given);
            pieces.add(&mut writer, &given.batches);
            writer.tags();
        }
        writer.tags();
    }
    writer.tags();
    pieces.finish(out, &mut piece);
}

fn topic_name(writer: &mut Writer<'_>, partitions: &[Given]) {
    match partitions.first().map(|first| &first.topic) {
        Some(Topic::Name(name)) => writer.text(name),
        Some(Topic::Id(id)) => writer.out.put_slice(id),
        None => {}
    }
}

fn partition_head(writer: &mut Writer<'_>, version: i16, given: &Given) {
    writer.i32(given.index);
    writer.i16(given.code);
    writer.i64(given.end);
    writer.i64(given.end); // last_stable_offset: no transaction is ever open
    if version >= 5 {
        writer.i64(given.start);
    }
    writer.length(0); // aborted_transactions
    if version >= 11 {
        writer.i32(-1); // preferred_read_replica
    }
    writer.length(given.bytes());
}

/// Where batches stand among the bytes that were made.
struct Pieces {
    start: usize,
    beyond: usize,
    /// A batch, and how many bytes of the buffer come before it.
    cuts: Vec<(usize, Bytes)>,
}

impl Pieces {
    fn add(&mut self, writer: &mut Writer<'_>, batches: &[Bytes]) {
        for batch in batches {
            if batch.len() <= JOINED_BYTES_MAX {
                writer.out.put_slice(batch);
            } else {
                self.beyond = self.beyond.saturating_add(batch.len());
                self.cuts.push((writer.out.len(), batch.clone()));
            }
        }
    }

    /// The length is known now, and its bytes have not been split off yet.
    fn finish(self, out: &mut BytesMut, piece: &mut impl FnMut(Bytes)) {
        close(out, self.start, self.beyond);
        let mut taken = 0;
        for (at, batch) in self.cuts {
            if at > taken {
                piece(out.split_to(at - taken).freeze());
                taken = at;
            }
            piece(batch);
        }
    }
}
