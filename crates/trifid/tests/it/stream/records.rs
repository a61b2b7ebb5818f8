//! Streams made, written, read, kept over a restart, and deleted, by the commands of the door.

use std::process::Stdio;

use serde_json::{Value, json};

use super::Door;
use crate::harness::Trifid;

fn values(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["value"].as_str().unwrap()).collect()
}

/// Keys, headers, every compression, a file, and every place to begin at.
fn round_trip(transport: &str) {
    let door = Door::on(Trifid::new().file("more", "k1:from a file\nk2:of two lines"), &[]);
    let run = |arguments: &[&str], input: &str| door.run_over(transport, arguments, input).good(arguments);
    let created = run(&["create", "demo.round", "--shards", "3", "--retention", "7d"], "");
    assert_eq!(created, "demo.round: 3 shards, on-commit, kept for 7d\n");
    let keyed = ["publish", "demo.round", "--key-separator", ":"];
    run(&keyed, "k1:one\nk2:two\nk1:three\n");
    for codec in ["gzip", "snappy", "lz4", "zstd"] {
        let header = format!("codec={codec}");
        let options = ["--key", "k1", "--compression", codec, "--header", &header];
        run(&[&["publish", "demo.round"][..], &options].concat(), &format!("{codec}\n"));
    }
    run(&[&keyed[..], &["more"]].concat(), "");

    let whole = ["consume", "demo.round", "--from", "earliest", "--until-end", "--format", "json"];
    let all = super::records(&run(&whole, ""));
    let of =
        |key: &str| -> Vec<Value> { all.iter().filter(|record| record["key"] == key).cloned().collect() };
    let (first, second) = (of("k1"), of("k2"));
    assert_eq!(values(&first), ["one", "three", "gzip", "snappy", "lz4", "zstd", "from a file"]);
    assert_eq!(values(&second), ["two", "of two lines"]);
    assert_eq!(first[2]["headers"], json!({"codec": "gzip"}));
    assert_eq!(all.len(), 9);

    // Offsets count in each shard, and a shard can be read alone, from any of them.
    let shard = first[0]["shard"].to_string();
    let from = first[3]["offset"].to_string();
    let rest = [&whole[..2], &["--from", &from, "--shard", &shard], &whole[4..]].concat();
    let rest = super::records(&run(&rest, ""));
    let rest: Vec<&Value> = rest.iter().filter(|record| record["key"] == "k1").collect();
    assert_eq!(rest[0]["value"], "snappy");
    assert_eq!(rest.len(), 4);
    let count =
        run(&["consume", "demo.round", "--from", "earliest", "--count", "4", "--format", "value"], "");
    assert_eq!(count.lines().count(), 4);

    let listed = run(&["list", "demo."], "");
    assert_eq!(listed, "demo.round\t3 shards, on-commit, kept for 7d\n");
    let described = run(&["describe", "demo.round"], "");
    let kept: u64 =
        described.lines().skip(3).map(|line| line.split('\t').nth(3).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(kept, 9, "{described}");
    assert_eq!(run(&["delete", "demo.round"], ""), "demo.round is gone\n");
    door.run_over(transport, &["describe", "demo.round"], "").refused("demo.round");
    door.close();
}

#[test]
fn records_make_the_round_trip_over_quic() {
    round_trip("quic");
}

#[test]
fn records_make_the_round_trip_over_tls() {
    round_trip("tls");
}

#[test]
fn whichever_transport_answers_is_taken() {
    let door = Door::open();
    let create = ["create", "either"];
    door.run_over("trifid", &create, "").good(&create);
    assert_eq!(door.hand(&["list"]), "either\t1 shards, on-commit\n");
    door.close();
}

#[test]
fn a_place_can_be_a_time() {
    let door = Door::open();
    door.hand(&["create", "times"]);
    door.publish(&["times"], "before\n");
    let stamp =
        door.records(&["times", "--from", "earliest", "--until-end"])[0]["timestamp"].as_i64().unwrap();
    let at = |ms: i64| jiff::Timestamp::from_millisecond(ms).unwrap().to_string();
    let from = |place: &str| door.hand(&["consume", "times", "--from", place, "--until-end"]);
    assert_eq!(from(&at(stamp)), "before\n");
    // Nothing is as late as that, so it begins at the end.
    assert_eq!(from(&at(stamp + 3_600_000)), "");
    door.run(&["consume", "times", "--from", "100", "--until-end"])
        .refused("times: the broker refuses: the shard ends at 1");
    door.close();
}

#[test]
fn a_consumer_waits_for_what_comes() {
    let door = Door::open();
    door.hand(&["create", "live"]);
    let server = format!("quic://localhost:{}", door.native.port());
    let consumer = door
        .trifid
        .command(&["stream", "consume", "live", "--from", "earliest", "--count", "3", "--server", &server])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    door.publish(&["live", "--rate", "50"], "1\n2\n3\n4\n");
    let said = crate::harness::Said::from(consumer.wait_with_output().unwrap());
    assert_eq!((said.out.as_str(), said.code), ("1\n2\n3\n", Some(0)));
    door.close();
}

#[test]
fn what_was_acknowledged_is_there_after_a_restart() {
    let door = Door::open();
    for durability in ["on-commit", "periodic", "memory"] {
        let name = format!("kept.{durability}");
        door.hand(&["create", &name, "--durability", durability, "--shards", "2"]);
        door.publish(&[&name, "--key-separator", ":"], "a:1\nb:2\na:3\n");
    }
    let before = door.records(&["kept.on-commit", "--from", "earliest", "--until-end"]);
    let door = Door::on(door.close(), &[]);
    let after = door.records(&["kept.on-commit", "--from", "earliest", "--until-end"]);
    let sorted = |mut records: Vec<Value>| {
        records.sort_by_key(|record| (record["shard"].as_u64(), record["offset"].as_u64()));
        records
    };
    assert_eq!(sorted(after), sorted(before));
    assert_eq!(door.all("kept.periodic").lines().count(), 3);
    assert_eq!(door.all("kept.memory"), "");
    // What comes next comes after it.
    door.publish(&["kept.on-commit", "--key", "a"], "4\n");
    let all = door.records(&["kept.on-commit", "--from", "earliest", "--until-end"]);
    let of_a: Vec<Value> = all.into_iter().filter(|record| record["key"] == "a").collect();
    assert_eq!(values(&of_a), ["1", "3", "4"]);
    door.close();
}

#[test]
fn one_process_works_in_a_data_directory() {
    let door = Door::open();
    let said = door.trifid.run(&["serve", "--listen", "127.0.0.1:0", "--set", "doors=stream"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains("trifid-data"), "{}", said.err);
    door.hand(&["create", "unharmed"]);
    door.close();
}

#[test]
fn without_files_durable_streams_are_refused() {
    let door = Door::on(Trifid::new(), &["stream.store=memory"]);
    let certificate = door.serving.logged.iter().find_map(|line| line.split_once("certificate_sha256\":\""));
    let fingerprint = certificate.unwrap().1.split('"').next().unwrap().to_owned();
    let trusted = |arguments: &[&str]| door.run(&[arguments, &["--fingerprint", &fingerprint]].concat());
    trusted(&["create", "durable"]).refused("data directory");
    let create = ["create", "passing", "--durability", "memory"];
    assert_eq!(trusted(&create).good(&create), "passing: 1 shards, memory\n");
    assert!(!door.trifid.folder.path().join("trifid-data/stream").exists());
    door.close();
}
