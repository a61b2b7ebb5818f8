//! The configuration file as a layer: TOML flattened to full key names, each with its line.

use std::path::Path;

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::{Error, Origin};

/// One assignment of the file.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// Reads and flattens the file. A table is looked into unless it is itself the value of a known key.
pub(super) fn read(path: &Path, is_key: impl Fn(&str) -> bool) -> Result<Vec<Entry>, Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let malformed = |source| Error::Malformed { path: path.to_owned(), source: Box::new(source) };
    // Parsed twice: once for the positions and once for plain values. The file is small and read once.
    let spans = DeTable::parse(&text).map_err(malformed)?;
    let values: Table = text.parse().map_err(malformed)?;
    let mut flattening = Flattening { path, text: &text, is_key: &is_key, entries: Vec::new() };
    flattening.table("", spans.get_ref(), &values);
    Ok(flattening.entries)
}

struct Flattening<'a> {
    path: &'a Path,
    text: &'a str,
    is_key: &'a dyn Fn(&str) -> bool,
    entries: Vec<Entry>,
}

impl Flattening<'_> {
    fn table(&mut self, prefix: &str, spans: &DeTable<'_>, values: &Table) {
        for (key, span) in spans {
            let name = key.get_ref();
            let full = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            let Some(value) = values.get(name.as_ref()) else { continue };
            match (span.get_ref(), value) {
                (DeValue::Table(spans), Value::Table(values)) if !(self.is_key)(&full) => {
                    self.table(&full, spans, values);
                }
                _ => self.entry(full, value.clone(), key.span().start),
            }
        }
    }

    fn entry(&mut self, name: String, value: Value, offset: usize) {
        let line = 1 + self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count();
        let origin = Origin::File { path: self.path.to_owned(), line };
        self.entries.push(Entry { name, value, origin });
    }
}
