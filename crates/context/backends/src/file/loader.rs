//! Puts what snapshot and journal hold back into the engine.

use std::collections::{BTreeMap, HashMap};
use std::error::Error as StdError;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use trifid_base_log::{Disk, DiskFile, Frame, OpenMode, Replay};
use trifid_context_engine::TenantName;
use trifid_context_engine::contexts::HostedContext;
use trifid_context_engine::memory::MemoryStore;
use trifid_context_engine::store::{EntityStore, StoreError};
use trifid_context_engine::tenant::InvalidTenant;
use trifid_context_model::canonical::{self, CanonicalError};
use trifid_context_model::record::Record;
use trifid_context_model::symbol::Budget;

use super::encoding::Malformed;
use super::error::{Error, io_error};
use super::limits::PROGRESS_BYTES;
use super::payload::{self, Payload, PayloadError};
use super::snapshot::{EntryKind, SnapshotError, SnapshotReader};

/// How far the opening is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being read.
    pub stage: Stage,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes to read.
    pub bytes_total: u64,
    /// Entities restored and changes replayed so far.
    pub entries: u64,
}

/// What is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The newest snapshot.
    Snapshot,
    /// The journal behind it.
    Journal,
}

/// Hosted contexts by tenant and local identifier.
pub(super) type Hosted = BTreeMap<(Box<str>, Box<str>), HostedContext>;

/// Why an entry cannot be put back.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error(transparent)]
    Payload(#[from] PayloadError),
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    #[error(transparent)]
    Tenant(#[from] InvalidTenant),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("an entity stands before any tenant")]
    NoTenant,
}

/// A tenant that entries name.
#[derive(Clone)]
struct Owner {
    name: TenantName,
    budget: Arc<Budget>,
}

/// See the module.
pub(super) struct Loader<'a> {
    memory: &'a MemoryStore,
    owners: HashMap<Box<str>, Owner>,
    /// The tenant of the entities that follow in a snapshot.
    current: Option<Owner>,
    pub(super) hosted: Hosted,
    pub(super) entries: u64,
    on_progress: &'a mut dyn FnMut(Progress),
}

impl<'a> Loader<'a> {
    pub(super) fn new(memory: &'a MemoryStore, on_progress: &'a mut dyn FnMut(Progress)) -> Self {
        let (owners, hosted) = (HashMap::new(), Hosted::new());
        Loader { memory, owners, current: None, hosted, entries: 0, on_progress }
    }

    /// Reads a snapshot file; answers its position.
    pub(super) fn snapshot(&mut self, disk: &Arc<dyn Disk>, path: &Path) -> Result<u64, Error> {
        let file = disk.open(path, OpenMode::Read).map_err(io_error("opening", path))?;
        let bytes_total = file.len().map_err(io_error("reading", path))?;
        let mut reader =
            SnapshotReader::new(FileReader::new(file)).map_err(|error| refused(path, 0, error))?;
        let position = reader.position;
        if *path != super::finished(position) {
            return Err(refused(path, 0, SnapshotError::Damaged("the position is not the one in the name")));
        }
        let mut reported = 0;
        loop {
            let offset = reader.block_offset;
            match reader.next() {
                Err(error) => return Err(refused(path, reader.block_offset, error)),
                Ok(None) => break,
                Ok(Some((kind, bytes))) => {
                    self.entry(kind, bytes, position).map_err(|error| not_taken(path, offset, error))?;
                }
            }
            if reader.bytes >= reported + PROGRESS_BYTES {
                reported = reader.bytes;
                self.report(Stage::Snapshot, reported, bytes_total);
            }
        }
        self.report(Stage::Snapshot, bytes_total, bytes_total);
        Ok(position)
    }

