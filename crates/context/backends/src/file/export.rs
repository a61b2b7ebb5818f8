//! Export and import: a backup of a running server, and its way back.
//!
//! An export is a snapshot file at position 0 that holds the newest snapshot's entries and then the changes of
//! the journal behind it. It is made from the server's files alone, as a stream: the server is not asked and
//! nothing is held in memory. Every checksum is verified on the way out and again on the way in.

use std::error::Error as StdError;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use trifid_base_log::{DataDir, Disk, DiskFile, Frame, OpenError, OpenMode, Peek, Position, Replay};

use super::error::{Error, io_error};
use super::keeper::{Flushed, remove_if_there, snapshots};
use super::limits::EXPORT_ATTEMPTS;
use super::loader::{FileReader, refused};
use super::snapshot::{EntryKind, SnapshotReader, SnapshotWriter};
use super::store::make_dir;
use super::{DIR, JOURNAL, finished, unfinished};

/// What an export or import held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Entries: tenants, entities, contexts, changes.
    pub entries: u64,
    /// Bytes written.
    pub bytes: u64,
    /// The journal's position up to which changes are contained; 0 for an import.
    pub position: u64,
}

/// Writes what the store on `disk` holds to `out`, also while a server works on it: everything that was
/// acknowledged before the call.
pub fn export(disk: &Arc<dyn Disk>, out: &mut dyn Write) -> Result<Exported, Error> {
    let mut attempt = 1;
    let source = loop {
        match Source::open(disk) {
            // The server has put a newer snapshot in place and dropped what it makes needless.
            Err(error) if attempt < EXPORT_ATTEMPTS && error.is_gone() => attempt += 1,
            Ok(source) if attempt < EXPORT_ATTEMPTS && source.has_gap() => attempt += 1,
            opened => break opened?,
        }
    };
    source.write(out)
}

/// The files of one moment, all open.
struct Source {
    snapshot: Option<(std::path::PathBuf, Arc<dyn DiskFile>)>,
    /// From the snapshot's name.
    position: u64,
    journal: Peek,
}

impl Source {
    /// The snapshot first: the segments that are opened after it reach back to it or belong to a newer one.
    fn open(disk: &Arc<dyn Disk>) -> Result<Self, Error> {
        let newest = snapshots(disk)?.pop();
        let position = newest.as_deref().and_then(name_position).unwrap_or(0);
        let snapshot = match newest {
            Some(path) => {
                let file = disk.open(&path, OpenMode::Read).map_err(io_error("opening", &path))?;
                Some((path, file))
            }
            None => None,
        };
        Ok(Source { snapshot, position, journal: Peek::open(disk, JOURNAL)? })
    }

    fn has_gap(&self) -> bool {
        self.journal.first() > Position::new(self.position)
    }

    fn write(self, out: &mut dyn Write) -> Result<Exported, Error> {
        let mut writer = SnapshotWriter::new(out, 0).map_err(written)?;
        if let Some((path, file)) = self.snapshot {
            copy(&path, SnapshotReader::new(FileReader::new(file)), &mut writer)?;
        }
        let mut changes = Changes { writer: &mut writer, failure: None };
        let read = self.journal.read(Position::new(self.position), &mut changes);
        if let Some(failure) = changes.failure {
            return Err(written(failure));
        }
        let position = read?.next.get();
        finish(writer, position)
    }
}

fn name_position(path: &Path) -> Option<u64> {
    super::position_of(path.file_name()?.to_str()?)
}

fn written(error: io::Error) -> Error {
    io_error("writing", "the export")(error)
}

fn finish<W: Write>(writer: SnapshotWriter<W>, position: u64) -> Result<Exported, Error> {
    let entries = writer.entries;
    Ok(Exported { entries, bytes: writer.finish().map_err(written)?, position })
}

/// Copies the entries of one snapshot into another.
fn copy<R: Read, W: Write>(
    path: &Path,
    reader: Result<SnapshotReader<R>, super::snapshot::SnapshotError>,
    writer: &mut SnapshotWriter<W>,
) -> Result<(), Error> {
    let mut reader = reader.map_err(|error| refused(path, 0, error))?;
    loop {
        match reader.next() {
            Err(error) => return Err(refused(path, reader.block_offset, error)),
            Ok(None) => return Ok(()),
            Ok(Some((kind, bytes))) => {
                writer.entry(kind, |out| out.extend_from_slice(bytes)).map_err(written)?;
            }
        }
    }
}

/// Writes the changes of the journal as entries.
struct Changes<'w, W> {
    writer: &'w mut SnapshotWriter<W>,
    failure: Option<io::Error>,
}

impl<W: Write> Replay for Changes<'_, W> {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Box<dyn StdError + Send + Sync>> {
        let fill = |out: &mut Vec<u8>| out.extend_from_slice(frame.payload);
        self.writer.entry(EntryKind::Change, fill).map_err(|error| {
            let kind = error.kind();
            self.failure = Some(error);
            io::Error::from(kind).into()
        })
    }
}

/// Puts an export into the empty data directory `dir`, for a store to open.
pub fn import(dir: &DataDir, input: &mut dyn Read) -> Result<Exported, Error> {
    make_dir(dir)?;
    check_empty(dir)?;
    let (path, disk) = (unfinished(), dir.disk());
    let file = disk.open(&path, OpenMode::CreateNew).map_err(io_error("creating", &path))?;
    let mut flushed = Flushed::new(file);
    let imported = take_in(input, &mut flushed);
    let imported = imported.and_then(|imported| {
        flushed.file.sync_all().map_err(io_error("flushing", &path))?;
        Ok(imported)
    });
    if imported.is_err() {
        remove_if_there(disk, &path)?;
        return imported;
    }
    disk.rename(&path, &finished(0)).map_err(io_error("renaming", &path))?;
    disk.sync_dir(Path::new(DIR)).map_err(io_error("flushing", DIR))?;
    imported
}

fn take_in(input: &mut dyn Read, out: &mut Flushed) -> Result<Exported, Error> {
    let mut writer = SnapshotWriter::new(out, 0).map_err(written)?;
    copy(Path::new("the export"), SnapshotReader::new(input), &mut writer)?;
    finish(writer, 0)
}

fn check_empty(dir: &DataDir) -> Result<(), Error> {
    let journal = match Peek::open(dir.disk(), JOURNAL) {
        Ok(journal) => journal.read(Position::ZERO, &mut ())?.next,
        Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Position::ZERO,
        Err(error) => return Err(error.into()),
    };
    let empty = snapshots(dir.disk())?.is_empty() && journal == Position::ZERO;
    if empty { Ok(()) } else { Err(Error::NotEmpty) }
}
