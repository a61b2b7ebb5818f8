//! The files of a log as its readers see them: which segment holds a position, and how to get into it.

use std::io;
use std::sync::Arc;

use crate::cache::OpenSegment;
use crate::disk::{DiskFile, OpenMode};
use crate::error::ReadError;
use crate::index::Index;
use crate::index_file;
use crate::position::{Epoch, Position};
use crate::read::{damaged, defect, io_error};
use crate::recycle;
use crate::scan::{Chain, Found, Scan, Window};
use crate::segment::{Segment, SegmentHeader, Summary};
use crate::writer::{Home, Segments};

/// The segments of a log, and the cache of those that are open.
pub(crate) struct Files {
    pub(crate) home: Home,
    pub(crate) segments: Segments,
}

/// A place in a segment from which frames can be followed.
pub(crate) struct Place {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) seed: u32,
    /// That of the segment: no frame has a lower one.
    pub(crate) epoch: Epoch,
    pub(crate) position: Position,
    pub(crate) offset: u64,
    /// Where the frames end, as far as is known.
    pub(crate) end_offset: u64,
}

impl Files {
    /// The segment that holds `position`, and the base of the next one if there is one.
    pub(crate) fn holding(&self, position: Position) -> Result<(Arc<Segment>, Option<Position>), ReadError> {
        let segments = self.segments.lock();
        let after = segments.partition_point(|segment| segment.base <= position);
        match after.checked_sub(1).and_then(|at| segments.get(at)) {
            Some(segment) => Ok((segment.clone(), segments.get(after).map(|next| next.base))),
            None => Err(ReadError::Truncated {
                first: segments.first().map_or(position, |segment| segment.base),
                wanted: position,
            }),
        }
    }

    /// Whether the segment is one of the log's still.
    pub(crate) fn has(&self, segment: &Segment) -> bool {
        self.segments.lock().iter().any(|listed| listed.serial == segment.serial)
    }

    /// Whether another segment has taken the place of this one, in which `wanted` lies.
    pub(crate) fn was_replaced(&self, segment: &Segment, wanted: Position) -> bool {
        let segments = self.segments.lock();
        let listed = segments.iter().any(|listed| listed.serial == segment.serial);
        !listed && segments.first().is_some_and(|first| first.base <= wanted)
    }

    /// What an error of reading a segment means: that it was dropped meanwhile is no damage.
    pub(crate) fn excuse(&self, segment: &Segment, wanted: Position, error: ReadError) -> ReadError {
        if self.has(segment) {
            return error;
        }
        match self.segments.lock().first().map(|segment| segment.base) {
            Some(first) if first > wanted => ReadError::Truncated { first, wanted },
            _ => error,
        }
    }

    /// The frame at or before `position` that the index knows.
    pub(crate) fn place(&self, segment: &Segment, position: Position) -> Result<Place, ReadError> {
        let growing = segment.growing(|growing| {
            Place::in_index(growing.file.clone(), &growing.header, &growing.index, segment, position)
        });
        if let Some(place) = growing {
            return Ok(place);
        }
        let open = self.sealed(segment)?;
        Ok(Place::in_index(open.file.clone(), &open.header, &open.index, segment, position))
    }

    /// What is said of a segment.
    pub(crate) fn summary(&self, segment: &Segment) -> Result<Summary, ReadError> {
        if let Some(summary) = segment.summary() {
            return Ok(summary);
        }
        match self.stored_summary(segment)? {
            Some(summary) => {
                segment.sum_up(summary);
                Ok(summary)
            }
            None => self.sealed(segment).map(|open| (&open.index).into()),
        }
    }

    /// The first block of the index alone, so that a log of many segments is summed up without reading them.
    fn stored_summary(&self, segment: &Segment) -> Result<Option<Summary>, ReadError> {
        let Some(end) = self.end_of(segment).filter(|_| self.home.settings.store_indexes) else {
            return Ok(None);
        };
        let (_, _, header) = self.enter(segment)?;
        index_file::load_summary(&*self.home.disk, segment, &header, end)
            .map_err(|error| io_error(segment, error))
    }

