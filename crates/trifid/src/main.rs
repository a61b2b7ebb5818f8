//! The binary `trifid`: command line, configuration, wiring. No logic of its own.
//!
//! ```text
//! main       the table of contents you are reading
//! cli        the command line, and from it the layers of the configuration
//! settings   every section that this binary was built with, as one schema
//! house      the running program, from the first door opened to the last task ended
//! context    the context door: where its ports meet their implementations
//! stream     the stream door, likewise
//! archive    the archive door, likewise
//! <command>  one module a command
//! ```

#[cfg(feature = "archive")]
mod archive;
#[cfg(feature = "rig")]
mod bench;
mod cli;
mod config_show;
#[cfg(feature = "context")]
mod context;
#[cfg(any(feature = "context", feature = "stream", feature = "archive-datafusion"))]
mod demo;
mod house;
#[cfg(any(feature = "context", feature = "stream", feature = "archive-datafusion", feature = "rig"))]
mod progress;
mod serve;
mod settings;
#[cfg(feature = "stream")]
mod stream;
mod token;

use std::process::ExitCode;

use clap::Parser as _;

#[cfg(feature = "archive-datafusion")]
use cli::ArchiveCommand;
#[cfg(feature = "context")]
use cli::ContextCommand;
use cli::{Cli, Command, ConfigCommand, TokenCommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // One crypto provider, named before anything can ask for one: with a choice, rustls panics at first use.
    let installed = rustls::crypto::ring::default_provider().install_default();
    debug_assert!(installed.is_ok(), "nothing ran before main");

    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Serve(arguments) => serve::run(&cli.common, &arguments),
        #[cfg(any(feature = "context", feature = "stream", feature = "archive-datafusion"))]
        Command::Demo(arguments) => demo::run(&cli.common, &arguments),
        #[cfg(feature = "context")]
        Command::Context(ContextCommand::Export(arguments)) => {
            context::transfer::export(&cli.common, &arguments)
        }
        #[cfg(feature = "context")]
        Command::Context(ContextCommand::Import(arguments)) => {
            context::transfer::import(&cli.common, &arguments)
        }
        #[cfg(feature = "stream")]
        Command::Stream(command) => stream::hands::run(&cli.common, &command),
        #[cfg(feature = "archive-datafusion")]
        Command::Archive(command) => archive_command(&cli.common, &command),
        #[cfg(feature = "rig")]
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Config(ConfigCommand::Show(arguments)) => config_show::run(&cli.common, &arguments),
        Command::Token(TokenCommand::Hash(arguments)) => token::hash(&arguments),
    };
    cli::exit_code(outcome)
}

#[cfg(feature = "archive-datafusion")]
fn archive_command(common: &cli::Common, command: &ArchiveCommand) -> anyhow::Result<()> {
    match command {
        ArchiveCommand::Load(arguments) => archive::load::load(common, arguments),
        ArchiveCommand::Attach(arguments) => archive::load::attach(common, arguments),
        ArchiveCommand::List => archive::load::list(common),
        ArchiveCommand::Drop(arguments) => archive::load::drop_table(common, arguments),
        ArchiveCommand::Obscore(arguments) => archive::load::map(common, arguments),
        ArchiveCommand::Query(arguments) => archive::query::run(common, arguments),
    }
}
