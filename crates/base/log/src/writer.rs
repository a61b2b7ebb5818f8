//! The end of a log on disk: the open segment, and what of it is known to last.
//!
//! Only the committer (and recovery before it) touches a writer. A segment is rolled between batches, when
//! everything before is flushed; a roll that fails for want of room or of file handles is put off, because
//! the old segment can always grow.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::batch::Batch;
use crate::cache::Cache;
use crate::disk::{Disk, DiskFile, OpenMode, is_no_space, write_all_at};
use crate::error::{Chain, Failure};
use crate::frame::{Header, Kind};
use crate::index::Index;
use crate::index_file;
use crate::limits::{PREWRITE_BATCH_BYTES_MAX, SEGMENT_HEADER_BYTES, ZEROS_BYTES};
use crate::options::{Durability, LogOptions, Options};
use crate::position::{Epoch, LogId, Position};
use crate::record_batch::NO_STAMP;
use crate::recycle::{self, Pool};
use crate::segment::{Growing, Segment, SegmentHeader, log_dir};

/// The segments of a log, oldest first; shared with its readers.
pub(crate) type Segments = Arc<Mutex<Vec<Arc<Segment>>>>;

/// Where and how a log writes.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) options: Arc<Options>,
    pub(crate) settings: LogOptions,
    pub(crate) cache: Arc<Cache>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) log: LogId,
    pub(crate) dir: PathBuf,
}

impl Home {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: Arc<Options>,
        settings: LogOptions,
        cache: Arc<Cache>,
        log: LogId,
    ) -> Self {
        let pool = Arc::new(Pool::new(settings.recycled_segments_max));
        Home { disk, options, settings, cache, pool, log, dir: log_dir(log) }
    }

    pub(crate) fn segment_bytes(&self) -> u64 {
        self.settings.segment_bytes.unwrap_or(self.options.segment_bytes)
    }
}

/// What a writer tells those who must not wait for it.
#[derive(Debug)]
pub(crate) struct Marks {
    flushed: AtomicU64,
    epoch: AtomicU64,
    flushes: AtomicU64,
}

impl Marks {
    /// Everything below is flushed.
    pub(crate) fn flushed(&self) -> Position {
        Position::new(self.flushed.load(Ordering::Acquire))
    }

    /// The epoch of the frames that are written now.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.epoch.load(Ordering::Acquire))
    }

    /// How often a file was flushed.
    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }

    fn flushed_up_to(&self, position: Position) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        self.flushed.fetch_max(position.get(), Ordering::AcqRel);
    }
}

/// The segment that is being written.
pub(crate) struct Active {
    pub(crate) segment: Arc<Segment>,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) seed: u32,
    pub(crate) generation: u64,
    /// Where the next frame goes.
    pub(crate) end_offset: u64,
    /// The length of the file: behind the frames lie zeros, or what a reused file held.
    pub(crate) len: u64,
    /// Whether it holds a record.
    pub(crate) has_records: bool,
}

impl Active {
    /// Takes a segment up that holds what `index` says.
    pub(crate) fn new(
        segment: Arc<Segment>,
        file: Arc<dyn DiskFile>,
        header: SegmentHeader,
        index: Index,
        len: u64,
    ) -> Self {
        let (end_offset, has_records) = (index.end_offset, index.end > segment.base);
        segment.grow(Growing { file: file.clone(), header, index });
        let (seed, generation) = (header.seed(), header.generation);
        Active { segment, file, seed, generation, end_offset, len, has_records }
    }
}

impl Active {
    fn wrote(&mut self, bytes: usize) {
        self.end_offset += bytes as u64;
        self.len = self.len.max(self.end_offset);
    }
}

/// What is written ahead.
static ZEROS: [u8; ZEROS_BYTES] = [0; ZEROS_BYTES];

/// A flush that is under way beside the writer.
pub(crate) struct Flushing {
    pub(crate) file: Arc<dyn DiskFile>,
    path: PathBuf,
    writes: u64,
    target: Position,
}

