//! Opening a log: follow its frames, hand them to the store, and decide about the first one that is not
//! valid.
//!
//! The rules stand in `docs/log-format.md` ("opening a log"). In short: the *mark* is the highest position
//! that anything on disk vouches for. An invalid frame below the mark is damage, and the log does not open.
//! An invalid frame at or above it is a write that was under way when the power went; nobody was told that it
//! succeeded, so it is cut off. One pass reads, checks, replays and finds the end; segments wholly below the
//! wanted position are not read.

use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::Cache;
use crate::compact;
use crate::disk::{Disk, DiskFile, OpenMode, read_up_to_at, write_all_at};
use crate::error::{Defect, OpenError};
use crate::frame::Bad;
use crate::index::Index;
use crate::index_file;
use crate::limits::{PROGRESS_BYTES, READ_BYTES, SEGMENT_HEADER_BYTES};
use crate::options::{LogOptions, ReplayFrom};
use crate::position::{Epoch, LogId, Position};
use crate::read::Frame;
use crate::recycle;
use crate::removal;
use crate::scan::{Aftermath, Chain, Found, Scan, Window};
use crate::segment::{self, Segment, SegmentHeader};
use crate::writer::{Active, CreateError, Home, Segments, Writer, create_segment};

/// Receives what a log holds while it is opened.
pub trait Replay {
    /// One frame, in order of position. A refusal ends the opening with [`OpenError::Replay`].
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Called every few megabytes and at the end.
    fn progress(&mut self, _progress: Progress) {}
}

/// Discards the frames.
impl Replay for () {
    fn frame(&mut self, _frame: Frame<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// How far the opening is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read.
    pub bytes: u64,
    /// Bytes to read.
    pub bytes_total: u64,
    /// The next record to be replayed.
    pub position: Position,
}

/// What opening a log found and did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// The first record that the log still has.
    pub first: Position,
    /// The position of the next append; everything below is durable.
    pub next: Position,
    /// Frames handed to the replay.
    pub frames: u64,
    /// Bytes read.
    pub bytes: u64,
    /// The torn tail that was cut off, if there was one.
    pub repair: Option<Repair>,
}

/// A torn tail that was cut off: writes that were never acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The file, relative to the data directory.
    pub file: PathBuf,
    /// Where it was cut.
    pub offset: u64,
    /// How many bytes went.
    pub bytes: u64,
    /// What was wrong there.
    pub defect: Defect,
}

/// A log that was opened: its end, its segments, its report.
pub(crate) struct Opened {
    pub(crate) writer: Writer,
    pub(crate) segments: Segments,
    pub(crate) recovery: Recovery,
}

/// Opens the log at `place`, handing what it holds from `from` on to `replay`.
pub(crate) fn open(home: &Home, from: ReplayFrom, replay: &mut dyn Replay) -> Result<Opened, OpenError> {
    make_dirs(home)?;
    removal::resume(home)?;
    tidy(home)?;
    let files = candidates(home, OpenMode::Write)?;
    let Survey { kept, leftovers, tail, mut recovery } = survey(home, files, from, replay)?;
    let stale = tail.as_ref().map_or(0, |tail| kept.len() - 1 - tail.index);
    remove_all(home, leftovers.iter().chain(&kept[kept.len() - stale..]))?;
    let (writer, segments) = match tail {
        Some(tail) => resume(home, &kept, &tail, &mut recovery)?,
        None => begin(home)?,
    };
    Ok(Opened { writer, segments, recovery })
}

/// A log looked at from outside: without owning its directory and without changing anything, also while another
/// process writes to it. For backups and for looking.
///
/// All files are opened before any is read, so that it does not matter when the other process drops segments
/// meanwhile. What was acknowledged before [`open`](Self::open) is there; what came later may or may not be.
pub struct Peek {
    home: Home,
    files: Vec<Candidate>,
}

impl Peek {
    /// Opens the files of `log`. A segment that goes between being listed and being opened is [`OpenError::Io`]
    /// with [`io::ErrorKind::NotFound`], and the caller tries again; so is one that becomes another segment while it
    /// is read.
    pub fn open(disk: &Arc<dyn Disk>, log: LogId) -> Result<Self, OpenError> {
        let home =
            Home::new(disk.clone(), Arc::default(), LogOptions::journal(), Arc::new(Cache::new(1)), log);
        let files = candidates(&home, OpenMode::Read)?;
        Ok(Peek { home, files })
    }

