//! The representations made slowly, as trees of JSON values.

use serde_json::{Map, Value, json};

use super::model::{Ent, Inst, NOW};
use crate::query::lang::LanguagePreferences;
use crate::record::Kind;
use crate::render::Format;
use crate::time::Instant;

/// What an answer is asked to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    pub(crate) format: Format,
    pub(crate) sys_attrs: bool,
    pub(crate) lang: Option<LanguagePreferences>,
    pub(crate) pick: Option<Vec<String>>,
    pub(crate) omit: Vec<String>,
    /// Dataset filter.
    pub(crate) datasets: Option<Vec<Option<String>>>,
}

fn one_or_many(values: Vec<Value>) -> Value {
    if values.len() == 1 { values.into_iter().next().unwrap() } else { Value::from(values) }
}

fn dated(object: &mut Map<String, Value>, name: &str, at: i64) {
    object.insert(name.to_owned(), json!(Instant(at).to_string()));
}

impl Ask {
    fn names(&self, name: &str) -> bool {
        self.pick.as_ref().is_none_or(|pick| pick.iter().any(|own| own == name))
            && !self.omit.iter().any(|own| own == name)
    }

    /// The entity, normalized or simplified.
    pub(crate) fn entity(&self, ent: &Ent) -> Value {
        let mut object = Map::new();
        if self.names("id") {
            object.insert("id".into(), json!(ent.id));
        }
        object.extend(self.body(ent));
        Value::Object(object)
    }

    fn body(&self, ent: &Ent) -> Map<String, Value> {
        let mut object = Map::new();
        if self.names("type") {
            object.insert("type".into(), one_or_many(ent.types.iter().map(|name| json!(name)).collect()));
        }
        if !ent.scopes.is_empty() && self.names("scope") {
            object.insert("scope".into(), one_or_many(ent.scopes.iter().map(|scope| json!(scope)).collect()));
        }
        if self.sys_attrs {
            let times = [("createdAt", Some(ent.created)), ("modifiedAt", Some(ent.modified))];
            for (name, at) in times.into_iter().chain([("expiresAt", ent.expires)]) {
                if let Some(at) = at.filter(|_| self.names(name)) {
                    dated(&mut object, name, at);
                }
            }
        }
        for (name, instances) in &ent.attributes {
            let shown: Vec<_> = instances.iter().filter(|inst| self.has_dataset(inst)).collect();
            if let Some(value) = self.attribute(&shown).filter(|_| self.names(name)) {
                object.insert(name.clone(), value);
            }
        }
        object
    }

    fn has_dataset(&self, inst: &Inst) -> bool {
        self.datasets.as_ref().is_none_or(|datasets| datasets.contains(&inst.dataset))
    }

    fn attribute(&self, instances: &[&Inst]) -> Option<Value> {
        let alive = instances.iter().filter(|inst| inst.expires.is_none_or(|at| at > NOW));
        let alive: Vec<&Inst> = alive.copied().collect();
        if alive.is_empty() {
            return None;
        }
        if self.format != Format::Simplified {
            return Some(one_or_many(alive.into_iter().map(|inst| self.normalized(inst)).collect()));
        }
        if alive.len() == 1 {
            return Some(self.simplified(alive[0]));
        }
        let key = |inst: &Inst| inst.dataset.clone().unwrap_or_else(|| "@none".into());
        let map: Map<String, Value> =
            alive.into_iter().map(|inst| (key(inst), self.simplified(inst))).collect();
        Some(json!({ "dataset": map }))
    }

    /// Tag and text of a language property that is to be one string.
    fn text(&self, inst: &Inst) -> Option<(String, Value)> {
        let preferences = self.lang.as_ref().filter(|_| inst.kind == Kind::LanguageProperty)?;
        let map = inst.value.as_object()?;
        let tag = preferences.choose(map.keys().map(String::as_str))?;
        Some((tag.to_owned(), map[tag].clone()))
    }

