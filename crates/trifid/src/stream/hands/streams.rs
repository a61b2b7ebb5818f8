//! `trifid stream create|list|describe|delete`.

use std::io::{self, Write as _};

use anyhow::Context as _;
use clap::Args;
use trifid_base_runtime::units::Size;
use trifid_stream_client::StreamSpec;

use super::reach::Reach;
use super::words::{self, Promise};
use crate::cli::Common;

/// Names of one page.
const PAGE: u32 = 500;

#[derive(Args)]
pub(crate) struct CreateArguments {
    /// Its name, such as demo.readings
    name: String,
    /// Parts that are ordered and stored on their own
    #[arg(long, default_value_t = 1)]
    shards: u32,
    /// What an acknowledgement promises
    #[arg(long, value_enum, default_value = "on-commit")]
    durability: Promise,
    /// How long records are kept, such as 7d [default: for ever]
    #[arg(long, value_name = "SPAN", value_parser = words::span_ms)]
    retention: Option<u64>,
    /// What a shard keeps at most, such as 1GiB [default: everything]
    #[arg(long, value_name = "SIZE", value_parser = words::size)]
    retention_size: Option<u64>,
    /// Keep the last record of each key, whatever its age
    #[arg(long)]
    compact: bool,
    /// The largest batch that is taken
    #[arg(long, value_name = "SIZE", value_parser = words::size)]
    max_batch: Option<u64>,
    #[command(flatten)]
    reach: Reach,
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

pub(super) async fn create(common: &Common, arguments: &CreateArguments) -> anyhow::Result<()> {
    let usual = StreamSpec::default();
    let spec = StreamSpec {
        shards: arguments.shards,
        durability: arguments.durability.durability(),
        retention_ms: arguments.retention,
        retention_bytes: arguments.retention_size,
        compact: arguments.compact,
        max_batch_bytes: match arguments.max_batch {
            Some(bytes) => u32::try_from(bytes)?,
            None => usual.max_batch_bytes,
        },
        ..usual
    };
    spec.validate()?;
    let client = arguments.reach.connect(common).await?;
    client.create_stream(&arguments.name, spec.clone()).await.with_context(|| arguments.name.clone())?;
    writeln!(io::stdout(), "{}: {}", arguments.name, words::spec(&spec))?;
    Ok(())
}

pub(super) async fn list(common: &Common, arguments: &ListArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let (mut out, mut after) = (io::stdout().lock(), String::new());
    loop {
        let (streams, more) = client.list_streams(&arguments.prefix, &after, PAGE).await?;
        for stream in &streams {
            writeln!(out, "{}\t{}", stream.name, words::spec(&stream.spec))?;
        }
        match streams.last() {
            Some(last) if more => after = last.name.to_string(),
            _ => return Ok(()),
        }
    }
}

pub(super) async fn describe(common: &Common, arguments: &NameArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let stream = client.describe_stream(&arguments.name).await.with_context(|| arguments.name.clone())?;
    let mut out = io::stdout().lock();
    writeln!(out, "{}: {}", stream.name, words::spec(&stream.spec))?;
    writeln!(out, "batches of {} at most", Size(stream.spec.max_batch_bytes.into()))?;
    writeln!(out, "shard\tfirst\tend\trecords\tbytes")?;
    for shard in &stream.shards {
        let records = shard.end.saturating_sub(shard.first);
        writeln!(out, "{}\t{}\t{}\t{records}\t{}", shard.shard, shard.first, shard.end, shard.bytes)?;
    }
    Ok(())
}

pub(super) async fn delete(common: &Common, arguments: &NameArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    client.delete_stream(&arguments.name).await.with_context(|| arguments.name.clone())?;
    writeln!(io::stdout(), "{} is gone", arguments.name)?;
    Ok(())
}
