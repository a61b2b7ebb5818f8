//! One download at a time for each address: who asks while it runs waits for its outcome.
//!
//! The first caller does the work inside its own future. When that future is dropped (its client went away),
//! the next caller in line starts anew; nobody is left waiting for nothing.

use std::future::Future;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

type Cell<T> = Arc<OnceCell<T>>;

/// The downloads under way.
#[derive(Debug)]
pub(super) struct Flights<T> {
    cells: Mutex<HashMap<Box<str>, Cell<T>, foldhash::fast::RandomState>>,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Flights { cells: Mutex::default() }
    }
}

impl<T: Clone> Flights<T> {
    /// True while something runs for `key`.
    pub(super) fn is_running(&self, key: &str) -> bool {
        self.cells.lock().contains_key(key)
    }

    /// Runs `work`, or waits for the one that runs for `key`.
    pub(super) async fn run<F: Future<Output = T>>(&self, key: &str, work: impl FnOnce() -> F) -> T {
        let cell = self.cells.lock().entry(key.into()).or_default().clone();
        let seat = Seat { flights: self, key, cell };
        seat.cell.get_or_init(work).await.clone()
    }
}

/// A caller in line; the last one to leave, or the first to leave with an outcome, closes the flight.
struct Seat<'f, T> {
    flights: &'f Flights<T>,
    key: &'f str,
    cell: Cell<T>,
}

impl<T> Drop for Seat<'_, T> {
    fn drop(&mut self) {
        let mut cells = self.flights.cells.lock();
        let own = cells.get(self.key).is_some_and(|cell| Arc::ptr_eq(cell, &self.cell));
        // Two references: the table's and this one.
        if own && (self.cell.initialized() || Arc::strong_count(&self.cell) <= 2) {
            cells.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn callers_share_one_run() {
        let flights = Arc::new(Flights::<usize>::default());
        let (runs, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let call = || {
            let (flights, runs, gate) = (flights.clone(), runs.clone(), gate.clone());
            tokio::spawn(async move {
                let work = || async {
                    let run = runs.fetch_add(1, Ordering::SeqCst);
                    gate.notified().await;
                    run
                };
                flights.run("a", work).await
            })
        };
        let calls = [call(), call(), call()];
        tokio::task::yield_now().await;
        assert!(flights.is_running("a") && !flights.is_running("b"));
        gate.notify_one();
        for call in calls {
            assert_eq!(call.await.unwrap(), 0);
        }
        assert!(!flights.is_running("a"));
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_is_succeeded_and_leaves_nothing() {
        let flights = Arc::new(Flights::<&str>::default());
        let first = {
            let flights = flights.clone();
            tokio::spawn(async move { flights.run("a", std::future::pending).await })
        };
        tokio::task::yield_now().await;
        let second = {
            let flights = flights.clone();
            tokio::spawn(async move { flights.run("a", || async { "second" }).await })
        };
        tokio::task::yield_now().await;
        first.abort();
        assert_eq!(second.await.unwrap(), "second");
        assert!(first.await.is_err() && !flights.is_running("a"));

        let alone = {
            let flights = flights.clone();
            tokio::spawn(async move { flights.run("a", std::future::pending).await })
        };
        tokio::task::yield_now().await;
        assert!(flights.is_running("a"));
        alone.abort();
        assert!(alone.await.is_err() && !flights.is_running("a"));
    }
}
