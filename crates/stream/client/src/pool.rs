//! Lines to the broker, made when they are needed and made again when they are lost.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::address::Transport;
use crate::error::ConnectError;
use crate::line::Line;
use crate::options::ClientOptions;
use crate::transport::{Dialer, Path};
use crate::trust::TrustError;

/// The idle timeout that a QUIC connection asks for; the broker's own may be shorter, and the shorter one
/// counts.
const QUIC_IDLE: Duration = Duration::from_secs(30);

/// All lines of a client.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) options: ClientOptions,
    dialer: Dialer,
    paths: Box<[Mutex<Option<Arc<Path>>>]>,
    lines: Box<[Mutex<Option<Arc<Line>>>]>,
    next: AtomicUsize,
    is_closed: AtomicBool,
}

impl Pool {
    pub(crate) fn new(options: ClientOptions) -> Result<Self, TrustError> {
        let dialer =
            Dialer::new(options.address.clone(), &options.trust, options.connect_timeout, QUIC_IDLE)?;
        let (connections, streams) = (options.connections.max(1), options.streams.max(1));
        Ok(Self {
            dialer,
            paths: (0..connections).map(|_| Mutex::default()).collect(),
            lines: (0..connections.saturating_mul(streams)).map(|_| Mutex::default()).collect(),
            next: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
            options,
        })
    }

    /// The line at a place; connected if it is not.
    pub(crate) async fn line(&self, place: usize) -> Result<Arc<Line>, ConnectError> {
        let place = place % self.lines.len();
        let mut slot = self.lines[place].lock().await;
        if self.is_closed.load(Ordering::Acquire) {
            return Err(ConnectError::Closed);
        }
        if let Some(line) = slot.as_ref().filter(|line| line.is_open()) {
            return Ok(Arc::clone(line));
        }
        let line = self.connect(place % self.paths.len()).await?;
        *slot = Some(Arc::clone(&line));
        Ok(line)
    }

    /// The line that all users of a thing share, so that what is sent there stays in order.
    pub(crate) fn place_of(&self, thing: &impl Hash) -> usize {
        let mut hasher = DefaultHasher::new();
        thing.hash(&mut hasher);
        usize::try_from(hasher.finish() % self.lines.len() as u64).unwrap_or(0)
    }

    /// Places one after the other, for what has no place of its own.
    pub(crate) fn next_place(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % self.lines.len()
    }

    async fn connect(&self, connection: usize) -> Result<Arc<Line>, ConnectError> {
        let mut slot = self.paths[connection].lock().await;
        if let Some(path) = &*slot
            && let Some(stream) = path.stream().await
        {
            return Line::open(stream, &self.options).await;
        }
        let path = Arc::new(self.dialer.dial().await?);
        let stream = path.stream().await.ok_or(ConnectError::Ended)?;
        *slot = Some(path);
        drop(slot);
        Line::open(stream, &self.options).await
    }

    /// Which transport the connections that are open go over.
    pub(crate) async fn transport(&self) -> Option<Transport> {
        for path in &self.paths {
            if let Some(path) = &*path.lock().await {
                return Some(path.transport());
            }
        }
        None
    }

    /// Ends all lines; there will be no others.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let mut ending = Vec::new();
        for slot in &self.lines {
            if let Some(line) = slot.lock().await.take() {
                line.end();
                ending.push(line);
            }
        }
        for line in ending {
            line.ended().await;
        }
        for path in &self.paths {
            path.lock().await.take();
        }
        self.dialer.close().await;
    }
}

/// Whoever still holds a line that nobody can reach any more is told that it is over.
impl Drop for Pool {
    fn drop(&mut self) {
        for slot in &mut self.lines {
            if let Some(line) = slot.get_mut().take() {
                line.end();
            }
        }
    }
}

/// Pauses that double, with a part of chance so that clients do not come back all at once.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    pub(crate) fn new(options: &ClientOptions) -> Self {
        Self { next: options.reconnect_first, most: options.reconnect_most }
    }

    /// The next pause.
    pub(crate) fn step(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.most);
        let chance = u32::from(fastrand::u8(..)) + 256;
        // Between a half and a whole of it.
        pause * chance / 512
    }
}
