//! `trifid bench`: the rig, told which binary to measure (this one).

use std::io::{IsTerminal as _, Write as _};

use anyhow::{Context as _, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use trifid_rig::Args;

pub(crate) fn run(arguments: &Args) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let progress = Progress::begin();
    let report = trifid_rig::run(arguments, &program, &mut |step| progress.show(step));
    progress.end();
    let Some(report) = report? else { return Ok(()) };
    write!(std::io::stdout(), "{report}")?;
    ensure!(report.held(), "a target is missed");
    Ok(())
}

/// What is going on: a line that moves on a terminal, one line a step elsewhere.
struct Progress(Option<ProgressBar>);

impl Progress {
    fn begin() -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Self(Some(bar))
    }

    fn show(&self, step: &str) {
        match &self.0 {
            Some(bar) => bar.set_message(step.to_owned()),
            None => drop(writeln!(std::io::stderr(), "{step}")),
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
