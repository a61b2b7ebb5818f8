//! Compacting sealed segments: writing them again without the payloads that nobody needs, one by one or several
//! as one.
//!
//! What goes leaves its positions behind as a void, joined with its neighbours, so the chain of positions stays
//! whole and a compacted segment is checked like any other. The new file is complete and flushed before it takes
//! the segment's name, so a power cut leaves the one or the other; of several, the others go after that, and one
//! that a power cut leaves behind is known by lying within the joined one. Readers who have an old file open go
//! on with it.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::cache::OpenSegment;
use crate::crc;
use crate::disk::{DiskFile, OpenMode, write_all_at};
use crate::error::{CompactError, Failure};
use crate::frame::{Header, Kind, frame_len};
use crate::index::Index;
use crate::index_file;
use crate::limits::{FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX, READ_BYTES};
use crate::log::{Log, Shared};
use crate::page::{Entry, read_page};
use crate::position::{Epoch, Position};
use crate::record_batch::{self, NO_STAMP};
use crate::recycle;
use crate::segment::{Segment, SegmentHeader};
use crate::writer::closing_marker;

/// The name of a segment that is being written by a compaction has this extension.
pub(crate) const EXTENSION: &str = "new";

/// What becomes of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// It stays.
    Keep,
    /// It goes; its positions hold nothing from now on.
    Drop,
    /// Another takes its place and its positions. In place of a record batch comes a record batch, whose
    /// checksum the caller vouches for.
    Replace(Bytes),
}

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Payloads that stayed as they were.
    pub kept: u64,
    /// Payloads that went.
    pub dropped: u64,
    /// Payloads in whose place there is another.
    pub replaced: u64,
    /// Bytes of the segment before.
    pub bytes_before: u64,
    /// Bytes of the segment after.
    pub bytes_after: u64,
}

impl Log {
    /// Writes the sealed segment that begins at `base` again, as `rewrite` says of each of its payloads. When
    /// everything is kept the segment stays as it is. Waits for the disk; readers are not disturbed. `rewrite` must
    /// not drop or compact anything itself.
    pub fn compact(
        &self,
        base: Position,
        rewrite: &mut dyn FnMut(&Entry) -> Rewrite,
    ) -> Result<Compacted, CompactError> {
        let _one_at_a_time = self.shared.housekeeping.lock();
        let end = self.shared.end_of_sealed(base).ok_or(CompactError::NoSegment(base))?;
        self.shared.compact(base..end, rewrite)
    }

    /// The same for several sealed segments that follow one another, which become one: the first begins where the
    /// range begins, the last ends where it ends.
    pub fn compact_as_one(
        &self,
        range: Range<Position>,
        rewrite: &mut dyn FnMut(&Entry) -> Rewrite,
    ) -> Result<Compacted, CompactError> {
        let _one_at_a_time = self.shared.housekeeping.lock();
        self.shared.compact(range, rewrite)
    }
}

impl Shared {
    fn compact(
        &self,
        range: Range<Position>,
        rewrite: &mut dyn FnMut(&Entry) -> Rewrite,
    ) -> Result<Compacted, CompactError> {
        let run = self.sealed_run(&range)?;
        let old = self.files.sealed(&run[0])?;
        let span = u32::try_from(range.end.get() - range.start.get()).ok();
        if span.is_none() && run.len() > 1 {
            return Err(CompactError::TooLong(range.start));
        }
        // Another salt: bytes of the one file never pass for frames of the other.
        let header =
            SegmentHeader { salt: (self.files.home.options.salt)(), recycled: false, span, ..old.header };
        let mut copy = Copy::create(self, &run[0], header)?;
        let done = copy.all(range.end, rewrite).and_then(|()| copy.finish(range.end));
        if let Err(error) = done {
            recycle::remove(&*self.files.home.disk, &copy.path);
            return Err(error);
        }
        let mut compacted = copy.compacted;
        compacted.bytes_after = copy.index.end_offset;
        for segment in &run {
            compacted.bytes_before += self.files.summary(segment)?.bytes;
        }
        if run.len() == 1 && compacted.dropped + compacted.replaced == 0 {
            recycle::remove(&*self.files.home.disk, &copy.path);
            compacted.bytes_after = compacted.bytes_before;
            return Ok(compacted);
        }
        copy.replace(&run)?;
        Ok(compacted)
    }

    fn end_of_sealed(&self, base: Position) -> Option<Position> {
        let segments = self.files.segments.lock();
        let at = segments.binary_search_by_key(&base, |segment| segment.base).ok()?;
        segments.get(at + 1).map(|next| next.base)
    }

    /// The sealed segments that make up the range exactly.
    fn sealed_run(&self, range: &Range<Position>) -> Result<Vec<Arc<Segment>>, CompactError> {
        let segments = self.files.segments.lock();
        let find = |base| segments.binary_search_by_key(&base, |segment| segment.base);
        let first = find(range.start).map_err(|_| CompactError::NoSegment(range.start))?;
        let after = find(range.end).map_err(|_| CompactError::NoSegment(range.end))?;
        if after <= first {
            return Err(CompactError::NoSegment(range.end));
        }
        Ok(segments[first..after].to_vec())
    }
}

/// The new file of a segment.
struct Copy<'a> {
    shared: &'a Shared,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    header: SegmentHeader,
    index: Index,
    /// The epoch of the last payload that was read.
    epoch: Epoch,
    buffer: Vec<u8>,
    /// Where the buffer goes.
    offset: u64,
    compacted: Compacted,
}