    fn normalized(&self, inst: &Inst) -> Value {
        let mut object = Map::new();
        match self.text(inst) {
            Some((tag, text)) => {
                object.insert("type".into(), json!("Property"));
                object.insert("value".into(), text);
                object.insert("lang".into(), json!(tag));
            }
            None => {
                object.insert("type".into(), json!(inst.kind.name()));
                object.insert(inst.kind.value_member().into(), inst.value.clone());
            }
        }
        if let Some(at) = inst.observed {
            dated(&mut object, "observedAt", at);
        }
        if let Some(unit) = &inst.unit {
            object.insert("unitCode".into(), json!(unit));
        }
        if let Some(dataset) = &inst.dataset {
            object.insert("datasetId".into(), json!(dataset));
        }
        for (slot, _) in &inst.slots {
            let names = inst.slots.iter().filter(|(own, _)| own == slot).map(|(_, name)| json!(name));
            object.insert(slot.member().into(), one_or_many(names.collect()));
        }
        if self.sys_attrs {
            dated(&mut object, "createdAt", inst.created);
            dated(&mut object, "modifiedAt", inst.modified);
            if let Some(at) = inst.expires {
                dated(&mut object, "expiresAt", at);
            }
        }
        for (name, subs) in &inst.subs {
            if let Some(value) = self.attribute(&subs.iter().collect::<Vec<_>>()) {
                object.insert(name.clone(), value);
            }
        }
        Value::Object(object)
    }

    fn simplified(&self, inst: &Inst) -> Value {
        if let Some((_, text)) = self.text(inst) {
            return text;
        }
        match inst.kind {
            Kind::LanguageProperty | Kind::JsonProperty | Kind::VocabProperty => {
                json!({ inst.kind.value_member(): inst.value })
            }
            Kind::ListRelationship => {
                inst.value.as_array().unwrap().iter().map(|item| item["object"].clone()).collect()
            }
            _ => inst.value.clone(),
        }
    }
}

/// Reads the concise representation of an attribute back into the normalized one (4.5.2.3, 4.7.3).
pub(crate) fn normalize(value: &Value) -> Value {
    let instances = value.as_array().filter(|items| !items.is_empty() && items.iter().all(is_attribute));
    match instances {
        Some(items) => items.iter().map(normalize_one).collect(),
        None => normalize_one(value),
    }
}

const VALUES: [(&str, &str); 7] = [
    ("value", "Property"),
    ("object", "Relationship"),
    ("languageMap", "LanguageProperty"),
    ("vocab", "VocabProperty"),
    ("json", "JsonProperty"),
    ("valueList", "ListProperty"),
    ("objectList", "ListRelationship"),
];

/// Members that are no sub-attributes.
const OTHERS: [&str; 11] = [
    "type",
    "observedAt",
    "unitCode",
    "datasetId",
    "objectType",
    "valueType",
    "entityTypeSealed",
    "lang",
    "createdAt",
    "modifiedAt",
    "expiresAt",
];

fn is_attribute(value: &Value) -> bool {
    let telling = ["observedAt", "unitCode", "datasetId", "objectType", "valueType"];
    value.as_object().is_some_and(|object| {
        object
            .keys()
            .any(|key| VALUES.iter().any(|(member, _)| member == key) || telling.contains(&key.as_str()))
            || object.get("type").and_then(Value::as_str).is_some_and(|name| Kind::from_name(name).is_some())
    })
}

fn is_geometry(value: &Value) -> bool {
    let named = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let simple = ["Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon"];
    (simple.contains(&named) || named == "GeometryCollection")
        && (value.get("coordinates").is_some() || value.get("geometries").is_some())
}

fn inferred(member: &str, value: &Value) -> &'static str {
    match VALUES.iter().find(|(own, _)| *own == member) {
        Some((_, "Property")) | None if is_geometry(value) => "GeoProperty",
        Some((_, kind)) => kind,
        None => "Property",
    }
}

fn normalize_one(value: &Value) -> Value {
    let Some(object) = value.as_object().filter(|_| is_attribute(value)) else {
        assert!(value.get("type").is_none() || is_geometry(value), "{value} would be taken for an attribute");
        return json!({ "type": inferred("value", value), "value": value });
    };
    let mut out = Map::new();
    for (key, inner) in object {
        let known = VALUES.iter().any(|(member, _)| member == key);
        if known && !object.contains_key("type") {
            out.insert("type".into(), json!(inferred(key, inner)));
        }
        let inner = match key.as_str() {
            "objectList" => inner.as_array().unwrap().iter().map(|id| json!({ "object": id })).collect(),
            _ if known || OTHERS.contains(&key.as_str()) => inner.clone(),
            _ => normalize(inner),
        };
        out.insert(key.clone(), inner);
    }
    Value::Object(out)
}
