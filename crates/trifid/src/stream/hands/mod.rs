//! `trifid stream`: the hands of the stream door. All of them are clients of a server that runs.

mod cache;
mod consume;
mod group;
mod publish;
mod reach;
mod streams;
mod words;

use clap::Subcommand;

use crate::cli::Common;

/// Turns that tasks get at the end; a few are enough for a connection's last packet.
const GOODBYE_TURNS: u32 = 16;

/// The commands.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a stream
    Create(streams::CreateArguments),
    /// List streams
    List(streams::ListArguments),
    /// What a stream is, and what is in it
    Describe(streams::NameArguments),
    /// Delete a stream and everything in it
    Delete(streams::NameArguments),
    /// Publish lines of files, or of standard input
    Publish(publish::Arguments),
    /// Print what is published
    Consume(consume::Arguments),
    /// Consumer groups
    #[command(subcommand)]
    Group(group::Command),
    /// Caches: values by key
    #[command(subcommand)]
    Cache(cache::Command),
}

/// Runs a command to its end.
pub(crate) fn run(common: &Common, command: &Command) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ran = runtime.block_on(async {
        let ran = match command {
            Command::Create(arguments) => streams::create(common, arguments).await,
            Command::List(arguments) => streams::list(common, arguments).await,
            Command::Describe(arguments) => streams::describe(common, arguments).await,
            Command::Delete(arguments) => streams::delete(common, arguments).await,
            Command::Publish(arguments) => publish::run(common, arguments).await,
            Command::Consume(arguments) => consume::run(common, arguments).await,
            Command::Group(command) => group::run(common, command).await,
            Command::Cache(command) => cache::run(common, command).await,
        };
        // Connections that were dropped say so from tasks of their own; a server that hears nothing keeps them.
        for _ in 0..GOODBYE_TURNS {
            tokio::task::yield_now().await;
        }
        ran
    });
    // A thread that still reads standard input holds nothing back.
    runtime.shutdown_background();
    ran
}
