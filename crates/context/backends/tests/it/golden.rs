//! One sample of every version of the store's files, opened for as long as that version is supported.
//!
//! The sample is written again with `TRIFID_BLESS=1`; a change of its bytes is a change of the format.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trifid_base_log::Disk;
use trifid_base_sim::SimDisk;
use trifid_context_backends::file::export;
use trifid_context_engine::testing::Step;

use crate::support::{Stepped, content, context, open};

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/file-v1")
}

/// Something of everything: kinds of attributes, datasets, scopes, sub-attributes, expiry, a second tenant.
fn steps() -> Vec<Step> {
    let create = |tenant, body: &str| Step::Create(tenant, body.to_owned());
    let own = str::to_owned;
    vec![
        create(
            "",
            r#"{"id":"urn:g:1","type":["T","U"],"n":[{"value":2},{"value":3,"datasetId":"urn:d:1"}]}"#,
        ),
        create(
            "",
            r#"{"id":"urn:g:2","type":"T","scope":["/s","/t/u"],"r":{"object":"urn:g:1","q":{"value":1}}}"#,
        ),
        create("", r#"{"id":"urn:g:3","type":"T","expiresAt":"1970-01-01T00:00:09Z","n":1}"#),
        create("city", r#"{"id":"urn:g:1","type":"V","l":{"languageMap":{"en":"a\u0001\"b"}}}"#),
        Step::Append("", own("urn:g:1"), own(r#"{"m":{"value":{"a":[1,null]},"unitCode":"CEL"}}"#), false),
        Step::Merge("", own("urn:g:1"), own(r#"{"m":{"value":{"b":2.50}}}"#)),
        create("", r#"{"id":"urn:g:4","type":"urn:W","g":{"type":"Point","coordinates":[1,2]}}"#),
        Step::DeleteAttribute("", own("urn:g:1"), own("n"), true),
        Step::Delete("", own("urn:g:2")),
        Step::Expire,
        create(
            "city",
            r#"{"id":"urn:g:5","type":"V","observed":{"value":1,"observedAt":"2026-01-31T12:00:00.25Z"}}"#,
        ),
        Step::Batch(
            "",
            "upsert",
            own(r#"[{"id":"urn:g:6","type":"B","v":1},{"id":"urn:g:4","type":"B","v":2}]"#),
        ),
    ]
}

/// A store with a snapshot in the middle of its life, two contexts, and an export of it all.
fn write() -> SimDisk {
    let disk = SimDisk::new();
    let mut stepped = Stepped::open(&disk);
    let hosted = stepped.opened.store.hosted();
    let steps = steps();
    let (first, second) = steps.split_at(steps.len() / 2);
    stepped.until(hosted.save(&context("kept", r#"{"@context":{"a":"urn:a:b"}}"#))).unwrap();
    let mut answers = stepped.run(first);
    stepped.opened.store.snapshot().unwrap();
    answers.extend(stepped.run(second));
    assert!(
        answers.iter().all(|answer| !answer.contains("Error") && !answer.contains("Bad")),
        "{answers:#?}"
    );
    stepped.until(hosted.save(&context("forgotten", "{}"))).unwrap();
    stepped.until(hosted.remove("city", "forgotten")).unwrap();
    stepped.idle();
    let mut exported = Vec::new();
    let outside: Arc<dyn Disk> = Arc::new(disk.clone());
    export(&outside, &mut exported).unwrap();
    let disk = disk.kill();
    disk.plant(Path::new("export"), exported);
    disk
}

/// Where a file of the store lies in the sample.
fn golden(path: &Path) -> PathBuf {
    sample().join(path.to_str().unwrap().replace('/', "+"))
}

#[test]
fn version_1_is_written_as_ever() {
    let disk = write();
    if std::env::var_os("TRIFID_BLESS").is_some() {
        let _ = fs::remove_dir_all(sample());
        fs::create_dir_all(sample()).unwrap();
        for path in disk.files() {
            fs::write(golden(&path), disk.content(&path).unwrap()).unwrap();
        }
        fs::write(sample().join("content"), text(&disk)).unwrap();
    }
    for path in disk.files() {
        assert!(
            fs::read(golden(&path)).unwrap() == disk.content(&path).unwrap(),
            "{} differs",
            path.display()
        );
    }
    assert_eq!(fs::read_dir(sample()).unwrap().count(), disk.files().len() + 1);
}

#[test]
fn version_1_is_read() {
    let disk = SimDisk::new();
    for entry in fs::read_dir(sample()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        disk.plant(Path::new(&name.replace('+', "/")), fs::read(entry.path()).unwrap());
    }
    assert_eq!(text(&disk), fs::read_to_string(sample().join("content")).unwrap());
    let imported = SimDisk::new();
    imported.plant(
        Path::new("context/00000000000000000000.snapshot"),
        fs::read(sample().join("export")).unwrap(),
    );
    assert_eq!(text(&imported), text(&disk));
}

/// All that the store on the disk holds, a line each.
fn text(disk: &SimDisk) -> String {
    let opened = open(Arc::new(disk.clone())).unwrap();
    let mut text = String::new();
    for (tenant, entities) in content(&*opened.store.entities()) {
        text += &format!("tenant {tenant}\n");
        entities.iter().for_each(|entity| text += &format!("{entity}\n"));
    }
    for context in opened.contexts {
        text += &format!("{context:?}\n");
    }
    text
}