    /// The first record that is there.
    pub fn first(&self) -> Position {
        self.files.first().map_or(Position::ZERO, |file| file.segment.base)
    }

    /// Hands what the log holds from `from` on to `replay`.
    pub fn read(self, from: Position, replay: &mut dyn Replay) -> Result<Recovery, OpenError> {
        let files = self.files.clone();
        match survey(&self.home, self.files, ReplayFrom::Position(from), replay) {
            Ok(survey) => Ok(survey.recovery),
            Err(error) => Err(excuse(&files, error)),
        }
    }
}

/// A file that became another segment while it was read is no damage: it is as if it had gone before it was
/// opened.
fn excuse(files: &[Candidate], error: OpenError) -> OpenError {
    let reused = |file: &Candidate| {
        let header = file.window().and_then(|mut window| file.header(&mut window));
        matches!(header, Ok(Ok(header)) if header.base != file.segment.base)
    };
    match error {
        OpenError::Damaged { file: damaged, .. }
            if files.iter().any(|file| file.segment.path == damaged && reused(file)) =>
        {
            io_error("reading", &damaged)(io::ErrorKind::NotFound.into())
        }
        other => other,
    }
}

/// What lies there.
struct Survey {
    kept: Vec<Candidate>,
    leftovers: Vec<Candidate>,
    /// `None` when there is nothing to read.
    tail: Option<Tail>,
    recovery: Recovery,
}

/// Reads everything and changes nothing.
fn survey(
    home: &Home,
    files: Vec<Candidate>,
    from: ReplayFrom,
    replay: &mut dyn Replay,
) -> Result<Survey, OpenError> {
    let (kept, leftovers) = sort_out(home, files)?;
    let from = match from {
        ReplayFrom::Start => kept.first().map_or(Position::ZERO, |file| file.segment.base),
        ReplayFrom::Position(position) => position,
        ReplayFrom::Newest => kept.last().map_or(Position::ZERO, |file| file.segment.base),
    };
    let mark = kept.iter().chain(&leftovers).map(|file| file.segment.base).max().unwrap_or_default();
    let mut reader = Reader::new(home, mark, from, replay);
    let tail = match kept.is_empty() {
        true => None,
        false => Some(reader.read_all(&kept)?),
    };
    let (first, next) = match &tail {
        Some(tail) => (kept[0].segment.base, tail.chain.next),
        None => (Position::ZERO, Position::ZERO),
    };
    if next < from {
        return Err(OpenError::Behind { next, wanted: from });
    }
    let recovery = reader.report(first, next);
    Ok(Survey { kept, leftovers, tail, recovery })
}

/// Makes the log's folder and its name last, also when an earlier process died between the two.
fn make_dirs(home: &Home) -> Result<(), OpenError> {
    let parent = home.dir.parent().unwrap_or(Path::new(""));
    for (dir, above) in [(parent, Path::new("")), (&*home.dir, parent)] {
        home.disk.create_dir(dir).map_err(io_error("creating", dir))?;
        home.disk.sync_dir(above).map_err(io_error("flushing", above))?;
    }
    home.disk.sync_dir(&home.dir).map_err(io_error("flushing", &home.dir))
}

/// Takes dropped segments in for reuse, and removes what a compaction left behind and indexes without a segment.
fn tidy(home: &Home) -> Result<(), OpenError> {
    let names = home.disk.list(&home.dir).map_err(io_error("listing", &home.dir))?;
    for name in &names {
        let path = home.dir.join(name);
        let needless = match path.extension().and_then(|extension| extension.to_str()) {
            Some(recycle::EXTENSION) => !home.pool.adopt(path.clone()),
            Some(compact::EXTENSION) => true,
            Some(index_file::EXTENSION) => {
                let segment = path.with_extension(segment::EXTENSION);
                !home.settings.store_indexes || !names.iter().any(|name| segment.ends_with(name))
            }
            _ => false,
        };
        if needless {
            recycle::remove(&*home.disk, &path);
        }
    }
    Ok(())
}

/// A segment file as found.
#[derive(Clone)]
struct Candidate {
    segment: Arc<Segment>,
    file: Arc<dyn DiskFile>,
    len: u64,
}

impl Candidate {
    /// Whether it can hold no frame.
    fn is_empty(&self) -> bool {
        self.len <= SEGMENT_HEADER_BYTES
    }

    fn window(&self) -> Result<Window, OpenError> {
        Window::new(self.file.clone()).map_err(io_error("reading", &self.segment.path))
    }

