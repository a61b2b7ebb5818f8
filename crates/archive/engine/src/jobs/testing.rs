//! What every store of jobs must do.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use trifid_base_runtime::Timestamp;

use super::{Fault, Job, JobId, JobResult, JobStore, Phase, StoreError};

/// A job with something in every field.
pub fn job(id: &str) -> Job {
    Job {
        id: JobId::kept(id).expect("tests name jobs with letters and digits"),
        owner: Some("ada".into()),
        phase: Phase::Error,
        created: Timestamp::from_micros(1_764_500_000_000_001),
        started: Some(Timestamp::from_micros(1_764_500_000_500_000)),
        ended: None,
        execution: Duration::from_secs(60),
        destruction: Timestamp::from_micros(1_764_600_000_000_000),
        parameters: vec![("QUERY".into(), "SELECT 'é' FROM t".into()), ("LANG".into(), "ADQL".into())],
        results: vec![JobResult {
            name: "result".into(),
            media_type: "text/csv".into(),
            bytes: 9,
            rows: 2,
            overflow: true,
        }],
        fault: Some(Fault { message: "line 1".into(), transient: true }),
    }
}

/// Runs the whole suite on an empty store.
///
/// # Panics
/// Where the store does not do what it must.
pub fn suite(store: &dyn JobStore) {
    records(store);
    parts(store);
    results(store);
}

fn records(store: &dyn JobStore) {
    let mut one = job("one");
    store.put(&one).expect("kept");
    store.put(&job("two")).expect("kept");
    one.phase = Phase::Aborted;
    one.owner = None;
    store.put(&one).expect("replaced");
    let mut all = store.all().expect("read");
    all.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(all, [one.clone(), job("two")]);
    store.remove(&one.id).expect("removed");
    store.remove(&one.id).expect("removing what is gone is no failure");
    assert_eq!(store.all().expect("read"), [job("two")]);
}

fn parts(store: &dyn JobStore) {
    let id = job("two").id;
    store.put_part(&id, "../my table", b"<VOTABLE/>").expect("kept");
    store.put_part(&id, "b", b"").expect("kept");
    assert_eq!(&store.part(&id, "../my table").expect("read")[..], b"<VOTABLE/>");
    assert_eq!(&store.part(&id, "b").expect("read")[..], b"");
    assert!(matches!(store.part(&id, "c"), Err(StoreError::Missing)));
}

fn results(store: &dyn JobStore) {
    let id = job("two").id;
    let mut sink = store.create_result(&id, "result").expect("begun");
    sink.write_all(b"....rows").expect("written");
    sink.seek(SeekFrom::Start(0)).expect("sought");
    sink.write_all(b"head").expect("written");
    assert!(matches!(store.result(&id, "result"), Err(StoreError::Missing)), "seen before it is whole");
    assert_eq!(sink.finish().expect("finished"), 8);
    let (length, mut bytes) = store.result(&id, "result").expect("opened");
    let mut text = String::new();
    bytes.read_to_string(&mut text).expect("read");
    assert_eq!((length, text.as_str()), (8, "headrows"));
    for (start, rest) in [(0, "headrows"), (5, "ows"), (8, ""), (u64::MAX, "")] {
        let (length, mut bytes) = store.result_from(&id, "result", start).expect("opened");
        let mut text = String::new();
        bytes.read_to_string(&mut text).expect("read");
        assert_eq!((length, text.as_str()), (8, rest));
    }
    store.remove(&id).expect("removed");
    assert!(matches!(store.result(&id, "result"), Err(StoreError::Missing)));
    assert!(matches!(store.part(&id, "b"), Err(StoreError::Missing)));
}
