//! Reading pages of payloads, from any position, out of a live log.
//!
//! A page is one read of the file, or a few: the sparse index says where to begin, every frame is checked as it
//! is when a log is opened, and the payloads are slices of what was read. A record batch is handed out with the
//! offset and the epoch of its frame written into it, while the bytes are still nobody else's, so nothing is
//! copied for it.

use std::ops::Range;

use bytes::Bytes;

use crate::disk::read_up_to_at;
use crate::error::{Defect, ReadError};
use crate::files::{Files, Place};
use crate::frame::{Header, Kind};
use crate::limits::{FRAME_HEADER_BYTES, PAGE_READ_BYTES_MIN, READ_BYTES, SEGMENT_HEADER_BYTES};
use crate::position::Position;
use crate::read::{damaged, defect, io_error};
use crate::record_batch;
use crate::scan::Chain;
use crate::segment::Segment;

/// One payload of the log, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The position of the first record in the payload.
    pub position: Position,
    /// How many positions the payload takes.
    pub records: u32,
    /// The epoch in which it was written.
    pub epoch: u64,
    /// Whether it was appended as a record batch.
    pub is_record_batch: bool,
    /// The bytes as they were appended; of a record batch, base offset and partition leader epoch are those of
    /// this entry.
    pub payload: Bytes,
}

impl Entry {
    /// The position after the last record.
    #[must_use]
    pub fn end(&self) -> Position {
        self.position.advance(self.records)
    }
}

/// Some payloads that follow one another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The payloads. Positions between them hold nothing: they were refused by a full disk, or compacted away.
    pub entries: Vec<Entry>,
    /// Where to read on. At the end of what is published, the page is empty and this is that end.
    pub next: Position,
}

/// Reads the payloads in `range`, whose end is published: about so many bytes, at least one payload if there is
/// one.
pub(crate) fn read_page(files: &Files, range: Range<Position>, bytes_max: usize) -> Result<Page, ReadError> {
    let mut reader = Reader {
        files,
        page: Page { entries: Vec::new(), next: range.start },
        range,
        bytes_max,
        bytes: 0,
        attempts_left: ATTEMPTS,
    };
    while reader.page.next < reader.range.end {
        match reader.some() {
            Ok(Fill::More) => {}
            Ok(Fill::Full) => break,
            // What was read is good, and the next page tells what is not.
            Err(_) if !reader.page.entries.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(reader.page)
}

/// A page meets no more replaced segments than that in its short life.
const ATTEMPTS: u32 = 8;

struct Reader<'a> {
    files: &'a Files,
    range: Range<Position>,
    bytes_max: usize,
    page: Page,
    /// Payload bytes in the page.
    bytes: usize,
    /// How often a segment may still be replaced under the reader.
    attempts_left: u32,
}

/// Whether a page has room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fill {
    More,
    Full,
}

/// Where reading a segment goes on.
struct Cursor {
    place: Place,
    chain: Chain,
}

impl Reader<'_> {
    /// Adds what the segment holds in which the page goes on.
    fn some(&mut self) -> Result<Fill, ReadError> {
        let (segment, successor) = self.files.holding(self.page.next)?;
        let end = successor.map_or(self.range.end, |base| base.min(self.range.end));
        match self.segment(&segment, end) {
            // Compacted into another meanwhile: that one is found next.
            Err(_) if self.attempts_left > 0 && self.files.was_replaced(&segment, self.page.next) => {
                self.attempts_left -= 1;
                Ok(Fill::More)
            }
            Err(error) => Err(self.files.excuse(&segment, self.range.start, error)),
            read => read,
        }
    }

    /// Adds what the segment holds up to `end`.
    fn segment(&mut self, segment: &Segment, end: Position) -> Result<Fill, ReadError> {
        let place = self.files.place(segment, self.page.next)?;
        let guessed = place.offset > SEGMENT_HEADER_BYTES;
        let mut cursor = self.cursor(place);
        match self.read(segment, &mut cursor, end) {
            Err(ReadError::Damaged { .. }) if guessed => {
                // The index may be wrong: only following the frames from the first one tells.
                self.files.distrust(segment)?;
                cursor = self.cursor(self.files.place(segment, segment.base)?);
                self.follow(segment, &mut cursor, end)
            }
            Ok(Fill::More) => self.follow(segment, &mut cursor, end),
            other => other,
        }
    }

    fn cursor(&self, place: Place) -> Cursor {
        let chain = Chain { log: self.files.home.log, next: place.position, epoch: place.epoch };
        Cursor { place, chain }
    }

    fn follow(&mut self, segment: &Segment, cursor: &mut Cursor, end: Position) -> Result<Fill, ReadError> {
        while cursor.chain.next < end {
            if self.read(segment, cursor, end)? == Fill::Full {
                return Ok(Fill::Full);
            }
        }
        Ok(Fill::More)
    }

    /// Reads once from the file and takes the frames that are whole; at least one.
    fn read(&mut self, segment: &Segment, cursor: &mut Cursor, end: Position) -> Result<Fill, ReadError> {
        let offset = cursor.place.offset;
        let mut want = self.read_len(cursor);
        loop {
            let mut buffer = vec![0; want];
            let read = read_up_to_at(&*cursor.place.file, &mut buffer, offset)
                .map_err(|error| io_error(segment, error))?;
            buffer.truncate(read);
            match next_header(&buffer, cursor) {
                Step::Header(_) => return self.take(segment, buffer, cursor, end),
                Step::Short(need) if read == want => want = need,
                Step::Short(_) if read < FRAME_HEADER_BYTES => {
                    return Err(damaged(segment, offset, Defect::ShortHeader));
                }
                Step::Short(_) => return Err(damaged(segment, offset, Defect::ShortPayload)),
                Step::Bad(defect) => return Err(damaged(segment, offset, defect)),
            }
        }
    }

    fn read_len(&self, cursor: &Cursor) -> usize {
        let wanted = self.bytes_max.saturating_sub(self.bytes).saturating_add(PAGE_READ_BYTES_MIN);
        let left = cursor.place.end_offset.saturating_sub(cursor.place.offset);
        // Past the end that the index knows there is one more frame, or damage.
        let left = if left == 0 { PAGE_READ_BYTES_MIN as u64 } else { left };
        wanted.min(READ_BYTES).min(usize::try_from(left).unwrap_or(READ_BYTES)).max(FRAME_HEADER_BYTES)
    }

    /// Takes the whole frames of the buffer along.
    fn take(
        &mut self,
        segment: &Segment,
        mut buffer: Vec<u8>,
        cursor: &mut Cursor,
        end: Position,
    ) -> Result<Fill, ReadError> {
        let (mut at, mut found, mut fill) = (0, Vec::new(), Fill::More);
        while cursor.chain.next < end {
            let header = match next_frame(&buffer[at..], cursor) {
                Step::Header(header) => header,
                Step::Bad(defect) if at == 0 => return Err(damaged(segment, cursor.place.offset, defect)),
                // The next read begins here, and tells, unless the page is full before.
                Step::Short(_) | Step::Bad(_) => break,
            };
            if header.has_payload() && header.end() > self.range.start {
                let len = header.payload_len as usize;
                let any = !self.page.entries.is_empty() || !found.is_empty();
                if any && self.bytes + len > self.bytes_max {
                    fill = Fill::Full;
                    break;
                }
                self.bytes += len;
                found.push((header, at + FRAME_HEADER_BYTES..at + FRAME_HEADER_BYTES + len));
            }
            at += header.frame_len();
            cursor.pass(&header);
        }
        found.iter().for_each(|(header, range)| patch(header, &mut buffer[range.clone()]));
        let buffer = Bytes::from(buffer);
        self.page
            .entries
            .extend(found.into_iter().map(|(header, range)| entry(&header, buffer.slice(range))));
        self.page.next = self.page.next.max(cursor.chain.next);
        Ok(fill)
    }
}

