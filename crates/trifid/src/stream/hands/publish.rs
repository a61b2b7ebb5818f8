//! `trifid stream publish`: each line is a record.
//!
//! Lines are read on a thread of their own and handed over in bounded portions, so a slow input holds up nothing and a
//! fast one fills no memory. Records go out in batches; the command ends when all of them are acknowledged.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use clap::{Args, ValueEnum};
use tokio::sync::mpsc;
use tokio::time::Instant;
use trifid_stream_client::{Compression, Producer, ProducerOptions, Record};

use super::reach::Reach;
use super::words;
use crate::cli::Common;
use crate::progress::Progress;

/// Lines of one portion.
const PORTION: usize = 512;
/// Portions that are read ahead.
const AHEAD: usize = 4;
/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// The longest line, in bytes.
const LINE_BYTES_MAX: usize = 16 << 20;

#[derive(Args)]
pub(crate) struct Arguments {
    /// The stream
    name: String,
    /// Files whose lines are published; `-` is standard input
    #[arg(default_value = "-")]
    files: Vec<PathBuf>,
    /// The key of every record
    #[arg(long, conflicts_with = "key_separator")]
    key: Option<String>,
    /// What stands between key and value in a line
    #[arg(long, value_name = "TEXT")]
    key_separator: Option<String>,
    /// A header of every record; may be given again
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = words::header)]
    headers: Vec<(String, String)>,
    /// The shard, whatever the key says
    #[arg(long)]
    shard: Option<u32>,
    /// Records a second, at most
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// How long a record may wait for others
    #[arg(long, value_name = "SPAN", value_parser = words::span_ms, default_value = "2ms")]
    linger: u64,
    /// How batches are compressed
    #[arg(long, value_enum, default_value = "none")]
    compression: Codec,
    /// Do not wait for acknowledgements
    #[arg(long)]
    unacknowledged: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Codecs of record batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Codec {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Codec {
    fn compression(self) -> Compression {
        match self {
            Codec::None => Compression::None,
            Codec::Gzip => Compression::Gzip,
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd => Compression::Zstd,
        }
    }
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> anyhow::Result<()> {
    let client = arguments.reach.connect(common).await?;
    let options = ProducerOptions {
        linger: Duration::from_millis(arguments.linger),
        acknowledged: !arguments.unacknowledged,
        compression: arguments.compression.compression(),
        ..ProducerOptions::default()
    };
    let producer = client.producer(&arguments.name, options).await.with_context(|| arguments.name.clone())?;
    let progress = Progress::begin();
    let published = publish(arguments, &producer, &progress).await;
    let flushed = producer.flush().await;
    progress.end();
    let records = published?;
    flushed.context("not everything was acknowledged")?;
    client.close().await;
    writeln!(io::stderr(), "{records} records published to {}", arguments.name)?;
    Ok(())
}

async fn publish(arguments: &Arguments, producer: &Producer, progress: &Progress) -> anyhow::Result<u64> {
    let (sender, mut portions) = mpsc::channel(AHEAD);
    let files = arguments.files.clone();
    std::thread::spawn(move || read(&files, &sender));
    let began = Instant::now();
    let mut records = 0u64;
    while let Some(portion) = portions.recv().await {
        for line in portion? {
            if let Some(rate) = arguments.rate {
                tokio::time::sleep_until(began + due(records, rate)).await;
            }
            progress.passed(line.len() + 1);
            // The receipt is not waited for: the flush at the end waits for all of them.
            drop(producer.send(arguments.record(line)?).await?);
            records += 1;
        }
    }
    Ok(records)
}

/// When a record is due, counted from the first.
fn due(records: u64, rate: f64) -> Duration {
    #[allow(clippy::cast_precision_loss)] // a schedule, not an account
    Duration::try_from_secs_f64(records as f64 / rate.max(1e-6)).unwrap_or(Duration::MAX)
}

type Portion = anyhow::Result<Vec<Bytes>>;

/// Reads lines until the end, or until nobody wants more.
fn read(files: &[PathBuf], sender: &mpsc::Sender<Portion>) {
    for file in files {
        if let Err(error) = read_file(file, sender) {
            let _ = sender.blocking_send(Err(error));
            return;
        }
    }
}

fn read_file(path: &PathBuf, sender: &mpsc::Sender<Portion>) -> anyhow::Result<()> {
    let told = || format!("cannot read {}", path.display());
    let input: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path).with_context(told)?),
    };
    let mut input = BufReader::with_capacity(READ_BYTES, input);
    loop {
        let (portion, is_end) = portion(&mut input).with_context(told)?;
        if !portion.is_empty() && sender.blocking_send(Ok(portion)).is_err() || is_end {
            return Ok(());
        }
    }
}

/// The lines that are there without waiting, at least one; and whether the input is at its end.
fn portion(input: &mut BufReader<Box<dyn Read>>) -> io::Result<(Vec<Bytes>, bool)> {
    let mut lines = Vec::new();
    loop {
        let mut line = Vec::new();
        let most = LINE_BYTES_MAX as u64 + 1;
        if input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok((lines, true));
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(io::Error::other("a line is longer than 16 MiB"));
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        lines.push(Bytes::from(line));
        // What is not buffered would have to be waited for.
        if lines.len() >= PORTION || !input.buffer().contains(&b'\n') {
            return Ok((lines, false));
        }
    }
}

impl Arguments {
    fn record(&self, line: Bytes) -> anyhow::Result<Record> {
        let mut record = match &self.key_separator {
            None => Record::new(line),
            Some(separator) => keyed(&line, separator)?,
        };
        if let Some(key) = &self.key {
            record = record.key(key.clone());
        }
        for (name, value) in &self.headers {
            record = record.header(name.clone(), value.clone());
        }
        Ok(match self.shard {
            Some(shard) => record.shard(shard),
            None => record,
        })
    }
}

fn keyed(line: &Bytes, separator: &str) -> anyhow::Result<Record> {
    let separator = separator.as_bytes();
    anyhow::ensure!(!separator.is_empty(), "--key-separator must not be empty");
    let at = line.windows(separator.len()).position(|part| part == separator);
    let at = at.with_context(|| {
        format!("no key separator in the line `{}`", String::from_utf8_lossy(&line[..line.len().min(80)]))
    })?;
    Ok(Record::new(line.slice(at + separator.len()..)).key(line.slice(..at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_at_its_first_separator() {
        let record = keyed(&Bytes::from("a::b::c"), "::").unwrap();
        assert_eq!((record.key.as_deref(), record.value.as_deref()), (Some(&b"a"[..]), Some(&b"b::c"[..])));
        assert!(keyed(&Bytes::from("none"), "::").unwrap_err().to_string().contains("none"));
    }

    #[test]
    fn records_are_due_at_their_rate() {
        assert_eq!(due(10, 5.0), Duration::from_secs(2));
    }
}
