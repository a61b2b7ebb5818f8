//! Loading, attaching, asking and dropping at the command line; and what a crash leaves.

use std::process::Stdio;
use std::time::Duration;

use crate::harness::{Said, Trifid};

/// A catalogue of so many stars.
fn catalogue(rows: usize) -> String {
    let mut text = "id,ra,dec,mag,name,seen\n".to_owned();
    for row in 0..rows {
        let (ra, dec) = ((row * 7919) % 360_000, (row * 104_729) % 180_000);
        let mag = if row % 7 == 3 { String::new() } else { format!("{}.25", row % 17) };
        let (ra, dec) = (ra as f64 / 1e3, dec as f64 / 1e3 - 90.0);
        text += &format!("{row},{ra},{dec},{mag},\"star, {row}\",2025-01-01T00:00:{:02}\n", row % 60);
    }
    text
}

fn load(trifid: &Trifid, file: &str, table: &str) -> Said {
    trifid.run(&["archive", "load", file, "--table", table])
}

fn query(trifid: &Trifid, text: &str) -> String {
    let said = trifid.run(&["archive", "query", text, "--format", "csv"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    said.out
}

#[test]
fn every_format_carries_a_table_out_and_in() {
    let trifid = Trifid::new().file("stars.csv", &catalogue(500));
    let said = load(&trifid, "stars.csv", "my.stars");
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("500 rows of 6 columns in my.stars, sorted over the sky"), "{}", said.err);
    let all = "SELECT id, ra, dec, mag, name, seen FROM {} ORDER BY id";
    let expected = query(&trifid, &all.replace("{}", "my.stars"));
    assert_eq!(expected.lines().count(), 501);
    for (format, name) in [
        ("csv", "out.csv"),
        ("tsv", "out.tsv"),
        ("votable", "out.vot"),
        ("votable/td", "td.vot"),
        ("votable/binary", "binary.vot"),
        ("fits", "out.fits"),
        ("parquet", "out.parquet"),
        ("arrow", "out.arrow"),
    ] {
        let text = all.replace("{}", "my.stars");
        let said = trifid.run(&["archive", "query", &text, "--format", format, "--output", name]);
        assert_eq!(said.code, Some(0), "{format}: {}", said.err);
        let said = load(&trifid, name, "my.again");
        assert_eq!(said.code, Some(0), "{format}: {}", said.err);
        assert_eq!(query(&trifid, &all.replace("{}", "my.again")), expected, "{format}");
    }
    let listed = trifid.run(&["archive", "list"]).out;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert_eq!(trifid.run(&["archive", "attach", "out.parquet", "--table", "my.lying"]).code, Some(0));
    assert_eq!(query(&trifid, &all.replace("{}", "my.lying")), expected);
    assert_eq!(trifid.run(&["archive", "drop", "my.again"]).code, Some(0));
    assert_eq!(trifid.run(&["archive", "drop", "my.again"]).code, Some(1));
}

#[test]
fn mistakes_at_the_command_line_are_named() {
    let trifid =
        Trifid::new().file("bad.csv", "a,b\n1,2,3\n").file("empty.csv", "").file("x.bin", "\u{1}\u{2}");
    for (arguments, expected) in [
        (&["archive", "load", "bad.csv", "--table", "s.t"][..], "line 2"),
        (&["archive", "load", "empty.csv", "--table", "s.t"], "empty.csv"),
        (&["archive", "load", "x.bin", "--table", "s.t"], "the format is none of"),
        (&["archive", "load", "nowhere.csv", "--table", "s.t"], "nowhere.csv"),
        (&["archive", "load", "bad.csv", "--table", "t"], "write it as schema.table"),
        (&["archive", "load", "bad.csv", "--table", "TAP_SCHEMA.t"], "belongs to the service"),
        (&["archive", "query", "SELECT 1 FROM nowhere"], "there is no table nowhere"),
        (&["archive", "query", "SELECT 1 AS one", "--format", "xls"], "the format `xls`"),
        (&["archive", "attach", "bad.csv", "--table", "s.t"], "bad.csv"),
    ] {
        let said = trifid.run(arguments);
        assert_eq!(said.code, Some(1), "{arguments:?}: {}", said.out);
        assert!(said.err.contains(expected), "{arguments:?}: {}", said.err);
        assert!(!said.err.contains("panicked"), "{}", said.err);
    }
}

#[test]
fn a_load_that_is_killed_leaves_the_table_as_it_was() {
    let trifid = Trifid::new().file("old.csv", &catalogue(100)).file("new.csv", &catalogue(30_000));
    assert_eq!(load(&trifid, "old.csv", "my.stars").code, Some(0));
    let expected = query(&trifid, "SELECT COUNT(*) AS n, SUM(id) AS s FROM my.stars");
    for after in [0, 20, 60, 120, 250] {
        let mut command = trifid.command(&["archive", "load", "new.csv", "--table", "my.stars"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(after));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        let found = query(&trifid, "SELECT COUNT(*) AS n, SUM(id) AS s FROM my.stars");
        if status.success() {
            // It was faster than the signal.
            assert!(found.contains("30000,"), "{found}");
            assert_eq!(load(&trifid, "old.csv", "my.stars").code, Some(0));
        } else {
            let whole = found == expected || found.contains("30000,");
            assert!(whole, "killed after {after} ms: {found}");
            assert_eq!(load(&trifid, "old.csv", "my.stars").code, Some(0), "the lock is free again");
        }
    }
}

#[test]
fn a_server_notices_a_new_table() {
    let trifid = Trifid::new().file("stars.csv", &catalogue(50));
    let serving =
        trifid.serve(&["serve", "--listen", "127.0.0.1:0", "--set", "archive.reload_interval=20ms"]);
    let count = || super::ask(&serving, "SELECT COUNT(*) AS n FROM my.stars", "csv");
    assert_eq!(count().status, 400);
    assert_eq!(load(&trifid, "stars.csv", "my.stars").code, Some(0));
    while count().status != 200 {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(super::rows(&serving, "SELECT COUNT(*) AS n FROM my.stars"), ["50"]);
    serving.stop_cleanly();
}

#[test]
fn a_mapping_makes_obscore() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/archive");
    let trifid = Trifid::new();
    let file = |name: &str| format!("{data}/{name}");
    let said = trifid.run(&[
        "archive",
        "load",
        &file("exposures.csv"),
        "--table",
        "demo.exposures",
        "--describe",
        &file("exposures.toml"),
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = trifid.run(&["archive", "obscore", &file("obscore.toml")]);
    assert!(said.err.contains("360 observations in ivoa.obscore"), "{}", said.err);
    let found = query(
        &trifid,
        "SELECT COUNT(*) AS n FROM ivoa.obscore WHERE 1 = CONTAINS(POINT(s_ra, s_dec), s_region) AND t_max > t_min",
    );
    assert_eq!(found.trim_end(), "n\n360");
    let serving = trifid.serve(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(serving.get("/tap/capabilities").body.contains("ObsCore#core-1.1"));
    serving.stop_cleanly();
}