    /// The file and its header.
    fn enter(&self, segment: &Segment) -> Result<(Arc<dyn DiskFile>, Window, SegmentHeader), ReadError> {
        let failed = |error: io::Error| io_error(segment, error);
        let file = self.home.disk.open(&segment.path, OpenMode::Read).map_err(failed)?;
        let mut window = Window::new(file.clone()).map_err(failed)?;
        let header = window.segment_header().map_err(failed)?;
        let header = header.map_err(|bad| damaged(segment, 0, defect(&bad)))?;
        Ok((file, window, header))
    }

    /// A frame at or before the first whose stamp is at least `stamp`, if the segment has one.
    pub(crate) fn locate_stamp(&self, segment: &Segment, stamp: i64) -> Result<Option<Position>, ReadError> {
        let growing = segment.growing(|growing| growing.index.locate_stamp(stamp));
        let found = match growing {
            Some(found) => found,
            None if self.summary(segment)?.stamp < stamp => None,
            None => self.sealed(segment)?.index.locate_stamp(stamp),
        };
        Ok(found.map(|(position, _)| position))
    }

    /// A sealed segment, from the cache or from the disk.
    pub(crate) fn sealed(&self, segment: &Segment) -> Result<Arc<OpenSegment>, ReadError> {
        match self.home.cache.get(segment.serial) {
            Some(open) => Ok(open),
            None => self.open(segment),
        }
    }

    fn open(&self, segment: &Segment) -> Result<Arc<OpenSegment>, ReadError> {
        let (file, window, header) = self.enter(segment)?;
        let stored = self.stored(segment, &header, &*file).map_err(|error| io_error(segment, error))?;
        let index = match stored {
            Some(index) => index,
            None => self.follow(segment, window, &header)?,
        };
        let open = Arc::new(OpenSegment { file, header, index });
        segment.sum_up((&open.index).into());
        self.home.cache.put(segment.serial, open.clone());
        Ok(open)
    }

    /// Forgets what the index said, also on disk, and makes it again from the frames.
    pub(crate) fn distrust(&self, segment: &Segment) -> Result<(), ReadError> {
        if segment.growing(|_| ()).is_none() {
            self.home.cache.forget(segment.serial);
            if self.home.settings.store_indexes {
                recycle::remove(&*self.home.disk, &index_file::path(segment));
            }
            self.open(segment)?;
        }
        Ok(())
    }

    /// The index as it lies beside the segment.
    fn stored(
        &self,
        segment: &Segment,
        header: &SegmentHeader,
        file: &dyn DiskFile,
    ) -> io::Result<Option<Index>> {
        match self.end_of(segment) {
            Some(end) if self.home.settings.store_indexes => {
                index_file::load(&*self.home.disk, segment, header, end, file.len()?)
            }
            _ => Ok(None),
        }
    }

    /// The end of a sealed segment.
    fn end_of(&self, segment: &Segment) -> Option<Position> {
        let segments = self.segments.lock();
        let after = segments.partition_point(|listed| listed.base <= segment.base);
        segments.get(after).map(|successor| successor.base)
    }

    /// Makes the index by following all frames. A segment that is damaged is indexed up to the damage, which is
    /// told when a reader comes there.
    fn follow(&self, segment: &Segment, window: Window, header: &SegmentHeader) -> Result<Index, ReadError> {
        let chain = Chain { log: self.home.log, next: segment.base, epoch: header.epoch };
        let mut scan = Scan::new(window, header, chain);
        let mut index = Index::new(segment.base);
        while let Found::Frame { header, payload, .. } =
            scan.next().map_err(|error| io_error(segment, error))?
        {
            index.add(header.count, header.frame_len(), header.stamp(payload));
        }
        if self.home.settings.store_indexes && self.end_of(segment) == Some(index.end) {
            index_file::store(&*self.home.disk, segment, header, &index);
        }
        Ok(index)
    }
}

impl Place {
    fn in_index(
        file: Arc<dyn DiskFile>,
        header: &SegmentHeader,
        index: &Index,
        segment: &Segment,
        position: Position,
    ) -> Self {
        let (position, offset) = index.locate(segment.base, position);
        let (seed, epoch) = (header.seed(), header.epoch);
        Place { file, seed, epoch, position, offset, end_offset: index.end_offset }
    }
}
