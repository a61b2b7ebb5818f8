//! `trifid stream group`.

use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use trifid_stream_client::{Client, CommittedOffset, GroupState, Start};

use super::reach::Reach;
use super::words;
use crate::cli::Common;

/// Names of one page.
const PAGE: u32 = 500;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List groups
    List(ListArguments),
    /// Members, how far the group has come, and how far it is behind
    Describe(NameArguments),
    /// Put a group without members elsewhere in a stream
    Reset(ResetArguments),
    /// Delete a group without members
    Delete(NameArguments),
}

#[derive(Args)]
pub(crate) struct ListArguments {
    /// What the names begin with
    #[arg(default_value = "")]
    prefix: String,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Args)]
pub(crate) struct NameArguments {
    /// Its name
    name: String,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Args)]
pub(crate) struct ResetArguments {
    /// Its name
    name: String,
    /// The stream
    stream: String,
    /// Where to: earliest, latest, an offset, or a time such as 2026-06-01T12:00:00Z
    #[arg(long, value_name = "PLACE", value_parser = words::start)]
    to: Start,
    /// One shard alone
    #[arg(long)]
    shard: Option<u32>,
    #[command(flatten)]
    reach: Reach,
}

pub(super) async fn run(common: &Common, command: &Command) -> anyhow::Result<()> {
    match command {
        Command::List(arguments) => list(common, arguments).await,
        Command::Describe(arguments) => describe(common, arguments).await,
        Command::Reset(arguments) => reset(common, arguments).await,
        Command::Delete(arguments) => {
            let client = arguments.reach.connect(common).await?;
            client.delete_group(&arguments.name).await.with_context(|| arguments.name.clone())?;
            writeln!(io::stdout(), "{} is gone", arguments.name)?;
            Ok(())
        }
    }
}

async fn list(common: &Common, arguments: &ListArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let (mut out, mut after) = (io::stdout().lock(), String::new());
    loop {
        let (groups, more) = client.list_groups(&arguments.prefix, &after, PAGE).await?;
        for group in &groups {
            writeln!(out, "{}\t{}\t{} members", group.name, state(group.state), group.members)?;
        }
        match groups.last() {
            Some(last) if more => after = last.name.to_string(),
            _ => return Ok(()),
        }
    }
}

async fn describe(common: &Common, arguments: &NameArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let group = client.describe_group(&arguments.name).await.with_context(|| arguments.name.clone())?;
    let mut out = io::stdout().lock();
    let protocol = if group.classic { ", by the Kafka protocol" } else { "" };
    writeln!(out, "{}: {}{protocol}, {} members", arguments.name, state(group.state), group.members.len())?;
    for member in &group.members {
        writeln!(out, "member {}\t{}\t{} in flight", member.member, member.client, member.in_flight)?;
    }
    offsets(&client, &group.offsets, &mut out).await
}

/// How far a group has come, and how far it is behind: nothing can be behind what is not kept any more.
async fn offsets(
    client: &Client,
    offsets: &[CommittedOffset],
    out: &mut impl io::Write,
) -> anyhow::Result<()> {
    if !offsets.is_empty() {
        writeln!(out, "stream\tshard\tcommitted\tend\tlag")?;
    }
    let mut described = None;
    for offset in offsets {
        let name = offset.stream.to_string();
        if described.as_ref().is_none_or(|(known, _)| *known != name) {
            described = Some((name.clone(), client.describe_stream(&name).await.ok()));
        }
        let stream = described.as_ref().and_then(|(_, stream)| stream.as_ref());
        let shard = stream.and_then(|stream| stream.shards.iter().find(|shard| shard.shard == offset.shard));
        let (end, lag) = shard.map_or_else(
            || ("-".to_owned(), "-".to_owned()),
            |shard| (shard.end.to_string(), lag(offset.offset, shard.first, shard.end).to_string()),
        );
        writeln!(out, "{name}\t{}\t{}\t{end}\t{lag}", offset.shard, offset.offset)?;
    }
    Ok(())
}

fn lag(committed: u64, first: u64, end: u64) -> u64 {
    end.saturating_sub(committed.max(first))
}

async fn reset(common: &Common, arguments: &ResetArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let now = client.reset_group(&arguments.name, &arguments.stream, arguments.shard, arguments.to).await;
    let now = now.with_context(|| arguments.name.clone())?;
    let mut out = io::stdout().lock();
    for offset in &now {
        writeln!(out, "{}\t{}\t{}", offset.stream, offset.shard, offset.offset)?;
    }
    Ok(())
}

fn state(state: GroupState) -> &'static str {
    match state {
        GroupState::Empty => "empty",
        GroupState::Active => "active",
        GroupState::Rebalancing => "rebalancing",
        GroupState::Dead => "dead",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_behind_what_is_not_kept() {
        assert_eq!((lag(5, 0, 8), lag(5, 7, 8), lag(9, 0, 8)), (3, 1, 0));
    }
}
