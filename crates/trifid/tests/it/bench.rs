//! `trifid bench --smoke`: the measurement itself is correct; nothing is judged.

use crate::harness::Trifid;

fn smoke(suite: &str) {
    let said = Trifid::new().run(&["bench", suite, "--smoke", "--json", "report.json", "--dir", "."]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.starts_with(&format!("trifid bench {suite}")), "{}", said.out);
}

#[test]
fn the_shapes_can_be_measured() {
    smoke("shapes");
}

#[test]
fn memory_can_be_measured() {
    smoke("memory");
}

#[cfg(feature = "archive-datafusion")]
#[test]
fn the_archive_can_be_measured() {
    smoke("tap");
}

#[cfg(feature = "stream")]
#[test]
fn streams_can_be_measured() {
    smoke("stream");
}
