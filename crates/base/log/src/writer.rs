//! The end of a log on disk: the open segment, and what of it is known to last.
//!
//! Only the committer (and recovery before it) touches a writer. A segment is rolled between batches, when
//! everything before is flushed; a roll that fails for want of room or of file handles is put off, because
//! the old segment can always grow.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::batch::Batch;
use crate::disk::{Disk, DiskFile, OpenMode, is_no_space, write_all_at};
use crate::error::{Chain, Failure};
use crate::frame::{Header, Kind};
use crate::limits::SEGMENT_HEADER_BYTES;
use crate::options::Options;
use crate::position::{Epoch, LogId, Position};
use crate::segment::{Segment, SegmentHeader, log_dir};

/// The segments of a log, oldest first; shared with its readers.
pub(crate) type Segments = Arc<Mutex<Vec<Segment>>>;

/// Where and how a log writes.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Arc<Options>,
    pub(crate) log: LogId,
    pub(crate) dir: PathBuf,
}

impl Place {
    pub(crate) fn new(disk: Arc<dyn Disk>, options: Arc<Options>, log: LogId) -> Self {
        Place { disk, options, log, dir: log_dir(log) }
    }
}

/// The segment that is being written.
pub(crate) struct Active {
    pub(crate) segment: Segment,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) seed: u32,
    pub(crate) generation: u64,
    /// Where the next frame goes.
    pub(crate) end_offset: u64,
    /// Whether it holds a record.
    pub(crate) has_records: bool,
}

/// Why a batch was not written.
#[derive(Debug)]
pub(crate) enum WriteError {
    NoSpace,
    Failed(Failure),
}

impl From<Failure> for WriteError {
    fn from(failure: Failure) -> Self {
        WriteError::Failed(failure)
    }
}

/// Why a segment was not created.
pub(crate) enum CreateError {
    /// It can be tried again later.
    Later(io::Error),
    /// A flush failed.
    Failed(Failure),
}

pub(crate) struct Writer {
    place: Place,
    segments: Segments,
    active: Active,
    epoch: Epoch,
    /// Everything below is flushed.
    mark: Position,
    /// The position after the last frame written.
    written: Position,
    /// Bytes were written since the last flush.
    dirty: bool,
    /// Records were written since the last closing marker.
    unclosed: bool,
    roll_warned: bool,
}

impl Writer {
    pub(crate) fn new(place: Place, segments: Segments, active: Active, epoch: Epoch, end: Position) -> Self {
        Writer {
            place,
            segments,
            active,
            epoch,
            mark: end,
            written: end,
            dirty: false,
            unclosed: false,
            roll_warned: false,
        }
    }

    /// For a writer whose last frames nothing vouches for yet.
    pub(crate) fn unvouched(self) -> Self {
        Writer { dirty: true, unclosed: true, ..self }
    }

    /// Writes the batch behind what is there; it lasts after the next [`flush`](Self::flush).
    pub(crate) fn write(&mut self, batch: &mut Batch) -> Result<(), WriteError> {
        debug_assert_eq!(batch.first, self.written, "batches are written in order");
        self.roll_if_full()?;
        batch.seal(self.epoch, self.mark, self.active.seed);
        self.write_pieces(&mut batch.pieces(), batch.bytes)?;
        self.written = batch.end;
        self.active.has_records = true;
        self.unclosed = true;
        Ok(())
    }

