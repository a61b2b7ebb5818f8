//! What the tests share: a log on a disk with small segments, and its content as a list.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use trifid_base_log::{
    DataDir, Disk, Frame, Log, LogId, LogOptions, OpenError, Options, Position, Progress, Recovery, Replay,
    ReplayFrom, Stepper,
};
use trifid_base_sim::SimDisk;

pub(crate) const LOG: LogId = LogId(0xab);

/// Small segments, a salt that repeats from run to run, and a failure that is noted rather than fatal.
pub(crate) fn options(segment_bytes: u64, salt: u64) -> Options {
    let next = AtomicU64::new(salt);
    Options {
        segment_bytes,
        preallocate: false,
        idle_after: Duration::from_secs(3600),
        on_fatal: Arc::new(|_| {}),
        salt: Arc::new(move || next.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)),
        ..Options::default()
    }
}

/// What a replay was handed.
#[derive(Default)]
pub(crate) struct Content {
    pub(crate) frames: Vec<(u64, u32, Vec<u8>)>,
    pub(crate) progress: Vec<Progress>,
}

impl Replay for Content {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.frames.push((frame.position.get(), frame.records, frame.payload.to_vec()));
        Ok(())
    }

    fn progress(&mut self, progress: Progress) {
        self.progress.push(progress);
    }
}

impl Content {
    pub(crate) fn payloads(&self) -> Vec<&[u8]> {
        self.frames.iter().map(|(_, _, payload)| payload.as_slice()).collect()
    }
}

/// An open log whose committer the test moves on.
pub(crate) struct Stepped {
    pub(crate) dir: DataDir,
    pub(crate) stepper: Stepper,
    pub(crate) log: Log,
    pub(crate) content: Content,
    pub(crate) recovery: Recovery,
}

pub(crate) fn open_from(disk: Arc<dyn Disk>, options: Options, from: u64) -> Result<Stepped, OpenError> {
    open_with_sink(disk, options, from, Arc::new(()))
}

pub(crate) fn open_with_sink(
    disk: Arc<dyn Disk>,
    options: Options,
    from: u64,
    sink: Arc<dyn trifid_base_log::Sink>,
) -> Result<Stepped, OpenError> {
    let (dir, stepper) = DataDir::open_stepped(disk, options)?;
    let mut content = Content::default();
    let (recovered, recovery) = dir.recover(LOG, Position::new(from), &mut content)?;
    Ok(Stepped { log: recovered.start(sink), dir, stepper, content, recovery })
}

impl Stepped {
    /// Appends and makes durable.
    pub(crate) fn write(&mut self, payload: &[u8]) -> u64 {
        let ticket = self.log.append(&[payload]).unwrap();
        while self.stepper.step() {}
        assert_eq!(ticket.decided(), Some(Ok(())));
        ticket.position.get()
    }
}

/// Notes what the log says.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

impl trifid_base_log::Sink for Heard {
    fn durable(&self, positions: std::ops::Range<Position>) {
        self.0.lock().push(format!("durable {}..{}", positions.start, positions.end));
    }

    fn refused(&self, positions: std::ops::Range<Position>) {
        self.0.lock().push(format!("refused {}..{}", positions.start, positions.end));
    }
}

/// A Kafka `RecordBatch` with this highest timestamp and so many bytes of records, each `serial` another.
pub(crate) fn record_batch(stamp: i64, bytes: usize, serial: u64) -> Bytes {
    let mut batch = vec![0; 61];
    batch.extend_from_slice(&serial.to_be_bytes().repeat(bytes.div_ceil(8))[..bytes]);
    batch[..8].copy_from_slice(&u64::MAX.to_be_bytes());
    let length = (batch.len() - 12) as u32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[16] = 2;
    batch[35..43].copy_from_slice(&stamp.to_be_bytes());
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch.into()
}

/// An open log with settings of its own.
pub(crate) struct Streamed {
    pub(crate) dir: DataDir,
    pub(crate) stepper: Stepper,
    pub(crate) log: Log,
    pub(crate) content: Content,
    pub(crate) recovery: Recovery,
}

pub(crate) fn open_stream(disk: &SimDisk, settings: LogOptions) -> Result<Streamed, OpenError> {
    stream(disk, options(6_000, 1), settings, Arc::new(()))
}

pub(crate) fn stream(
    disk: &SimDisk,
    options: Options,
    settings: LogOptions,
    sink: Arc<dyn trifid_base_log::Sink>,
) -> Result<Streamed, OpenError> {
    let (dir, stepper) = DataDir::open_stepped(Arc::new(disk.clone()), options)?;
    let mut content = Content::default();
    let (recovered, recovery) = dir.recover_with(LOG, settings, ReplayFrom::Start, &mut content)?;
    Ok(Streamed { log: recovered.start(sink), dir, stepper, content, recovery })
}
