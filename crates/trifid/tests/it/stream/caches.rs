//! Caches by the commands of the door.

use std::process::Stdio;

use super::Door;
use crate::harness::Said;

#[test]
fn values_are_put_got_compared_and_deleted() {
    let door = Door::open();
    let cache = |arguments: &[&str]| door.hand(&[&["cache"], arguments].concat());
    let refused = |arguments: &[&str], why: &str| door.run(&[&["cache"], arguments].concat()).refused(why);
    cache(&["create", "demo.berths", "--durability", "on-commit"]);
    assert!(cache(&["list"]).starts_with("demo.berths\ton-commit, at most "));
    let revision = |said: &str| said.trim().strip_prefix("revision ").unwrap().to_owned();
    let first = revision(&cache(&["put", "demo.berths", "quay-1", "free"]));
    assert_eq!(cache(&["get", "demo.berths", "quay-1"]), "free\n");
    refused(&["put", "demo.berths", "quay-1", "mine", "--absent"], "revision");
    let second = revision(&cache(&["put", "demo.berths", "quay-1", "taken", "--revision", &first]));
    refused(&["put", "demo.berths", "quay-1", "late", "--revision", &first], &second);
    assert_eq!(cache(&["get", "demo.berths", "quay-1"]), "taken\n");

    let input = ["cache", "put", "demo.berths", "quay-2"];
    door.run_over("tls", &input, "from standard input").good(&input);
    cache(&["put", "demo.berths", "mole", "far"]);
    assert_eq!(cache(&["scan", "demo.berths", "quay-"]), "quay-1\ttaken\nquay-2\tfrom standard input\n");
    assert_eq!(cache(&["scan", "demo.berths", "--keys"]), "mole\nquay-1\nquay-2\n");
    refused(&["delete", "demo.berths", "quay-1", "--revision", &first], &second);
    cache(&["delete", "demo.berths", "quay-1"]);
    refused(&["get", "demo.berths", "quay-1"], "`quay-1` is not in demo.berths");

    // What was acknowledged is there after a restart.
    let door = Door::on(door.close(), &[]);
    assert_eq!(door.hand(&["cache", "scan", "demo.berths"]), "mole\tfar\nquay-2\tfrom standard input\n");
    door.hand(&["cache", "drop", "demo.berths"]);
    assert_eq!(door.hand(&["cache", "list"]), "");
    door.close();
}

#[test]
fn a_watcher_sees_what_is_there_then_every_change() {
    let door = Door::open();
    let cache = |arguments: &[&str]| door.hand(&[&["cache"], arguments].concat());
    cache(&["create", "tides"]);
    cache(&["put", "tides", "port", "low"]);
    let server = format!("quic://localhost:{}", door.native.port());
    let watcher = door
        .trifid
        .command(&["stream", "cache", "watch", "tides", "port", "--count", "4", "--server", &server])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut watcher = watcher;
    let mut seen = std::io::BufReader::new(watcher.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut seen, &mut line).unwrap();
        line
    };
    let put = line();
    assert!(put.starts_with("put\tport\t") && put.ends_with("\tlow\n"), "{put}");
    let current = line();
    assert!(current.starts_with("current\t"), "{current}");
    // An entry with a short life is seen to come, and to go.
    cache(&["put", "tides", "port", "high", "--ttl", "100ms"]);
    let (put, gone) = (line(), line());
    assert!(put.starts_with("put\tport\t") && put.ends_with("\thigh\n"), "{put}");
    assert!(gone.starts_with("expired\tport\t"), "{gone}");
    assert!(watcher.wait().unwrap().success());
    door.run(&["cache", "get", "tides", "port"]).refused("not in tides");
    door.close();
}

#[test]
fn a_cache_keeps_within_its_budget() {
    let door = Door::open();
    door.hand(&["cache", "create", "small", "--budget", "64KiB"]);
    let value = "v".repeat(20_000);
    for key in ["a", "b", "c", "d", "e"] {
        let put = ["cache", "put", "small", key];
        door.run_over("quic", &put, &value).good(&put);
    }
    let keys = door.hand(&["cache", "scan", "small", "--keys"]);
    assert!(keys.ends_with("e\n") && keys.lines().count() < 4, "{keys}");
    let said: Said = door.run(&["cache", "get", "small", "a"]);
    said.refused("not in small");
    door.close();
}
