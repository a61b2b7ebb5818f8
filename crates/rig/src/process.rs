//! Programs that the rig starts.
//!
//! No `TRIFID_*` variable of the caller reaches them, so a measurement does not depend on the shell. Everyone
//! has its time, and is killed when it is over.

use crate::affinity;
use crate::error::Error;
use crate::limits;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A program with its arguments in a folder; it has no input and nobody looks at its output.
pub(crate) fn command<S: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = S>,
    directory: &Path,
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("TRIFID_")) {
        command.env_remove(key);
    }
    command
}

/// Starts it on a core.
pub(crate) fn spawn(name: &'static str, command: &mut Command, core: Option<usize>) -> Result<Child, Error> {
    let child = affinity::on(core, || command.spawn()).map_err(Error::system("moving to a core"))?;
    child.map_err(|error| Error::Start { name, reason: error.to_string() })
}

/// The last lines of what a program says.
#[derive(Clone, Default)]
pub(crate) struct Words(Arc<Mutex<VecDeque<String>>>);

impl Words {
    /// Reads until the program ends; each line is shown to `look` first.
    pub(crate) fn read(
        stderr: impl Read + Send + 'static,
        mut look: impl FnMut(&str) + Send + 'static,
    ) -> (Words, JoinHandle<()>) {
        let words = Words::default();
        let kept = words.clone();
        let reading = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                look(&line);
                kept.keep(line);
            }
        });
        (words, reading)
    }

    fn keep(&self, line: String) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == limits::LAST_WORDS_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        f.write_str(&words.join(" | "))
    }
}

/// Runs it to its end, which must be a good one and come in time. Answers how long it took.
pub(crate) fn run(
    name: &'static str,
    command: &mut Command,
    core: Option<usize>,
    at_most: Duration,
) -> Result<Duration, Error> {
    let started = Instant::now();
    let mut child = spawn(name, command, core)?;
    let stderr = child.stderr.take().expect("standard error is piped by `command`");
    let (words, reading) = Words::read(stderr, |_| ());
    let Some(status) = ended(&mut child, started + at_most)? else {
        kill(&mut child);
        let reason = format!("not at its end after {} s; it said: {words}", at_most.as_secs());
        return Err(Error::Failed { name, reason });
    };
    let took = started.elapsed();
    if status.success() {
        return Ok(took);
    }
    // It has ended, so its words end too, unless a child of its own holds them open.
    let deadline = Instant::now() + Duration::from_millis(500);
    while !reading.is_finished() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(Error::Failed { name, reason: format!("{status}; it said: {words}") })
}

/// Waits for the end of a program, up to a deadline.
pub(crate) fn ended(child: &mut Child, deadline: Instant) -> Result<Option<std::process::ExitStatus>, Error> {
    loop {
        if let Some(status) = child.try_wait().map_err(Error::system("waiting for a program"))? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends it as a power cut would: no signal that it could handle.
pub(crate) fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, at_most: Duration) -> Result<Duration, Error> {
        let mut command = command(Path::new("/bin/sh"), ["-c", script], Path::new("/"));
        run("the shell", &mut command, None, at_most)
    }

    #[test]
    fn a_program_has_its_time_and_must_end_well() {
        shell("exit 0", Duration::from_secs(60)).unwrap();
        let error = shell("echo no such table >&2; exit 3", Duration::from_secs(60)).unwrap_err().to_string();
        assert!(error.contains("the shell failed") && error.contains("no such table"), "{error}");
        let error = shell("exec sleep 1000", Duration::from_millis(20)).unwrap_err().to_string();
        assert!(error.contains("not at its end"), "{error}");
    }
}
