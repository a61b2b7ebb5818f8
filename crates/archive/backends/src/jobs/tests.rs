use std::sync::Arc;

use trifid_archive_engine::jobs::testing;

use super::*;

#[test]
fn the_port_behaves() {
    let folder = tempfile::tempdir().unwrap();
    testing::suite(&FileJobs::open(folder.path()).unwrap());
}

#[test]
fn a_record_survives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let job = testing::job("a1");
    FileJobs::open(folder.path()).unwrap().put(&job).unwrap();
    assert_eq!(FileJobs::open(folder.path()).unwrap().all().unwrap(), [job]);
}

#[test]
fn one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let _first = FileJobs::open(folder.path()).unwrap();
    let second = FileJobs::open(folder.path()).err().unwrap();
    assert!(second.to_string().ends_with("is used by another process"), "{second}");
}

#[test]
fn what_is_half_written_is_neither_seen_nor_kept() {
    let folder = tempfile::tempdir().unwrap();
    let job = testing::job("b2");
    let store = Arc::new(FileJobs::open(folder.path()).unwrap());
    store.put(&job).unwrap();
    let mut sink = store.create_result(&job.id, "result").unwrap();
    sink.write_all(b"half").unwrap();
    assert!(matches!(store.result(&job.id, "result"), Err(StoreError::Missing)));
    // As a crash leaves it.
    std::mem::forget(sink);
    drop(store);
    let store = FileJobs::open(folder.path()).unwrap();
    assert_eq!(store.all().unwrap().len(), 1);
    assert_eq!(fs::read_dir(folder.path().join("b2")).unwrap().count(), 1);
}

#[test]
fn a_damaged_record_does_not_take_the_others_along() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileJobs::open(folder.path()).unwrap();
    store.put(&testing::job("good")).unwrap();
    store.put(&testing::job("bad")).unwrap();
    fs::write(folder.path().join("bad").join(RECORD), b"{").unwrap();
    let ids: Vec<String> = store.all().unwrap().iter().map(|job| job.id.to_string()).collect();
    assert_eq!(ids, ["good"]);
}
