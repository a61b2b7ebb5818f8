//! What the listener counts, each worker for itself.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

/// A number that one thread writes and others read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds one.
    pub(crate) fn bump(&self) {
        self.add(1);
    }

    /// Adds so many. There is one writer, so no other addition can be lost.
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counts {
    ($( $(#[doc = $doc:literal])+ $name:ident ),* $(,)?) => {
        /// One worker's counts.
        #[derive(Debug, Default)]
        pub(crate) struct Counts {
            $( pub(crate) $name: Count, )*
        }

        /// What the listener has counted since it began.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            /// Connections open.
            pub connections: u64,
            $( $(#[doc = $doc])+ pub $name: u64, )*
        }

        impl Stats {
            /// Names, meanings and values of everything that only ever grows, for metrics.
            pub fn counters(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$( (stringify!($name), concat!($($doc),+).trim_ascii(), self.$name) ),*].into_iter()
            }

            fn add(&mut self, counts: &Counts) {
                $( self.$name = self.$name.wrapping_add(counts.$name.get()); )*
            }
        }
    };
}

counts! {
    /// Connections accepted.
    accepted,
    /// Connections closed at once because there were too many.
    turned_away,
    /// Times that the system refused a connection.
    accept_errors,
    /// TLS handshakes that failed.
    tls_failures,
    /// Requests begun.
    requests,
    /// Batches that producers sent and that were taken.
    batches_in,
    /// Bytes of these batches.
    bytes_in,
    /// Partitions of produce requests that were refused.
    refused,
    /// Refusals for want of room, which clients repeat.
    overloaded,
    /// Bytes of batches that consumers were sent.
    bytes_out,
    /// Fetches that read from the disk.
    disk_fetches,
    /// Connections closed over bytes that are no request.
    malformed,
    /// Connections closed over a request above the limit.
    too_large,
    /// Connections closed over an API or a version that is not served.
    unsupported,
    /// Connections closed because they asked before they said who they are.
    strangers,
    /// Tokens refused.
    denied,
    /// Connections closed because an unacknowledged produce failed.
    unacknowledged_failures,
    /// Connections closed because the rest of a request did not come.
    slow_requests,
    /// Connections closed because an answer was not read.
    slow_readers,
    /// Connections closed because nothing was asked.
    idle_closed,
    /// Connections closed because the tokens were read again.
    reauthentications,
}

/// The counts of all workers.
#[derive(Debug)]
pub(crate) struct AllCounts(Vec<CachePadded<Counts>>);

impl AllCounts {
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| CachePadded::default()).collect())
    }

    /// One worker's counts.
    pub(crate) fn worker(&self, index: usize) -> &Counts {
        &self.0[index % self.0.len()]
    }

    /// All of them together.
    pub(crate) fn sum(&self, connections: usize) -> Stats {
        let mut stats = Stats { connections: connections as u64, ..Stats::default() };
        self.0.iter().for_each(|counts| stats.add(counts));
        stats
    }
}
