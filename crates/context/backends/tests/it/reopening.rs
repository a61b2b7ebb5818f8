//! Opening: from journal, from snapshot, from both; progress; background snapshots; many writers at once.

use std::sync::Arc;

use trifid_base_log::{DataDir, OpenError, RealDisk};
use trifid_base_sim::SimDisk;
use trifid_context_backends::file::{Error, FileStore, Options, Stage};
use trifid_context_engine::testing::{Step, random_steps};
use trifid_context_model::symbol::Symbols;

use crate::support::{BY_HAND, block_on, content, context, log_options, open, run};

#[test]
fn a_snapshot_takes_the_place_of_the_journal() {
    let disk = SimDisk::new();
    let opened = open(Arc::new(disk.clone())).unwrap();
    run(&opened.store, &random_steps(1, 200));
    let written = opened.store.snapshot().unwrap().unwrap();
    assert!(written.segments_dropped > 3, "{written:?}");
    assert_eq!(written.position, opened.store.entities().stats().position);
    let before = content(&*opened.store.entities());
    drop(opened);
    let opened = open(Arc::new(disk.clone())).unwrap();
    assert_eq!(content(&*opened.store.entities()), before);
    assert_eq!(opened.store.entities().stats().position, written.position);
    run(&opened.store, &random_steps(2, 200));
    let again = opened.store.snapshot().unwrap().unwrap();
    assert!(again.position > written.position);
    let snapshots = disk.files().iter().filter(|path| path.starts_with("context")).count();
    assert_eq!(snapshots, 1);
    let before = content(&*opened.store.entities());
    drop(opened);
    assert_eq!(content(&*open(Arc::new(disk)).unwrap().store.entities()), before);
}

#[test]
fn hosted_contexts_are_kept_and_forgotten() {
    let disk = SimDisk::new();
    let opened = open(Arc::new(disk.clone())).unwrap();
    let hosted = opened.store.hosted();
    for id in ["a", "b", "c"] {
        block_on(hosted.save(&context(id, "{}"))).unwrap();
    }
    block_on(hosted.remove("city", "b")).unwrap();
    opened.store.snapshot().unwrap();
    block_on(hosted.remove("city", "a")).unwrap();
    block_on(hosted.save(&context("d", "{\"@context\":[]}"))).unwrap();
    drop((opened, hosted));
    let found = open(Arc::new(disk)).unwrap().contexts;
    assert_eq!(found, [context("c", "{}"), context("d", "{\"@context\":[]}")]);
}

#[test]
fn a_tenant_lives_on_without_its_entities() {
    let disk = SimDisk::new();
    for snapshot in [false, true] {
        let opened = open(Arc::new(disk.clone())).unwrap();
        let body = r#"{"id":"urn:a:1","type":"T"}"#.to_owned();
        run(&opened.store, &[Step::Create("city", body), Step::Delete("city", "urn:a:1".to_owned())]);
        if snapshot {
            opened.store.snapshot().unwrap();
        }
        drop(opened);
        let opened = open(Arc::new(disk.clone())).unwrap();
        let tenants = content(&*opened.store.entities());
        assert_eq!(tenants.get("city"), Some(&Vec::new()));
    }
}

#[test]
fn opening_tells_its_progress() {
    let disk = SimDisk::new();
    let opened = open(Arc::new(disk.clone())).unwrap();
    run(&opened.store, &random_steps(1, 100));
    opened.store.snapshot().unwrap();
    run(&opened.store, &random_steps(2, 100));
    drop(opened);
    let dir = Arc::new(DataDir::open(Arc::new(disk), log_options(1)).unwrap());
    let mut seen = Vec::new();
    FileStore::open(dir, &BY_HAND, Arc::new(Symbols::new()), &mut |progress| seen.push(progress)).unwrap();
    assert_eq!(seen.iter().map(|at| at.stage).collect::<Vec<_>>(), [Stage::Snapshot, Stage::Journal]);
    assert!(seen.iter().all(|at| at.bytes == at.bytes_total && at.entries > 0), "{seen:?}");
}

#[test]
fn a_second_owner_is_refused() {
    let disk = SimDisk::new();
    let _opened = open(Arc::new(disk.clone())).unwrap();
    let error = open(Arc::new(disk)).err().unwrap();
    assert!(matches!(error, Error::Journal(OpenError::Locked { .. })), "{error}");
}

/// Entities change on some threads while snapshots are written again and again by the background.
#[test]
fn snapshots_beside_writers_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = || Arc::new(RealDisk::open(folder.path()).unwrap());
    let dir = Arc::new(DataDir::open(disk(), log_options(1)).unwrap());
    let options = Options { snapshot_after_bytes: Some(1) };
    let (store, _) = FileStore::open(dir, &options, Arc::new(Symbols::new()), &mut |_| {}).unwrap();
    std::thread::scope(|scope| {
        let store = &store;
        for thread in 0..3 {
            scope.spawn(move || run(store, &random_steps(thread, 400)));
        }
        scope.spawn(move || {
            for _ in 0..40 {
                store.snapshot().unwrap().unwrap();
            }
        });
    });
    assert!(store.stats().snapshots >= 40);
    let before = content(&*store.entities());
    drop(store);
    let opened = open(disk()).unwrap();
    assert_eq!(content(&*opened.store.entities()), before);
}
