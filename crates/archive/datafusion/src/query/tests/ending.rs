//! Queries end when they are told to, however much is left to do.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use trifid_archive_adql::language::Language;
use trifid_archive_engine::QueryError;
use trifid_archive_engine::archive::Archive;
use trifid_archive_engine::backend::{Cancel, QueryBackend as _, Run};
use trifid_archive_engine::catalogue::{Snapshot, Tables};
use trifid_archive_engine::compute::{Compute, Size};

use super::tables::{catalogue, mixed};
use super::{backend, compare, resolved, runtime};

/// Far more than any of these tests takes, far less than what the queries would.
const PATIENCE: Duration = Duration::from_secs(60);

/// All of them look at thousands of millions of pairs and find none.
const ENDLESS: [&str; 7] = [
    // A condition that cannot fail is the join's; one that can stands above it.
    "SELECT COUNT(*) FROM s.a AS a, s.b AS b WHERE a.id * 1.0 + b.id < -1",
    "SELECT COUNT(*) FROM s.a AS a, s.b AS b WHERE a.id + b.id < -1",
    "SELECT a.id, b.name FROM s.a AS a LEFT JOIN s.b AS b ON a.id * 1.0 + b.id < -1 WHERE b.id > 0",
    "SELECT a.id, b.name FROM s.a AS a FULL JOIN s.b AS b ON a.id * 1.0 + b.id < -1",
    "SELECT a.id FROM s.a AS a WHERE EXISTS (SELECT 1 FROM s.b AS b WHERE a.id * 1.0 + b.id < -1)",
    "SELECT COUNT(*) FROM s.a AS a JOIN s.b AS b ON a.s = b.s AND a.id * 1.0 + b.id < -1",
    "SELECT COUNT(*) FROM s.a AS a JOIN s.b AS b
        ON DISTANCE(a.ra, a.dec, b.ra, b.dec) < 0.5 AND a.id * 1.0 + b.id < -1",
];

fn large() -> Arc<Tables> {
    catalogue(vec![mixed("s", "a", 100_000, 1), mixed("s", "b", 100_000, 2)], Vec::new())
}

async fn outcome(
    text: &str,
    tables: &Arc<Tables>,
    cancel: Cancel,
    threads: usize,
) -> Result<usize, QueryError> {
    let run = Run { query: resolved(text, tables), plan: None, tables: tables.clone(), limit: None, cancel };
    let backend = backend(threads);
    let mut stream = backend.run(run).await?;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch?.num_rows();
    }
    Ok(rows)
}

#[test]
fn a_join_ends_when_its_time_is_over() {
    let tables = large();
    for (text, threads) in ENDLESS.iter().zip([1, 2].iter().cycle()) {
        let cancel = Cancel::after(Some(Duration::from_millis(20)));
        let ended = runtime().block_on(async {
            tokio::time::timeout(PATIENCE, outcome(text, &tables, cancel, *threads)).await
        });
        assert!(matches!(ended, Ok(Err(QueryError::TimedOut { .. }))), "{text}: {ended:?}");
    }
}

#[test]
fn a_join_ends_when_nobody_wants_it() {
    let tables = large();
    for text in ENDLESS {
        let cancel = Cancel::default();
        let setter = cancel.clone();
        let ended = runtime().block_on(async {
            let other = tokio::task::spawn_blocking(move || {
                std::thread::sleep(Duration::from_millis(20));
                setter.set();
            });
            let ended = tokio::time::timeout(PATIENCE, outcome(text, &tables, cancel, 1)).await;
            other.await.unwrap();
            ended
        });
        assert!(matches!(ended, Ok(Err(QueryError::Aborted))), "{text}: {ended:?}");
    }
}

#[test]
fn a_pool_of_one_thread_is_free_again_soon() {
    let tables = large();
    let now = &tables.snapshot;
    let snapshot = Snapshot::new(1, now.schemas.clone(), now.tables.clone());
    let compute = Arc::new(Compute::start(Size { threads: 1, running: 1, waiting: 4 }).unwrap());
    let archive = Archive::new(snapshot, Arc::new(backend(1)), compute, 10);
    let prepared = |text: &str| archive.prepare(text, Language::V2_1, Vec::new()).unwrap();
    runtime().block_on(async {
        for text in ENDLESS {
            let time = Some(Duration::from_millis(20));
            let mut late = archive.start(&prepared(text), None, time).unwrap();
            let ended = tokio::time::timeout(PATIENCE, late.next()).await.unwrap();
            assert!(matches!(ended, Err(QueryError::TimedOut { .. })), "{text}: {ended:?}");
            let mut left = archive.start(&prepared(text), None, None).unwrap();
            assert!(tokio::time::timeout(Duration::from_millis(50), left.next()).await.is_err(), "{text}");
            drop(left);
            let mut next =
                archive.start(&prepared("SELECT COUNT(*) FROM s.a GROUP BY s"), None, None).unwrap();
            let rows = tokio::time::timeout(PATIENCE, next.next()).await.unwrap().unwrap();
            assert!(rows.is_some_and(|rows| rows.num_rows() > 1));
        }
    });
}

#[test]
fn slices_change_no_answer() {
    // More pairs than are looked at together, so that the right side comes in slices.
    let tables = catalogue(vec![mixed("s", "a", 700, 3), mixed("s", "b", 600, 4)], Vec::new());
    for text in [
        "SELECT a.id, b.id FROM s.a AS a, s.b AS b WHERE a.id * 1.0 > b.id * 2.0 + 685",
        "SELECT a.id, b.id FROM s.a AS a LEFT JOIN s.b AS b ON a.id * 1.0 > b.id * 2.0 + 685 WHERE a.id > 600",
        "SELECT a.id, b.id FROM s.a AS a RIGHT JOIN s.b AS b ON a.id * 1.0 > b.id * 2.0 + 685 WHERE b.id < 50",
        "SELECT a.id FROM s.a AS a WHERE EXISTS (SELECT 1 FROM s.b AS b WHERE a.id * 1.0 > b.id * 2.0 + 685)",
        "SELECT b.id FROM s.b AS b WHERE b.id < 90 AND NOT EXISTS
            (SELECT 1 FROM s.a AS a WHERE a.id * 1.0 > b.id * 2.0 + 685)",
    ] {
        for threads in [1, 2] {
            let rows = compare(&backend(threads), &resolved(text, &tables), &tables);
            assert!(matches!(rows, Ok(1..)), "{text}: {rows:?}");
        }
    }
}
