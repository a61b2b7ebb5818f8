//! UWS 1.1 2.2.1.2: waiting for a change.

use std::time::Duration;

use http::Method;
use trifid_base_runtime::units::Span;

use super::{ENDLESS, Limits, Office};

#[tokio::test]
async fn what_cannot_change_by_itself_is_told_at_once() {
    let office = Office::new();
    let path = office.run("SELECT 1 AS one", "").await;
    office.ended(&path).await;
    for query in ["?WAIT=-1", "?WAIT=3600", "?WAIT=-1&PHASE=COMPLETED", "?WAIT=0", "?WAIT=-1&PHASE=EXECUTING"]
    {
        let job = office.get(&format!("{path}{query}")).await.xml();
        assert_eq!(job.texts("phase"), ["COMPLETED"], "{query}");
    }
}

#[tokio::test]
async fn a_phase_that_is_past_is_told_at_once() {
    let office = Office::new();
    let path = office.made("").await;
    for query in
        ["?WAIT=0", "?wait=-1&phase=QUEUED", "?WAIT=3600&PHASE=EXECUTING", "?PHASE=PENDING", "?WAIT="]
    {
        let job = office.get(&format!("{path}{query}")).await.xml();
        assert_eq!(job.texts("phase"), ["PENDING"], "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_has_an_end() {
    let office = Office::with(Limits::default(), |options| options.wait_limit = Span(Duration::from_secs(9)));
    let path = office.made("").await;
    let begun = tokio::time::Instant::now();
    for (query, seconds) in
        [("?WAIT=5", 5), ("?WAIT=-1", 9), ("?WAIT=-7", 9), ("?WAIT=99999999999999999999", 9)]
    {
        let before = begun.elapsed();
        let job = office.get(&format!("{path}{query}&PHASE=PENDING")).await.xml();
        assert_eq!(job.texts("phase"), ["PENDING"], "{query}");
        // Time stands still but for waiting.
        assert_eq!((begun.elapsed() - before).as_secs(), seconds, "{query}");
    }
}

#[tokio::test]
async fn who_waits_hears_of_the_change() {
    let office = Office::new();
    let path = office.made("").await;
    let (url, phase) = (format!("{path}?WAIT=-1&PHASE=PENDING"), format!("{path}/phase"));
    let (waited, aborted) = tokio::join!(office.get(&url), office.post(&phase, "PHASE=ABORT"));
    assert_eq!((aborted.status, waited.xml().texts("phase")), (303, vec!["ABORTED".into()]));
    let path = office.run(ENDLESS, "").await;
    office.running(&path).await;
    let url = format!("{path}?WAIT=-1");
    let (waited, deleted) = tokio::join!(office.get(&url), office.delete(&path));
    assert_eq!((deleted.status, waited.xml().texts("phase")), (303, vec!["ABORTED".into()]));
}

/// A thousand clients wait for one job on one thread.
#[tokio::test]
async fn waiting_takes_no_thread() {
    let office = std::rc::Rc::new(Office::new());
    let path = office.made("").await;
    let tasks = tokio::task::LocalSet::new();
    let mut waiting = Vec::new();
    for _ in 0..1000 {
        let (office, path) = (std::rc::Rc::clone(&office), path.clone());
        waiting.push(tasks.spawn_local(async move {
            let answer = office.send(None, Method::GET, &format!("{path}?WAIT=-1"), &[], "").await;
            answer.xml().texts("phase")[0].clone()
        }));
    }
    tasks
        .run_until(async {
            tokio::task::yield_now().await;
            office.post(&format!("{path}/phase"), "PHASE=ABORT").await;
            for one in waiting {
                assert_eq!(one.await.unwrap(), "ABORTED");
            }
        })
        .await;
}