    fn header(&self, window: &mut Window) -> Result<Result<SegmentHeader, Bad>, OpenError> {
        window.segment_header().map_err(io_error("reading", &self.segment.path))
    }
}

fn candidates(home: &Home, mode: OpenMode) -> Result<Vec<Candidate>, OpenError> {
    let names = home.disk.list(&home.dir).map_err(io_error("listing", &home.dir))?;
    let mut segments: Vec<_> = names.iter().filter_map(|name| Segment::from_name(&home.dir, name)).collect();
    segments.sort_by_key(|segment| segment.base);
    segments.into_iter().map(|segment| candidate(home, Arc::new(segment), mode)).collect()
}

fn candidate(home: &Home, segment: Arc<Segment>, mode: OpenMode) -> Result<Candidate, OpenError> {
    let file = home.disk.open(&segment.path, mode).map_err(io_error("opening", &segment.path))?;
    let len = file.len().map_err(io_error("reading", &segment.path))?;
    Ok(Candidate { segment, file, len })
}

/// Parts off the segments that a compaction has joined to another and a power cut left behind.
fn part_joined(home: &Home, found: Vec<Candidate>) -> Result<(Vec<Candidate>, Vec<Candidate>), OpenError> {
    let (mut kept, mut joined) = (Vec::new(), Vec::new());
    let mut covered = Position::ZERO;
    for file in found {
        if file.segment.base < covered {
            joined.push(file);
            continue;
        }
        if let Ok(header) = file.header(&mut file.window()?)?
            && let Some(end) = header.span.and_then(|span| header.base.checked_advance(span))
            && header.log == home.log
            && header.base == file.segment.base
        {
            covered = end;
        }
        kept.push(file);
    }
    Ok((kept, joined))
}

/// Parts the segments to read from those that hold nothing: empty ones between others, which an abandoned roll
/// left, and the newest if its creation was cut short. An empty one that is the oldest of several held records.
fn sort_out(home: &Home, found: Vec<Candidate>) -> Result<(Vec<Candidate>, Vec<Candidate>), OpenError> {
    let (found, mut leftovers) = part_joined(home, found)?;
    let (oldest, newest) = (0, found.len().saturating_sub(1));
    let mut kept = Vec::new();
    for (at, file) in found.into_iter().enumerate() {
        let leftover =
            file.is_empty() && if at == newest { is_stillborn(home, &file)? } else { at != oldest };
        if leftover { leftovers.push(file) } else { kept.push(file) }
    }
    // Every record below the base was flushed before the file was made: with nothing else left, records are
    // missing.
    match leftovers.last() {
        Some(file) if kept.is_empty() && file.segment.base > Position::ZERO => Err(OpenError::Damaged {
            file: file.segment.path.clone(),
            offset: 0,
            defect: Defect::ShortHeader,
            position: Position::ZERO,
            mark: file.segment.base,
        }),
        _ => Ok((kept, leftovers)),
    }
}

/// Whether the empty segment's header never became whole.
fn is_stillborn(home: &Home, file: &Candidate) -> Result<bool, OpenError> {
    match file.header(&mut file.window()?)? {
        Ok(header) => Ok(header.log != home.log || header.base != file.segment.base),
        Err(Bad::Defect(_)) => Ok(true),
        Err(Bad::Unsupported(what)) => Err(OpenError::Unsupported { file: file.segment.path.clone(), what }),
    }
}

/// Where the valid frames end.
struct Tail {
    /// Which of the files.
    index: usize,
    header: SegmentHeader,
    offset: u64,
    chain: Chain,
    /// What stands there instead of a frame.
    defect: Option<Defect>,
    /// Whether it is a torn write, and not what a reused file held before or zeros written ahead.
    torn: bool,
    index_of_frames: Index,
    /// Where the frames begin that nothing vouches for.
    unvouched_offset: Option<u64>,
}

/// Reads the segments in order.
struct Reader<'a> {
    home: &'a Home,
    mark: Position,
    from: Position,
    replay: &'a mut dyn Replay,
    frames: u64,
    bytes: u64,
    bytes_total: u64,
    bytes_reported: u64,
}

impl<'a> Reader<'a> {
    fn new(home: &'a Home, mark: Position, from: Position, replay: &'a mut dyn Replay) -> Self {
        Reader { home, mark, from, replay, frames: 0, bytes: 0, bytes_total: 0, bytes_reported: 0 }
    }

