//! The sample world goes in, comes out in every representation, goes in again as it came out, and is the same.
//!
//! What each representation should be is worked out here from what was posted (4.5.2 to 4.5.24), without the
//! broker's renderers.

use serde_json::{Map, Value, json};

use crate::harness::{Serving, Trifid};
use crate::wire::{ROOT, Reply, Wire, ask, encoded, is_well, request};

const WORLD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/world");

/// Each kind of attribute with the member that has its value.
const KINDS: [(&str, &str); 8] = [
    ("Property", "value"),
    ("GeoProperty", "value"),
    ("Relationship", "object"),
    ("LanguageProperty", "languageMap"),
    ("VocabProperty", "vocab"),
    ("JsonProperty", "json"),
    ("ListProperty", "valueList"),
    ("ListRelationship", "objectList"),
];

/// Members that are neither the value nor sub-attributes.
const PLAIN: [&str; 6] = ["type", "observedAt", "unitCode", "datasetId", "objectType", "valueType"];

/// The entities of the world: normalized, and as they are written there.
fn entities() -> Vec<(Value, Value)> {
    let mut files: Vec<_> = std::fs::read_dir(WORLD).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| {
        path.extension().is_some_and(|end| end == "jsonld") && !path.ends_with("context.jsonld")
    });
    files.sort();
    let read = |path: std::path::PathBuf| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let posted = files.into_iter().flat_map(|path| -> Vec<Value> { read(path) });
    posted.map(|entity| (each_attribute(&entity, &normalized), entity)).collect()
}

/// An attribute of the sample world, some of which is written concisely, with all that is left out there.
fn normalized(attribute: &Value) -> Value {
    let several =
        |items: &[Value]| items.iter().all(|item| KINDS.iter().any(|(_, member)| item.get(member).is_some()));
    match attribute {
        Value::Array(items) if several(items) => items.iter().map(normalized).collect(),
        Value::Object(members) => {
            let found = KINDS.iter().find(|(_, member)| members.contains_key(*member));
            let Some((kind, member)) = found else {
                return json!({"type": bare_kind(attribute), "value": attribute});
            };
            let kind = if *member == "value" { bare_kind(&members["value"]) } else { kind };
            let mut full = json!({"type": members.get("type").map_or(kind, |own| own.as_str().unwrap())});
            for (name, value) in members {
                let is_sub = name != member && !PLAIN.contains(&name.as_str());
                full[name] = if is_sub { normalized(value) } else { value.clone() };
            }
            full
        }
        bare => json!({"type": "Property", "value": bare}),
    }
}

/// The kind of an attribute that is told by its value alone.
fn bare_kind(value: &Value) -> &'static str {
    if value.get("coordinates").is_some() { "GeoProperty" } else { "Property" }
}

/// The entity with each attribute changed by `change`; `id`, `type` and `scope` are no attributes.
fn each_attribute(entity: &Value, change: &dyn Fn(&Value) -> Value) -> Value {
    let of = |(name, value): (&String, &Value)| {
        let own = matches!(name.as_str(), "id" | "type" | "scope");
        (name.clone(), if own { value.clone() } else { change(value) })
    };
    Value::Object(entity.as_object().unwrap().iter().map(of).collect())
}

/// An attribute of several instances is a list of them.
fn each_instance(attribute: &Value, change: &dyn Fn(&Map<String, Value>) -> Value) -> Value {
    match attribute {
        Value::Array(instances) => instances.iter().map(|own| change(own.as_object().unwrap())).collect(),
        one => change(one.as_object().unwrap()),
    }
}

fn kind_of(instance: &Map<String, Value>) -> (&'static str, &'static str) {
    *KINDS.iter().find(|(kind, _)| instance["type"] == *kind).unwrap()
}

/// What a reader can infer is left out (4.5.2.3).
fn concise(instance: &Map<String, Value>) -> Value {
    let (kind, member) = kind_of(instance);
    let value = &instance[member];
    let is_bare = match kind {
        // A value with a type of its own stays wrapped, so that it is not taken for an attribute.
        "Property" => !["type", "@type"].iter().any(|name| value.get(name).is_some()),
        "GeoProperty" => true,
        _ => false,
    };
    if is_bare && instance.len() == 2 {
        return value.clone();
    }
    let of = |(name, value): (&String, &Value)| {
        let inner = if name == "objectList" {
            targets(value)
        } else if name == member || PLAIN.contains(&name.as_str()) {
            value.clone()
        } else {
            each_instance(value, &concise)
        };
        (name.clone(), inner)
    };
    Value::Object(instance.iter().filter(|(name, _)| *name != "type").map(of).collect())
}

