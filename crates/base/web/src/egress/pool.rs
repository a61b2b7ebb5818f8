//! Connections kept open between requests, bounded in number and age.
//!
//! A connection belongs to the origin (scheme, host, port) that it was opened for, and leads to the address
//! that the guard let pass when it was. The newest is used first, so that the others can grow old and go.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;

/// Whom a connection leads to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) is_tls: bool,
    /// In lower case, an IPv6 address without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The sending side of a connection.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

#[derive(Debug)]
struct Idle<S> {
    sender: S,
    since: Instant,
}

/// What the pool needs to know of a connection.
pub(crate) trait Kept {
    /// Whether it has ended.
    fn is_over(&self) -> bool;
}

impl Kept for Sender {
    fn is_over(&self) -> bool {
        self.is_closed()
    }
}

/// The idle connections of a client.
#[derive(Debug)]
pub(crate) struct Pool<S = Sender> {
    idle: Mutex<HashMap<Origin, Vec<Idle<S>>>>,
    per_origin: usize,
    origins: usize,
    timeout: Duration,
}

impl<S: Kept> Pool<S> {
    /// An empty pool.
    pub(crate) fn new(per_origin: usize, origins: usize, timeout: Duration) -> Self {
        Self { idle: Mutex::default(), per_origin, origins, timeout }
    }

    /// The connection to `origin` that was used last, if it has not ended or grown old.
    pub(crate) fn take(&self, origin: &Origin, now: Instant) -> Option<S> {
        let mut idle = self.idle.lock();
        let found = idle.get_mut(origin)?;
        let mut taken = None;
        while let Some(candidate) = found.pop() {
            if now.saturating_duration_since(candidate.since) > self.timeout {
                // The ones below it are older still.
                found.clear();
            } else if !candidate.sender.is_over() {
                taken = Some(candidate.sender);
                break;
            }
        }
        if found.is_empty() {
            idle.remove(origin);
        }
        taken
    }

    /// Keeps a connection for the next request, in place of an older one if need be.
    pub(crate) fn put(&self, origin: Origin, sender: S, now: Instant) {
        if sender.is_over() || self.per_origin == 0 || self.origins == 0 {
            return;
        }
        let mut idle = self.idle.lock();
        if !idle.contains_key(&origin) && idle.len() >= self.origins {
            self.make_room(&mut idle, now);
        }
        let kept = idle.entry(origin).or_default();
        if kept.len() >= self.per_origin {
            kept.remove(0);
        }
        kept.push(Idle { sender, since: now });
    }

    /// Forgets what has ended or grown old, or else the origin that was used least recently.
    fn make_room(&self, idle: &mut HashMap<Origin, Vec<Idle<S>>>, now: Instant) {
        idle.retain(|_, kept| {
            kept.retain(|one| {
                !one.sender.is_over() && now.saturating_duration_since(one.since) <= self.timeout
            });
            !kept.is_empty()
        });
        if idle.len() >= self.origins {
            let last_used = |kept: &Vec<Idle<S>>| kept.last().map(|one| one.since);
            let oldest =
                idle.iter().min_by_key(|(_, kept)| last_used(kept)).map(|(origin, _)| origin.clone());
            oldest.map(|origin| idle.remove(&origin));
        }
    }

    /// How many connections are kept.
    pub(crate) fn len(&self) -> usize {
        self.idle.lock().values().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Debug, Clone)]
    struct Fake(u32, Arc<AtomicBool>);

    impl Kept for Fake {
        fn is_over(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }
    }

    fn fake(number: u32) -> Fake {
        Fake(number, Arc::default())
    }

    fn origin(host: &str) -> Origin {
        Origin { is_tls: false, host: host.to_owned(), port: 80 }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_newest_connection_of_an_origin_is_taken() {
        let (pool, now) = (Pool::new(4, 4, 10 * SECOND), Instant::now());
        pool.put(origin("a"), fake(1), now);
        pool.put(origin("a"), fake(2), now + SECOND);
        pool.put(origin("b"), fake(3), now + SECOND);
        let take = |host: &str, later| pool.take(&origin(host), now + later).map(|found| found.0);
        assert_eq!(take("a", SECOND), Some(2));
        assert_eq!(take("a", SECOND), Some(1));
        assert_eq!(take("a", SECOND), None);
        assert_eq!(take("c", SECOND), None);
        assert_eq!(take("b", 12 * SECOND), None, "grown old");
        assert_eq!(pool.len(), 0);
    }

    #[test]
    fn an_ended_connection_is_passed_over() {
        let (pool, now) = (Pool::new(4, 4, 10 * SECOND), Instant::now());
        let ended = fake(2);
        pool.put(origin("a"), fake(1), now);
        pool.put(origin("a"), ended.clone(), now);
        ended.1.store(true, Ordering::Relaxed);
        assert_eq!(pool.take(&origin("a"), now).map(|found| found.0), Some(1));
    }

    #[test]
    fn connections_and_origins_are_bounded() {
        let (pool, now) = (Pool::new(2, 3, 10 * SECOND), Instant::now());
        for number in 0..5 {
            pool.put(origin("a"), fake(number), now);
        }
        assert_eq!(pool.len(), 2);
        for (number, host) in (0..).zip(["b", "c", "d"]) {
            pool.put(origin(host), fake(number), now + SECOND * (1 + number));
        }
        assert_eq!(pool.len(), 3, "the origin used least recently made room");
        assert!(pool.take(&origin("a"), now + SECOND).is_none());
        assert!(pool.take(&origin("d"), now + 3 * SECOND).is_some());
    }
}
