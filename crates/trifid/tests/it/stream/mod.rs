//! The stream door from outside: the real binary, its own commands, and clients of Kafka.

mod caches;
mod clients;
mod crash;
mod demo;
mod disk;
mod groups;
mod hostile;
mod records;
mod tokens;

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Said, Serving, Trifid};

/// A server with the stream door alone, and a folder of its own.
struct Door {
    trifid: Trifid,
    serving: Serving,
    native: SocketAddr,
    kafka: SocketAddr,
}

impl Door {
    fn open() -> Self {
        Self::on(Trifid::new(), &[])
    }

    /// On what is in the folder already.
    fn on(trifid: Trifid, settings: &[&str]) -> Self {
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--set", "doors=stream"];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
        let serving = trifid.serve(&arguments);
        Self::of(trifid, serving)
    }

    fn of(trifid: Trifid, serving: Serving) -> Self {
        let native = address(&serving, "stream=");
        let kafka = address(&serving, "kafka=");
        Self { trifid, serving, native, kafka }
    }

    /// Runs `trifid stream` against it, over QUIC.
    fn run(&self, arguments: &[&str]) -> Said {
        self.run_over("quic", arguments, "")
    }

    fn run_over(&self, transport: &str, arguments: &[&str], input: &str) -> Said {
        let server = format!("{transport}://localhost:{}", self.native.port());
        let arguments = [&["stream"], arguments, &["--server", &server]].concat();
        self.trifid.run_with(&arguments, input)
    }

    /// What a command printed that must succeed.
    #[track_caller]
    fn hand(&self, arguments: &[&str]) -> String {
        self.run(arguments).good(arguments)
    }

    /// The same with lines to publish.
    #[track_caller]
    fn publish(&self, arguments: &[&str], lines: &str) {
        let arguments = [&["publish"], arguments].concat();
        self.run_over("quic", &arguments, lines).good(&arguments);
    }

    /// The records of a command that prints them as JSON.
    #[track_caller]
    fn records(&self, arguments: &[&str]) -> Vec<Value> {
        records(&self.hand(&[&["consume", "--format", "json"], arguments].concat()))
    }

    /// Everything that is in a stream, as lines.
    #[track_caller]
    fn all(&self, stream: &str) -> String {
        self.hand(&["consume", stream, "--from", "earliest", "--until-end"])
    }

    /// Stops it as an operator does; the folder is left.
    fn close(self) -> Trifid {
        self.serving.stop_cleanly();
        self.trifid
    }
}

/// The address behind a word of the line at the start.
fn address(serving: &Serving, word: &str) -> SocketAddr {
    let line = serving.logged.iter().find_map(|line| line.split_once("listening http=")).unwrap().1;
    let at = line.split_once(word).unwrap_or_else(|| panic!("no {word} in {line}")).1;
    at.split([' ', '"']).next().unwrap().parse().unwrap()
}

fn records(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

impl Said {
    #[track_caller]
    fn good(self, arguments: &[&str]) -> String {
        assert_eq!(self.code, Some(0), "{arguments:?}: {}{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    fn refused(self, why: &str) {
        assert_eq!(self.code, Some(1), "{}{}", self.out, self.err);
        assert!(self.err.contains(why), "no {why:?} in {:?}", self.err);
    }
}

/// What `cargo xtask tools` installed, below the user's cache.
fn tool(path: &str) -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/tmp".into())).join(".cache");
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from);
    let tool = cache.join("trifid").join(path);
    assert!(tool.exists(), "{} is not there: `cargo xtask tools` installs it", tool.display());
    tool
}