    fn write_pieces(&mut self, pieces: &mut [IoSlice<'_>], bytes: usize) -> Result<(), WriteError> {
        self.dirty = true;
        match write_all_at(&*self.active.file, pieces, self.active.end_offset) {
            Ok(()) => {
                self.active.end_offset += bytes as u64;
                Ok(())
            }
            Err(error) if is_no_space(&error) => Err(WriteError::NoSpace),
            Err(error) => Err(WriteError::Failed(self.failure("writing", error))),
        }
    }

    /// Makes everything written last.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        if self.dirty {
            self.active.file.sync_data().map_err(|error| self.failure("flushing", error))?;
            self.dirty = false;
        }
        self.mark = self.written;
        Ok(())
    }

    /// Cuts off what a refused write left, so that no later reader finds it.
    pub(crate) fn rewind(&mut self) -> Result<(), Failure> {
        let file = &self.active.file;
        file.set_len(self.active.end_offset).map_err(|error| self.failure("cutting", error))?;
        file.sync_all().map_err(|error| self.failure("flushing", error))?;
        self.epoch = self.epoch.next();
        self.dirty = false;
        self.mark = self.written;
        Ok(())
    }

    /// Says on disk that everything before is on disk, unless that is said already. A full disk leaves it
    /// unsaid.
    pub(crate) fn close_off(&mut self) -> Result<(), Failure> {
        if !self.unclosed {
            return Ok(());
        }
        self.flush()?;
        let marker = closing_marker(self.place.log, self.epoch, self.mark).encode(self.active.seed);
        self.unclosed = false;
        match self.write_pieces(&mut [IoSlice::new(&marker)], marker.len()) {
            Ok(()) => self.flush(),
            Err(WriteError::NoSpace) => self.rewind(),
            Err(WriteError::Failed(failure)) => Err(failure),
        }
    }

    fn roll_if_full(&mut self) -> Result<(), Failure> {
        if self.active.end_offset < self.place.options.segment_bytes || !self.active.has_records {
            return Ok(());
        }
        self.flush()?;
        let header = self.next_header();
        match create_segment(&self.place, header) {
            Ok(active) => {
                self.segments.lock().push(active.segment.clone());
                self.active = active;
                self.roll_warned = false;
                Ok(())
            }
            Err(CreateError::Failed(failure)) => Err(failure),
            Err(CreateError::Later(error)) => {
                self.warn_roll(&error);
                Ok(())
            }
        }
    }

    fn next_header(&self) -> SegmentHeader {
        SegmentHeader {
            log: self.place.log,
            generation: self.active.generation + 1,
            salt: (self.place.options.salt)(),
            base: self.written,
            epoch: self.epoch,
        }
    }

    fn warn_roll(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.roll_warned, true) {
            tracing::warn!(log = %self.place.log, error = %Chain(error), "no new segment; the old one grows on");
        }
    }

    fn failure(&self, action: &'static str, error: io::Error) -> Failure {
        Failure::new(action, &self.active.segment.path, error)
    }
}

/// The marker that a log which ends at `end` is closed off with.
pub(crate) fn closing_marker(log: LogId, epoch: Epoch, end: Position) -> Header {
    let kind = Kind::Closing;
    Header { kind, log, epoch, base: end, mark: end, count: 0, payload_len: 0, payload_crc: 0 }
}

/// Creates a segment and makes its header and its name last.
pub(crate) fn create_segment(place: &Place, header: SegmentHeader) -> Result<Active, CreateError> {
    let segment = Segment::new(&place.dir, header.base);
    let created = place
        .disk
        .open(&segment.path, OpenMode::CreateNew)
        .and_then(|file| write_all_at(&*file, &mut [IoSlice::new(&header.encode())], 0).map(|()| file));
    let file = match created {
        Ok(file) => file,
        Err(error) => {
            if error.kind() != io::ErrorKind::AlreadyExists {
                abandon(place, &segment.path);
            }
            return Err(CreateError::Later(error));
        }
    };
    if place.options.preallocate {
        // Advice: a file system that cannot, or has no room, grows the file as it is written.
        let _ = file.preallocate(place.options.segment_bytes);
    }
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |error| CreateError::Failed(Failure::new(action, path, error))
    };
    file.sync_all().map_err(failed("flushing", &segment.path))?;
    place.disk.sync_dir(&place.dir).map_err(failed("flushing", &place.dir))?;
    Ok(Active {
        segment,
        file,
        seed: header.seed(),
        generation: header.generation,
        end_offset: SEGMENT_HEADER_BYTES,
        has_records: false,
    })
}

/// Removes what a failed creation left. If that fails too, recovery knows an empty segment off the end for a
/// leftover.
fn abandon(place: &Place, path: &Path) {
    match place.disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), error = %Chain(&error), "an unused segment stays behind");
        }
        _ => {}
    }
}
