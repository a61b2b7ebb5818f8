//! The entities that an answer's entities link to (4.5.23), read ahead of rendering.
//!
//! Rendering is synchronous and a store may be a server away, so relationships are followed here level by level, one
//! read for all targets of a level, within one budget for the whole answer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use trifid_context_model::json::{Doc, Value};
use trifid_context_model::record::{Instance, Record};

use crate::answering::check_size;
use crate::exchange::Exchange;
use crate::limits::LINKED_ENTITIES_MAX;
use crate::problem::Refusal;

/// Linked entities by identifier; what was looked for and not found is there without a record.
#[derive(Debug, Default)]
pub(crate) struct Found {
    records: HashMap<String, Option<Record>>,
    /// Of all records found.
    bytes: usize,
}

impl Found {
    /// Follows the relationships of `roots` for `levels` steps.
    pub(crate) async fn from(
        exchange: &Exchange<'_>,
        roots: &[Record],
        levels: usize,
    ) -> Result<Self, Refusal> {
        let mut found = Found::default();
        let mut level = roots.to_vec();
        for _ in 0..levels {
            let wanted = found.new_targets(&level);
            if wanted.is_empty() {
                break;
            }
            level = found.read(exchange, &wanted).await?;
        }
        Ok(found)
    }

    /// The entity of this identifier.
    pub(crate) fn get(&self, id: &str) -> Option<Record> {
        self.records.get(id).cloned().flatten()
    }

    /// What `records` link to and was not looked for before, as far as the budget goes.
    fn new_targets(&mut self, records: &[Record]) -> Vec<String> {
        let mut wanted = Vec::new();
        let relationships =
            records.iter().flat_map(Record::instances).filter(|own| own.kind().is_relationship());
        for id in relationships.flat_map(targets) {
            if self.records.len() >= LINKED_ENTITIES_MAX {
                break;
            }
            if let Entry::Vacant(place) = self.records.entry(id) {
                wanted.push(place.key().clone());
                place.insert(None);
            }
        }
        wanted
    }

    async fn read(&mut self, exchange: &Exchange<'_>, wanted: &[String]) -> Result<Vec<Record>, Refusal> {
        let ids: Vec<&str> = wanted.iter().map(String::as_str).collect();
        let mut level = Vec::new();
        let mut take = |record: &Record| level.push(record.clone());
        exchange.broker.read(exchange.tenant, &ids, &mut take).await?;
        self.bytes += level.iter().map(Record::size).sum::<usize>();
        check_size(self.bytes)?;
        for record in &level {
            self.records.insert(record.id().to_owned(), Some(record.clone()));
        }
        Ok(level)
    }
}

/// The identifiers in the value of a relationship: a string, a list of them, or a list of `{"object": ...}`.
fn targets(relationship: Instance<'_>) -> Vec<String> {
    let Ok(doc) = Doc::parse(relationship.value().as_bytes()) else { return Vec::new() };
    let root = doc.root();
    let own = |value: Value<'_>| value.get("object").unwrap_or(value).as_str().map(|id| id.into_owned());
    match root.is_array() {
        true => root.items().filter_map(own).collect(),
        false => own(root).into_iter().collect(),
    }
}