impl<'a> Copy<'a> {
    fn create(shared: &'a Shared, segment: &Segment, header: SegmentHeader) -> Result<Self, CompactError> {
        let home = &shared.files.home;
        let path = segment.path.with_extension(EXTENSION);
        recycle::remove(&*home.disk, &path);
        let file = home.disk.open(&path, OpenMode::CreateNew).map_err(failed("creating", &path))?;
        Ok(Copy {
            shared,
            path,
            file,
            header,
            index: Index::new(segment.base),
            epoch: header.epoch,
            buffer: header.encode(),
            offset: 0,
            compacted: Compacted::default(),
        })
    }

    fn all(&mut self, end: Position, rewrite: &mut dyn FnMut(&Entry) -> Rewrite) -> Result<(), CompactError> {
        let mut next = self.header.base;
        while next < end {
            let page = read_page(&self.shared.files, next..end, READ_BYTES)?;
            for entry in &page.entries {
                self.epoch = Epoch(entry.epoch);
                self.entry(entry, rewrite(entry))?;
            }
            next = page.next;
        }
        Ok(())
    }

    fn entry(&mut self, entry: &Entry, rewrite: Rewrite) -> Result<(), CompactError> {
        match rewrite {
            Rewrite::Drop => {
                self.compacted.dropped += 1;
                Ok(())
            }
            Rewrite::Keep => {
                self.compacted.kept += 1;
                self.payload(entry, &entry.payload)
            }
            Rewrite::Replace(payload) => {
                self.compacted.replaced += 1;
                self.payload(entry, &payload)
            }
        }
    }

    fn payload(&mut self, entry: &Entry, payload: &[u8]) -> Result<(), CompactError> {
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(CompactError::TooLarge(entry.position));
        }
        let (kind, crc) = match entry.is_record_batch {
            false => (Kind::Data, crc::of(payload)),
            true => {
                let stated = record_batch::stated_crc(payload);
                let crc = stated.filter(|crc| record_batch::verify(payload, *crc).is_ok());
                (Kind::RecordBatch, crc.ok_or(CompactError::NoRecordBatch(entry.position))?)
            }
        };
        self.void_to(entry.position)?;
        self.frame(kind, entry.records, payload, crc)
    }

    /// Says that the positions up to `position` hold nothing.
    fn void_to(&mut self, position: Position) -> Result<(), CompactError> {
        while self.index.end < position {
            let count = u32::try_from(position.get() - self.index.end.get()).unwrap_or(u32::MAX);
            self.frame(Kind::Void, count, &[], 0)?;
        }
        Ok(())
    }

    fn frame(
        &mut self,
        kind: Kind,
        count: u32,
        payload: &[u8],
        payload_crc: u32,
    ) -> Result<(), CompactError> {
        let base = self.index.end;
        let header = Header {
            kind,
            log: self.header.log,
            epoch: self.epoch,
            base,
            // A sealed segment was on disk before it was compacted.
            mark: base,
            count,
            payload_len: payload.len() as u32,
            payload_crc,
        };
        self.buffer.extend_from_slice(&header.encode(self.header.seed()));
        self.buffer.extend_from_slice(payload);
        let padding = header.frame_len() - FRAME_HEADER_BYTES - payload.len();
        self.buffer.resize(self.buffer.len() + padding, 0);
        self.index.add(count, frame_len(payload.len()), header.stamp(payload));
        if self.buffer.len() >= READ_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), CompactError> {
        write_all_at(&*self.file, &mut [IoSlice::new(&self.buffer)], self.offset)
            .map_err(failed("writing", &self.path))?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn finish(&mut self, end: Position) -> Result<(), CompactError> {
        self.void_to(end)?;
        let marker = closing_marker(self.header.log, self.epoch, end).encode(self.header.seed());
        self.buffer.extend_from_slice(&marker);
        self.index.add(0, marker.len(), NO_STAMP);
        self.write()
    }

    /// Puts the new file in the place of the old ones.
    fn replace(self, run: &[Arc<Segment>]) -> Result<(), CompactError> {
        let home = &self.shared.files.home;
        self.file.sync_all().map_err(|error| self.give_up(&self.path, error))?;
        home.disk.rename(&self.path, &run[0].path).map_err(|error| {
            recycle::remove(&*home.disk, &self.path);
            failed("renaming", &self.path)(error)
        })?;
        home.disk.sync_dir(&home.dir).map_err(|error| self.give_up(&home.dir, error))?;
        let segment = Segment::new(&home.dir, run[0].base);
        segment.sum_up((&self.index).into());
        if home.settings.store_indexes {
            index_file::store(&*home.disk, &segment, &self.header, &self.index);
        }
        self.enlist(segment, run);
        for joined in &run[1..] {
            recycle::remove(&*home.disk, &index_file::path(joined));
            recycle::remove(&*home.disk, &joined.path);
        }
        match run.len() {
            1 => Ok(()),
            _ => home.disk.sync_dir(&home.dir).map_err(|error| self.give_up(&home.dir, error)),
        }
    }

    /// Readers find the new segment from now on.
    fn enlist(&self, segment: Segment, run: &[Arc<Segment>]) {
        let files = &self.shared.files;
        let (file, header, index) = (self.file.clone(), self.header, self.index.clone());
        files.home.cache.put(segment.serial, Arc::new(OpenSegment { file, header, index }));
        let mut segments = files.segments.lock();
        if let Some(first) = segments.iter().position(|listed| listed.serial == run[0].serial) {
            segments.splice(first..first + run.len(), [Arc::new(segment)]);
        }
        run.iter().for_each(|old| files.home.cache.forget(old.serial));
    }

    fn give_up(&self, path: &Path, error: io::Error) -> CompactError {
        let source = self.shared.give_up(Failure::new("flushing", path, error));
        CompactError::Io { action: "flushing", path: path.to_owned(), source }
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CompactError {
    let path = path.to_owned();
    move |source| CompactError::Io { action, path, source }
}
