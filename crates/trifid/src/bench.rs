//! `trifid bench`: the rig, told which binary to measure (this one).

use std::io::Write as _;

use anyhow::{Context as _, ensure};
use trifid_rig::Args;

use crate::progress::Progress;

pub(crate) fn run(arguments: &Args) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let progress = Progress::begin();
    let report = trifid_rig::run(arguments, &program, &mut |step| progress.step(step));
    progress.end();
    let Some(report) = report? else { return Ok(()) };
    write!(std::io::stdout(), "{report}")?;
    ensure!(report.held(), "a target is missed");
    Ok(())
}
