//! A disk that is full: writers are refused, readers are served, and room heals it.

use std::process::Command;

use rustix::process::Signal;

use super::Door;
use crate::harness::{Serving, Trifid};

/// A command within a small disk of its own, which ends with it; none where the kernel does not let us.
fn on_a_small_disk(trifid: &Trifid, arguments: &[&str]) -> Option<Command> {
    let mount = "mkdir -p small && mount -t tmpfs -o size=12m none small";
    let apart = ["-U", "-r", "-m", "sh", "-c"];
    let tried = Command::new("unshare").args(apart).arg(mount).current_dir(trifid.folder.path()).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return None;
    }
    let program = trifid.command(arguments);
    let mut command = Command::new("unshare");
    command.args(apart).arg(format!("{mount} && exec \"$0\" \"$@\"")).arg(program.get_program());
    command.args(program.get_args()).current_dir(trifid.folder.path());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Some(command)
}

#[test]
fn a_full_disk_refuses_writers_and_serves_readers() {
    let trifid = Trifid::new();
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0"];
    for setting in ["doors=stream", "data_dir=small/data", "stream.segment=1MiB", "stream.auto_create=true"] {
        arguments.extend(["--set", setting]);
    }
    let Some(command) = on_a_small_disk(&trifid, &arguments) else {
        eprintln!("skipped: this kernel gives no file system of one's own (user namespaces)");
        return;
    };
    let door = Door::of(trifid, Serving::begin(command));
    let certificate = door.serving.logged.iter().find_map(|line| line.split_once("certificate_sha256\":\""));
    let fingerprint = certificate.unwrap().1.split('"').next().unwrap().to_owned();
    let run = |arguments: &[&str], input: &str| {
        door.run_over("tls", &[arguments, &["--fingerprint", &fingerprint]].concat(), input)
    };
    let good = |arguments: &[&str], input: &str| run(arguments, input).good(arguments);
    good(&["create", "kept"], "");
    good(&["publish", "kept"], "one\ntwo\n");
    good(&["create", "ballast"], "");
    // One batch after the other, until nothing more goes in.
    let line = "x".repeat(400_000);
    let (mut filled, mut refused) = (0, None);
    while refused.is_none() {
        filled += 1;
        assert!(filled < 100, "twelve megabytes hold more than forty");
        refused = kcat(&door, "ballast", &line).err();
    }
    let refused = refused.unwrap();
    assert!(refused.contains("Disk error when trying to access log file on disk"), "{refused}");
    let health = door.serving.get("/q/health").body;
    assert!(health.contains("\"withoutSpace\":"), "{health}");

    // Readers are served, over both protocols; the process lives.
    assert_eq!(good(&["consume", "kept", "--from", "earliest", "--until-end"], ""), "one\ntwo\n");
    let all = good(&["consume", "ballast", "--from", "earliest", "--until-end"], "");
    assert_eq!(all.lines().count(), filled - 1);
    // With room there is service again.
    good(&["delete", "ballast"], "");
    good(&["publish", "kept"], "three\n");
    assert_eq!(good(&["consume", "kept", "--from", "earliest", "--until-end"], ""), "one\ntwo\nthree\n");
    let (status, logged) = door.serving.stop(Signal::TERM);
    assert!(status.success(), "{logged:#?}");
}

/// Produces one line; what librdkafka says of it where it is refused.
fn kcat(door: &Door, topic: &str, line: &str) -> Result<(), String> {
    std::fs::write(door.trifid.folder.path().join("line"), line).unwrap();
    let broker = door.kafka.to_string();
    let output = Command::new("kcat")
        .args(["-b", &broker, "-P", "-t", topic, "-X", "retries=0", "-X", "message.max.bytes=900000", "line"])
        .current_dir(door.trifid.folder.path())
        .output()
        .expect("kcat is installed by `cargo xtask tools`");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() && !said.contains("Delivery failed") { Ok(()) } else { Err(said) }
}
