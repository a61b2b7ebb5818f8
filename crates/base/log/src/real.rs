//! The operating system's disk.
//!
//! One `pwritev` a batch and one `fdatasync` a flush. The data directory is created, and its name in its
//! parent made to last, when missing.

use std::fs::{self, File, FileType, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile, DiskLock, OpenMode};

/// The most pieces that one `pwritev` takes (`IOV_MAX`).
const PIECES_MAX: usize = 1024;

/// A data directory of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    /// The directory `root`, created with its parents if missing.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        create_durably(&root)?;
        Ok(RealDisk { root })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }
}

/// Creates a directory and those above it, flushing each parent so that the names last.
fn create_durably(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_durably(parent)?;
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(parent)?.sync_all()
}

fn names(dir: &Path, wanted: fn(&FileType) -> bool) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if wanted(&entry.file_type()?) {
            names.extend(entry.file_name().into_string());
        }
    }
    Ok(names)
}

impl Disk for RealDisk {
    fn lock(&self, path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let path = self.at(path);
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Box::new(HeldLock { _file: file }))
    }

    fn lock_holder(&self, path: &Path) -> Option<String> {
        let mut text = String::new();
        File::open(self.at(path)).ok()?.take(32).read_to_string(&mut text).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        match fs::create_dir(self.at(path)) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        names(&self.at(dir), FileType::is_file)
    }

    fn list_dirs(&self, dir: &Path) -> io::Result<Vec<String>> {
        names(&self.at(dir), FileType::is_dir)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::Write => {
                options.write(true);
            }
            OpenMode::CreateNew => {
                options.write(true).create_new(true);
            }
        }
        Ok(Arc::new(RealFile(options.open(self.at(path))?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.at(path))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(self.at(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(self.at(dir))?.sync_all()
    }
}

/// The lock goes when the file is closed, also when the process is killed.
struct HeldLock {
    _file: File,
}

impl DiskLock for HeldLock {}

struct RealFile(File);

impl DiskFile for RealFile {
    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwritev(&self.0, &pieces[..pieces.len().min(PIECES_MAX)], offset)?)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(&self.0, rustix::fs::FallocateFlags::KEEP_SIZE, 0, len)?)
    }
}
