//! An entity as plain values, from which a test makes a record on one side and expectations on the other.

use std::borrow::Cow;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::record::{Draft, InstanceDraft, Kind, Record, Slot};
use crate::symbol::{Budget, Symbols};
use crate::time::Instant;

pub(crate) const VOCAB: &str = "https://uri.etsi.org/ngsi-ld/default-context/";

/// The time of all answers in tests; instances that expire do so around it.
pub(crate) const NOW: i64 = 1_700_000_000_000_000;

pub(crate) fn iri(name: &str) -> String {
    format!("{VOCAB}{name}")
}

#[derive(Debug, Clone)]
pub(crate) struct Inst {
    pub(crate) kind: Kind,
    /// Vocabulary terms by their short names.
    pub(crate) value: Value,
    pub(crate) dataset: Option<String>,
    pub(crate) observed: Option<i64>,
    pub(crate) expires: Option<i64>,
    pub(crate) unit: Option<String>,
    pub(crate) slots: Vec<(Slot, String)>,
    pub(crate) subs: Vec<(String, Vec<Inst>)>,
    pub(crate) created: i64,
    pub(crate) modified: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct Ent {
    pub(crate) id: String,
    pub(crate) types: Vec<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) created: i64,
    pub(crate) modified: i64,
    pub(crate) expires: Option<i64>,
    pub(crate) attributes: Vec<(String, Vec<Inst>)>,
}

pub(crate) fn inst(kind: Kind, value: Value) -> Inst {
    Inst {
        kind,
        value,
        dataset: None,
        observed: None,
        expires: None,
        unit: None,
        slots: Vec::new(),
        subs: Vec::new(),
        created: 0,
        modified: 0,
    }
}

pub(crate) fn ent(id: &str, kind: &str, attributes: Vec<(&str, Inst)>) -> Ent {
    Ent {
        id: id.to_owned(),
        types: vec![kind.to_owned()],
        scopes: Vec::new(),
        created: 0,
        modified: 0,
        expires: None,
        attributes: attributes.into_iter().map(|(name, inst)| (name.to_owned(), vec![inst])).collect(),
    }
}

fn expanded(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(expanded).collect(),
        other => json!(iri(other.as_str().unwrap())),
    }
}

impl Inst {
    fn draft(&self, symbols: &Symbols, budget: &Budget) -> InstanceDraft<'static> {
        let intern = |name: &str| symbols.intern(&iri(name), budget).unwrap();
        let value = if self.kind == Kind::VocabProperty { expanded(&self.value) } else { self.value.clone() };
        let mut draft = InstanceDraft::new(self.kind, Cow::Owned(value.to_string()));
        draft.dataset = self.dataset.clone().map(Cow::Owned);
        draft.observed = self.observed.map(|at| (Instant(at), Cow::Owned(Instant(at).to_string())));
        draft.expires = self.expires.map(Instant);
        draft.unit_code = self.unit.as_ref().map(|unit| Cow::Owned(json!(unit).to_string()));
        draft.slots = self.slots.iter().map(|(slot, name)| (*slot, intern(name))).collect();
        for (name, instances) in &self.subs {
            let name = intern(name);
            draft.subs.extend(instances.iter().map(|sub| (name, sub.draft(symbols, budget))));
        }
        draft.created = Instant(self.created);
        draft.modified = Instant(self.modified);
        draft
    }
}

impl Ent {
    pub(crate) fn record(&self, symbols: &Symbols) -> Record {
        let budget = Budget::new(u32::MAX);
        let intern = |name: &str| symbols.intern(&iri(name), &budget).unwrap();
        let mut instances = Vec::new();
        for (name, own) in &self.attributes {
            for inst in own {
                let mut bytes = Vec::new();
                inst.draft(symbols, &budget).encode(intern(name), &mut bytes);
                instances.push(Cow::Owned(bytes));
            }
        }
        let draft = Draft {
            id: Cow::Borrowed(&self.id),
            types: self.types.iter().map(|name| intern(name)).collect(),
            scopes: self.scopes.iter().map(|scope| Cow::Borrowed(scope.as_str())).collect(),
            created: Instant(self.created),
            modified: Instant(self.modified),
            expires: self.expires.map(Instant),
            instances,
        };
        draft.encode()
    }
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "speed", "name", "výška"]).prop_map(str::to_owned)
}

fn target() -> impl Strategy<Value = Value> {
    prop::sample::select(vec!["urn:x:1", "urn:x:2", "urn:x:3"]).prop_map(|id| json!(id))
}

