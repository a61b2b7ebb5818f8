//! The command line.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use trifid_base_runtime::config::{Config, Flag, Layers};

#[cfg(feature = "archive-datafusion")]
use crate::archive::load;
#[cfg(feature = "context")]
use crate::context::transfer;
#[cfg(any(feature = "context", feature = "stream", feature = "archive-datafusion"))]
use crate::demo;
#[cfg(feature = "stream")]
use crate::stream::hands;
use crate::{config_show, serve, settings, token};

/// The file that is read where `--config` names none.
const FILE: &str = "trifid.toml";

const EXAMPLES: &str = "\
Examples:
  trifid demo                                  sample data behind every door
  trifid serve --listen 127.0.0.1:8080         serve on another port
  trifid config show --explain > trifid.toml   every key with its meaning, as a file to begin with
  trifid context export --set data_dir=/var/lib/trifid backup
                                               a backup, also while serving
  trifid stream create plant.readings --shards 4
  trifid stream publish plant.readings readings.csv --key-separator ,
  trifid stream consume plant.readings --from earliest
  trifid archive load catalogue.csv --table survey.stars
                                               publish a table
  trifid archive query 'SELECT TOP 5 * FROM survey.stars'
  trifid serve --set http.cores=2 --set log.level=debug";

/// One data backbone with three standard doors
#[derive(Parser)]
#[command(name = "trifid", version, about, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args)]
pub(crate) struct Common {
    /// The configuration file [default: trifid.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Sets one key; wins over file and environment, and may be given again
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Open the doors and serve until a signal
    Serve(serve::Arguments),
    /// Serve sample data on loopback behind every door, and print what to try
    #[cfg(any(feature = "context", feature = "stream", feature = "archive-datafusion"))]
    Demo(demo::Arguments),
    /// The hands of the context door
    #[cfg(feature = "context")]
    #[command(subcommand)]
    Context(ContextCommand),
    /// The hands of the stream door: a client of a server that runs
    #[cfg(feature = "stream")]
    #[command(subcommand)]
    Stream(Box<hands::Command>),
    /// The hands of the archive door
    #[cfg(feature = "archive-datafusion")]
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Measure this binary in multiples of the least that any program must do
    #[cfg(feature = "rig")]
    Bench(trifid_rig::Args),
    /// The configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Bearer tokens
    #[command(subcommand)]
    Token(TokenCommand),
}

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the resolved configuration, each value with its origin
    Show(config_show::Arguments),
}

#[cfg(feature = "context")]
#[derive(Subcommand)]
pub(crate) enum ContextCommand {
    /// Write a backup of the file store, also while a server works on it
    Export(transfer::ExportArguments),
    /// Put a backup into an empty data directory
    Import(transfer::ImportArguments),
}

#[cfg(feature = "archive-datafusion")]
#[derive(Subcommand)]
pub(crate) enum ArchiveCommand {
    /// Load files as a table, in place of the one of that name
    Load(load::LoadArguments),
    /// Serve Parquet files or a HATS catalogue as a table, where they lie
    Attach(load::AttachArguments),
    /// List the tables that are kept
    List,
    /// Forget a table
    Drop(load::DropArguments),
    /// Make ivoa.obscore out of tables, as a mapping says
    Obscore(load::ObscoreArguments),
    /// Run one query over the tables that are kept, without a server
    Query(crate::archive::query::Arguments),
}

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Print the line of the token file for a token read from standard input
    Hash(token::Arguments),
}

impl Common {
    /// Resolves the configuration; `named` are the flags of the command itself, which win.
    pub(crate) fn resolve(&self, named: Vec<Flag>) -> anyhow::Result<Config> {
        let mut flags = self.set.iter().map(|set| Flag::set(set)).collect::<Result<Vec<_>, _>>()?;
        flags.extend(named);
        let layers = Layers { file: self.file(), environment: environment(std::env::vars_os()), flags };
        Ok(settings::schema().resolve(&layers)?)
    }

    fn file(&self) -> Option<PathBuf> {
        let here = || Path::new(FILE).is_file().then(|| PathBuf::from(FILE));
        self.config.clone().or_else(here)
    }
}

/// The environment variable that clients read their token from: an argument would be seen by everybody on the machine.
/// It configures nothing.
pub(crate) const TOKEN: &str = "TRIFID_TOKEN";

/// The environment as text. What is not text is damaged past use but still seen: a variable of ours is then
/// refused by its kind instead of being passed over.
fn environment(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<(String, String)> {
    let text = |part: OsString| part.to_string_lossy().into_owned();
    let variables = variables.filter(|(name, _)| name != TOKEN);
    variables.map(|(name, value)| (text(name), text(value))).collect()
}

/// Says what went wrong, with its causes, and decides the exit status. Clap ends with 2 by itself.
pub(crate) fn exit_code(outcome: anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    // A reader that has seen enough (`| head`) is no failure.
    let broken = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    if error.chain().filter_map(|cause| cause.downcast_ref()).any(broken) {
        return ExitCode::SUCCESS;
    }
    // Standard error may be closed, and then nobody is there to be told.
    let _ = writeln!(std::io::stderr(), "error: {}", told(&error));
    ExitCode::FAILURE
}

/// An error and its causes in one line; a cause that the words before it end with already is not said again.
fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if !told.ends_with(&cause) {
            let colon = if told.is_empty() { "" } else { ": " };
            told.extend([colon, &cause]);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::told;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow!("no such stream").context("the broker refuses: no such stream").context("demo.x");
        assert_eq!(told(&error), "demo.x: the broker refuses: no such stream");
        assert_eq!(told(&anyhow!("one").context("two")), "two: one");
    }
}
