//! The harbour of `trifid demo`: every line that it prints shows something.

use std::process::Command;

use crate::harness::Trifid;

#[test]
fn every_line_of_the_harbour_shows_something() {
    let trifid = Trifid::new();
    let mut serving = trifid.serve(&["demo", "--port", "0"]);
    let printed = serving.printed_until("Ctrl-C");
    let is_line =
        |line: &&str| !line.starts_with('#') && (line.contains(" stream ") || line.contains("kcat "));
    let lines: Vec<&str> = printed.lines().filter(is_line).collect();
    assert_eq!(lines.len(), 4, "{printed}");
    let said: Vec<String> = lines.iter().map(|line| shown(&trifid, line)).collect();
    let [readings, group, by_kafka, notes] = said.try_into().unwrap();
    assert_eq!(readings.lines().count(), 10, "{readings}");
    assert!(readings.lines().all(|line| line.contains("\"quantity\"")), "{readings}");
    assert!(group.starts_with("dashboards: active, 3 members"), "{group}");
    assert_eq!(by_kafka.lines().count(), 10, "{by_kafka}");
    assert_eq!(notes, "hello harbour\n");
    serving.stop_cleanly();
}

/// What a line shows when a person enters it.
fn shown(trifid: &Trifid, line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).current_dir(trifid.folder.path()).output().unwrap();
    let said = crate::harness::Said::from(output);
    assert_eq!(said.code, Some(0), "{line} (`cargo xtask tools` installs kcat): {said:?}");
    said.out
}
