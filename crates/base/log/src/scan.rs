//! Following the frames of a segment file.
//!
//! A scan reads about a megabyte at a time, lends each payload out of that buffer, and checks every rule of
//! `docs/log-format.md` ("when a frame is valid"). Its memory is the buffer, or one frame if that is larger.
//! [`Scan::aftermath`] looks past a bad frame for anything that still vouches for what came before.

use std::io;
use std::sync::Arc;

use crate::disk::{DiskFile, read_up_to_at};
use crate::error::Defect;
use crate::frame::{self, Bad, Header};
use crate::limits::{FRAME_ALIGN_BYTES, FRAME_HEADER_BYTES, READ_BYTES, SEGMENT_HEADER_BYTES};
use crate::position::{Epoch, LogId, Position};
use crate::segment::{HEADER_BYTES, SegmentHeader};

/// A file read forward through one buffer.
pub(crate) struct Window {
    file: Arc<dyn DiskFile>,
    len: u64,
    start: u64,
    buffer: Vec<u8>,
}

impl Window {
    pub(crate) fn new(file: Arc<dyn DiskFile>) -> io::Result<Self> {
        let len = file.len()?;
        Ok(Window { file, len, start: 0, buffer: Vec::new() })
    }

    /// The `count` bytes at `offset`, or `None` when the file ends before.
    pub(crate) fn bytes(&mut self, offset: u64, count: usize) -> io::Result<Option<&[u8]>> {
        let Some(end) = offset.checked_add(count as u64).filter(|end| *end <= self.len) else {
            return Ok(None);
        };
        if offset < self.start || end > self.start + self.buffer.len() as u64 {
            self.fill(offset, count)?;
        }
        if end > self.len {
            return Ok(None);
        }
        let from = (offset - self.start) as usize;
        Ok(Some(&self.buffer[from..from + count]))
    }

    /// Reads on from `offset`. A file that shrank meanwhile (a refused write is cut off) is as long as what
    /// was read.
    fn fill(&mut self, offset: u64, count: usize) -> io::Result<()> {
        let wanted = (count.max(READ_BYTES) as u64).min(self.len - offset) as usize;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(wanted, 0);
        let read = read_up_to_at(&*self.file, &mut buffer, offset)?;
        buffer.truncate(read);
        if read < wanted {
            self.len = offset + read as u64;
        }
        self.buffer = buffer;
        self.start = offset;
        Ok(())
    }

    /// Whether nothing but zeros lies at and behind `offset`.
    fn is_zero_from(&mut self, mut offset: u64) -> io::Result<bool> {
        while offset < self.len {
            let count = (self.len - offset).min(READ_BYTES as u64) as usize;
            match self.bytes(offset, count)? {
                Some(bytes) if bytes.iter().any(|byte| *byte != 0) => return Ok(false),
                Some(_) => offset += count as u64,
                // The file shrank: what was read was zero.
                None => break,
            }
        }
        Ok(true)
    }

    /// The segment's header.
    pub(crate) fn segment_header(&mut self) -> io::Result<Result<SegmentHeader, Bad>> {
        Ok(match self.array::<HEADER_BYTES>(0)? {
            Some(bytes) if self.len >= SEGMENT_HEADER_BYTES => SegmentHeader::decode(&bytes),
            _ => Err(Defect::ShortHeader.into()),
        })
    }

    fn array<const N: usize>(&mut self, offset: u64) -> io::Result<Option<[u8; N]>> {
        Ok(self.bytes(offset, N)?.and_then(|bytes| bytes.try_into().ok()))
    }
}

/// What links one frame to the next, also across segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) log: LogId,
    /// Where the next frame must begin.
    pub(crate) next: Position,
    /// The next frame's epoch is at least this.
    pub(crate) epoch: Epoch,
}

impl Chain {
    pub(crate) fn check(&self, header: &Header) -> Result<(), Defect> {
        if header.log != self.log {
            Err(Defect::Foreign)
        } else if header.base != self.next {
            Err(Defect::Position)
        } else if header.epoch < self.epoch {
            Err(Defect::Epoch)
        } else {
            Ok(())
        }
    }
}

/// What a scan finds at its place.
pub(crate) enum Found<'a> {
    /// A valid frame.
    Frame { header: Header, offset: u64, payload: &'a [u8] },
    /// The end of the file, exactly.
    End,
    /// No valid frame.
    Bad(Bad),
}

/// Follows the frames of one segment.
pub(crate) struct Scan {
    window: Window,
    seed: u32,
    pub(crate) offset: u64,
    pub(crate) chain: Chain,
}

impl Scan {
    /// A scan from the first frame of a segment whose header was read.
    pub(crate) fn new(window: Window, header: &SegmentHeader, chain: Chain) -> Self {
        Scan { window, seed: header.seed(), offset: SEGMENT_HEADER_BYTES, chain }
    }

    /// The frame at the scan's place; the scan moves past it if it is valid.
    pub(crate) fn next(&mut self) -> io::Result<Found<'_>> {
        let offset = self.offset;
        if offset == self.window.len {
            return Ok(Found::End);
        }
        let header = match self.header()? {
            Ok(header) => header,
            Err(bad) => return Ok(Found::Bad(bad)),
        };
        let Some(frame) = self.window.bytes(offset, header.frame_len())? else {
            return Ok(Found::Bad(Defect::ShortPayload.into()));
        };
        let payload = &frame[FRAME_HEADER_BYTES..][..header.payload_len as usize];
        if let Err(defect) = header.check_payload(payload) {
            return Ok(Found::Bad(defect.into()));
        }
        self.offset += frame.len() as u64;
        self.chain.next = header.end();
        self.chain.epoch = header.epoch;
        Ok(Found::Frame { header, offset, payload })
    }

    fn header(&mut self) -> io::Result<Result<Header, Bad>> {
        let Some(bytes) = self.window.array::<FRAME_HEADER_BYTES>(self.offset)? else {
            return Ok(Err(Defect::ShortHeader.into()));
        };
        let header = Header::decode(&bytes, self.seed);
        Ok(header.and_then(|header| self.chain.check(&header).map(|()| header).map_err(Bad::from)))
    }

    /// What any frame header at or after the scan's place says.
    pub(crate) fn aftermath(mut self) -> io::Result<Aftermath> {
        let has_bytes = !self.window.is_zero_from(self.offset)?;
        let mut aftermath = Aftermath { has_bytes, ..Aftermath::default() };
        if !has_bytes {
            return Ok(aftermath);
        }
        let mut offset = self.offset.next_multiple_of(FRAME_ALIGN_BYTES as u64);
        while let Some(bytes) = self.window.array::<FRAME_HEADER_BYTES>(offset)? {
            if bytes[..4] == frame::MAGIC
                && let Ok(header) = Header::decode(&bytes, self.seed)
                && header.log == self.chain.log
            {
                aftermath.mark = aftermath.mark.max(header.mark);
                aftermath.has_frames = true;
            }
            offset += FRAME_ALIGN_BYTES as u64;
        }
        Ok(aftermath)
    }
}

/// What lies behind the first frame that is not valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aftermath {
    /// The highest durable mark.
    pub(crate) mark: Position,
    /// Whether there is a frame header of this segment.
    pub(crate) has_frames: bool,
    /// Whether there is anything but zeros.
    pub(crate) has_bytes: bool,
}
