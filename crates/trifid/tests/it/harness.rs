//! Runs the binary and keeps what it said.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// The binary in an empty folder that goes away with this value, without our variables from outside.
pub(crate) struct Trifid {
    pub(crate) folder: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

/// What a run that ended said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl Trifid {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    pub(crate) fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trifid"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TRIFID_") {
                command.env_remove(name);
            }
        }
        command.args(arguments).envs(self.variables.iter().cloned()).current_dir(self.folder.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, "")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Said {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A run that ends without reading closes the pipe early, which is its right.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        Said::from(child.wait_with_output().unwrap())
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { out: text(output.stdout), err: text(output.stderr), code: output.status.code() }
    }
}
