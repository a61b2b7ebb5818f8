//! The discovery counters of a tenant (5.7.5 to 5.7.10), kept by writes so that discovery never scans.

use hashbrown::HashMap;
use smallvec::SmallVec;
use trifid_context_model::record::{Kind, Record};
use trifid_context_model::symbol::Symbol;

use crate::store::{AttributeCount, Discovery};

type Map<K> = HashMap<K, usize, foldhash::fast::RandomState>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Counters {
    types: Map<Symbol>,
    attributes: Map<(Symbol, Symbol, Kind)>,
    totals: Map<Symbol>,
}

/// Each attribute of a record once for each kind that its instances have.
fn attribute_kinds(record: &Record) -> impl Iterator<Item = (Symbol, Kind)> + '_ {
    // Instances of one attribute are neighbours, so only the kinds of the current name are remembered.
    let mut name = None;
    let mut kinds: SmallVec<[Kind; 4]> = SmallVec::new();
    record.instances().map(|instance| (instance.name(), instance.kind())).filter(move |(own, kind)| {
        if name.replace(*own) != Some(*own) {
            kinds.clear();
        }
        let new = !kinds.contains(kind);
        if new {
            kinds.push(*kind);
        }
        new
    })
}

impl Counters {
    /// True when both records count alike, so that nothing has to be done.
    pub(super) fn alike(before: &Record, after: &Record) -> bool {
        before.types().eq(after.types()) && attribute_kinds(before).eq(attribute_kinds(after))
    }

    pub(super) fn add(&mut self, record: &Record) {
        for attribute in record.attribute_names() {
            *self.totals.entry(attribute).or_default() += 1;
        }
        for entity_type in record.types() {
            *self.types.entry(entity_type).or_default() += 1;
            for (attribute, kind) in attribute_kinds(record) {
                *self.attributes.entry((entity_type, attribute, kind)).or_default() += 1;
            }
        }
    }

    pub(super) fn subtract(&mut self, record: &Record) {
        for attribute in record.attribute_names() {
            decrement(&mut self.totals, attribute);
        }
        for entity_type in record.types() {
            decrement(&mut self.types, entity_type);
            for (attribute, kind) in attribute_kinds(record) {
                decrement(&mut self.attributes, (entity_type, attribute, kind));
            }
        }
    }

    pub(super) fn discovery(&self) -> Discovery {
        let line = |(key, count): (&(Symbol, Symbol, Kind), &usize)| AttributeCount {
            entity_type: key.0,
            attribute: key.1,
            kind: key.2,
            count: *count,
        };
        Discovery {
            types: self.types.iter().map(|(name, count)| (*name, *count)).collect(),
            attributes: self.attributes.iter().map(line).collect(),
            totals: self.totals.iter().map(|(name, count)| (*name, *count)).collect(),
        }
    }
}

fn decrement<K: std::hash::Hash + Eq>(map: &mut Map<K>, key: K) {
    if let hashbrown::hash_map::Entry::Occupied(mut entry) = map.entry(key) {
        *entry.get_mut() -= 1;
        if *entry.get() == 0 {
            entry.remove();
        }
    }
}
