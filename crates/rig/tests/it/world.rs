//! The sample world under `data/world` keeps what its README promises.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const KINDS: [&str; 8] = [
    "Property",
    "GeoProperty",
    "Relationship",
    "LanguageProperty",
    "VocabProperty",
    "JsonProperty",
    "ListProperty",
    "ListRelationship",
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../data/world")
}

fn files() -> BTreeMap<String, Vec<Value>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|extension| extension == "jsonld") && name != "context" {
            let text = std::fs::read_to_string(&path).unwrap();
            files.insert(name, serde_json::from_str(&text).unwrap());
        }
    }
    files
}

fn one_or_many(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |values| values.iter().collect())
}

/// Calls `visit` for each attribute instance, sub-attributes included, with its name.
fn attributes<'a>(members: &'a Value, visit: &mut dyn FnMut(&'a str, &'a Value)) {
    const OPAQUE: [&str; 5] = ["value", "json", "languageMap", "objectList", "valueList"];
    for (name, value) in members.as_object().unwrap() {
        if OPAQUE.contains(&name.as_str()) {
            continue;
        }
        for instance in one_or_many(value).into_iter().filter(|instance| instance.is_object()) {
            visit(name, instance);
            if instance.get("coordinates").is_none() {
                attributes(instance, visit);
            }
        }
    }
}

fn terms() -> BTreeSet<String> {
    let text = std::fs::read_to_string(folder().join("context.jsonld")).unwrap();
    let context: Value = serde_json::from_str(&text).unwrap();
    let terms = context["@context"].as_object().unwrap();
    for (term, iri) in terms {
        let expected = if term == "world" { "" } else { term };
        assert_eq!(iri, &format!("https://trifid.dev/ns/world#{expected}"));
    }
    terms.keys().cloned().collect()
}

#[test]
fn there_are_enough_entities_and_each_file_is_its_type() {
    let files = files();
    let entities: usize = files.values().map(Vec::len).sum();
    assert!(files.len() >= 8 && entities >= 200, "{} types, {entities} entities", files.len());
    let mut ids = BTreeSet::new();
    for (name, entities) in &files {
        for entity in entities {
            let id = entity["id"].as_str().unwrap();
            assert!(id.starts_with(&format!("urn:ngsi-ld:{name}:")), "{id} in {name}");
            assert_eq!(one_or_many(&entity["type"])[0], name.as_str(), "{id}");
            assert!(ids.insert(id.to_owned()), "{id} twice");
            assert!(entity.get("@context").is_none(), "{id}");
        }
    }
}

#[test]
fn every_relationship_finds_its_target() {
    let files = files();
    let ids: BTreeSet<&str> = files.values().flatten().map(|entity| entity["id"].as_str().unwrap()).collect();
    let mut found = 0;
    let mut check = |target: &str| {
        assert!(ids.contains(target), "{target}");
        found += 1;
    };
    for entity in files.values().flatten() {
        attributes(entity, &mut |_, instance| {
            instance
                .get("object")
                .map(one_or_many)
                .into_iter()
                .flatten()
                .for_each(|id| check(id.as_str().unwrap()));
            let list = instance.get("objectList").map(one_or_many).into_iter().flatten();
            list.for_each(|item| check(item["object"].as_str().unwrap()));
        });
    }
    assert!(found > 200, "{found}");
}

#[test]
fn every_name_is_a_term_of_the_context() {
    let core = ["location", "observationSpace", "operationSpace"];
    let (files, terms) = (files(), terms());
    assert!(core.iter().all(|name| !terms.contains(*name)), "a core term cannot be defined again");
    let known = |name: &str| assert!(core.contains(&name) || terms.contains(name), "{name}");
    for entity in files.values().flatten() {
        one_or_many(&entity["type"]).into_iter().for_each(|name| known(name.as_str().unwrap()));
        attributes(entity, &mut |name, instance| {
            known(name);
            let vocab = instance.get("vocab").map(one_or_many).into_iter().flatten();
            vocab.for_each(|word| known(word.as_str().unwrap()));
        });
    }
}

#[test]
fn everything_that_the_readme_promises_is_there() {
    let files = files();
    let (mut kinds, mut languages, mut geometries) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut datasets, mut depth) = (0, 0);
    for entity in files.values().flatten() {
        attributes(entity, &mut |_, instance| {
            kinds.extend(instance["type"].as_str().filter(|kind| KINDS.contains(kind)));
            geometries.extend(instance["value"].get("coordinates").and(instance["value"]["type"].as_str()));
            languages.extend(instance["languageMap"].as_object().into_iter().flat_map(|map| map.keys()));
            datasets += usize::from(instance.get("datasetId").is_some());
            depth += usize::from(instance["accuracy"].get("method").is_some());
        });
    }
    assert_eq!(kinds, KINDS.into_iter().collect());
    assert_eq!(geometries, ["LineString", "Point", "Polygon"].into_iter().collect());
    assert!(languages.len() >= 3, "{languages:?}");
    assert!(datasets >= 20 && depth >= 1, "{datasets} {depth}");
    let several_types = files.values().flatten().filter(|entity| entity["type"].is_array()).count();
    let several_scopes = files.values().flatten().filter(|entity| entity["scope"].is_array()).count();
    let concise =
        files.values().flatten().filter(|entity| entity["location"].get("coordinates").is_some()).count();
    assert!(several_types >= 10 && several_scopes >= 20 && concise >= 5);
}

#[test]
fn the_world_stays_small_and_says_whose_it_is() {
    let sizes = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    let total: u64 = sizes.sum();
    assert!(total < 400 * 1024, "{total}");
    let licences = std::fs::read_to_string(folder().join("../LICENSES.md")).unwrap();
    assert!(licences.contains("world/*.jsonld") && licences.contains("CC0-1.0"));
}