/// Property values, with those that look like something else.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|n| json!(f64::from(n) / 8.0)),
        ".{0,6}".prop_map(Value::from),
        Just(json!({"type": "Point", "coordinates": [1, 2.5]})),
        Just(json!({"type": "Other"})),
    ];
    let key = prop_oneof![
        prop::sample::select(vec!["type", "value", "object", "unitCode", "datasetId", "coordinates", "x\"y"])
            .prop_map(str::to_owned),
        "[a-c]",
    ];
    leaf.prop_recursive(2, 8, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn language_map() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,4}".prop_map(Value::from),
        prop::collection::vec(".{0,4}", 0..3).prop_map(Value::from),
    ];
    let tag = prop::sample::select(vec!["fr", "en", "en-US", "@none"]).prop_map(str::to_owned);
    prop::collection::btree_map(tag, text, 0..4).prop_map(|map| map.into_iter().collect())
}

fn kind_and_value() -> impl Strategy<Value = (Kind, Value)> {
    let list = || prop::collection::vec(target(), 0..3);
    let objects = list().prop_map(|ids| ids.into_iter().map(|id| json!({"object": id})).collect::<Value>());
    let object = prop::collection::btree_map("[a-c]|type", any_value(), 0..3)
        .prop_map(|map| map.into_iter().collect::<Value>());
    prop_oneof![
        4 => any_value().prop_map(|value| (Kind::Property, value)),
        1 => Just((Kind::GeoProperty, json!({"type": "Point", "coordinates": [13.5, 52]}))),
        1 => Just((Kind::GeoProperty, json!({"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [1, 2]}]}))),
        1 => target().prop_map(|value| (Kind::Relationship, value)),
        1 => list().prop_map(|value| (Kind::Relationship, Value::from(value))),
        1 => language_map().prop_map(|value| (Kind::LanguageProperty, value)),
        1 => name().prop_map(|value| (Kind::VocabProperty, json!(value))),
        1 => prop::collection::vec(name(), 0..3).prop_map(|value| (Kind::VocabProperty, json!(value))),
        1 => object.prop_map(|value| (Kind::JsonProperty, value)),
        1 => prop::collection::vec(any_value(), 0..3).prop_map(|value| (Kind::ListProperty, Value::from(value))),
        1 => objects.prop_map(|value| (Kind::ListRelationship, value)),
    ]
}

fn moment() -> impl Strategy<Value = i64> {
    prop_oneof![Just(NOW - 1_000_000), Just(NOW - 123_000), Just(NOW - 1), 0..NOW * 2]
}

fn expiry() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        3 => Just(None),
        1 => prop::sample::select(vec![NOW + 1, NOW, NOW - 1]).prop_map(Some),
    ]
}

fn slots(kind: Kind) -> impl Strategy<Value = Vec<(Slot, String)>> {
    let slot = if kind.is_relationship() { Slot::ObjectType } else { Slot::ValueType };
    let names = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(name(), 1..3)];
    (names, any::<bool>()).prop_map(move |(names, sealed)| {
        let sealed = (sealed && names.len() > 1).then(|| (Slot::SealedType, "Kind".to_owned()));
        names.into_iter().map(|name| (slot, name)).chain(sealed).collect()
    })
}

fn instance(depth: u32) -> BoxedStrategy<Inst> {
    let subs = if depth == 0 {
        Just(Vec::new()).boxed()
    } else {
        prop_oneof![2 => Just(Vec::new()), 1 => attributes(depth - 1, 3)].boxed()
    };
    let unit = prop::option::of("[A-Z\"]{1,3}");
    (kind_and_value(), prop::option::of(moment()), expiry(), unit, subs, moment(), moment())
        .prop_flat_map(|((kind, value), observed, expires, unit, subs, created, modified)| {
            let unit = unit.filter(|_| kind == Kind::Property);
            let base = Inst { observed, expires, unit, subs, created, modified, ..inst(kind, value) };
            slots(kind).prop_map(move |slots| Inst { slots, ..base.clone() })
        })
        .boxed()
}

/// Attributes with distinct names, and instances with distinct datasets.
fn attributes(depth: u32, most: usize) -> BoxedStrategy<Vec<(String, Vec<Inst>)>> {
    let dataset = prop::sample::select(vec![None, Some("urn:d:1".to_owned()), Some("urn:d:\"2".to_owned())]);
    let instances = prop_oneof![
        3 => prop::collection::btree_map(Just(None), instance(depth), 1..2),
        1 => prop::collection::btree_map(dataset, instance(depth), 1..4),
    ];
    let instances = instances
        .prop_map(|map| map.into_iter().map(|(dataset, inst)| Inst { dataset, ..inst }).collect::<Vec<_>>());
    prop::collection::btree_map(name(), instances, 0..most).prop_map(|map| map.into_iter().collect()).boxed()
}

pub(crate) fn entity() -> impl Strategy<Value = Ent> {
    let types = prop::collection::btree_set(name(), 1..3);
    let scopes = prop::collection::vec("(/[a-z]{1,3}){1,2}", 0..3);
    let own = ("urn:[a-z\"é]{1,5}", types, scopes, moment(), moment(), expiry());
    (own, attributes(2, 5)).prop_map(|((id, types, scopes, created, modified, expires), attributes)| Ent {
        id,
        types: types.into_iter().collect(),
        scopes,
        created,
        modified,
        expires,
        attributes,
    })
}
