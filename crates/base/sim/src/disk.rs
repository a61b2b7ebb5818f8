//! The simulated disk behind the log's [`Disk`] trait.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastrand::Rng;
use parking_lot::Mutex;
use trifid_base_log::{Disk, DiskFile, DiskLock, OpenMode};

use crate::fault::{Fault, FaultHook, Op, OpKind};
use crate::state::{Inode, NameChange, Node, Storage};

/// A disk in memory. Clones are handles of the same disk.
#[derive(Clone, Default)]
pub struct SimDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    storage: Storage,
    locked: bool,
    ops: u64,
    cut_at: Option<u64>,
    /// Nothing works any more.
    dead: bool,
    room: Option<u64>,
    hook: Option<FaultHook>,
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cuts the power at the operation with this ordinal: it fails, half done, and everything after it fails.
    pub fn cut_at(&self, ordinal: u64) {
        self.inner.lock().cut_at = Some(ordinal);
    }

    /// How many operations there were.
    pub fn ops(&self) -> u64 {
        self.inner.lock().ops
    }

    /// Whether the power is cut.
    pub fn is_dead(&self) -> bool {
        self.inner.lock().dead
    }

    /// Cuts the power now if it is not cut yet, and answers the disk as it is found afterwards.
    #[must_use]
    pub fn power_cut(&self, seed: u64) -> SimDisk {
        let mut inner = self.inner.lock();
        inner.dead = true;
        SimDisk::holding(inner.storage.after_power_cut(&mut Rng::with_seed(seed)))
    }

    /// Kills the process: this handle is dead, the answered one sees everything that was written, flushed or
    /// not.
    #[must_use]
    pub fn kill(&self) -> SimDisk {
        let mut inner = self.inner.lock();
        inner.dead = true;
        SimDisk::holding(inner.storage.clone())
    }

    /// Another disk that holds the same.
    #[must_use]
    pub fn copy(&self) -> SimDisk {
        SimDisk::holding(self.inner.lock().storage.clone())
    }

    fn holding(storage: Storage) -> SimDisk {
        SimDisk { inner: Arc::new(Mutex::new(Inner { storage, ..Inner::default() })) }
    }

    /// Asks `hook` before each operation whether it goes wrong.
    pub fn on_op(&self, hook: impl FnMut(&Op<'_>) -> Option<Fault> + Send + 'static) {
        self.inner.lock().hook = Some(Box::new(hook));
    }

    /// How many bytes fit on the disk; `None` is no limit.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.inner.lock().room = bytes;
    }

    /// Bytes in all files, as a process sees them.
    pub fn used(&self) -> u64 {
        self.inner.lock().storage.used()
    }

    /// The paths of all files, as a process sees them.
    pub fn files(&self) -> Vec<PathBuf> {
        self.inner.lock().storage.names().files.keys().cloned().collect()
    }

    /// The content of a file, as a process sees it.
    pub fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let inner = self.inner.lock();
        let node = *inner.storage.names().files.get(path)?;
        Some(inner.storage.inodes[node].live.clone())
    }

    /// Removes a file as if it had never been there; that lasts. To plant damage.
    pub fn remove_for_good(&self, path: &Path) {
        let storage = &mut self.inner.lock().storage;
        storage.live.apply(&NameChange::Remove(path.to_owned()));
        storage.lasting.apply(&NameChange::Remove(path.to_owned()));
    }

    /// Replaces the content of a file that exists, or creates it (and its directories); it lasts. To plant
    /// damage.
    pub fn plant(&self, path: &Path, content: Vec<u8>) {
        let storage = &mut self.inner.lock().storage;
        let inode = Inode { live: content.clone(), lasting: content, pending: Vec::new() };
        if let Some(node) = storage.live.files.get(path) {
            storage.inodes[*node] = inode;
            return;
        }
        let changes = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
        let mut changes: Vec<_> = changes.map(|dir| NameChange::Dir(dir.to_owned())).collect();
        changes.push(NameChange::Set(path.to_owned(), storage.inodes.len()));
        storage.inodes.push(inode);
        for change in &changes {
            storage.live.apply(change);
            storage.lasting.apply(change);
        }
    }
}