impl Flushing {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        self.file.sync_data().map_err(|error| Failure::new("flushing", &self.path, error))
    }
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
    home: Home,
    segments: Segments,
    active: Active,
    epoch: Epoch,
    marks: Arc<Marks>,
    /// The position after the last frame written.
    written: Position,
    /// Writes so far, and how many of them a flush covered.
    writes: u64,
    writes_flushed: u64,
    /// Records were written since the last closing marker.
    unclosed: bool,
    roll_warned: bool,
    /// There was room for zeros when that was last tried.
    writes_ahead: bool,
    /// The log is removed: there is nothing to write to.
    abandoned: bool,
}

impl Writer {
    pub(crate) fn new(home: Home, segments: Segments, active: Active, epoch: Epoch, end: Position) -> Self {
        let (flushed, epoch_now) = (AtomicU64::new(end.get()), AtomicU64::new(epoch.0));
        let marks = Marks { flushed, epoch: epoch_now, flushes: AtomicU64::new(0) };
        Writer {
            home,
            segments,
            active,
            epoch,
            marks: Arc::new(marks),
            written: end,
            writes: 0,
            writes_flushed: 0,
            unclosed: false,
            roll_warned: false,
            writes_ahead: true,
            abandoned: false,
        }
    }

    /// From now on nothing is written, and that is called a success.
    pub(crate) fn abandon(&mut self) {
        self.abandoned = true;
        self.active.segment.seal();
    }

    /// For a writer whose last frames nothing vouches for yet.
    pub(crate) fn unvouched(self) -> Self {
        Writer { writes: self.writes + 1, unclosed: true, ..self }
    }

    pub(crate) fn marks(&self) -> Arc<Marks> {
        self.marks.clone()
    }

    /// Writes the batch behind what is there; it lasts after the next [`flush`](Self::flush).
    pub(crate) fn write(&mut self, batch: &mut Batch) -> Result<(), WriteError> {
        debug_assert_eq!(batch.first, self.written, "batches are written in order");
        if self.abandoned {
            return Ok(());
        }
        self.roll_if_full()?;
        batch.seal(self.epoch, self.marks.flushed(), self.active.seed);
        if !self.write_ahead(batch)? {
            self.write_pieces(&mut batch.pieces(), batch.bytes)?;
        }
        self.active.segment.growing(|growing| {
            batch.placed().for_each(|frame| growing.index.add(frame.records, frame.frame_len, frame.stamp));
        });
        self.written = batch.end;
        self.active.has_records = true;
        self.unclosed = true;
        Ok(())
    }

