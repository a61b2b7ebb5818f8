//! Who may do what: tokens and tenants over the door's own protocol and over Kafka's; tokens and certificates that
//! change while it serves.

use std::process::Command;

use rustix::process::Signal;

use super::{Door, tool};
use crate::harness::{Said, Trifid};

/// A line of the token file.
fn line(trifid: &Trifid, token: &str, tenant: &str, role: &str) -> String {
    trifid.run_with(&["token", "hash", "--tenant", tenant, "--role", role], token).out
}

/// A server with tokens `a` and `b`, who write for tenants of their own, and `reader`, who reads in the first.
fn guarded() -> Door {
    let trifid = Trifid::new();
    let lines = [("a", "city", "write"), ("b", "port", "write"), ("reader", "city", "read")];
    let lines: String = lines.map(|(token, tenant, role)| line(&trifid, token, tenant, role)).concat();
    Door::on(trifid.file("tokens", &lines), &["auth.tokens_file=tokens", "stream.auto_create=true"])
}

impl Door {
    fn as_bearer(&self, token: &str, arguments: &[&str], input: &str) -> Said {
        let file = self.trifid.folder.path().join("token");
        std::fs::write(file, token).unwrap();
        self.run_over("quic", &[arguments, &["--token-file", "token"]].concat(), input)
    }
}

#[test]
fn tenants_see_their_own_streams_alone() {
    let door = guarded();
    let all = ["consume", "same", "--from", "earliest", "--until-end"];
    for token in ["a", "b"] {
        let create = ["create", "same"];
        door.as_bearer(token, &create, "").good(&create);
        door.as_bearer(token, &["publish", "same"], token).good(&[token]);
    }
    for token in ["a", "b"] {
        assert_eq!(door.as_bearer(token, &all, "").good(&all), format!("{token}\n"));
    }
    assert_eq!(door.as_bearer("reader", &all, "").good(&all), "a\n");
    let create = ["create", "private"];
    door.as_bearer("a", &create, "").good(&create);
    door.as_bearer("b", &["describe", "private"], "").refused("private");
    // A tenant that is not the token's own.
    door.as_bearer("b", &["list", "--tenant", "city"], "").refused("tenant");
    door.close();
}

#[test]
fn without_a_known_token_nothing_is_told() {
    let door = guarded();
    door.run(&["list"]).refused("token");
    door.as_bearer("wrong", &["list"], "").refused("token");
    let create = ["create", "readings"];
    door.as_bearer("reader", &create, "").refused("write");
    door.as_bearer("a", &create, "").good(&create);
    door.as_bearer("reader", &["publish", "readings"], "no\n").refused("write");
    // The token also comes from the environment.
    let server = format!("tls://localhost:{}", door.native.port());
    let mut list = door.trifid.command(&["stream", "list", "--server", &server]);
    let said = Said::from(list.env("TRIFID_TOKEN", "reader").output().unwrap());
    assert!(said.good(&["list"]).starts_with("readings\t"));
    door.close();
}

/// kcat as a user with a password.
fn kcat(door: &Door, user: &str, token: &str, arguments: &[&str]) -> std::process::Output {
    let broker = door.kafka.to_string();
    let who = [format!("sasl.username={user}"), format!("sasl.password={token}")];
    Command::new("timeout")
        .args(["60", "kcat", "-q", "-b", &broker, "-X", "security.protocol=SASL_PLAINTEXT"])
        .args(["-X", "sasl.mechanisms=PLAIN", "-X", &who[0], "-X", &who[1], "-m", "5"])
        .args(arguments)
        .output()
        .expect("coreutils are there")
}

#[test]
fn clients_of_kafka_are_their_tenants() {
    let door = guarded();
    let create = ["create", "readings"];
    door.as_bearer("a", &create, "").good(&create);
    door.as_bearer("a", &["publish", "readings"], "of the city\n").good(&["publish"]);
    let read = ["-C", "-t", "readings", "-o", "beginning", "-e"];
    let said = kcat(&door, "city", "reader", &read);
    let errors = String::from_utf8_lossy(&said.stderr).into_owned();
    assert_eq!(
        String::from_utf8_lossy(&said.stdout),
        "of the city\n",
        "kcat, by `cargo xtask tools`: {errors}"
    );
    for (user, token) in [("city", "wrong"), ("port", "a")] {
        let listed = kcat(&door, user, token, &["-L"]);
        assert!(!listed.status.success(), "{user} {token}");
        assert!(!String::from_utf8_lossy(&listed.stdout).contains("readings"));
    }
    let listed = kcat(&door, "port", "b", &["-L"]);
    assert!(listed.status.success());
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("readings"));
    door.close();
}

#[test]
fn a_library_logs_in_by_sasl() {
    let door = guarded();
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stream/client_sasl.py");
    let output =
        Command::new(tool("python/bin/python")).args([client, &door.kafka.to_string()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let all = ["consume", "by-sasl", "--from", "earliest", "--until-end"];
    assert_eq!(door.as_bearer("reader", &all, "").good(&all), "k\tv\n");
    door.close();
}

#[test]
fn tokens_are_read_again_on_sighup() {
    let mut door = guarded();
    let lines = line(&door.trifid, "new", "city", "write");
    door.as_bearer("new", &["list"], "").refused("token");
    std::fs::write(door.trifid.folder.path().join("tokens"), lines).unwrap();
    door.serving.signal(Signal::HUP);
    door.serving.logs("read tokens and certificates again");
    door.as_bearer("new", &["list"], "").good(&["list"]);
    door.as_bearer("a", &["list"], "").refused("token");
    door.close();
}

#[test]
fn the_certificate_is_read_again_on_sighup() {
    // Two certificates, as two installations made them.
    let made = [Door::open().close(), Door::open().close()];
    let part = |trifid: &Trifid, name: &str| {
        std::fs::read(trifid.folder.path().join("trifid-data/tls").join(name)).unwrap()
    };
    let trifid = Trifid::new();
    let folder = trifid.folder.path().to_owned();
    let install = |from: &Trifid| {
        std::fs::write(folder.join("chain"), part(from, "certificate.pem")).unwrap();
        std::fs::write(folder.join("key"), part(from, "key.pem")).unwrap();
    };
    install(&made[0]);
    for (name, from) in ["first.pem", "second.pem"].iter().zip(&made) {
        std::fs::write(folder.join(name), part(from, "certificate.pem")).unwrap();
    }
    let mut door = Door::on(trifid, &["stream.tls_certificate=chain", "stream.tls_key=key"]);
    let trusting =
        |door: &Door, transport: &str, ca: &str| door.run_over(transport, &["list", "--ca", ca], "").code;
    assert_eq!(trusting(&door, "quic", "first.pem"), Some(0));
    assert_eq!(trusting(&door, "quic", "second.pem"), Some(1));
    install(&made[1]);
    door.serving.signal(Signal::HUP);
    door.serving.logs("read tokens and certificates again");
    for transport in ["quic", "tls"] {
        assert_eq!(trusting(&door, transport, "second.pem"), Some(0), "{transport}");
        assert_eq!(trusting(&door, transport, "first.pem"), Some(1), "{transport}");
    }
    door.close();
}
