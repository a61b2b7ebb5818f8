//! The clients of Kafka that people use, each by a program that checks itself; then the same server again, from what
//! it left on the disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Door, tool};
use crate::harness::Trifid;

/// Runs a client; answers what it called its topics.
fn run(mut client: Command, installed: &str) -> String {
    let output = client.output().unwrap_or_else(|error| {
        panic!("{installed}, which `cargo xtask tools` installs, does not run: {error}")
    });
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said.lines().last().and_then(|line| line.strip_prefix("left ")).unwrap_or_default().to_owned()
}

fn script(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stream")).join(name)
}

fn python(name: &str) -> impl Fn(&[&str]) -> String {
    let interpreter = tool("python/bin/python");
    move |arguments| {
        let mut client = Command::new(&interpreter);
        client.arg(script(name)).args(arguments);
        run(client, name)
    }
}

/// The whole of a client's checks, and what must be left of them after a restart.
fn works(client: impl Fn(&[&str]) -> String) {
    let door = Door::open();
    let left = client(&[&door.kafka.to_string()]);
    assert!(!left.is_empty());
    let door = Door::on(door.close(), &[]);
    client(&[&door.kafka.to_string(), "--resume", &left]);
    door.close();
}

#[test]
fn kcat_works() {
    let door = Door::on(Trifid::new(), &["stream.auto_create=true"]);
    let mut client = Command::new("sh");
    client.arg(script("client_kcat.sh")).arg(door.kafka.to_string());
    let left = run(client, "kcat");
    // What one client of Kafka wrote, the door's own protocol reads.
    let all = door.all(&left);
    assert!(all.starts_with("a\tone\nb\ttwo\nc\tthree\ngzip\n"), "{all}");
    door.close();
}

#[test]
fn confluent_kafka_works() {
    works(python("client_confluent.py"));
}

#[test]
fn aiokafka_works() {
    works(python("client_aiokafka.py"));
}

#[test]
fn kafka_python_works() {
    works(python("client_kafka_python.py"));
}

#[test]
fn kafkajs_works() {
    let modules = tool("node/node_modules");
    works(|arguments| {
        let mut client = Command::new("node");
        client.env("NODE_PATH", &modules).arg(script("client_kafkajs.js")).args(arguments);
        run(client, "node")
    });
}
