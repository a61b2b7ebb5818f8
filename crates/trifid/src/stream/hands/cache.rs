//! `trifid stream cache`.

use std::io::{self, Read as _, Write as _};

use anyhow::Context as _;
use bytes::Bytes;
use clap::{Args, Subcommand};
use trifid_base_runtime::units::Size;
use trifid_stream_client::{CacheSpec, Expect, Ttl, WatchEvent};

use super::reach::Reach;
use super::words::{self, Promise};
use crate::cli::Common;

/// Entries of one page.
const PAGE: u32 = 500;
/// The largest value that is read from standard input, in bytes.
const VALUE_BYTES_MAX: u64 = 16 << 20;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a cache
    Create(CreateArguments),
    /// List caches
    List(ListArguments),
    /// Delete a cache and everything in it
    Drop(NameArguments),
    /// Print the value of a key
    Get(KeyArguments),
    /// Write a value
    Put(PutArguments),
    /// Remove a key
    Delete(DeleteArguments),
    /// List keys and values
    Scan(ScanArguments),
    /// Print the current value, then every change
    Watch(WatchArguments),
}

#[derive(Args)]
pub(crate) struct CreateArguments {
    /// Its name, such as demo.positions
    name: String,
    /// What an acknowledged change survives
    #[arg(long, value_enum, default_value = "memory")]
    durability: Promise,
    /// What its entries may take in memory
    #[arg(long, value_name = "SIZE", value_parser = words::size)]
    budget: Option<u64>,
    /// The life of an entry whose writer names none, such as 1h [default: for ever]
    #[arg(long, value_name = "SPAN", value_parser = words::span_ms)]
    ttl: Option<u64>,
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

#[derive(Args)]
pub(crate) struct KeyArguments {
    /// The cache
    name: String,
    /// The key
    key: String,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Args)]
pub(crate) struct PutArguments {
    /// The cache
    name: String,
    /// The key
    key: String,
    /// The value [default: standard input]
    value: Option<String>,
    /// How long it lives, such as 30s
    #[arg(long, value_name = "SPAN", value_parser = words::span_ms)]
    ttl: Option<u64>,
    #[command(flatten)]
    expected: Expected,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Args)]
pub(crate) struct DeleteArguments {
    /// The cache
    name: String,
    /// The key
    key: String,
    /// Only the entry with this revision
    #[arg(long, value_name = "REVISION")]
    revision: Option<u64>,
    #[command(flatten)]
    reach: Reach,
}

/// What must be there.
#[derive(Args)]
struct Expected {
    /// Only over the entry with this revision
    #[arg(long, value_name = "REVISION", conflicts_with = "absent")]
    revision: Option<u64>,
    /// Only if nothing is there
    #[arg(long)]
    absent: bool,
}

#[derive(Args)]
pub(crate) struct ScanArguments {
    /// The cache
    name: String,
    /// What the keys begin with
    #[arg(default_value = "")]
    prefix: String,
    /// Leave the values out
    #[arg(long)]
    keys: bool,
    #[command(flatten)]
    reach: Reach,
}

#[derive(Args)]
pub(crate) struct WatchArguments {
    /// The cache
    name: String,
    /// The key, or what keys begin with
    #[arg(default_value = "")]
    key: String,
    /// All keys that begin so
    #[arg(long)]
    prefix: bool,
    /// Stop after so many changes
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    reach: Reach,
}

pub(super) async fn run(common: &Common, command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Create(arguments) => create(common, arguments).await,
        Command::List(arguments) => list(common, arguments).await,
        Command::Drop(arguments) => {
            arguments.reach.connect(common).await?.drop_cache(&arguments.name).await?;
            writeln!(io::stdout(), "{} is gone", arguments.name)?;
            Ok(())
        }
        Command::Get(arguments) => get(common, arguments).await,
        Command::Put(arguments) => put(common, arguments).await,
        Command::Delete(arguments) => delete(common, arguments).await,
        Command::Scan(arguments) => scan(common, arguments).await,
        Command::Watch(arguments) => watch(common, arguments).await,
    }
}

async fn create(common: &Common, arguments: &CreateArguments) -> anyhow::Result<()> {
    let usual = CacheSpec::default();
    let spec = CacheSpec {
        durability: arguments.durability.durability(),
        budget_bytes: arguments.budget.unwrap_or(usual.budget_bytes),
        default_ttl_ms: arguments.ttl,
    };
    spec.validate()?;
    arguments.reach.connect(common).await?.create_cache(&arguments.name, spec.clone()).await?;
    writeln!(io::stdout(), "{}: {}", arguments.name, described(&spec))?;
    Ok(())
}

