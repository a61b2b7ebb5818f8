//! Jobs in files: one folder a job.
//!
//! ```text
//! <folder>/lock                      held by the process that works here
//! <folder>/<id>/job.json             the record, replaced as a whole
//! <folder>/<id>/part-<hex of label>  an uploaded part
//! <folder>/<id>/result-<hex of name> a result, visible once it is whole
//! ```
//!
//! A file is written beside its place, flushed, renamed into it, and the folder flushed: after a crash there is the
//! old one or the new one. What a crash left half written ends in `.new` and is removed at the next start.

mod record;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::{FlockOperation, flock};
use trifid_archive_engine::jobs::{Job, JobId, JobStore, ResultSink, StoreError};

use self::record::Record;

const RECORD: &str = "job.json";
const UNFINISHED: &str = ".new";

/// The store.
pub struct FileJobs {
    folder: PathBuf,
    _lock: File,
}

impl FileJobs {
    /// Opens the store in a folder, which is made where it is absent. One process at a time.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let lock = File::create(folder.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other(format!("{} is used by another process", folder.display())))?;
        sync_folder(folder)?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    fn of(&self, id: &JobId) -> PathBuf {
        self.folder.join(id.as_str())
    }

    fn file(&self, id: &JobId, kind: &str, name: &str) -> PathBuf {
        self.of(id).join(format!("{kind}-{}", hex(name)))
    }

    /// The folder of a job, made where it is absent.
    fn made(&self, id: &JobId) -> io::Result<PathBuf> {
        let folder = self.of(id);
        if !folder.is_dir() {
            fs::create_dir_all(&folder)?;
            sync_folder(&self.folder)?;
        }
        Ok(folder)
    }
}

/// Letters and digits only: a name that a client chose is no path.
fn hex(name: &str) -> String {
    name.bytes().fold(String::with_capacity(name.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn failed(error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::Missing,
        _ => StoreError::Failed(error.to_string().into()),
    }
}

/// What cannot be written: that something is missing on the way is the medium's fault then.
fn unwritten(error: &io::Error) -> StoreError {
    StoreError::Failed(error.to_string().into())
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Puts a whole file in its place.
fn replace(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = Unfinished::beside(place)?;
    new.file.write_all(bytes)?;
    new.finish().map(drop)
}

/// A file under construction.
struct Unfinished {
    file: File,
    at: PathBuf,
    place: PathBuf,
    whole: bool,
}

impl Unfinished {
    fn beside(place: &Path) -> io::Result<Self> {
        let mut at = place.as_os_str().to_owned();
        at.push(UNFINISHED);
        let at = PathBuf::from(at);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&at)?;
        Ok(Self { file, at, place: place.to_owned(), whole: false })
    }

    fn finish(mut self) -> io::Result<u64> {
        self.file.sync_all()?;
        let bytes = self.file.metadata()?.len();
        fs::rename(&self.at, &self.place)?;
        self.whole = true;
        sync_folder(self.place.parent().unwrap_or(Path::new(".")))?;
        Ok(bytes)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.whole {
            // What stays is removed at the next start.
            let _ = fs::remove_file(&self.at);
        }
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Unfinished {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl ResultSink for Unfinished {
    fn finish(self: Box<Self>) -> Result<u64, StoreError> {
        Unfinished::finish(*self).map_err(|error| unwritten(&error))
    }
}

impl JobStore for FileJobs {
    fn all(&self) -> Result<Vec<Job>, StoreError> {
        let mut jobs = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(|error| failed(&error))? {
            let folder = entry.map_err(|error| failed(&error))?.path();
            let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(id) = JobId::kept(name).filter(|_| folder.is_dir()) else { continue };
            tidy(&folder).map_err(|error| failed(&error))?;
            match read(&folder.join(RECORD), id) {
                Ok(job) => jobs.push(job),
                // The crash came before the job was told to anybody, or the file is damaged: the others go on.
                Err(error) => tracing::warn!(job = name, %error, "the record of a job cannot be read"),
            }
        }
        Ok(jobs)
    }

    fn put(&self, job: &Job) -> Result<(), StoreError> {
        let bytes = Record::of(job).to_bytes()?;
        let kept = || replace(&self.made(&job.id)?.join(RECORD), &bytes);
        kept().map_err(|error| unwritten(&error))
    }

    fn remove(&self, id: &JobId) -> Result<(), StoreError> {
        match fs::remove_dir_all(self.of(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&error)),
            _ => sync_folder(&self.folder).map_err(|error| failed(&error)),
        }
    }

    fn put_part(&self, id: &JobId, label: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let kept = || {
            self.made(id)?;
            replace(&self.file(id, "part", label), bytes)
        };
        kept().map_err(|error| unwritten(&error))
    }

    fn part(&self, id: &JobId, label: &str) -> Result<Bytes, StoreError> {
        fs::read(self.file(id, "part", label)).map(Bytes::from).map_err(|error| failed(&error))
    }

    fn create_result(&self, id: &JobId, name: &str) -> Result<Box<dyn ResultSink>, StoreError> {
        let made = || {
            self.made(id)?;
            Unfinished::beside(&self.file(id, "result", name))
        };
        made().map(|sink| Box::new(sink) as Box<dyn ResultSink>).map_err(|error| unwritten(&error))
    }

    fn result(&self, id: &JobId, name: &str) -> Result<(u64, Box<dyn Read + Send>), StoreError> {
        let opened = || {
            let file = File::open(self.file(id, "result", name))?;
            Ok((file.metadata()?.len(), Box::new(file) as Box<dyn Read + Send>))
        };
        opened().map_err(|error| failed(&error))
    }

    fn result_from(
        &self,
        id: &JobId,
        name: &str,
        start: u64,
    ) -> Result<(u64, Box<dyn Read + Send>), StoreError> {
        let opened = || {
            let mut file = File::open(self.file(id, "result", name))?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(start.min(length)))?;
            Ok((length, Box::new(file) as Box<dyn Read + Send>))
        };
        opened().map_err(|error| failed(&error))
    }
}

fn read(place: &Path, id: JobId) -> io::Result<Job> {
    let record = Record::from_bytes(&fs::read(place)?).map_err(io::Error::other)?;
    record.into_job(id).ok_or_else(|| io::Error::other("the record has a phase that is none"))
}

/// Removes what was never finished.
fn tidy(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_str().is_some_and(|path| path.ends_with(UNFINISHED)) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