    fn read_all(&mut self, files: &[Candidate]) -> Result<Tail, OpenError> {
        let first = self.first_wanted(files)?;
        self.bytes_total = files[first..].iter().map(|file| file.len).sum();
        let mut tail = self.read(files, first, None)?;
        for index in first + 1..files.len() {
            let base = files[index].segment.base;
            if base > tail.chain.next {
                // The name vouches for all below: the file before has lost its end.
                return Err(self.damaged(&files[tail.index], tail.offset, Defect::Gap, tail.chain.next));
            }
            if base < tail.chain.next {
                if files[index].is_empty() {
                    break;
                }
                return Err(self.damaged(&files[index], 0, Defect::Position, tail.chain.next));
            }
            tail = self.read(files, index, Some(&tail.chain))?;
        }
        if tail.chain.next < self.mark {
            return Err(self.damaged(&files[tail.index], tail.offset, Defect::Gap, tail.chain.next));
        }
        self.progress(tail.chain.next);
        Ok(tail)
    }

    fn first_wanted(&self, files: &[Candidate]) -> Result<usize, OpenError> {
        let after = files.partition_point(|file| file.segment.base <= self.from);
        after
            .checked_sub(1)
            .ok_or_else(|| OpenError::Truncated { first: files[0].segment.base, wanted: self.from })
    }

    /// Follows the frames of one segment to their end.
    fn read(&mut self, files: &[Candidate], index: usize, before: Option<&Chain>) -> Result<Tail, OpenError> {
        let file = &files[index];
        let mut window = file.window()?;
        let header = self.header(file, &mut window)?;
        let epoch = before.map_or(header.epoch, |chain| chain.epoch.max(header.epoch));
        let chain = Chain { log: self.home.log, next: file.segment.base, epoch };
        let mut scan = Scan::new(window, &header, chain);
        let mut unvouched = VecDeque::new();
        let mut index_of_frames = Index::new(file.segment.base);
        let defect = loop {
            match scan.next().map_err(io_error("reading", &file.segment.path))? {
                Found::End => break None,
                Found::Bad(Bad::Unsupported(what)) => return Err(unsupported(file, what)),
                Found::Bad(Bad::Defect(defect)) => break Some(defect),
                Found::Frame { header, offset, payload } => {
                    self.mark = self.mark.max(header.mark);
                    if header.count > 0 {
                        unvouched.push_back((header.base, offset));
                    }
                    index_of_frames.add(header.count, header.frame_len(), header.stamp(payload));
                    if let Some(frame) = Frame::wanted(&header, payload, self.from) {
                        self.deliver(frame)?;
                    }
                }
            }
            while unvouched.front().is_some_and(|(base, _)| *base < self.mark) {
                unvouched.pop_front();
            }
            self.step(scan.chain.next, scan.offset);
        };
        let (offset, chain) = (scan.offset, scan.chain);
        let unvouched_offset = unvouched.front().map(|(_, offset)| *offset);
        self.bytes += file.len;
        // A bad frame at the end of a segment whose successor carries on without a gap took no record along.
        let successor = files.get(index + 1).map(|file| file.segment.base);
        let mut torn = defect.is_some();
        if let Some(defect) = defect
            && successor != Some(chain.next)
        {
            let aftermath = self.judge(file, scan, defect)?;
            torn = if header.recycled { aftermath.has_frames } else { aftermath.has_bytes };
        }
        Ok(Tail { index, header, offset, chain, defect, torn, index_of_frames, unvouched_offset })
    }

    /// A segment that may hold frames has a header that was flushed before them: it is whole, or damaged.
    fn header(&self, file: &Candidate, window: &mut Window) -> Result<SegmentHeader, OpenError> {
        let header = match file.header(window)? {
            Ok(header) => header,
            Err(Bad::Unsupported(what)) => return Err(unsupported(file, what)),
            Err(Bad::Defect(defect)) => return Err(self.damaged(file, 0, defect, file.segment.base)),
        };
        if header.log != self.home.log || header.base != file.segment.base {
            return Err(self.damaged(file, 0, Defect::Foreign, file.segment.base));
        }
        Ok(header)
    }

    /// Damage, or the end, with what lies behind it.
    fn judge(&mut self, file: &Candidate, scan: Scan, defect: Defect) -> Result<Aftermath, OpenError> {
        let (offset, position) = (scan.offset, scan.chain.next);
        let aftermath = scan.aftermath().map_err(io_error("reading", &file.segment.path))?;
        self.mark = self.mark.max(aftermath.mark);
        if position < self.mark {
            return Err(self.damaged(file, offset, defect, position));
        }
        Ok(aftermath)
    }

