//! Chores of the workspace, run as `cargo xtask <chore>`.
//!
//! `test` is everything that CI runs, cheapest first, and CI runs nothing else. Each check is also a chore of
//! its own. The library of checks is pure (text and graphs in, findings out), so that every rule is tested
//! with an example that breaks it.

mod conformance;
mod layering;
mod steps;
mod tidy;
mod tools;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the workspace")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything that CI runs, cheapest first
    Test,
    /// Left-overs, stray output, long files, machine paths, whitespace
    Tidy,
    /// The programs that tests use as clients and peers, installed where they are missing
    Tools,
    /// The rules of the house over the graph of packages
    Layering,
    /// The clauses of the standards, and where the code cites them
    Conformance,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let root = root()?;
    match Arguments::parse().chore {
        Chore::Test => steps::run(&root),
        Chore::Tools => tools::run(&root),
        Chore::Tidy => tidy::run(&root),
        Chore::Layering => layering::run(&root),
        Chore::Conformance => conformance::run(&root, true),
    }
}

/// The workspace's folder: the parent of this package's.
fn root() -> anyhow::Result<PathBuf> {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(PathBuf::from).context("xtask lies in the workspace's folder")
}

/// Says something to whoever ran the chore.
#[allow(clippy::print_stderr)] // a chore talks to its user; libraries do not
fn report(line: &str) {
    eprintln!("{line}");
}

/// Turns findings into the outcome of a chore.
fn outcome(findings: &[String], rules: &str) -> anyhow::Result<()> {
    for finding in findings {
        report(finding);
    }
    anyhow::ensure!(findings.is_empty(), "{} findings; the rules: {rules}", findings.len());
    Ok(())
}
