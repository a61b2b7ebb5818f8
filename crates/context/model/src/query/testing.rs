//! Records for tests, written as normalized entities.

use serde_json::{Map, Value, json};

use super::names::testing::iri;
use crate::record::{Draft, InstanceDraft, Kind, Record, Slot};
use crate::symbol::{Budget, Symbol, Symbols};
use crate::time::Instant;

/// A table of symbols that tests may fill.
pub(crate) struct World {
    pub(crate) symbols: Symbols,
    budget: Budget,
}

impl World {
    pub(crate) fn new() -> Self {
        World { symbols: Symbols::new(), budget: Budget::new(1_000) }
    }

    pub(crate) fn symbol(&self, term: &str) -> Symbol {
        self.symbols.intern(&iri(term), &self.budget).unwrap()
    }

    /// A record of a normalized entity; system times are 2020-01-01 unless given.
    pub(crate) fn record(&self, entity: &Value) -> Record {
        let members = entity.as_object().unwrap();
        let list = |name: &str| match members.get(name) {
            Some(Value::Array(items)) => items.iter().map(text).collect(),
            Some(one) => vec![text(one)],
            None => Vec::new(),
        };
        let mut draft = Draft {
            id: members.get("id").map_or("urn:ngsi-ld:T:1".into(), text).into(),
            types: list("type").iter().map(|name| self.symbol(name)).collect(),
            scopes: list("scope").into_iter().map(Into::into).collect(),
            created: time(members.get("createdAt")),
            modified: time(members.get("modifiedAt")),
            expires: members.get("expiresAt").map(|at| time(Some(at))),
            instances: Vec::new(),
        };
        for (name, instances) in self.attributes(members) {
            let mut bytes = Vec::new();
            instances.encode(name, &mut bytes);
            draft.insert(name, bytes.into());
        }
        draft.encode()
    }

    /// A record with the attribute `a` alone.
    pub(crate) fn with(&self, attribute: &Value) -> Record {
        self.record(&json!({"id": "urn:ngsi-ld:T:1", "type": "T", "a": attribute}))
    }

    fn attributes(&self, members: &Map<String, Value>) -> Vec<(Symbol, InstanceDraft<'static>)> {
        let mut out = Vec::new();
        for (name, value) in members {
            let instances = match value {
                Value::Array(items) if items.iter().all(is_attribute) && !items.is_empty() => items.clone(),
                one if is_attribute(one) => vec![one.clone()],
                _ => continue,
            };
            out.extend(
                instances.iter().map(|own| (self.symbol(name), self.instance(own.as_object().unwrap()))),
            );
        }
        out
    }

    fn instance(&self, members: &Map<String, Value>) -> InstanceDraft<'static> {
        let kind = Kind::from_name(members["type"].as_str().unwrap()).unwrap();
        let mut value = members[kind.value_member()].clone();
        if kind == Kind::VocabProperty {
            value = match value {
                Value::Array(items) => items.iter().map(|item| iri(item.as_str().unwrap())).collect(),
                one => iri(one.as_str().unwrap()).into(),
            };
        }
        let mut draft = InstanceDraft::new(kind, value.to_string().into());
        draft.created = time(members.get("createdAt"));
        draft.modified = time(members.get("modifiedAt"));
        draft.dataset = members.get("datasetId").map(|id| text(id).into());
        draft.observed = members.get("observedAt").map(|at| (time(Some(at)), text(at).into()));
        draft.unit_code = members.get("unitCode").map(|code| code.to_string().into());
        for (name, slot) in [("objectType", Slot::ObjectType), ("valueType", Slot::ValueType)] {
            draft.slots.extend(members.get(name).map(|own| (slot, self.symbol(&text(own)))));
        }
        draft.subs = self.attributes(members);
        draft
    }
}

fn is_attribute(value: &Value) -> bool {
    value.get("type").and_then(Value::as_str).and_then(Kind::from_name).is_some()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn time(value: Option<&Value>) -> Instant {
    Instant::parse(value.and_then(Value::as_str).unwrap_or("2020-01-01T00:00:00Z")).unwrap()
}