impl Cursor {
    fn pass(&mut self, header: &Header) {
        self.place.offset += header.frame_len() as u64;
        self.chain.next = header.end();
        self.chain.epoch = header.epoch;
    }
}

/// What stands at the start of some bytes.
enum Step {
    /// A frame as long as its header says.
    Header(Header),
    /// So many bytes are needed to tell.
    Short(usize),
    Bad(Defect),
}

fn next_header(bytes: &[u8], cursor: &Cursor) -> Step {
    let Some(header) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else {
        return Step::Short(FRAME_HEADER_BYTES);
    };
    let header = match Header::decode(header, cursor.place.seed) {
        Ok(header) => header,
        Err(bad) => return Step::Bad(defect(&bad)),
    };
    match cursor.chain.check(&header) {
        Err(defect) => Step::Bad(defect),
        Ok(()) if bytes.len() < header.frame_len() => Step::Short(header.frame_len()),
        Ok(()) => Step::Header(header),
    }
}

/// The same, of a frame whose payload is right.
fn next_frame(bytes: &[u8], cursor: &Cursor) -> Step {
    let step = next_header(bytes, cursor);
    if let Step::Header(header) = &step
        && let Err(defect) = header.check_payload(&bytes[FRAME_HEADER_BYTES..][..header.payload_len as usize])
    {
        return Step::Bad(defect);
    }
    step
}

fn patch(header: &Header, payload: &mut [u8]) {
    if header.kind == Kind::RecordBatch {
        record_batch::patch(payload, header.base, header.epoch);
    }
}

fn entry(header: &Header, payload: Bytes) -> Entry {
    Entry {
        position: header.base,
        records: header.count,
        epoch: header.epoch.0,
        is_record_batch: header.kind == Kind::RecordBatch,
        payload,
    }
}

/// The position of the first record batch in `range` whose highest timestamp is at least `stamp`.
pub(crate) fn position_for_time(
    files: &Files,
    range: Range<Position>,
    stamp: i64,
) -> Result<Option<Position>, ReadError> {
    let mut next = range.start;
    while next < range.end {
        match time_in_segment(files, next..range.end, stamp) {
            Ok((Some(found), _)) => return Ok(Some(found)),
            Ok((None, end)) => next = end,
            // The front was dropped meanwhile.
            Err(ReadError::Truncated { first, .. }) if first > next => next = first,
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// The position in the segment that holds the range's start, if it is there, and where the segment ends.
fn time_in_segment(
    files: &Files,
    range: Range<Position>,
    stamp: i64,
) -> Result<(Option<Position>, Position), ReadError> {
    let (segment, successor) = files.holding(range.start)?;
    let end = successor.map_or(range.end, |base| base.min(range.end));
    let near = files.locate_stamp(&segment, stamp);
    let near = near.map_err(|error| files.excuse(&segment, range.start, error))?;
    let found = match near {
        Some(near) => first_not_before(files, near..end, stamp)?,
        None => None,
    };
    Ok((found, end))
}

fn first_not_before(
    files: &Files,
    range: Range<Position>,
    stamp: i64,
) -> Result<Option<Position>, ReadError> {
    let late = |entry: &&Entry| entry.is_record_batch && record_batch::stamp(&entry.payload) >= stamp;
    let mut next = range.start;
    while next < range.end {
        let page = read_page(files, next..range.end, PAGE_READ_BYTES_MIN)?;
        if let Some(entry) = page.entries.iter().find(late) {
            return Ok(Some(entry.position));
        }
        next = page.next;
    }
    Ok(None)
}
