//! One write and one flush a wave.
//!
//! Requests hand their bytes to the wave that is gathering and wait. The committer takes the whole wave,
//! writes it, flushes it, and answers all of it; what arrives meanwhile is the next wave. Waves grow with
//! the load by themselves, there is no timer.

use crate::error::Error;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, Write};
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

impl Journal {
    pub(crate) fn open(path: &Path) -> Result<Journal, Error> {
        let mut file = File::create(path).map_err(Error::file(path))?;
        let gathering = Arc::new(Gathering::default());
        let waves = Arc::clone(&gathering);
        std::thread::spawn(move || {
            while let Some(wave) = waves.take() {
                // After a failed flush nobody knows what is on the disk: the floor ends, and the
                // measurement with it.
                if commit(&mut file, &wave.bytes).is_err() {
                    std::process::abort();
                }
                for waiting in wave.waiting {
                    let _ = waiting.send(());
                }
            }
        });
        Ok(Journal { gathering })
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

fn commit(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_data()
}
