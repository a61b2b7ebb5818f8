//! Clients that astronomers use: the validator of the Virtual Observatory, and pyVO.

use std::path::PathBuf;
use std::process::Command;

use super::{demo, post, rows};

#[test]
fn every_query_that_the_demo_prints_shows_something() {
    let (serving, printed) = demo();
    let queries: Vec<&str> =
        printed.lines().filter_map(|line| line.split_once("\"QUERY=")?.1.strip_suffix('"')).collect();
    assert_eq!(queries.len(), 3, "{printed}");
    for query in queries {
        assert!(!rows(&serving, query).is_empty(), "{query}");
    }
    assert_eq!(serving.get("/tap").status, 200);
    serving.stop_cleanly();
}

/// All stages that apply: there is no table of ObsLocTAP here.
const STAGES: &str = "TMV TME TMS TMC CPV CAP AVV QGE QPO QAS UWS MDQ OBS UPL EXA";

#[test]
fn the_validator_finds_nothing() {
    let (serving, _) = demo();
    let url = format!("tapurl=http://{}/tap", serving.address);
    let output = Command::new("stilts")
        .args(["taplint", &url, "report=EWF", &format!("stages={STAGES}")])
        .output()
        .expect("stilts is installed by `cargo xtask tools`");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("Totals: Errors: 0; Warnings: 0; Failures: 0"), "{report}");
    serving.stop_cleanly();
}

/// Where `cargo xtask tools` puts the Python clients.
fn python() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache");
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
    cache.join("trifid/python/bin/python")
}

#[test]
fn pyvo_lists_asks_submits_and_uploads() {
    let (serving, _) = demo();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/archive/client.py");
    let output = Command::new(python())
        .args([script, &format!("http://{}/tap", serving.address)])
        .output()
        .expect("pyVO is installed by `cargo xtask tools`");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.trim_end().ends_with("all is well"), "{said}");
    serving.stop_cleanly();
}

#[test]
fn both_doors_of_the_demo_are_open() {
    let (serving, _) = demo();
    assert_eq!(serving.get("/ngsi-ld/v1/types").status, 200);
    let health: serde_json::Value = serde_json::from_str(&serving.get("/q/health").body).unwrap();
    assert!(health.to_string().contains("\"archive\""), "{health}");
    let metrics = serving.get("/q/metrics").body;
    assert!(metrics.contains("trifid_archive_tables 8"), "{metrics}");
    let answer = post(&serving, "/tap/nowhere", &[]);
    assert_eq!(answer.status, 404);
    serving.stop_cleanly();
}
