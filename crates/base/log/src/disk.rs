//! The disk as the log sees it: the few calls whose order and failure decide whether a write survives.
//!
//! Paths are relative to the data directory. Two things that a disk promises, and nothing more: bytes of a
//! file last after [`DiskFile::sync_data`] or [`DiskFile::sync_all`] returned, and the names in a directory
//! (created, renamed, removed) last after [`Disk::sync_dir`] returned. A shrunk length lasts after
//! `sync_all`. Everything else may be lost, torn or reordered by a power cut.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must exist; only read.
    Read,
    /// It must exist; read and written.
    Write,
    /// It must not exist; read and written.
    CreateNew,
}

/// A data directory on some disk.
pub trait Disk: Send + Sync + 'static {
    /// Takes the directory for this process; fails with [`io::ErrorKind::WouldBlock`] when another holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>>;
    /// The text in the lock file, to say who holds it.
    fn lock_holder(&self, path: &Path) -> Option<String>;
    /// Creates a directory (its parent exists) unless it is there; answers whether it was created.
    fn create_dir(&self, path: &Path) -> io::Result<bool>;
    /// The names of the files in a directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// The names of the directories in a directory, in any order.
    fn list_dirs(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file, replacing the one at `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory last.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Writes some bytes of the pieces at `offset`; may write fewer than given.
    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize>;
    /// Reads some bytes at `offset`; 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// The length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file holds no byte.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Sets the length in bytes.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes the bytes last.
    fn sync_data(&self) -> io::Result<()>;
    /// Makes the bytes and the length last.
    fn sync_all(&self) -> io::Result<()>;
    /// Asks for room for `len` bytes without changing the length; advice only.
    fn preallocate(&self, len: u64) -> io::Result<()>;
}

/// The directory stays taken while this lives.
pub trait DiskLock: Send + Sync {}

/// Writes all of the pieces at `offset`.
pub(crate) fn write_all_at(
    file: &dyn DiskFile,
    mut pieces: &mut [IoSlice<'_>],
    mut offset: u64,
) -> io::Result<()> {
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match file.write_at(pieces, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                IoSlice::advance_slices(&mut pieces, written);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Fills the buffer from `offset` as far as the file reaches; answers how many bytes that is.
pub(crate) fn read_up_to_at(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Whether the error says that there is no room (disk or quota).
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