    fn deliver(&mut self, frame: Frame<'_>) -> Result<(), OpenError> {
        self.frames += 1;
        let position = frame.position;
        self.replay.frame(frame).map_err(|source| OpenError::Replay { position, source })
    }

    fn step(&mut self, position: Position, offset: u64) {
        if self.bytes + offset >= self.bytes_reported + PROGRESS_BYTES {
            self.bytes_reported = self.bytes + offset;
            let progress = Progress { bytes: self.bytes_reported, bytes_total: self.bytes_total, position };
            self.replay.progress(progress);
        }
    }

    fn progress(&mut self, position: Position) {
        self.replay.progress(Progress { bytes: self.bytes, bytes_total: self.bytes_total, position });
    }

    fn damaged(&self, file: &Candidate, offset: u64, defect: Defect, position: Position) -> OpenError {
        OpenError::Damaged { file: file.segment.path.clone(), offset, defect, position, mark: self.mark }
    }

    fn report(&self, first: Position, next: Position) -> Recovery {
        Recovery { first, next, frames: self.frames, bytes: self.bytes, repair: None }
    }
}

/// Cuts the torn tail off, makes what nothing vouches for last, and takes up writing at the end.
fn resume(
    home: &Home,
    files: &[Candidate],
    tail: &Tail,
    recovery: &mut Recovery,
) -> Result<(Writer, Segments), OpenError> {
    let file = &files[tail.index];
    let path = &file.segment.path;
    if file.len > tail.offset {
        file.file.set_len(tail.offset).map_err(io_error("cutting", path))?;
        recovery.repair = tail.torn.then(|| Repair {
            file: path.clone(),
            offset: tail.offset,
            bytes: file.len - tail.offset,
            defect: tail.defect.unwrap_or(Defect::Magic),
        });
    }
    if let Some(offset) = tail.unvouched_offset {
        write_again(&*file.file, offset, tail.offset).map_err(io_error("writing", path))?;
    }
    file.file.sync_all().map_err(io_error("flushing", path))?;
    let segments = files[..=tail.index].iter().map(|file| file.segment.clone()).collect();
    let segments = Arc::new(Mutex::new(segments));
    let active = Active::new(
        file.segment.clone(),
        file.file.clone(),
        tail.header,
        tail.index_of_frames.clone(),
        tail.offset,
    );
    let epoch = tail.chain.epoch.max(tail.header.epoch).next();
    let mut writer = Writer::new(home.clone(), segments.clone(), active, epoch, tail.chain.next);
    if tail.unvouched_offset.is_some() {
        writer = writer.unvouched();
        writer.close_off()?;
    }
    Ok((writer, segments))
}

/// Writes bytes in home again. A process that died after a failed flush may have left them in the page
/// cache, marked clean although the disk does not have them; only writing makes the next flush speak for
/// them.
fn write_again(file: &dyn DiskFile, mut offset: u64, end: u64) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES.min((end - offset) as usize)];
    while offset < end {
        let piece = ((end - offset) as usize).min(buffer.len());
        if read_up_to_at(file, &mut buffer[..piece], offset)? < piece {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        write_all_at(file, &mut [IoSlice::new(&buffer[..piece])], offset)?;
        offset += piece as u64;
    }
    Ok(())
}

/// Creates the first segment of a log.
fn begin(home: &Home) -> Result<(Writer, Segments), OpenError> {
    let epoch = Epoch(1);
    let base = Position::ZERO;
    let salt = (home.options.salt)();
    let header =
        SegmentHeader { log: home.log, generation: 1, salt, base, epoch, recycled: false, span: None };
    let active = create_segment(home, header).map_err(|error| match error {
        CreateError::Later(source) => io_error("creating", &Segment::new(&home.dir, base).path)(source),
        CreateError::Failed(failure) => failure.into(),
    })?;
    let segments = Arc::new(Mutex::new(vec![active.segment.clone()]));
    Ok((Writer::new(home.clone(), segments.clone(), active, epoch, base), segments))
}

fn remove_all<'a>(home: &Home, files: impl Iterator<Item = &'a Candidate>) -> Result<(), OpenError> {
    for file in files {
        home.disk.remove(&file.segment.path).map_err(io_error("removing", &file.segment.path))?;
    }
    home.disk.sync_dir(&home.dir).map_err(io_error("flushing", &home.dir))
}

fn unsupported(file: &Candidate, what: String) -> OpenError {
    OpenError::Unsupported { file: file.segment.path.clone(), what }
}

pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { action, path, source }
}
