//! Runs the binary and keeps what it said.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Pid, Signal, kill_process};

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
        command.args(arguments).current_dir(self.folder.path());
        #[cfg(feature = "stream")]
        if arguments.first() == Some(&"serve") {
            // Tests run side by side, and most do not ask for streams.
            command
                .env("TRIFID_STREAM_LISTEN", "127.0.0.1:0")
                .env("TRIFID_STREAM_KAFKA_LISTEN", "127.0.0.1:0");
        }
        command.envs(self.variables.iter().cloned());
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

/// A run that serves.
#[cfg_attr(not(any(feature = "context", feature = "stream")), allow(dead_code))] // what the demo prints
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: SocketAddr,
    out: BufReader<ChildStdout>,
    lines: Receiver<String>,
    pub(crate) logged: Vec<String>,
}

impl Trifid {
    /// Starts a command that listens, and waits until it does.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Serving {
        Serving::begin(self.command(arguments))
    }
}

impl Serving {
    /// Starts what the command says, and waits until it listens.
    pub(crate) fn begin(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        let (mut logged, mut address) = (Vec::new(), None);
        while address.is_none() {
            let line = lines
                .recv()
                .unwrap_or_else(|_| panic!("it ended before it listened:\n{}", logged.join("\n")));
            address =
                line.split_once("listening http=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            logged.push(line);
        }
        let out = BufReader::new(child.stdout.take().unwrap());
        Serving { child, address: address.unwrap(), out, lines, logged }
    }
}

/// An answer: its status and its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// Where it sends the client.
    #[cfg_attr(not(feature = "archive-datafusion"), allow(dead_code))] // jobs are made so
    pub(crate) location: Option<String>,
    /// Whether the body is still in its frames.
    #[cfg_attr(not(feature = "archive-datafusion"), allow(dead_code))] // long results come so
    pub(crate) is_chunked: bool,
}

impl Serving {
    pub(crate) fn get(&self, target: &str) -> Answer {
        self.request("GET", target, "", "")
    }

    /// One request on a connection of its own.
    pub(crate) fn request(
        &self,
        method: &str,
        target: &str,
        headers: &str,
        body: impl AsRef<[u8]>,
    ) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let body = body.as_ref();
        let length = body.len();
        let head = format!("{method} {target} HTTP/1.1\r\nHost: trifid\r\nConnection: close\r\n{headers}");
        write!(stream, "{head}Content-Length: {length}\r\n\r\n").unwrap();
        stream.write_all(body).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let header = |name: &str| {
            let mut pairs = head.lines().filter_map(|line| line.split_once(": "));
            pairs.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
        };
        Answer {
            status: status.unwrap_or_else(|| panic!("no status in {head:?}")),
            body: body.to_owned(),
            location: header("location"),
            is_chunked: header("transfer-encoding").is_some(),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    #[cfg(any(feature = "context", feature = "stream"))]
    /// Reads what it prints until a line that contains `text`; answers everything up to there.
    pub(crate) fn printed_until(&mut self, text: &str) -> String {
        let mut all = String::new();
        while !all.lines().last().is_some_and(|line| line.contains(text)) {
            let more = self.out.read_line(&mut all).unwrap();
            assert_ne!(more, 0, "it stopped printing before {text:?}:\n{all}");
        }
        all
    }

    #[cfg(any(feature = "context", feature = "stream"))]
    /// Waits for a log line that contains `text`.
    pub(crate) fn logs(&mut self, text: &str) {
        while !self.logged.last().is_some_and(|line| line.contains(text)) {
            let line = self.lines.recv();
            self.logged.push(line.unwrap_or_else(|_| panic!("no line with {text:?} in {:#?}", self.logged)));
        }
    }

    /// Asks it to stop; answers how it ended and the rest of what it logged.
    pub(crate) fn stop(mut self, signal: Signal) -> (ExitStatus, Vec<String>) {
        self.signal(signal);
        let status = self.child.wait().unwrap();
        self.logged.extend(self.lines.iter());
        (status, std::mem::take(&mut self.logged))
    }

    /// Stops it as an operator does, and insists on a clean end and a log without surprises.
    pub(crate) fn stop_cleanly(self) {
        let (status, logged) = self.stop(Signal::TERM);
        assert!(status.success(), "{status}: {logged:#?}");
        let signs = ["\"WARN\"", "\"ERROR\"", "panicked at"];
        let loud = logged.iter().find(|line| signs.iter().any(|sign| line.contains(sign)));
        assert_eq!(loud, None);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // After a test that failed half way; one that has ended is not there to be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
