//! From signals to the shutdown token.
//!
//! SIGTERM and SIGINT trigger the token, and the second of them ends the process at once with the customary
//! status (128 plus the signal's number), for the operator who will not wait for a drain. SIGHUP calls back:
//! it means "read your files again".

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::shutdown::{Reason, Shutdown};

/// The process's signal handlers, installed.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl std::fmt::Debug for Signals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}

/// One signal that this process listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Stop(&'static str, i32),
    Reload,
}

impl Signals {
    /// Installs the handlers; needs a tokio runtime with its I/O driver. From here on the signals no longer
    /// end the process by themselves, so install them when something listens.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Heard {
        tokio::select! {
            _ = self.terminate.recv() => Heard::Stop("SIGTERM", 15),
            _ = self.interrupt.recv() => Heard::Stop("SIGINT", 2),
            _ = self.hangup.recv() => Heard::Reload,
        }
    }

    /// Listens for as long as it is polled. It does not return at shutdown: a second signal during the drain
    /// must still be heard.
    pub async fn listen(mut self, shutdown: Shutdown, mut reload: impl FnMut()) {
        loop {
            match self.next().await {
                Heard::Reload => reload(),
                Heard::Stop(name, number) => stop(&shutdown, name, number),
            }
        }
    }
}

fn stop(shutdown: &Shutdown, name: &'static str, number: i32) {
    if shutdown.trigger(Reason::Signal(name)) {
        tracing::info!(signal = name, "stopping; the same signal again ends the process at once");
        return;
    }
    tracing::warn!(signal = name, "ended before the drain was done");
    std::process::exit(128 + number);
}
