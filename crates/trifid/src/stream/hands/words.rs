//! Words of the command line that mean more than text: places in a stream, life spans, sizes; and how things are
//! printed.

use std::fmt::Write as _;
use std::io::{self, Write};

use bytes::Bytes;
use clap::ValueEnum;
use serde_json::{Value, json};
use trifid_base_runtime::units::{Size, Span};
use trifid_stream_client::{CacheChange, Durability, Received, Start, StreamSpec};

/// What an acknowledgement promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Promise {
    /// Nothing is written to a disk
    Memory,
    /// Written at once, flushed a few times a second
    Periodic,
    /// Acknowledged after the flush
    OnCommit,
}

impl Promise {
    pub(super) fn durability(self) -> Durability {
        match self {
            Promise::Memory => Durability::Memory,
            Promise::Periodic => Durability::PERIODIC,
            Promise::OnCommit => Durability::OnCommit,
        }
    }
}

/// The word for a durability.
pub(super) fn durability(durability: Durability) -> String {
    match durability {
        Durability::Memory => "memory".to_owned(),
        Durability::Periodic { interval_ms } => format!("periodic ({interval_ms} ms)"),
        Durability::OnCommit => "on-commit".to_owned(),
    }
}

/// A place in a stream: `earliest`, `latest`, an offset, or a time of RFC 3339.
pub(super) fn start(text: &str) -> Result<Start, String> {
    match text {
        "earliest" => return Ok(Start::Earliest),
        "latest" => return Ok(Start::Latest),
        _ => {}
    }
    if let Ok(offset) = text.parse() {
        return Ok(Start::Offset(offset));
    }
    let time: Result<jiff::Timestamp, _> = text.parse();
    time.map(|time| Start::Time(time.as_millisecond())).map_err(|_| {
        "expected `earliest`, `latest`, an offset such as 42, or a time such as 2026-06-01T12:00:00Z"
            .to_owned()
    })
}

/// `250ms`, `7d`.
pub(super) fn span_ms(text: &str) -> Result<u64, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    Ok(u64::try_from(std::time::Duration::from(span).as_millis()).unwrap_or(u64::MAX))
}

/// `64MiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let size: Size = text.parse().map_err(|error| format!("{error}"))?;
    Ok(size.0)
}

/// `name=value`.
pub(super) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A line of what a stream is.
pub(super) fn spec(spec: &StreamSpec) -> String {
    let mut line = format!("{} shards, {}", spec.shards, durability(spec.durability));
    if let Some(ms) = spec.retention_ms {
        let _ = write!(line, ", kept for {}", Span::from(std::time::Duration::from_millis(ms)));
    }
    if let Some(bytes) = spec.retention_bytes {
        let _ = write!(line, ", at most {} a shard", Size(bytes));
    }
    if spec.compact {
        line.push_str(", compacted");
    }
    line
}

/// How a record is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// The value, and before it the key and a tab where there is one
    #[default]
    Text,
    /// One JSON object a line, with everything; bytes that are no text in base64
    Json,
    /// The value alone
    Value,
}

/// Prints a record as one line.
pub(super) fn print(
    out: &mut impl Write,
    form: Form,
    stream: Option<&str>,
    record: &Received,
) -> io::Result<()> {
    match form {
        Form::Value => out.write_all(record.value.as_deref().unwrap_or_default())?,
        Form::Text => {
            if let Some(key) = &record.key {
                out.write_all(key)?;
                out.write_all(b"\t")?;
            }
            out.write_all(record.value.as_deref().unwrap_or_default())?;
        }
        Form::Json => write!(out, "{}", as_json(stream, record))?,
    }
    out.write_all(b"\n")
}

/// Prints a change in a cache as one line: what became of the key, the key, its revision, the value.
pub(super) fn print_change(out: &mut impl Write, change: &CacheChange) -> io::Result<()> {
    let (what, key, revision, value) = match change {
        CacheChange::Put { entry } => ("put", &entry.key, entry.revision, Some(&entry.value)),
        CacheChange::Deleted { key, revision } => ("deleted", key, *revision, None),
        CacheChange::Expired { key, revision } => ("expired", key, *revision, None),
        CacheChange::Evicted { key, revision } => ("evicted", key, *revision, None),
        CacheChange::Current { revision } => ("current", &Bytes::new(), *revision, None),
    };
    write!(out, "{what}\t")?;
    out.write_all(key)?;
    write!(out, "\t{revision}")?;
    if let Some(value) = value {
        out.write_all(b"\t")?;
        out.write_all(value)?;
    }
    out.write_all(b"\n")?;
    out.flush()
}

fn as_json(stream: Option<&str>, record: &Received) -> Value {
    let mut object = json!({
        "shard": record.shard,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
    });
    if let Some(stream) = stream {
        object["stream"] = json!(stream);
    }
    put(&mut object, "key", record.key.as_deref());
    put(&mut object, "value", record.value.as_deref());
    if !record.headers.is_empty() {
        let mut headers = json!({});
        for (name, value) in &record.headers {
            put(&mut headers, name, value.as_deref());
        }
        object["headers"] = headers;
    }
    object
}

/// Text as text, JSON's null for nothing, and what is no text in base64 under another name.
fn put(object: &mut Value, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(|bytes| (std::str::from_utf8(bytes), bytes)) {
        None => object[name] = Value::Null,
        Some((Ok(text), _)) => object[name] = json!(text),
        Some((Err(_), bytes)) => object[format!("{name}Base64")] = json!(base64(bytes)),
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        assert_eq!(start("earliest"), Ok(Start::Earliest));
        assert_eq!(start("42"), Ok(Start::Offset(42)));
        assert_eq!(start("1970-01-01T00:00:01Z"), Ok(Start::Time(1000)));
        assert!(start("yesterday").unwrap_err().contains("earliest"));
    }

    #[test]
    fn records_are_printed_whole() {
        let record = Received {
            shard: 1,
            offset: 7,
            timestamp_ms: 5,
            key: Some("k".into()),
            value: Some(vec![0xff].into()),
            headers: vec![("h".into(), Some("v".into())), ("none".into(), None)],
        };
        let printed = |form| {
            let mut out = Vec::new();
            print(&mut out, form, None, &record).unwrap();
            out
        };
        assert_eq!(printed(Form::Text), b"k\t\xff\n");
        assert_eq!(printed(Form::Value), b"\xff\n");
        let json: Value = serde_json::from_slice(&printed(Form::Json)).unwrap();
        let expected = json!({
            "shard": 1, "offset": 7, "timestamp": 5, "key": "k", "valueBase64": "/w==",
            "headers": {"h": "v", "none": null},
        });
        assert_eq!(json, expected);
    }
}
