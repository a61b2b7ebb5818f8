//! Removing a whole log, and finding which logs there are.
//!
//! A file named `removed` in the log's folder decides: once it lasts, the log is gone, and whoever comes across
//! the folder finishes the work. Before that, nothing has happened.

use std::io;
use std::path::{Path, PathBuf};

use crate::dir::DataDir;
use crate::disk::{Disk, OpenMode};
use crate::error::{Failure, OpenError, RemoveError};
use crate::position::LogId;
use crate::segment::{LOGS, Segment, log_dir, log_from_name};
use crate::writer::Home;

const REMOVED: &str = "removed";

impl DataDir {
    /// The logs that lie in the directory, open or not. A folder without a segment is no log.
    pub fn list(&self) -> io::Result<Vec<LogId>> {
        let names = match self.disk().list_dirs(Path::new(LOGS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            names => names?,
        };
        let mut logs = Vec::new();
        for log in names.iter().filter_map(|name| log_from_name(name)) {
            let dir = log_dir(log);
            let files = self.disk().list(&dir)?;
            let has_segment = files.iter().any(|name| Segment::from_name(&dir, name).is_some());
            if has_segment && !files.iter().any(|name| name == REMOVED) {
                logs.push(log);
            }
        }
        logs.sort_unstable();
        Ok(logs)
    }

    /// Removes a log with all that it holds. If it is open, its handles take and write nothing any more, and
    /// what waits is refused. Waits for the disk.
    pub fn remove(&self, id: LogId) -> Result<(), RemoveError> {
        let dir = log_dir(id);
        let disk = &**self.disk();
        let there = disk.list_dirs(Path::new(LOGS)).map_err(io_error("listing", Path::new(LOGS)));
        if !there?.contains(&id.to_string()) {
            return Err(RemoveError::NoLog(id));
        }
        self.forget(id);
        let tombstone = dir.join(REMOVED);
        match disk.open(&tombstone, OpenMode::CreateNew) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_error("creating", &tombstone)(error));
            }
            _ => {}
        }
        self.sync(&dir)?;
        remove_files(disk, &dir).map_err(|(path, error)| io_error("removing", &path)(error))?;
        // The files are gone for good before the mark that says so.
        self.sync(&dir)?;
        disk.remove(&tombstone).map_err(io_error("removing", &tombstone))?;
        disk.remove_dir(&dir).map_err(io_error("removing", &dir))?;
        self.sync(Path::new(LOGS))
    }

    fn sync(&self, dir: &Path) -> Result<(), RemoveError> {
        self.disk().sync_dir(dir).map_err(|error| {
            let source = error.kind().into();
            self.fail(&Failure::new("flushing", dir, error));
            RemoveError::Io { action: "flushing", path: dir.to_owned(), source }
        })
    }
}

/// Finishes a removal that was cut short, so that a log can begin anew in the folder.
pub(crate) fn resume(home: &Home) -> Result<(), OpenError> {
    let failed = |action, path: PathBuf| move |source| OpenError::Io { action, path, source };
    let disk = &*home.disk;
    if !is_removed(disk, &home.dir).map_err(failed("listing", home.dir.clone()))? {
        return Ok(());
    }
    remove_files(disk, &home.dir).map_err(|(path, error)| failed("removing", path)(error))?;
    disk.sync_dir(&home.dir).map_err(failed("flushing", home.dir.clone()))?;
    let tombstone = home.dir.join(REMOVED);
    disk.remove(&tombstone).map_err(failed("removing", tombstone.clone()))?;
    disk.sync_dir(&home.dir).map_err(failed("flushing", home.dir.clone()))
}

fn is_removed(disk: &dyn Disk, dir: &Path) -> io::Result<bool> {
    Ok(disk.list(dir)?.iter().any(|name| name == REMOVED))
}

fn remove_files(disk: &dyn Disk, dir: &Path) -> Result<(), (PathBuf, io::Error)> {
    let names = disk.list(dir).map_err(|error| (dir.to_owned(), error))?;
    for name in names.iter().filter(|name| *name != REMOVED) {
        let path = dir.join(name);
        disk.remove(&path).map_err(|error| (path, error))?;
    }
    Ok(())
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RemoveError {
    let path = path.to_owned();
    move |source| RemoveError::Io { action, path, source }
}
