//! Backups: made while the store works, and taken in again.

use std::path::Path;
use std::sync::Arc;

use trifid_base_log::{DataDir, Disk, RealDisk};
use trifid_base_sim::SimDisk;
use trifid_context_backends::file::{Error, export, import};
use trifid_context_engine::testing::random_steps;

use crate::support::{block_on, content, context, log_options, open, open_in, run};

fn exported(disk: &SimDisk) -> Vec<u8> {
    let mut bytes = Vec::new();
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let report = export(&disk, &mut bytes).unwrap();
    assert_eq!(report.bytes, bytes.len() as u64);
    bytes
}

fn imported(bytes: &[u8]) -> Result<SimDisk, Error> {
    let disk = SimDisk::new();
    let dir = DataDir::open(Arc::new(disk.clone()), log_options(1)).unwrap();
    import(&dir, &mut &*bytes)?;
    Ok(disk)
}

#[test]
fn what_is_exported_while_serving_is_imported() {
    let disk = SimDisk::new();
    let opened = open(Arc::new(disk.clone())).unwrap();
    for snapshot in [false, true] {
        if snapshot {
            opened.store.snapshot().unwrap();
        }
        run(&opened.store, &random_steps(3, 150));
        block_on(opened.store.hosted().save(&context("a", "{}"))).unwrap();
        let before = content(&*opened.store.entities());
        let copy = imported(&exported(&disk)).unwrap();
        let restored = open(Arc::new(copy.clone())).unwrap();
        assert_eq!(content(&*restored.store.entities()), before);
        assert_eq!(restored.contexts, [context("a", "{}")]);
        // The copy is a store like any other.
        run(&restored.store, &random_steps(4, 50));
        restored.store.snapshot().unwrap();
        let before = content(&*restored.store.entities());
        drop(restored);
        assert_eq!(content(&*open(Arc::new(copy)).unwrap().store.entities()), before);
    }
}

#[test]
fn an_empty_store_is_exported() {
    let disk = SimDisk::new();
    let opened = open(Arc::new(disk.clone())).unwrap();
    let copy = imported(&exported(&disk)).unwrap();
    assert!(content(&*open(Arc::new(copy)).unwrap().store.entities()).is_empty());
    drop(opened);
}

#[test]
fn a_damaged_export_is_refused_and_leaves_the_directory_empty() {
    let disk = SimDisk::new();
    let opened = open(Arc::new(disk.clone())).unwrap();
    run(&opened.store, &random_steps(3, 50));
    let whole = exported(&disk);
    for damaged in
        [&whole[..whole.len() - 1], &whole[..100], b"", &[&whole[..90], &[0], &whole[91..]].concat()]
    {
        assert!(matches!(imported(damaged), Err(Error::Damaged { .. })));
    }
    let target = SimDisk::new();
    let dir = DataDir::open(Arc::new(target.clone()), log_options(1)).unwrap();
    import(&dir, &mut &whole[..100]).unwrap_err();
    assert!(target.files().iter().all(|path| !path.starts_with("context")));
    import(&dir, &mut &*whole).unwrap();
    assert!(target.content(Path::new("context/00000000000000000000.snapshot")).is_some());
    assert!(matches!(import(&dir, &mut &*whole), Err(Error::NotEmpty)));
}

#[test]
fn an_import_does_not_touch_a_store_with_entities() {
    let disk = SimDisk::new();
    let dir = Arc::new(DataDir::open(Arc::new(disk.clone()), log_options(1)).unwrap());
    let opened = open_in(dir.clone()).unwrap();
    run(&opened.store, &random_steps(3, 50));
    assert!(matches!(import(&dir, &mut &*exported(&disk)), Err(Error::NotEmpty)));
}

/// Exports are made again and again while entities change and snapshots drop the journal's front.
#[test]
fn every_export_beside_writers_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(folder.path()).unwrap());
    let opened = open(disk.clone()).unwrap();
    std::thread::scope(|scope| {
        let (store, disk) = (&opened.store, &disk);
        scope.spawn(move || run(store, &random_steps(5, 1_500)));
        scope.spawn(move || {
            for _ in 0..30 {
                store.snapshot().unwrap().unwrap();
            }
        });
        scope.spawn(move || {
            for _ in 0..30 {
                let mut bytes = Vec::new();
                export(disk, &mut bytes).unwrap();
                open(Arc::new(imported(&bytes).unwrap())).unwrap();
            }
        });
    });
}