fn described(spec: &CacheSpec) -> String {
    let ttl = spec.default_ttl_ms.map(|ms| format!(", entries live {ms} ms")).unwrap_or_default();
    format!("{}, at most {}{ttl}", words::durability(spec.durability), Size(spec.budget_bytes))
}

async fn list(common: &Common, arguments: &ListArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let (mut out, mut after) = (io::stdout().lock(), String::new());
    loop {
        let (caches, more) = client.list_caches(&arguments.prefix, &after, PAGE).await?;
        for cache in &caches {
            writeln!(out, "{}\t{}", cache.name, described(&cache.spec))?;
        }
        match caches.last() {
            Some(last) if more => after = last.name.to_string(),
            _ => return Ok(()),
        }
    }
}

async fn get(common: &Common, arguments: &KeyArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let entry = client.cache(&arguments.name)?.get(arguments.key.clone()).await?;
    let entry = entry.with_context(|| format!("`{}` is not in {}", arguments.key, arguments.name))?;
    let mut out = io::stdout().lock();
    out.write_all(&entry.value)?;
    out.write_all(b"\n")?;
    Ok(())
}

async fn put(common: &Common, arguments: &PutArguments) -> anyhow::Result<()> {
    let value = match &arguments.value {
        Some(value) => Bytes::from(value.clone()),
        None => standard_input()?,
    };
    let expect = match (&arguments.expected.revision, arguments.expected.absent) {
        (Some(revision), _) => Expect::Revision(*revision),
        (None, true) => Expect::Absent,
        (None, false) => Expect::Any,
    };
    let ttl = arguments.ttl.map_or(Ttl::Default, Ttl::Ms);
    let client = arguments.reach.connect(common).await?;
    let revision = client.cache(&arguments.name)?.put(arguments.key.clone(), value, ttl, expect).await?;
    writeln!(io::stdout(), "revision {revision}")?;
    Ok(())
}

fn standard_input() -> anyhow::Result<Bytes> {
    let mut value = Vec::new();
    io::stdin().lock().take(VALUE_BYTES_MAX + 1).read_to_end(&mut value)?;
    anyhow::ensure!(value.len() as u64 <= VALUE_BYTES_MAX, "the value is longer than 16 MiB");
    Ok(value.into())
}

async fn delete(common: &Common, arguments: &DeleteArguments) -> anyhow::Result<()> {
    let expect = arguments.revision.map_or(Expect::Any, Expect::Revision);
    let client = arguments.reach.connect(common).await?;
    match client.cache(&arguments.name)?.delete(arguments.key.clone(), expect).await? {
        0 => anyhow::bail!("`{}` is not in {}", arguments.key, arguments.name),
        revision => writeln!(io::stdout(), "revision {revision}")?,
    }
    Ok(())
}

async fn scan(common: &Common, arguments: &ScanArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let cache = client.cache(&arguments.name)?;
    let (mut out, mut after) = (io::stdout().lock(), Bytes::new());
    loop {
        let (entries, more) =
            cache.scan(arguments.prefix.clone(), after.clone(), PAGE, arguments.keys).await?;
        for entry in &entries {
            out.write_all(&entry.key)?;
            if !arguments.keys {
                out.write_all(b"\t")?;
                out.write_all(&entry.value)?;
            }
            out.write_all(b"\n")?;
        }
        match entries.last() {
            Some(last) if more => after = last.key.clone(),
            _ => return Ok(()),
        }
    }
}

async fn watch(common: &Common, arguments: &WatchArguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let cache = client.cache(&arguments.name)?;
    let mut watch = match arguments.prefix || arguments.key.is_empty() {
        true => cache.watch_prefix(arguments.key.clone()).await?,
        false => cache.watch(arguments.key.clone()).await?,
    };
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        let event = tokio::select! {
            event = watch.next() => event?,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        match event {
            WatchEvent::Change(change) => {
                words::print_change(&mut io::stdout().lock(), &change)?;
                left -= 1;
            }
            WatchEvent::Resync => {
                writeln!(io::stderr(), "changes were missed: the current values come again")?;
            }
        }
    }
    Ok(())
}
