//! What lies on the simulated disk: once as a running process sees it, and once as it would be found after a
//! power cut.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An index into the files that ever were.
pub(crate) type Node = usize;

/// A change of a file's content that no flush has made last.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Len(usize),
}

/// A file's content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inode {
    /// As a process reads it.
    pub(crate) live: Vec<u8>,
    /// As the last flush left it.
    pub(crate) lasting: Vec<u8>,
    /// What happened since.
    pub(crate) pending: Vec<Change>,
}

impl Inode {
    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) {
        write_into(&mut self.live, offset, bytes, &[]);
        self.pending.push(Change::Write { offset, bytes: bytes.to_vec() });
    }

    pub(crate) fn set_len(&mut self, len: usize) {
        self.live.resize(len, 0);
        self.pending.push(Change::Len(len));
    }

    /// A flush of the bytes: everything lasts but a shrunk length, which only [`sync_all`](Self::sync_all)
    /// promises.
    pub(crate) fn sync_data(&mut self) {
        let mut shrunk = None;
        for change in self.pending.drain(..) {
            match change {
                Change::Write { offset, bytes } => write_into(&mut self.lasting, offset, &bytes, &[]),
                Change::Len(len) if len >= self.lasting.len() => self.lasting.resize(len, 0),
                Change::Len(len) => shrunk = Some(len),
            }
        }
        // A shrunk length is still to come, and by now it is the length that the process sees.
        if shrunk.is_some() && self.live.len() < self.lasting.len() {
            self.pending.push(Change::Len(self.live.len()));
        }
    }

    pub(crate) fn sync_all(&mut self) {
        for change in self.pending.drain(..) {
            match change {
                Change::Write { offset, bytes } => write_into(&mut self.lasting, offset, &bytes, &[]),
                Change::Len(len) => self.lasting.resize(len, 0),
            }
        }
    }
}

/// Writes bytes, filling a gap before them.
pub(crate) fn write_into(content: &mut Vec<u8>, offset: usize, bytes: &[u8], filler: &[u8]) {
    grow(content, offset + bytes.len(), filler);
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

/// Lengthens the content to `len` unless it is that long, with zeros or with what the filler holds there (it
/// repeats).
pub(crate) fn grow(content: &mut Vec<u8>, len: usize, filler: &[u8]) {
    if filler.is_empty() {
        content.resize(content.len().max(len), 0);
    }
    while content.len() < len {
        let from = content.len() % filler.len();
        let count = (filler.len() - from).min(len - content.len());
        content.extend_from_slice(&filler[from..from + count]);
    }
}

/// The names on the disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) dirs: BTreeSet<PathBuf>,
    pub(crate) files: BTreeMap<PathBuf, Node>,
}

impl Names {
    pub(crate) fn has_dir(&self, path: &Path) -> bool {
        path.as_os_str().is_empty() || self.dirs.contains(path)
    }

    /// Whether the directory holds anything.
    pub(crate) fn has_content(&self, dir: &Path) -> bool {
        self.dirs.iter().chain(self.files.keys()).any(|path| path.parent() == Some(dir))
    }

    pub(crate) fn apply(&mut self, change: &NameChange) {
        match change {
            NameChange::Dir(path) => {
                self.dirs.insert(path.clone());
            }
            NameChange::RemoveDir(path) => {
                self.dirs.remove(path);
            }
            NameChange::Set(path, node) => {
                self.files.insert(path.clone(), *node);
            }
            NameChange::Remove(path) => {
                self.files.remove(path);
            }
            NameChange::Rename(from, to, node) => {
                self.files.remove(from);
                self.files.insert(to.clone(), *node);
            }
        }
    }

    /// Drops whatever lies in a directory that is not there.
    pub(crate) fn prune(&mut self) {
        let dirs = self.dirs.clone();
        let rooted = |path: &Path| {
            path.ancestors().skip(1).all(|dir| dir.as_os_str().is_empty() || dirs.contains(dir))
        };
        self.dirs.retain(|path| rooted(path));
        self.files.retain(|path, _| rooted(path));
    }
}

/// A change of names that no flush of the directory has made last.
#[derive(Clone, Debug)]
pub(crate) enum NameChange {
    Dir(PathBuf),
    RemoveDir(PathBuf),
    Set(PathBuf, Node),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf, Node),
}

impl NameChange {
    /// Whether a flush of `dir` makes the change last.
    pub(crate) fn is_in(&self, dir: &Path) -> bool {
        let path = match self {
            NameChange::Dir(path)
            | NameChange::RemoveDir(path)
            | NameChange::Set(path, _)
            | NameChange::Remove(path) => path,
            NameChange::Rename(_, to, _) => to,
        };
        path.parent() == Some(dir)
    }
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    pub(crate) inodes: Vec<Inode>,
    pub(crate) live: Names,
    pub(crate) lasting: Names,
    pub(crate) pending: Vec<NameChange>,
    /// What removed files held: a later file may be given their blocks.
    pub(crate) graveyard: Vec<Vec<u8>>,
}

impl Storage {
    pub(crate) fn change(&mut self, change: NameChange) {
        self.live.apply(&change);
        self.pending.push(change);
    }

    pub(crate) fn sync_dir(&mut self, dir: &Path) {
        let (done, left) =
            std::mem::take(&mut self.pending).into_iter().partition(|change| change.is_in(dir));
        self.pending = left;
        let done: Vec<NameChange> = done;
        done.iter().for_each(|change| self.lasting.apply(change));
    }

    /// Bytes in files that have a name.
    pub(crate) fn used(&self) -> u64 {
        self.live.files.values().map(|node| self.inodes[*node].live.len() as u64).sum()
    }
}