/// The targets of a ListRelationship, without the object around each (4.5.22).
fn targets(list: &Value) -> Value {
    list.as_array().unwrap().iter().map(|item| item["object"].clone()).collect()
}

/// The value alone (4.5.4); several instances by their datasetId (4.5.5).
fn simplified(attribute: &Value) -> Value {
    let Value::Array(instances) = attribute else {
        return simplified_instance(attribute.as_object().unwrap());
    };
    let of = |own: &Value| {
        let dataset = own.get("datasetId").map_or("@none", |id| id.as_str().unwrap());
        (dataset.to_owned(), simplified_instance(own.as_object().unwrap()))
    };
    json!({ "dataset": instances.iter().map(of).collect::<Map<_, _>>() })
}

fn simplified_instance(instance: &Map<String, Value>) -> Value {
    let (_, member) = kind_of(instance);
    let value = instance[member].clone();
    match member {
        "languageMap" | "vocab" | "json" => json!({ member: value }),
        "objectList" => targets(&value),
        _ => value,
    }
}

/// A GeoJSON Feature (4.5.16, 4.5.17) of a posted entity, its members shown as in `shown`.
fn feature(posted: &Value, shown: &Value, context: &str) -> Value {
    let geometry = posted.get("location").map_or(Value::Null, |location| location["value"].clone());
    let mut properties = shown.clone();
    let id = properties.as_object_mut().unwrap().remove("id").unwrap();
    json!({"id": id, "type": "Feature", "geometry": geometry, "properties": properties, "@context": context})
}

/// The entity without its system attributes, each of which must be there and be a dateTime (4.8).
fn without_times(value: &Value, is_element: bool) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| without_times(item, is_element)).collect(),
        Value::Object(members) if is_element => {
            let mut rest = members.clone();
            for name in ["createdAt", "modifiedAt"] {
                let time = rest.remove(name).unwrap_or_default();
                assert!(time.as_str().is_some_and(|time| time.ends_with('Z')), "{name} of {value}");
            }
            let value_members = KINDS.map(|(_, member)| member);
            for (name, inner) in &mut rest {
                let is_inner =
                    !value_members.contains(&name.as_str()) && (inner.is_object() || inner.is_array());
                *inner = without_times(inner, is_inner && !matches!(name.as_str(), "type" | "scope"));
            }
            Value::Object(rest)
        }
        other => other.clone(),
    }
}

/// One connection to a broker that keeps the world's context.
struct Client {
    wire: Wire,
    context: String,
}

impl Client {
    fn of(serving: &Serving) -> Self {
        let document = std::fs::read(format!("{WORLD}/context.jsonld")).unwrap();
        let kept = ask(serving, "POST", "/jsonldContexts", "Content-Type: application/ld+json\r\n", document);
        assert_eq!(kept.status, 201, "{}", kept.text());
        let context = format!("http://{}{}", serving.address, kept.header("location").unwrap());
        Self { wire: Wire::to(serving), context }
    }

    fn ask(&mut self, method: &str, target: &str, accept: &str, body: &str) -> Reply {
        let link = format!("Link: <{}>; rel=\"http://www.w3.org/ns/json-ld#context\"\r\n", self.context);
        let headers = format!("{link}Accept: {accept}\r\nContent-Type: application/json\r\n");
        self.wire.send(&request(method, target, &headers, body.as_bytes()));
        self.wire.answer(method).unwrap()
    }

    fn create(&mut self, entity: &Value) -> String {
        let reply = self.ask("POST", "/entities", "*/*", &entity.to_string());
        assert_eq!(reply.status, 201, "{}: {entity}", reply.text());
        reply.header("location").unwrap().strip_prefix(ROOT).unwrap().to_owned()
    }

    fn read(&mut self, target: &str, accept: &str) -> Value {
        let reply = self.ask("GET", target, accept, "");
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some(accept), "{target}");
        reply.json()
    }
}

