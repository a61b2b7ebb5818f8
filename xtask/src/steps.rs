//! `cargo xtask test`: the steps, cheapest first, with the time that each took.
//!
//! Every step that compiles names the same packages and features, so that nothing is built twice in one mode:
//! clippy and rustdoc share the checked dependencies, the tests and doctests share the built ones. There is
//! one profile, `dev`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::{conformance, layering, report, tidy, tools};

/// The whole workspace with every feature, and the lock file as it was committed.
const ALL: &[&str] = &["--workspace", "--all-features", "--locked"];

/// One step of the run.
struct Step {
    name: &'static str,
    run: fn(&Path) -> anyhow::Result<()>,
}

const STEPS: &[Step] = &[
    Step { name: "format", run: format },
    Step { name: "tidy", run: tidy::run },
    Step { name: "layering", run: layering::run },
    Step { name: "conformance", run: |root| conformance::run(root, false) },
    Step { name: "tools", run: tools::run },
    Step { name: "clippy", run: clippy },
    Step { name: "features", run: features },
    Step { name: "documentation", run: documentation },
    Step { name: "tests", run: tests },
    Step { name: "doctests", run: doctests },
    Step { name: "interleavings", run: interleavings },
];

/// Runs the steps in order and stops at the first that fails.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut times = Vec::new();
    let begun = Instant::now();
    for step in STEPS {
        report(&format!("== {}", step.name));
        let started = Instant::now();
        let outcome = (step.run)(root);
        times.push((step.name, started.elapsed()));
        if outcome.is_err() {
            summary(&times, begun.elapsed());
        }
        outcome.with_context(|| format!("step `{}` failed", step.name))?;
    }
    summary(&times, begun.elapsed());
    Ok(())
}

fn summary(times: &[(&str, Duration)], total: Duration) {
    for (name, time) in times {
        report(&format!("{name:>14} {:8.1} s", time.as_secs_f64()));
    }
    report(&format!("{:>14} {:8.1} s", "together", total.as_secs_f64()));
}

fn format(root: &Path) -> anyhow::Result<()> {
    component(root, "fmt", "rustfmt")?;
    cargo(root, &[&["fmt", "--all", "--check"]])
}

fn clippy(root: &Path) -> anyhow::Result<()> {
    component(root, "clippy", "clippy")?;
    cargo(root, &[&["clippy", "--all-targets"], ALL, &["--", "-D", "warnings"]])
}

/// The binary with one door, with the rig alone, and with neither. The workspace stays selected, so that only
/// the packages whose features really change are checked again.
fn features(root: &Path) -> anyhow::Result<()> {
    let bare: &[&str] = &["check", "--quiet", "--workspace", "--locked", "--no-default-features"];
    for features in ["", "trifid/context", "trifid/stream", "trifid/archive", "trifid/rig"] {
        cargo(root, &[bare, &["--features", features]])?;
    }
    Ok(())
}

fn documentation(root: &Path) -> anyhow::Result<()> {
    let mut command = cargo_command(root, &[&["doc", "--no-deps"], ALL]);
    finish(command.env("RUSTDOCFLAGS", "-D warnings"))
}

fn tests(root: &Path) -> anyhow::Result<()> {
    if has_subcommand(root, "nextest") {
        return cargo(root, &[&["nextest", "run", "--no-fail-fast"], ALL]);
    }
    report("cargo-nextest is not installed; cargo test runs the same tests");
    cargo(root, &[&["test", "--no-fail-fast", "--lib", "--bins", "--tests"], ALL])
}

fn doctests(root: &Path) -> anyhow::Result<()> {
    cargo(root, &[&["test", "--quiet", "--doc"], ALL])
}

/// The log's commit path under every order of its threads. It is optimised, or it would take minutes; so it has a
/// folder of its own.
fn interleavings(root: &Path) -> anyhow::Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let mut command = cargo_command(root, &[&["run", "--quiet", "--release", "--locked", "--manifest-path"]]);
    command.arg(root.join("crates/base/log/loom/Cargo.toml"));
    finish(command.arg("--target-dir").arg(target.join("loom")))
}

/// Makes sure of a component of the toolchain, which a minimal installation leaves out.
fn component(root: &Path, subcommand: &str, name: &str) -> anyhow::Result<()> {
    if has_subcommand(root, subcommand) {
        return Ok(());
    }
    report(&format!("installing {name}"));
    let mut rustup = Command::new("rustup");
    finish(rustup.args(["component", "add", name]).stdin(Stdio::null()))
}

fn has_subcommand(root: &Path, name: &str) -> bool {
    let mut command = cargo_command(root, &[&[name, "--version"]]);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn cargo(root: &Path, arguments: &[&[&str]]) -> anyhow::Result<()> {
    finish(&mut cargo_command(root, arguments))
}

fn cargo_command(root: &Path, arguments: &[&[&str]]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(arguments.concat()).stdin(Stdio::null());
    command
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