    fn entry(&mut self, kind: EntryKind, bytes: &[u8], position: u64) -> Result<(), Refusal> {
        match kind {
            EntryKind::Tenant => {
                let name = std::str::from_utf8(bytes).map_err(|_| InvalidTenant)?;
                let owner = self.owner(name)?;
                // A tenant without an entity exists too.
                self.memory.restore(&owner.name, "", None, position)?;
                self.current = Some(owner);
            }
            EntryKind::Entity => {
                let owner = self.current.clone().ok_or(Refusal::NoTenant)?;
                let record = self.record(bytes, &owner)?;
                let id = record.id().to_owned();
                self.restore(&owner, &id, Some(record), position)?;
            }
            EntryKind::Context => self.keep(payload::read_context(bytes)?),
            EntryKind::Change => self.payload(bytes, position)?,
            EntryKind::End => {}
        }
        Ok(())
    }

    /// One payload of the journal.
    fn payload(&mut self, bytes: &[u8], position: u64) -> Result<(), Refusal> {
        match payload::read(bytes)? {
            Payload::Change(change) => {
                let owner = self.owner(change.tenant)?;
                let after = change.after.map(|bytes| self.record(bytes, &owner)).transpose()?;
                self.restore(&owner, change.id, after, position)?;
            }
            Payload::Kept(context) => self.keep(context),
            Payload::Forgotten { tenant, local_id } => {
                self.hosted.remove(&(tenant.into(), local_id.into()));
            }
        }
        Ok(())
    }

    fn restore(
        &mut self,
        owner: &Owner,
        id: &str,
        after: Option<Record>,
        position: u64,
    ) -> Result<(), Refusal> {
        self.memory.restore(&owner.name, id, after, position)?;
        self.entries += 1;
        Ok(())
    }

    fn keep(&mut self, context: HostedContext) {
        self.hosted.insert((context.tenant.clone(), context.local_id.clone()), context);
    }

    fn record(&self, bytes: &[u8], owner: &Owner) -> Result<Record, CanonicalError> {
        canonical::read(bytes, self.memory.symbols(), &owner.budget)
    }

    fn owner(&mut self, name: &str) -> Result<Owner, Refusal> {
        if let Some(owner) = self.owners.get(name) {
            return Ok(owner.clone());
        }
        let tenant = if name.is_empty() { TenantName::default_tenant() } else { TenantName::parse(name)? };
        let owner = Owner { budget: self.memory.restored_budget(&tenant)?, name: tenant };
        self.owners.insert(name.into(), owner.clone());
        Ok(owner)
    }

    fn report(&mut self, stage: Stage, bytes: u64, bytes_total: u64) {
        (self.on_progress)(Progress { stage, bytes, bytes_total, entries: self.entries });
    }
}

impl Replay for Loader<'_> {
    fn frame(&mut self, frame: Frame<'_>) -> Result<(), Box<dyn StdError + Send + Sync>> {
        self.payload(frame.payload, frame.end().get()).map_err(Into::into)
    }

    fn progress(&mut self, progress: trifid_base_log::Progress) {
        self.report(Stage::Journal, progress.bytes, progress.bytes_total);
    }
}

/// What a snapshot's reader says, as an error that names the file.
pub(super) fn refused(path: &Path, offset: u64, error: SnapshotError) -> Error {
    let file = path.to_owned();
    match error {
        SnapshotError::Io(source) => io_error("reading", path)(source),
        SnapshotError::Damaged(what) => Error::Damaged { file, offset, what: what.to_owned() },
        SnapshotError::Unsupported(what) => Error::Unsupported { file, what },
    }
}

fn not_taken(path: &Path, offset: u64, refusal: Refusal) -> Error {
    let file = path.to_owned();
    match refusal {
        Refusal::Payload(PayloadError::Version(_)) | Refusal::Canonical(CanonicalError::Format(_)) => {
            Error::Unsupported { file, what: refusal.to_string() }
        }
        other => Error::Content { file, offset, source: Box::new(other) },
    }
}

/// A file of the disk, read from its start.
pub(super) struct FileReader {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl FileReader {
    pub(super) fn new(file: Arc<dyn DiskFile>) -> io::BufReader<Self> {
        io::BufReader::with_capacity(1 << 16, FileReader { file, offset: 0 })
    }
}

impl Read for FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}