/// Every representation: the query string, the media type, and what is expected.
fn representations(posted: &Value, context: &str) -> Vec<(&'static str, &'static str, Value)> {
    let short = each_attribute(posted, &simplified);
    let few = each_attribute(posted, &|attribute| each_instance(attribute, &concise));
    let with_context = |entity: &Value| {
        let mut entity = entity.clone();
        entity["@context"] = context.into();
        entity
    };
    vec![
        ("", "application/json", posted.clone()),
        ("?format=normalized", "application/json", posted.clone()),
        ("?format=concise", "application/json", few.clone()),
        ("?format=simplified", "application/json", short.clone()),
        ("?options=keyValues", "application/json", short.clone()),
        ("", "application/ld+json", with_context(posted)),
        ("?format=concise", "application/ld+json", with_context(&few)),
        ("?format=simplified", "application/ld+json", with_context(&short)),
        ("", "application/geo+json", feature(posted, posted, context)),
        ("?format=simplified", "application/geo+json", feature(posted, &short, context)),
    ]
}

#[test]
fn every_entity_comes_back_equal_in_every_representation() {
    let serving = Trifid::new().serve(&["serve", "--listen", "127.0.0.1:0"]);
    let mut client = Client::of(&serving);
    let entities = entities();
    assert!(entities.len() >= 255, "{}", entities.len());
    for (posted, written) in &entities {
        let path = client.create(written);
        let context = client.context.clone();
        for (query, media, expected) in representations(posted, &context) {
            let read = client.read(&format!("{path}{query}"), media);
            assert_eq!(read, expected, "{path}{query} as {media}");
        }
        let timed = client.read(&format!("{path}?options=sysAttrs"), "application/json");
        assert_eq!(without_times(&timed, true), *posted, "{path}");
        // As it came out it goes in again, under another name.
        for query in ["", "?format=concise", "?options=sysAttrs"] {
            let mut copy = client.read(&format!("{path}{query}"), "application/json");
            copy["id"] = format!("urn:copy:{}", posted["id"].as_str().unwrap()).into();
            let copied = client.create(&copy);
            let mut read = client.read(&copied, "application/json");
            read["id"] = posted["id"].clone();
            assert_eq!(read, *posted, "{path}{query} posted again");
            assert_eq!(client.ask("DELETE", &copied, "*/*", "").status, 204);
        }
    }
    let listed = client.read("/entities?local=true&limit=1000", "application/json");
    let mut expected: Vec<Value> = entities.into_iter().map(|(posted, _)| posted).collect();
    expected.sort_by_key(|entity| entity["id"].as_str().unwrap().to_owned());
    assert_eq!(listed, Value::Array(expected));
    is_well(serving);
}

/// In one batch, and with the fragments of each entity one by one.
#[test]
fn the_way_in_makes_no_difference() {
    let serving = Trifid::new().serve(&["serve", "--listen", "127.0.0.1:0"]);
    let mut client = Client::of(&serving);
    let entities = entities();
    let batch: Value = entities.iter().map(|(_, written)| written.clone()).collect();
    let batch = batch.to_string();
    let reply = client.ask("POST", "/entityOperations/upsert", "*/*", &batch);
    assert_eq!((reply.status, reply.json().as_array().unwrap().len()), (201, entities.len()));
    for (posted, written) in &entities {
        let own = |name: &str| matches!(name, "id" | "type" | "scope");
        let (base, attributes): (Map<_, _>, Map<_, _>) =
            written.as_object().unwrap().clone().into_iter().partition(|(name, _)| own(name));
        let id = posted["id"].as_str().unwrap();
        let mut base = Value::Object(base);
        base["id"] = format!("urn:part:{id}").into();
        let path = client.create(&base);
        for (name, attribute) in attributes {
            let fragment = json!({ name: attribute }).to_string();
            let reply = client.ask("POST", &format!("{path}/attrs"), "*/*", &fragment);
            assert_eq!(reply.status, 204, "{}: {fragment}", reply.text());
        }
        let mut read = client.read(&path, "application/json");
        read["id"] = id.into();
        assert_eq!(read, *posted, "{path}");
        let whole = client.read(&format!("/entities/{}", encoded(id)), "application/json");
        assert_eq!(whole, *posted, "{id}");
    }
    is_well(serving);
}
