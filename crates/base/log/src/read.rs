//! Reading frames back: what a frame looks like to the log's user, and the walk of a live log.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::disk::{Disk, OpenMode};
use crate::error::{Defect, ReadError};
use crate::frame::{Bad, Header};
use crate::position::{LogId, Position};
use crate::scan::{Chain, Found, Scan, Window};
use crate::segment::Segment;

/// One payload of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The position of the first record in the payload.
    pub position: Position,
    /// How many records the payload holds.
    pub records: u32,
    /// The bytes as they were appended.
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame for a reader who starts at `from`; none for a marker and for what lies below.
    pub(crate) fn wanted(header: &Header, payload: &'a [u8], from: Position) -> Option<Self> {
        let wanted = header.has_payload() && header.end() > from;
        wanted.then_some(Frame { position: header.base, records: header.count, payload })
    }

    /// The position after the last record.
    #[must_use]
    pub fn end(&self) -> Position {
        self.position.advance(self.records)
    }
}

/// A walk over the durable frames of a live log.
pub(crate) struct Walk<'a> {
    pub(crate) disk: &'a Arc<dyn Disk>,
    pub(crate) log: LogId,
    /// The records to visit; the end is durable.
    pub(crate) range: Range<Position>,
    pub(crate) segments: Vec<Arc<Segment>>,
}

impl Walk<'_> {
    /// Visits the frames until the visitor breaks; answers the position after the last one visited.
    pub(crate) fn run(
        &self,
        visit: &mut dyn FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> Result<Position, ReadError> {
        let mut next = self.range.start;
        let segments = self.wanted()?;
        for (index, segment) in segments.iter().enumerate() {
            if next >= self.range.end {
                break;
            }
            let successor = segments.get(index + 1).map(|segment| segment.base);
            match self.segment(segment, successor, visit)? {
                ControlFlow::Continue(end) => next = next.max(end),
                ControlFlow::Break(end) => return Ok(end),
            }
        }
        Ok(next)
    }

    fn wanted(&self) -> Result<&[Arc<Segment>], ReadError> {
        let after = self.segments.partition_point(|segment| segment.base <= self.range.start);
        match after.checked_sub(1) {
            Some(first) => Ok(&self.segments[first..]),
            None => Err(self.truncated(self.segments.first().map_or(self.range.end, |segment| segment.base))),
        }
    }

    fn segment(
        &self,
        segment: &Segment,
        successor: Option<Position>,
        visit: &mut dyn FnMut(Frame<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<Position, Position>, ReadError> {
        let mut scan = self.scan(segment)?;
        let end = successor.map_or(self.range.end, |base| base.min(self.range.end));
        while scan.chain.next < end {
            let offset = scan.offset;
            let (header, payload) = match scan.next().map_err(|error| io_error(segment, error))? {
                Found::Frame { header, payload, .. } => (header, payload),
                Found::End => return Err(damaged(segment, offset, Defect::Gap)),
                Found::Bad(bad) => return Err(damaged(segment, offset, defect(&bad))),
            };
            if let Some(frame) = Frame::wanted(&header, payload, self.range.start)
                && visit(frame).is_break()
            {
                return Ok(ControlFlow::Break(header.end()));
            }
        }
        Ok(ControlFlow::Continue(scan.chain.next))
    }

    fn scan(&self, segment: &Segment) -> Result<Scan, ReadError> {
        let file = self.disk.open(&segment.path, OpenMode::Read).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => self.truncated(self.range.end),
            _ => io_error(segment, error),
        })?;
        let mut window = Window::new(file).map_err(|error| io_error(segment, error))?;
        let header = window.segment_header().map_err(|error| io_error(segment, error))?;
        let header = header.map_err(|bad| damaged(segment, 0, defect(&bad)))?;
        let chain = Chain { log: self.log, next: segment.base, epoch: header.epoch };
        Ok(Scan::new(window, &header, chain))
    }

    fn truncated(&self, first: Position) -> ReadError {
        ReadError::Truncated { first, wanted: self.range.start }
    }
}

pub(crate) fn io_error(segment: &Segment, source: std::io::Error) -> ReadError {
    ReadError::Io { path: segment.path.clone(), source }
}

/// A running log wrote every frame itself: a version it does not know is damage.
pub(crate) fn defect(bad: &Bad) -> Defect {
    match bad {
        Bad::Defect(defect) => *defect,
        Bad::Unsupported(_) => Defect::Foreign,
    }
}

pub(crate) fn damaged(segment: &Segment, offset: u64, defect: Defect) -> ReadError {
    ReadError::Damaged { file: segment.path.clone(), offset, defect }
}
