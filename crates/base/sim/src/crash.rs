//! What a power cut leaves.
//!
//! Every change that no flush made last is kept, lost or torn, in the order of issue or in any other, as the
//! seed decides. How much survives is drawn first, once per cut, so that the extremes (everything, nothing)
//! come up often.

use fastrand::Rng;

use crate::state::{Change, Inode, NameChange, Names, Storage, grow, write_into};

/// Disks write whole sectors.
const SECTOR: usize = 512;
const STALE_BYTES_MAX: usize = 1 << 16;

impl Storage {
    /// The disk as it is found when the power is back.
    pub(crate) fn after_power_cut(&self, rng: &mut Rng) -> Storage {
        let survival = Survival::draw(rng);
        let mut names = self.lasting.clone();
        survival.names(&self.pending, rng).for_each(|change| names.apply(change));
        names.prune();
        let inodes: Vec<Inode> = self.inodes.iter().map(|inode| survival.content(inode, self, rng)).collect();
        Storage {
            inodes,
            live: names.clone(),
            lasting: names,
            pending: Vec::new(),
            graveyard: self.graveyard.clone(),
        }
    }

    /// Names as a process sees them; for the death of a process alone.
    pub(crate) fn names(&self) -> &Names {
        &self.live
    }
}

/// How kind this cut is.
struct Survival {
    kept: f64,
    torn: f64,
    shuffled: bool,
    /// Names are kept up to some point, as a journal does; otherwise each by itself.
    journal: bool,
    /// Room that was given to a file but not written shows old bytes rather than zeros.
    stale: bool,
}

impl Survival {
    fn draw(rng: &mut Rng) -> Self {
        let kept = *rng.choice(&[0.0, 0.25, 0.5, 0.75, 1.0]).unwrap_or(&0.5);
        Survival {
            kept,
            torn: if rng.bool() { 0.5 } else { 0.0 },
            shuffled: rng.bool(),
            journal: rng.bool(),
            stale: rng.u8(..4) == 0,
        }
    }

    fn names<'a>(&self, pending: &'a [NameChange], rng: &mut Rng) -> impl Iterator<Item = &'a NameChange> {
        let upto = if self.journal { rng.usize(..=pending.len()) } else { pending.len() };
        let kept: Vec<bool> = (0..upto).map(|_| self.journal || rng.f64() < self.kept).collect();
        pending.iter().zip(kept).filter(|(_, kept)| *kept).map(|(change, _)| change)
    }

    fn content(&self, inode: &Inode, storage: &Storage, rng: &mut Rng) -> Inode {
        let mut content = inode.lasting.clone();
        let filler = &self.stale_bytes(storage, rng);
        let mut changes: Vec<&Change> = inode.pending.iter().collect();
        if self.shuffled {
            rng.shuffle(&mut changes);
        }
        for change in changes {
            if rng.f64() < self.kept {
                apply(&mut content, change, filler);
            } else if rng.f64() < self.torn {
                tear(&mut content, change, filler, rng);
            }
        }
        // The length may have been written although the bytes were not.
        if rng.u8(..6) == 0 && inode.live.len() > inode.lasting.len() {
            grow(&mut content, inode.live.len(), filler);
        }
        Inode { live: content.clone(), lasting: content, pending: Vec::new() }
    }

    fn stale_bytes(&self, storage: &Storage, rng: &mut Rng) -> Vec<u8> {
        if !self.stale {
            return Vec::new();
        }
        match rng.choice(&storage.graveyard) {
            Some(dead) if rng.bool() => dead.clone(),
            _ => {
                let mut bytes = vec![0; rng.usize(1..STALE_BYTES_MAX)];
                rng.fill(&mut bytes);
                bytes
            }
        }
    }
}

fn apply(content: &mut Vec<u8>, change: &Change, filler: &[u8]) {
    match change {
        Change::Write { offset, bytes } => write_into(content, *offset, bytes, filler),
        Change::Len(len) => {
            content.truncate(*len);
            grow(content, *len, filler);
        }
    }
}

/// Some sectors of a write, or its first bytes.
fn tear(content: &mut Vec<u8>, change: &Change, filler: &[u8], rng: &mut Rng) {
    let Change::Write { offset, bytes } = change else { return };
    if rng.u8(..4) == 0 {
        return write_into(content, *offset, &bytes[..rng.usize(..=bytes.len())], filler);
    }
    let mut start = 0;
    while start < bytes.len() {
        let end = ((offset + start + 1).next_multiple_of(SECTOR) - offset).min(bytes.len());
        if rng.bool() {
            write_into(content, offset + start, &bytes[start..end], filler);
        }
        start = end;
    }
}
