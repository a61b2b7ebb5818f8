//! Where the rest of a result waits while its client is slow: files that nobody else sees.
//!
//! A query holds its place in the engine until its last row has been taken. So when a client does not take what is
//! ready, its result goes on into a file of the spool, the query ends, and the client reads the file at its
//! own pace. The files have no name (they are unlinked when they are made), so a crash leaves nothing behind; all
//! of them together stay within a quota. Who finds the quota used up waits with its query, as long as the shell lets a
//! client be slow.
//!
//! Writing goes to the page cache, some 100 microseconds for a piece, on a thread of the compute pool.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::limits::SPOOL_READ_BYTES;

/// The folder and the quota, shared by all results.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    limit_bytes: u64,
    used_bytes: AtomicU64,
    /// Results that were spooled since the start.
    begun: AtomicU64,
}

impl Spool {
    /// A spool of at most `limit_bytes` in `folder`, which is made when it is first needed.
    pub(crate) fn new(folder: PathBuf, limit_bytes: u64) -> Arc<Self> {
        Arc::new(Self { folder, limit_bytes, used_bytes: AtomicU64::new(0), begun: AtomicU64::new(0) })
    }

    /// Bytes that wait in it.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Results that were spooled since the start.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// A new file.
    pub(crate) fn open(self: &Arc<Self>) -> io::Result<Tape> {
        std::fs::create_dir_all(&self.folder)?;
        let file = tempfile::tempfile_in(&self.folder)?;
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(Tape { file, written: 0, read: 0, held: 0, spool: Arc::clone(self) })
    }

    /// A new file for what is read more than once.
    pub(crate) fn scratch(self: &Arc<Self>) -> io::Result<Scratch> {
        Ok(Scratch(self.open()?))
    }

    fn take(&self, bytes: u64) -> bool {
        let before = self.used_bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.limit_bytes;
        if !fits {
            self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

/// What came of writing to a tape.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrote {
    /// It is in the file.
    Whole,
    /// The quota is used up; nothing was written.
    Full,
}

/// One file of the spool: written at its end, read from its beginning.
#[derive(Debug)]
pub(crate) struct Tape {
    file: File,
    written: u64,
    read: u64,
    /// What it counts for in the quota.
    held: u64,
    spool: Arc<Spool>,
}

impl Tape {
    /// Appends a piece, if the quota allows it.
    pub(crate) fn write(&mut self, piece: &[u8]) -> io::Result<Wrote> {
        if !self.spool.take(piece.len() as u64) {
            return Ok(Wrote::Full);
        }
        self.held += piece.len() as u64;
        self.file.seek(SeekFrom::Start(self.written))?;
        self.file.write_all(piece)?;
        self.written += piece.len() as u64;
        Ok(Wrote::Whole)
    }

    /// Whether everything written has been read.
    pub(crate) fn is_empty(&self) -> bool {
        self.read == self.written
    }

    /// Takes the next bytes. When the last ones are taken the file begins anew, so a client that is slow now and then
    /// does not fill the disk.
    pub(crate) fn read(&mut self) -> io::Result<Bytes> {
        let left = usize::try_from(self.written - self.read).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(SPOOL_READ_BYTES)];
        self.file.seek(SeekFrom::Start(self.read))?;
        self.file.read_exact(&mut bytes)?;
        self.read += bytes.len() as u64;
        if self.is_empty() {
            self.file.set_len(0)?;
            self.spool.used_bytes.fetch_sub(std::mem::take(&mut self.held), Ordering::Relaxed);
            (self.read, self.written) = (0, 0);
        }
        Ok(Bytes::from(bytes))
    }
}

/// A file of the spool that is written, then read from its beginning as often as is needed.
#[derive(Debug)]
pub(crate) struct Scratch(Tape);

impl Scratch {
    /// What was written.
    pub(crate) fn read(&mut self) -> io::Result<BufReader<&mut File>> {
        self.0.file.rewind()?;
        Ok(BufReader::with_capacity(SPOOL_READ_BYTES, &mut self.0.file))
    }
}

impl io::Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes)? {
            Wrote::Whole => Ok(bytes.len()),
            Wrote::Full => Err(io::ErrorKind::QuotaExceeded.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        self.spool.used_bytes.fetch_sub(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(tape: &mut Tape) -> Vec<u8> {
        let mut out = Vec::new();
        while !tape.is_empty() {
            out.extend_from_slice(&tape.read().unwrap());
        }
        out
    }

    #[test]
    fn what_goes_in_comes_out_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().join("deep/spool"), 10 << 20);
        let mut tape = spool.open().unwrap();
        let pieces: Vec<Vec<u8>> = (0..8_u8).map(|at| vec![at; 100_000]).collect();
        for piece in &pieces {
            assert_eq!(tape.write(piece).unwrap(), Wrote::Whole);
        }
        let first = tape.read().unwrap();
        tape.write(b"late").unwrap();
        let rest = drained(&mut tape);
        let whole = [pieces.concat(), b"late".to_vec()].concat();
        assert_eq!([first.to_vec(), rest].concat(), whole);
        assert_eq!(spool.used_bytes(), 0, "a file that is read through is empty");
        tape.write(b"again").unwrap();
        assert_eq!(drained(&mut tape), b"again");
        let left = std::fs::read_dir(folder.path().join("deep/spool")).unwrap().count();
        assert_eq!(left, 0, "its files have no names");
    }

    #[test]
    fn the_quota_holds_for_all_together() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().to_owned(), 100);
        let (mut one, mut two) = (spool.open().unwrap(), spool.open().unwrap());
        assert_eq!(one.write(&[1; 60]).unwrap(), Wrote::Whole);
        assert_eq!(two.write(&[2; 60]).unwrap(), Wrote::Full);
        assert_eq!(two.write(&[2; 40]).unwrap(), Wrote::Whole);
        drop(one);
        assert_eq!((spool.used_bytes(), spool.begun()), (40, 2));
        assert_eq!(two.write(&[3; 60]).unwrap(), Wrote::Whole);
        assert_eq!(drained(&mut two).len(), 100);
    }

    #[test]
    fn a_scratch_file_is_read_as_often_as_needed() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().to_owned(), 10);
        let mut scratch = spool.scratch().unwrap();
        scratch.write_all(b"0123").unwrap();
        scratch.write_all(b"456789").unwrap();
        for _ in 0..2 {
            let mut text = String::new();
            scratch.read().unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "0123456789");
        }
        assert_eq!(scratch.write_all(b"x").unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        drop(scratch);
        assert_eq!(spool.used_bytes(), 0);
    }
}
