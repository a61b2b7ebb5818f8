//! Long work on a terminal: one line that moves. Elsewhere it is silent, or says each step once.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the line moves by itself.
const TICK: Duration = Duration::from_millis(200);

pub(crate) struct Progress(Option<ProgressBar>);

impl Progress {
    pub(crate) fn begin() -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {elapsed} {bytes} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(TICK);
        Self(Some(bar))
    }

    pub(crate) fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// What it is about just now.
#[cfg(feature = "archive-datafusion")]
impl Progress {
    pub(crate) fn message(&self, message: &str) {
        if let Some(bar) = &self.0 {
            bar.set_message(message.to_owned());
        }
    }
}

/// Steps that have a name.
#[cfg(feature = "rig")]
impl Progress {
    pub(crate) fn step(&self, step: &str) {
        use std::io::Write as _;

        match &self.0 {
            Some(bar) => bar.set_message(step.to_owned()),
            // Standard error may be closed, and then nobody is there to be told.
            None => drop(writeln!(io::stderr(), "{step}")),
        }
    }
}

/// Bytes that go through.
#[cfg(any(feature = "context", feature = "stream"))]
impl Progress {
    pub(crate) fn passed(&self, bytes: usize) {
        if let Some(bar) = &self.0 {
            bar.inc(bytes as u64);
        }
    }
}

#[cfg(feature = "context")]
impl Progress {
    /// Counts what is read from or written to `inner`.
    pub(crate) fn counting<T>(&self, inner: T) -> Counting<'_, T> {
        Counting { progress: self, inner }
    }
}

#[cfg(feature = "context")]
pub(crate) struct Counting<'p, T> {
    progress: &'p Progress,
    inner: T,
}

#[cfg(feature = "context")]
impl<T: io::Read> io::Read for Counting<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.passed(read);
        Ok(read)
    }
}

#[cfg(feature = "context")]
impl<T: io::Write> io::Write for Counting<'_, T> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.progress.passed(written);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
