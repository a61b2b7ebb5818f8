//! `trifid stream consume`: records of a stream, as they come or until there are no more.
//!
//! Without a group it is a subscription, which holds nobody up and remembers nothing. With a group the records are
//! leased, printed, and then acknowledged: what was not printed comes again, to this member or another.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::time::Instant;
use trifid_stream_client::{Client, Event, GroupOptions, Policy, Start, SubscribeOptions, Subscription};

use super::reach::Reach;
use super::words::{self, Form};
use crate::cli::Common;

/// Records of one pull.
const PULL_RECORDS: u32 = 1000;
/// Bytes of one pull.
const PULL_BYTES: u32 = 4 << 20;
/// How long a pull waits before it is asked again.
const PULL_WAIT: Duration = Duration::from_secs(5);
/// How far behind the end a consumer may be that would rather lose than lag.
const LAG_BYTES: u64 = 4 << 20;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The stream
    name: String,
    /// Where to begin: earliest, latest, an offset, or a time such as 2026-06-01T12:00:00Z; for a group that has read
    /// nothing yet
    #[arg(long, value_name = "PLACE", value_parser = words::start, default_value = "latest")]
    from: Start,
    /// Share the records with the other members of this group, and acknowledge them
    #[arg(long)]
    group: Option<String>,
    /// One shard alone
    #[arg(long, conflicts_with = "group")]
    shard: Option<u32>,
    /// Stop after so many records
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop at the end that the stream has now, instead of waiting for more
    #[arg(long, conflicts_with = "group")]
    until_end: bool,
    /// Stop when nothing came for so long, such as 10s
    #[arg(long, value_name = "SPAN", value_parser = words::span_ms)]
    idle: Option<u64>,
    /// Skip what is old rather than lag far behind
    #[arg(long, conflicts_with = "group")]
    skip: bool,
    /// How records are printed
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
    #[command(flatten)]
    reach: Reach,
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let mut printer = Printer::new(arguments);
    let read = async {
        match &arguments.group {
            Some(group) => member(&client, group, arguments, &mut printer).await,
            None => subscriber(&client, arguments, &mut printer).await,
        }
    };
    tokio::select! {
        read = read => read.with_context(|| arguments.name.clone())?,
        // What was printed is whole, and what was leased comes again.
        _ = tokio::signal::ctrl_c() => {}
    }
    printer.out.flush()?;
    client.close().await;
    Ok(())
}

/// Prints, and counts.
struct Printer {
    out: BufWriter<io::Stdout>,
    form: Form,
    left: u64,
}

impl Printer {
    fn new(arguments: &Arguments) -> Self {
        let out = BufWriter::with_capacity(1 << 16, io::stdout());
        Printer { out, form: arguments.format, left: arguments.count.unwrap_or(u64::MAX) }
    }

    fn print(&mut self, stream: Option<&str>, record: &trifid_stream_client::Received) -> io::Result<()> {
        self.left -= 1;
        words::print(&mut self.out, self.form, stream, record)
    }
}

async fn subscriber(client: &Client, arguments: &Arguments, printer: &mut Printer) -> anyhow::Result<()> {
    let mut options = SubscribeOptions { shard: arguments.shard, ..SubscribeOptions::from(arguments.from) };
    if arguments.skip {
        options = options.policy(Policy::DropOld, LAG_BYTES);
    }
    let ends = if arguments.until_end { Some(ends(client, arguments).await?) } else { None };
    let mut subscription = client.subscribe(&arguments.name, options).await?;
    while printer.left > 0 && !ends.as_ref().is_some_and(|ends| has_come(&subscription, ends)) {
        let event = match subscription.try_next()? {
            Some(event) => event,
            None => {
                // Nothing more is here: what is printed may be seen.
                printer.out.flush()?;
                match within(arguments.idle, subscription.next()).await {
                    Some(event) => event?,
                    None => break,
                }
            }
        };
        match event {
            Event::Batch(batch) => {
                for record in batch.records()? {
                    if printer.left == 0 {
                        break;
                    }
                    printer.print(None, &record)?;
                }
            }
            Event::Lost { shard, from, to } => {
                writeln!(io::stderr(), "shard {shard}: records {from} to {} are not there", to - 1)?;
            }
        }
    }
    Ok(())
}

/// Where each shard ends now.
async fn ends(client: &Client, arguments: &Arguments) -> anyhow::Result<Vec<(u32, u64)>> {
    let offsets = client.offsets(&arguments.name, arguments.shard, Start::Latest).await?;
    Ok(offsets.iter().map(|end| (end.shard, end.offset)).collect())
}

fn has_come(subscription: &Subscription, ends: &[(u32, u64)]) -> bool {
    let position = subscription.position();
    ends.iter().all(|(shard, end)| position.iter().any(|place| place.shard == *shard && place.offset >= *end))
}

/// The future's value, unless it takes too long.
async fn within<T>(idle_ms: Option<u64>, future: impl Future<Output = T>) -> Option<T> {
    match idle_ms {
        None => Some(future.await),
        Some(ms) => tokio::time::timeout(Duration::from_millis(ms), future).await.ok(),
    }
}

async fn member(
    client: &Client,
    group: &str,
    arguments: &Arguments,
    printer: &mut Printer,
) -> anyhow::Result<()> {
    let options = GroupOptions {
        start: arguments.from,
        name: format!("trifid-{}", std::process::id()),
        ..GroupOptions::default()
    };
    let member = client.join_group(group, &[arguments.name.as_str()], options).await?;
    let mut last = Instant::now();
    while printer.left > 0 {
        let records = u32::try_from(printer.left).unwrap_or(u32::MAX).min(PULL_RECORDS);
        let deliveries = member.pull(records, PULL_BYTES, wait(arguments.idle)).await?;
        for delivery in &deliveries {
            for record in delivery.records()? {
                printer.print(Some(delivery.stream.as_str()), &record)?;
            }
        }
        printer.out.flush()?;
        if !deliveries.is_empty() {
            // Only what was printed is done.
            member.ack(&deliveries).await?;
            last = Instant::now();
        } else if arguments.idle.is_some_and(|ms| last.elapsed() >= Duration::from_millis(ms)) {
            break;
        }
    }
    member.leave().await?;
    Ok(())
}

fn wait(idle_ms: Option<u64>) -> Duration {
    idle_ms.map_or(PULL_WAIT, |ms| PULL_WAIT.min(Duration::from_millis(ms)))
}
