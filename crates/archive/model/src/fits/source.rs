//! Where the bytes of a table's rows and heap come from.
//!
//! Rows come one after the other; arrays of the heap come as the rows ask for them, and the heap lies behind
//! all rows. A source that can seek fetches them through a window. One that cannot has to hold the table in
//! memory, which it does for small ones only.

use std::io::{self, Read, Seek, SeekFrom};

/// Bytes of the heap fetched at once.
const WINDOW_BYTES: usize = 1 << 20;

/// Rows and heap of one table.
pub(super) trait Source {
    /// The next bytes of the rows.
    fn rows(&mut self, out: &mut [u8]) -> io::Result<()>;

    /// Bytes of the heap, counted from its start.
    fn heap(&mut self, at: u64, bytes: usize) -> io::Result<&[u8]>;
}

/// Rows only.
pub(super) struct Stream<R>(pub(super) R);

impl<R: Read> Source for Stream<R> {
    fn rows(&mut self, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact(out)
    }

    fn heap(&mut self, _at: u64, _bytes: usize) -> io::Result<&[u8]> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

/// A table in memory.
pub(super) struct Held {
    bytes: Vec<u8>,
    next: usize,
    heap: usize,
}

impl Held {
    /// Reads rows and heap, which begins so many bytes behind the first row.
    pub(super) fn read(source: &mut impl Read, bytes: u64, heap: u64) -> io::Result<Self> {
        let mut held = Vec::new();
        source.take(bytes).read_to_end(&mut held)?;
        if (held.len() as u64) < bytes {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(Self { bytes: held, next: 0, heap: usize::try_from(heap).unwrap_or(usize::MAX) })
    }

    fn slice(&self, at: Option<usize>, bytes: usize) -> io::Result<&[u8]> {
        let range = at.and_then(|at| Some(at..at.checked_add(bytes)?));
        let slice = range.and_then(|range| self.bytes.get(range));
        slice.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    }
}

impl Source for Held {
    fn rows(&mut self, out: &mut [u8]) -> io::Result<()> {
        out.copy_from_slice(self.slice(Some(self.next), out.len())?);
        self.next += out.len();
        Ok(())
    }

    fn heap(&mut self, at: u64, bytes: usize) -> io::Result<&[u8]> {
        let at = usize::try_from(at).ok().and_then(|at| self.heap.checked_add(at));
        self.slice(at, bytes)
    }
}

/// A file.
pub(super) struct Seekable<R> {
    source: R,
    /// Where the next row stands.
    next: u64,
    /// Where the heap begins.
    heap: u64,
    /// Where the source stands, as far as is known.
    position: u64,
    window: Vec<u8>,
    /// Where in the file the window begins.
    window_at: u64,
}

impl<R: Read + Seek> Seekable<R> {
    /// The source stands at the first row.
    pub(super) fn new(source: R, rows: u64, heap: u64) -> Self {
        Self { source, next: rows, heap, position: rows, window: Vec::new(), window_at: 0 }
    }

    fn go(&mut self, position: u64) -> io::Result<()> {
        if self.position != position {
            self.source.seek(SeekFrom::Start(position))?;
            self.position = position;
        }
        Ok(())
    }
}

impl<R: Read + Seek> Source for Seekable<R> {
    fn rows(&mut self, out: &mut [u8]) -> io::Result<()> {
        self.go(self.next)?;
        self.source.read_exact(out)?;
        self.next += out.len() as u64;
        self.position = self.next;
        Ok(())
    }

    fn heap(&mut self, at: u64, bytes: usize) -> io::Result<&[u8]> {
        let end_of_file = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let start = self.heap.checked_add(at).ok_or_else(end_of_file)?;
        let is_inside =
            start >= self.window_at && start - self.window_at + bytes as u64 <= self.window.len() as u64;
        if !is_inside {
            self.go(start)?;
            self.window.clear();
            self.window_at = start;
            let wanted = bytes.max(WINDOW_BYTES) as u64;
            let read = self.source.by_ref().take(wanted).read_to_end(&mut self.window)?;
            self.position = start + read as u64;
        }
        let from = (start - self.window_at) as usize;
        self.window.get(from..from + bytes).ok_or_else(end_of_file)
    }
}