    fn write_pieces(&mut self, pieces: &mut [IoSlice<'_>], bytes: usize) -> Result<(), WriteError> {
        self.writes += 1;
        match write_all_at(&*self.active.file, pieces, self.active.end_offset) {
            Ok(()) => {
                self.active.wrote(bytes);
                Ok(())
            }
            Err(error) if is_no_space(&error) => Err(WriteError::NoSpace),
            Err(error) => Err(WriteError::Failed(self.failure("writing", error))),
        }
    }

    /// Writes the batch, and zeros behind it, if that pays and there is room; answers whether it did.
    fn write_ahead(&mut self, batch: &Batch) -> Result<bool, WriteError> {
        let zeros = self.zeros_behind(batch.bytes);
        if zeros == 0 {
            return Ok(false);
        }
        let mut pieces = batch.pieces();
        let lens = (0..zeros).step_by(ZEROS_BYTES).map(|from| ZEROS_BYTES.min(zeros - from));
        pieces.extend(lens.map(|len| IoSlice::new(&ZEROS[..len])));
        self.writes += 1;
        match write_all_at(&*self.active.file, &mut pieces, self.active.end_offset) {
            Ok(()) => {
                self.active.wrote(batch.bytes + zeros);
                self.active.end_offset -= zeros as u64;
                Ok(true)
            }
            Err(error) if is_no_space(&error) => {
                // The batch alone may fit. What was written of the zeros is given back, if that succeeds.
                self.writes_ahead = false;
                let _ = self.active.file.set_len(self.active.end_offset);
                self.active.len = self.active.end_offset;
                Ok(false)
            }
            Err(error) => Err(WriteError::Failed(self.failure("writing", error))),
        }
    }

    /// How many zeros to write behind a batch of so many bytes.
    fn zeros_behind(&self, bytes: usize) -> usize {
        let end = self.active.end_offset + bytes as u64;
        let small = bytes <= PREWRITE_BATCH_BYTES_MAX && end > self.active.len;
        let flushed_at_once = self.home.settings.durability == Durability::OnCommit;
        if !small || !flushed_at_once || !self.writes_ahead {
            return 0;
        }
        let room = self.home.segment_bytes().saturating_sub(end);
        self.home.settings.prewrite_bytes.min(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// Makes everything written last.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        if let Some(flushing) = self.begin_flush() {
            flushing.run()?;
            self.end_flush(&flushing);
        }
        Ok(())
    }

    /// A flush of everything written so far, to be run without holding the writer.
    pub(crate) fn begin_flush(&self) -> Option<Flushing> {
        (self.writes > self.writes_flushed).then(|| Flushing {
            file: self.active.file.clone(),
            path: self.active.segment.path.clone(),
            writes: self.writes,
            target: self.written,
        })
    }

    /// The flush has succeeded. (A roll meanwhile has flushed as much.)
    pub(crate) fn end_flush(&mut self, flushing: &Flushing) {
        self.flushed_up_to(flushing.writes, flushing.target);
    }

    fn flushed_up_to(&mut self, writes: u64, position: Position) {
        self.writes_flushed = self.writes_flushed.max(writes);
        self.marks.flushed_up_to(position);
    }

    /// Cuts off what a refused write left, so that no later reader finds it.
    pub(crate) fn rewind(&mut self) -> Result<(), Failure> {
        self.home.pool.clear(&*self.home.disk);
        let file = &self.active.file;
        file.set_len(self.active.end_offset).map_err(|error| self.failure("cutting", error))?;
        file.sync_all().map_err(|error| self.failure("flushing", error))?;
        self.active.len = self.active.end_offset;
        self.epoch = self.epoch.next();
        self.marks.epoch.store(self.epoch.0, Ordering::Release);
        self.flushed_up_to(self.writes, self.written);
        Ok(())
    }

    /// Says on disk that everything before is on disk, unless that is said already. A full disk leaves it
    /// unsaid.
    pub(crate) fn close_off(&mut self) -> Result<(), Failure> {
        if !self.unclosed || self.abandoned {
            return Ok(());
        }
        self.flush()?;
        let marker = closing_marker(self.home.log, self.epoch, self.written).encode(self.active.seed);
        self.unclosed = false;
        match self.write_pieces(&mut [IoSlice::new(&marker)], marker.len()) {
            Ok(()) => {
                self.active.segment.growing(|growing| growing.index.add(0, marker.len(), NO_STAMP));
                self.flush()
            }
            Err(WriteError::NoSpace) => self.rewind(),
            Err(WriteError::Failed(failure)) => Err(failure),
        }
    }

    fn roll_if_full(&mut self) -> Result<(), Failure> {
        if self.active.end_offset < self.home.segment_bytes() {
            return Ok(());
        }
        self.roll()
    }

    /// Begins a new segment unless the old one is empty.
    pub(crate) fn roll(&mut self) -> Result<(), Failure> {
        if !self.active.has_records || self.abandoned {
            return Ok(());
        }
        self.flush()?;
        match create_segment(&self.home, self.next_header()) {
            Ok(active) => {
                // The header of the new one was flushed too.
                self.marks.flushes.fetch_add(1, Ordering::Relaxed);
                self.segments.lock().push(active.segment.clone());
                let sealed = std::mem::replace(&mut self.active, active);
                (self.roll_warned, self.writes_ahead) = (false, true);
                self.seal(&sealed);
                Ok(())
            }
            Err(CreateError::Failed(failure)) => Err(failure),
            Err(CreateError::Later(error)) => {
                self.warn_roll(&error);
                Ok(())
            }
        }
    }

    /// The segment is not written any more, and likely to be read soon.
    fn seal(&self, sealed: &Active) {
        if sealed.len - sealed.end_offset > self.home.segment_bytes() / 8 {
            // It was sealed early. What lies behind the frames is not needed, and does no harm if it stays.
            let _ = sealed.file.set_len(sealed.end_offset);
        }
        let segment = &sealed.segment;
        if let Some(grown) = segment.seal() {
            if self.home.settings.store_indexes {
                index_file::store(&*self.home.disk, segment, &grown.header, &grown.index);
            }
            self.home.cache.put(segment.serial, Arc::new(grown.into()));
        }
    }

    fn next_header(&self) -> SegmentHeader {
        SegmentHeader {
            log: self.home.log,
            generation: self.active.generation + 1,
            salt: (self.home.options.salt)(),
            base: self.written,
            epoch: self.epoch,
            recycled: false,
            span: None,
        }
    }

    fn warn_roll(&mut self, error: &io::Error) {
        if !std::mem::replace(&mut self.roll_warned, true) {
            tracing::warn!(log = %self.home.log, error = %Chain(error), "no new segment; the old one grows on");
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

/// Creates a segment, out of a dropped one if there is one, and makes its header and its name last.
pub(crate) fn create_segment(home: &Home, header: SegmentHeader) -> Result<Active, CreateError> {
    match home.pool.take() {
        Some(old) => {
            let header = SegmentHeader { recycled: true, ..header };
            let segment = Arc::new(Segment::new(&home.dir, header.base));
            let file = write_over(home, &old, &segment, header)?;
            // An unknown length is as good as none: zeros are written where old bytes would do.
            let len = file.len().unwrap_or(SEGMENT_HEADER_BYTES);
            Ok(Active::new(segment, file, header, Index::new(header.base), len))
        }
        None => {
            let segment = Arc::new(Segment::new(&home.dir, header.base));
            let file = create(home, &segment, header)?;
            Ok(Active::new(segment, file, header, Index::new(header.base), SEGMENT_HEADER_BYTES))
        }
    }
}

fn create(home: &Home, segment: &Segment, header: SegmentHeader) -> Result<Arc<dyn DiskFile>, CreateError> {
    let created = home
        .disk
        .open(&segment.path, OpenMode::CreateNew)
        .and_then(|file| write_all_at(&*file, &mut [IoSlice::new(&header.encode())], 0).map(|()| file));
    let file = match created {
        Ok(file) => file,
        Err(error) => {
            // If that fails too, recovery knows an empty segment off the end for a leftover.
            if error.kind() != io::ErrorKind::AlreadyExists {
                recycle::remove(&*home.disk, &segment.path);
            }
            return Err(CreateError::Later(error));
        }
    };
    if home.options.preallocate {
        // Advice: a file system that cannot, or has no room, grows the file as it is written.
        let _ = file.preallocate(home.segment_bytes());
    }
    file.sync_all().map_err(failed("flushing", &segment.path))?;
    home.disk.sync_dir(&home.dir).map_err(failed("flushing", &home.dir))?;
    Ok(file)
}

/// Makes the segment of a dropped one. The header is on disk before the file has the segment's name, so a
/// segment as long as this has a whole header whatever happens.
fn write_over(
    home: &Home,
    old: &Path,
    segment: &Segment,
    header: SegmentHeader,
) -> Result<Arc<dyn DiskFile>, CreateError> {
    let written = home
        .disk
        .open(old, OpenMode::Write)
        .and_then(|file| write_all_at(&*file, &mut [IoSlice::new(&header.encode())], 0).map(|()| file));
    let file = match written {
        Ok(file) => file,
        Err(error) => {
            recycle::remove(&*home.disk, old);
            return Err(CreateError::Later(error));
        }
    };
    file.sync_data().map_err(failed("flushing", old))?;
    if let Err(error) = home.disk.rename(old, &segment.path) {
        recycle::remove(&*home.disk, old);
        return Err(CreateError::Later(error));
    }
    home.disk.sync_dir(&home.dir).map_err(failed("flushing", &home.dir))?;
    Ok(file)
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CreateError {
    move |error| CreateError::Failed(Failure::new(action, path, error))
}
