//! Jobs outlive the process that ran them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use trifid_archive_backends::jobs::FileJobs;

use super::{ENDLESS, Limits, Office};

/// The folder as a crash at this moment would leave it.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copied(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn a_crash_loses_no_job_that_was_told_of() {
    let before = tempfile::tempdir().unwrap();
    let office = Office::over(Arc::new(FileJobs::open(before.path()).unwrap()), Limits::default(), |_| ());
    let done = office.run("SELECT id FROM demo.stars ORDER BY id", "FORMAT=csv&MAXREC=2").await;
    office.ended(&done).await;
    let failed = office.run("SELEC 1", "RUNID=f").await;
    office.ended(&failed).await;
    let deleted = office.made("").await;
    office.delete(&deleted).await;
    let pending = office.made("QUERY=SELECT+2+AS+two&FORMAT=csv").await;
    let running = office.run(ENDLESS, "").await;
    office.running(&running).await;
    let told: Vec<_> = [&done, &failed, &pending].map(|path| office.get(path)).into();
    let mut documents = Vec::new();
    for one in told {
        documents.push(one.await.bytes);
    }

    let after = tempfile::tempdir().unwrap();
    copied(before.path(), after.path());
    let office = Office::over(Arc::new(FileJobs::open(after.path()).unwrap()), Limits::default(), |_| ());
    for (path, document) in [&done, &failed, &pending].into_iter().zip(&documents) {
        assert_eq!(office.get(path).await.bytes, document, "{path}");
    }
    let result = office.result(&done).await;
    assert_eq!((result.text(), result.header("tap-query-status")), ("id\n1\n2\n", "OVERFLOW"));
    assert_eq!(office.get(&deleted).await.status, 404);
    // A query changes nothing, so what had not ended runs again.
    office.running(&running).await;
    office.post(&format!("{running}/phase"), "PHASE=ABORT").await;
    office.post(&format!("{pending}/phase"), "PHASE=RUN").await;
    assert_eq!(office.ended(&pending).await.texts("phase"), ["COMPLETED"]);
    assert_eq!(office.result(&pending).await.text(), "two\n2\n");
}