fn no_power() -> io::Error {
    io::Error::other("the power is cut")
}

/// How an operation goes.
enum Course {
    Well,
    /// It takes effect as far as an unflushed operation can, and the power goes.
    Cut,
    Lie,
    Forget,
    Short(usize),
}

impl Inner {
    /// Counts the operation and says how it goes.
    fn begin(&mut self, kind: OpKind, path: &Path) -> io::Result<Course> {
        self.alive()?;
        let ordinal = self.ops;
        self.ops += 1;
        if self.cut_at == Some(ordinal) {
            self.dead = true;
            return Ok(Course::Cut);
        }
        let fault = self.hook.as_mut().and_then(|hook| hook(&Op { kind, path, ordinal }));
        match fault {
            None => Ok(Course::Well),
            Some(Fault::Lie) => Ok(Course::Lie),
            Some(Fault::FailAndForget) => Ok(Course::Forget),
            Some(Fault::Short(bytes)) => Ok(Course::Short(bytes)),
            Some(Fault::Fail(kind)) => Err(kind.into()),
        }
    }

    fn alive(&self) -> io::Result<()> {
        if self.dead { Err(no_power()) } else { Ok(()) }
    }

    /// A change of names.
    fn change(&mut self, kind: OpKind, path: &Path, change: NameChange) -> io::Result<()> {
        let course = self.begin(kind, path)?;
        self.storage.change(change);
        match course {
            Course::Cut => Err(no_power()),
            _ => Ok(()),
        }
    }

    fn node(&self, path: &Path) -> io::Result<Node> {
        self.alive()?;
        self.storage.live.files.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&mut self, path: &Path) -> io::Result<Node> {
        self.alive()?;
        if self.storage.live.files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !self.storage.live.has_dir(path.parent().unwrap_or(Path::new(""))) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let node = self.storage.inodes.len();
        self.storage.inodes.push(Inode::default());
        self.change(OpKind::Create, path, NameChange::Set(path.to_owned(), node))?;
        Ok(node)
    }

    /// How many more bytes a file may grow.
    fn room(&self) -> usize {
        self.room.map_or(usize::MAX, |room| room.saturating_sub(self.storage.used()) as usize)
    }
}

