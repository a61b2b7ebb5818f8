//! A server process: started on a core, found by the line it prints, stopped with the suite.
//!
//! The address is agreed: a server prints one line with `listening http=ADDRESS` to its standard error once
//! it accepts connections. The rest of what it prints is kept for an error message.

use crate::error::Error;
use crate::limits;
use crate::process::{self, Words};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Child;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// What a server prints before its address.
pub(crate) const LISTENING: &str = "listening http=";

/// A running server. Dropping it kills it.
pub(crate) struct Server {
    name: &'static str,
    child: Child,
    address: SocketAddr,
    line: String,
    started: Instant,
    listened_after: Duration,
}

impl Server {
    /// Starts `program` and waits until it listens.
    pub(crate) fn start(
        name: &'static str,
        program: &Path,
        arguments: &[OsString],
        directory: &Path,
        core: Option<usize>,
    ) -> Result<Server, Error> {
        Server::start_saying(name, program, arguments, directory, core, LISTENING)
    }

    /// The same for a program that says something else before its address.
    pub(crate) fn start_saying(
        name: &'static str,
        program: &Path,
        arguments: &[OsString],
        directory: &Path,
        core: Option<usize>,
        before: &'static str,
    ) -> Result<Server, Error> {
        let started = Instant::now();
        let mut child = process::spawn(name, &mut process::command(program, arguments, directory), core)?;
        let stderr = child.stderr.take().expect("standard error is piped by `command`");
        let (sender, found) = mpsc::channel();
        let (words, _) = Words::read(stderr, move |line| {
            if let Some(address) = parse_address(line, before) {
                let _ = sender.send((address, line.to_owned()));
            }
        });
        match found.recv_timeout(limits::START_WAIT) {
            Ok((address, line)) => {
                let listened_after = started.elapsed();
                Ok(Server { name, child, address, line, started, listened_after })
            }
            Err(_) => {
                process::kill(&mut child);
                Err(Error::Start { name, reason: format!("no line `{before}…`; it said: {words}") })
            }
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it said that it opened this door.
    pub(crate) fn has_door(&self, door: &str) -> bool {
        parse_doors(&self.line).split(',').any(|open| open == door)
    }

    /// Where it said that it listens besides: the address after ` name=` in the same line.
    pub(crate) fn address_of(&self, name: &str) -> Option<SocketAddr> {
        parse_address(&self.line, &format!(" {name}="))
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// When its process was started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// How long it took from the start of its process until it said where it listens.
    pub(crate) fn listened_after(&self) -> Duration {
        self.listened_after
    }

    /// Ends it as a power cut would: no signal that it could handle.
    pub(crate) fn kill(mut self) -> Result<(), Error> {
        self.child.kill().and_then(|()| self.child.wait()).map_err(Error::system("killing a server"))?;
        Ok(())
    }

    /// Asks it to end and waits. One that does not obey is an error: a server must drain.
    pub(crate) fn stop(mut self) -> Result<(), Error> {
        let pid = rustix::process::Pid::from_child(&self.child);
        let sent = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        sent.map_err(|errno| Error::System { what: "stopping a server", source: errno.into() })?;
        if process::ended(&mut self.child, Instant::now() + limits::STOP_WAIT)?.is_some() {
            return Ok(());
        }
        Err(Error::Wrong {
            name: self.name,
            what: format!("still running {:?} after SIGTERM", limits::STOP_WAIT),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}

fn parse_address(line: &str, before: &str) -> Option<SocketAddr> {
    let (_, after) = line.split_once(before)?;
    let belongs = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':' | '[' | ']');
    after.split(|c| !belongs(c)).next()?.parse().ok()
}

/// The doors that such a line names.
fn parse_doors(line: &str) -> &str {
    let named = |c: char| c.is_ascii_lowercase() || c == ',';
    let after = line.split_once(" doors=").map_or("", |(_, after)| after);
    after.split(|c| !named(c)).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doors_are_found_in_their_line() {
        let json = r#"{"message":"listening http=127.0.0.1:2 doors=context,archive","target":"x"}"#;
        assert_eq!(parse_doors(json), "context,archive");
        assert_eq!(parse_doors("listening http=127.0.0.1:2"), "");
    }

    #[test]
    fn the_address_is_found_in_its_line() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(
                parse_address(line, LISTENING).map(|address| address.to_string()).as_deref(),
                expected,
                "{line}"
            );
        };
        check("listening http=127.0.0.1:4711", Some("127.0.0.1:4711"));
        check("2026-05-14T09:30:00Z INFO listening http=127.0.0.1:1 doors=context", Some("127.0.0.1:1"));
        check(r#"{"message":"listening http=127.0.0.1:2","target":"x"}"#, Some("127.0.0.1:2"));
        check("\u{1b}[2mlistening http=127.0.0.1:3\u{1b}[0m", Some("127.0.0.1:3"));
        check("listening http=[::1]:9090", Some("[::1]:9090"));
        check("listening http=nowhere", None);
        check("ready", None);
    }

    #[test]
    fn a_program_that_says_nothing_is_reported_with_its_last_words() {
        let arguments = ["-c", "echo first >&2; echo no such key >&2; exit 3"].map(OsString::from);
        let Err(error) = Server::start("the shell", Path::new("/bin/sh"), &arguments, Path::new("/"), None)
        else {
            panic!("a shell does not listen");
        };
        let text = error.to_string();
        assert!(text.contains("the shell") && text.contains("first | no such key"), "{text}");
    }

    #[test]
    fn a_server_is_stopped_by_sigterm() {
        let arguments = ["-c", "echo listening http=127.0.0.1:9 >&2; exec sleep 1000"].map(OsString::from);
        let server =
            Server::start("the shell", Path::new("/bin/sh"), &arguments, Path::new("/"), None).unwrap();
        assert_eq!(server.address().port(), 9);
        server.stop().unwrap();
    }
}
