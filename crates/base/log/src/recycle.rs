//! Dropped segments that are kept to be written over.
//!
//! A file that has its blocks and its length is cheaper to write than a new one: a flush has nothing to record
//! but the bytes. So a dropped segment is renamed, not removed, and takes the name of a later segment when one
//! is begun. Its new header is on disk before it does, so under a segment's name there is always a whole header.
//!
//! What the file held before never passes for frames of the new segment: the header checksums of frames start
//! from another seed, and, should two seeds be alike by chance, the old frames lie below the new base, because
//! a file never leaves its log.

use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::disk::Disk;
use crate::error::Chain;
use crate::segment::Segment;

/// The name of a dropped segment has this extension.
pub(crate) const EXTENSION: &str = "old";

pub(crate) struct Pool {
    max: usize,
    files: Mutex<Vec<PathBuf>>,
}

impl Pool {
    pub(crate) fn new(max: usize) -> Self {
        Pool { max, files: Mutex::default() }
    }

    /// Gives the segment's file up: keeps it if there is use for it, else removes it. The caller makes the
    /// change of names last.
    pub(crate) fn give_up(&self, disk: &dyn Disk, segment: &Segment, worth_keeping: bool) -> io::Result<()> {
        let mut files = self.files.lock();
        if !worth_keeping || files.len() >= self.max {
            return disk.remove(&segment.path);
        }
        let kept = segment.path.with_extension(EXTENSION);
        disk.rename(&segment.path, &kept)?;
        files.push(kept);
        Ok(())
    }

    /// Takes a file in that an earlier process kept; answers whether there is room for it.
    pub(crate) fn adopt(&self, path: PathBuf) -> bool {
        let mut files = self.files.lock();
        let room = files.len() < self.max;
        if room {
            files.push(path);
        }
        room
    }

    /// A file to write over.
    pub(crate) fn take(&self) -> Option<PathBuf> {
        self.files.lock().pop()
    }

    /// Removes all files: the disk is full.
    pub(crate) fn clear(&self, disk: &dyn Disk) {
        self.files.lock().drain(..).for_each(|path| remove(disk, &path));
    }
}

/// Removes a file that nobody needs. If that fails it is found when the log is opened again.
pub(crate) fn remove(disk: &dyn Disk, path: &Path) {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), error = %Chain(&error), "an unused file stays behind");
        }
        _ => {}
    }
}