impl Disk for SimDisk {
    fn lock(&self, _path: &Path) -> io::Result<Box<dyn DiskLock>> {
        let mut inner = self.inner.lock();
        inner.alive()?;
        if std::mem::replace(&mut inner.locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock { inner: self.inner.clone() }))
    }

    fn lock_holder(&self, _path: &Path) -> Option<String> {
        Some("1".to_owned())
    }

    fn create_dir(&self, path: &Path) -> io::Result<bool> {
        let mut inner = self.inner.lock();
        inner.alive()?;
        if inner.storage.live.has_dir(path) {
            return Ok(false);
        }
        inner.change(OpKind::CreateDir, path, NameChange::Dir(path.to_owned()))?;
        Ok(true)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let inner = self.inner.lock();
        inner.alive()?;
        if !inner.storage.live.has_dir(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let files = inner.storage.live.files.keys().filter(|path| path.parent() == Some(dir));
        Ok(files.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn list_dirs(&self, dir: &Path) -> io::Result<Vec<String>> {
        let inner = self.inner.lock();
        inner.alive()?;
        if !inner.storage.live.has_dir(dir) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let dirs = inner.storage.live.dirs.iter().filter(|path| path.parent() == Some(dir));
        Ok(dirs.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut inner = self.inner.lock();
        let node = match mode {
            OpenMode::CreateNew => inner.create(path)?,
            OpenMode::Read | OpenMode::Write => inner.node(path)?,
        };
        Ok(Arc::new(SimFile { inner: self.inner.clone(), path: path.to_owned(), node }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let node = inner.node(from)?;
        inner.change(OpKind::Rename, to, NameChange::Rename(from.to_owned(), to.to_owned(), node))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let node = inner.node(path)?;
        inner.change(OpKind::Remove, path, NameChange::Remove(path.to_owned()))?;
        let dead = inner.storage.inodes[node].live.clone();
        inner.storage.graveyard.push(dead);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock();
        inner.alive()?;
        if !inner.storage.live.has_dir(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if inner.storage.live.has_content(path) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        inner.change(OpKind::RemoveDir, path, NameChange::RemoveDir(path.to_owned()))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.inner.lock();
        match inner.begin(OpKind::SyncDir, dir)? {
            Course::Well | Course::Short(_) => inner.storage.sync_dir(dir),
            Course::Lie => {}
            Course::Cut => return Err(no_power()),
            Course::Forget => {
                inner.storage.pending.retain(|change| !change.is_in(dir));
                return Err(io::Error::other("the flush failed"));
            }
        }
        Ok(())
    }
}

struct SimLock {
    inner: Arc<Mutex<Inner>>,
}

impl DiskLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.inner.lock().locked = false;
    }
}

struct SimFile {
    inner: Arc<Mutex<Inner>>,
    path: PathBuf,
    node: Node,
}

impl SimFile {
    fn sync(&self, kind: OpKind, sync: impl FnOnce(&mut Inode)) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let course = inner.begin(kind, &self.path)?;
        let inode = &mut inner.storage.inodes[self.node];
        match course {
            Course::Well | Course::Short(_) => sync(inode),
            Course::Lie => {}
            Course::Cut => return Err(no_power()),
            Course::Forget => {
                inode.pending.clear();
                return Err(io::Error::other("the flush failed"));
            }
        }
        Ok(())
    }
}

impl DiskFile for SimFile {
    fn write_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let mut inner = self.inner.lock();
        let course = inner.begin(OpKind::Write, &self.path)?;
        let mut bytes = Vec::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        let len = inner.storage.inodes[self.node].live.len();
        let fits = len.saturating_add(inner.room()).saturating_sub(offset as usize);
        if fits == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        bytes.truncate(fits);
        if let Course::Short(at_most) = course {
            bytes.truncate(at_most);
        }
        inner.storage.inodes[self.node].write(offset as usize, &bytes);
        match course {
            Course::Cut => Err(no_power()),
            _ => Ok(bytes.len()),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let inner = self.inner.lock();
        inner.alive()?;
        let live = &inner.storage.inodes[self.node].live;
        let from = live.get(offset as usize..).unwrap_or_default();
        let count = from.len().min(buffer.len());
        buffer[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        let inner = self.inner.lock();
        inner.alive()?;
        Ok(inner.storage.inodes[self.node].live.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let course = inner.begin(OpKind::SetLen, &self.path)?;
        inner.storage.inodes[self.node].set_len(len as usize);
        match course {
            Course::Cut => Err(no_power()),
            _ => Ok(()),
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(OpKind::SyncData, Inode::sync_data)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(OpKind::SyncAll, Inode::sync_all)
    }

    fn preallocate(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "d/file";

    fn disk() -> SimDisk {
        let disk = SimDisk::new();
        disk.create_dir(Path::new("d")).unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        disk
    }

    fn create(disk: &SimDisk) -> Arc<dyn DiskFile> {
        disk.open(Path::new(NAME), OpenMode::CreateNew).unwrap()
    }

    fn write(file: &Arc<dyn DiskFile>, bytes: &[u8], offset: u64) {
        assert_eq!(file.write_at(&[IoSlice::new(bytes)], offset).unwrap(), bytes.len());
    }

    /// What is found after each of many power cuts.
    fn outcomes(disk: &SimDisk) -> std::collections::HashSet<Option<Vec<u8>>> {
        (0..200).map(|seed| disk.power_cut(seed).content(Path::new(NAME))).collect()
    }

    #[test]
    fn flushed_bytes_under_a_flushed_name_last() {
        let disk = disk();
        let file = create(&disk);
        write(&file, b"abc", 0);
        file.sync_data().unwrap();
        disk.sync_dir(Path::new("d")).unwrap();
        assert_eq!(outcomes(&disk), [Some(b"abc".to_vec())].into());
    }

    #[test]
    fn a_name_that_was_not_flushed_may_go() {
        let disk = disk();
        let file = create(&disk);
        write(&file, b"abc", 0);
        file.sync_all().unwrap();
        assert_eq!(outcomes(&disk), [None, Some(b"abc".to_vec())].into());
    }

    #[test]
    fn a_directory_that_was_not_flushed_takes_its_files_along() {
        let disk = SimDisk::new();
        disk.create_dir(Path::new("d")).unwrap();
        let file = create(&disk);
        write(&file, b"abc", 0);
        file.sync_all().unwrap();
        disk.sync_dir(Path::new("d")).unwrap();
        assert_eq!(outcomes(&disk), [None, Some(b"abc".to_vec())].into());
    }

    #[test]
    fn unflushed_writes_are_kept_lost_torn_and_reordered() {
        let disk = disk();
        let file = create(&disk);
        disk.sync_dir(Path::new("d")).unwrap();
        write(&file, &[1; 1024], 0);
        file.sync_data().unwrap();
        write(&file, &[2; 1024], 0);
        write(&file, &[3; 512], 0);
        let found = outcomes(&disk);
        let sectors = |a: u8, b: u8| Some([[a; 512], [b; 512]].concat());
        for (first, second) in [(1, 1), (2, 2), (3, 2), (3, 1), (1, 2)] {
            assert!(found.contains(&sectors(first, second)), "{first} {second}");
        }
    }

    #[test]
    fn a_shrunk_length_lasts_only_after_a_full_flush() {
        let disk = disk();
        let file = create(&disk);
        disk.sync_dir(Path::new("d")).unwrap();
        write(&file, b"abcdef", 0);
        file.sync_data().unwrap();
        file.set_len(3).unwrap();
        file.sync_data().unwrap();
        assert_eq!(outcomes(&disk), [Some(b"abc".to_vec()), Some(b"abcdef".to_vec())].into());
        file.len().unwrap_err();
    }

    #[test]
    fn a_renamed_file_is_found_under_either_name() {
        let disk = disk();
        disk.plant(Path::new(NAME), b"old".to_vec());
        let file = disk.open(Path::new("d/tmp"), OpenMode::CreateNew).unwrap();
        write(&file, b"new", 0);
        file.sync_all().unwrap();
        disk.sync_dir(Path::new("d")).unwrap();
        disk.rename(Path::new("d/tmp"), Path::new(NAME)).unwrap();
        assert_eq!(outcomes(&disk), [Some(b"old".to_vec()), Some(b"new".to_vec())].into());
    }

    #[test]
    fn a_failed_flush_leaves_what_it_forgot_to_the_page_cache() {
        let disk = disk();
        let file = create(&disk);
        disk.sync_dir(Path::new("d")).unwrap();
        write(&file, b"abc", 0);
        disk.on_op(|op| (op.kind == OpKind::SyncData).then_some(Fault::FailAndForget));
        file.sync_data().unwrap_err();
        let disk = disk.kill();
        assert_eq!(disk.content(Path::new(NAME)), Some(b"abc".to_vec()));
        let file = disk.open(Path::new(NAME), OpenMode::Write).unwrap();
        file.sync_data().unwrap();
        assert!(!outcomes(&disk).contains(&Some(b"abc".to_vec())));
    }

    #[test]
    fn a_lying_flush_and_a_cut_lose_what_they_should() {
        let disk = disk();
        let file = create(&disk);
        disk.sync_dir(Path::new("d")).unwrap();
        write(&file, b"abc", 0);
        disk.on_op(|op| (op.kind == OpKind::SyncData).then_some(Fault::Lie));
        file.sync_data().unwrap();
        disk.cut_at(disk.ops());
        file.write_at(&[IoSlice::new(b"d")], 3).unwrap_err();
        assert!(disk.is_dead());
        assert!(outcomes(&disk).contains(&Some(Vec::new())));
    }

    #[test]
    fn a_full_disk_takes_what_fits() {
        let disk = disk();
        disk.set_room(Some(4));
        let file = create(&disk);
        assert_eq!(file.write_at(&[IoSlice::new(b"abcdef")], 0).unwrap(), 4);
        let full = file.write_at(&[IoSlice::new(b"ef")], 4).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }
}
