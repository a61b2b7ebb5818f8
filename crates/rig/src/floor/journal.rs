//! One write and one flush a wave.
//!
//! Requests hand their bytes to the wave that is gathering and wait. The committer takes the whole wave,
//! writes it, flushes it, and answers all of it; what arrives meanwhile is the next wave. Waves grow with
//! the load by themselves, there is no timer.
//!
//! The file is appended to, or it was written once with zeros and is written again from its beginning: then a flush
//! has the bytes to bring to the disk and no change of the file's size, which is the least that it can cost.

use crate::error::Error;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

#[derive(Default)]
struct Wave {
    bytes: Vec<u8>,
    waiting: Vec<oneshot::Sender<()>>,
    closed: bool,
}

#[derive(Default)]
struct Gathering {
    wave: Mutex<Wave>,
    arrived: Condvar,
}

impl Gathering {
    fn lock(&self) -> MutexGuard<'_, Wave> {
        self.wave.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a wave; nothing when there will be none.
    fn take(&self) -> Option<Wave> {
        let idle = |wave: &mut Wave| wave.waiting.is_empty() && !wave.closed;
        let mut wave = self.arrived.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::take(&mut *wave);
        if taken.waiting.is_empty() { None } else { Some(taken) }
    }
}

/// A file and the thread that commits to it.
pub(crate) struct Journal {
    gathering: Arc<Gathering>,
}

/// Where waves are written.
enum Place {
    /// At the end of a file that grows.
    End(File),
    /// In a file of so many bytes that were all written before.
    Ring { file: File, bytes: u64, at: u64 },
}

impl Place {
    fn commit(&mut self, wave: &[u8]) -> io::Result<()> {
        match self {
            Place::End(file) => {
                file.write_all(wave)?;
                file.sync_data()
            }
            Place::Ring { file, bytes, at } => {
                if *at + wave.len() as u64 > *bytes {
                    *at = 0;
                }
                file.write_all_at(wave, *at)?;
                *at += wave.len() as u64;
                file.sync_data()
            }
        }
    }
}

impl Journal {
    /// A journal that grows.
    pub(crate) fn open(path: &Path) -> Result<Journal, Error> {
        File::create(path).map_err(Error::file(path)).map(|file| Journal::to(Place::End(file)))
    }

    /// A journal of so many bytes, written before it is used.
    pub(crate) fn prewritten(path: &Path, bytes: usize) -> Result<Journal, Error> {
        let filled = || {
            let mut file = File::create(path)?;
            file.write_all(&vec![0; bytes])?;
            file.sync_all()?;
            Ok(file)
        };
        let file = filled().map_err(Error::file(path))?;
        Ok(Journal::to(Place::Ring { file, bytes: bytes as u64, at: 0 }))
    }

    fn to(mut place: Place) -> Journal {
        let gathering = Arc::new(Gathering::default());
        let waves = Arc::clone(&gathering);
        std::thread::spawn(move || {
            while let Some(wave) = waves.take() {
                // After a failed flush nobody knows what is on the disk: the floor ends, and the
                // measurement with it.
                if place.commit(&wave.bytes).is_err() {
                    std::process::abort();
                }
                for waiting in wave.waiting {
                    let _ = waiting.send(());
                }
            }
        });
        Journal { gathering }
    }

    /// Returns when these bytes are on the disk.
    pub(crate) async fn append(&self, pieces: &[Bytes]) {
        let (durable, wait) = oneshot::channel();
        {
            let mut wave = self.gathering.lock();
            pieces.iter().for_each(|piece| wave.bytes.extend_from_slice(piece));
            wave.waiting.push(durable);
        }
        self.gathering.arrived.notify_one();
        let _ = wait.await;
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.gathering.lock().closed = true;
        self.gathering.arrived.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prewritten_journal_is_written_again_from_its_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        drop(Journal::prewritten(&path, 10).unwrap());
        let file = File::options().write(true).open(&path).unwrap();
        let mut place = Place::Ring { file, bytes: 10, at: 0 };
        for wave in [b"abcd", b"efgh", b"ijkl"] {
            place.commit(wave).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"ijklefgh\0\0");
    }
}
