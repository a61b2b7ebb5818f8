//! Entities with many attributes: the same outcomes as small ones, and bounds on what one entity may become.

use proptest::prelude::*;

use super::*;
use crate::limits::{MAX_ENTITY_BYTES, MAX_INSTANCES, MAX_SCOPES, MAX_SUBS, MAX_TYPES};

/// Attributes beside those that a case is about: enough for instances to be found by table.
const PADDING: usize = 50;

fn padding(from: usize) -> String {
    (from..PADDING).map(|n| format!(",\"p{n}\":{n}")).collect()
}

/// One member of an input: an attribute of one or more instances.
fn member() -> impl Strategy<Value = (usize, Vec<(usize, Option<u8>)>)> {
    let instances = prop::collection::btree_map(0..3_usize, prop::option::weighted(0.8, any::<u8>()), 1..3);
    (0..4_usize, instances.prop_map(|instances| instances.into_iter().collect()))
}

/// Members of different names as JSON; a value that is absent is the NGSI-LD Null.
fn members() -> impl Strategy<Value = String> {
    prop::collection::vec(member(), 0..4).prop_map(|members| {
        let mut seen = [false; 4];
        let mut out = String::new();
        for (name, instances) in members {
            if std::mem::replace(&mut seen[name], true) {
                continue;
            }
            let instances: Vec<String> = instances.iter().map(instance).collect();
            out += &format!(",\"a{name}\":[{}]", instances.join(","));
        }
        out
    })
}

fn instance(&(dataset, value): &(usize, Option<u8>)) -> String {
    let value = value.map_or_else(|| format!("\"{}\"", crate::name::NULL), |value| value.to_string());
    match dataset {
        0 => format!("{{\"value\":{value}}}"),
        n => format!("{{\"value\":{value},\"datasetId\":\"urn:d:{n}\"}}"),
    }
}

fn stored(members: &str) -> String {
    members.replace(&format!("\"{}\"", crate::name::NULL), "0")
}

/// The entity's members without the padding, as text in their order, and what was touched.
fn seen(world: &World, old: &Record, outcome: &Outcome) -> (String, Vec<Touched>) {
    let record = outcome.record.as_ref().unwrap_or(old);
    let padding = |name: Symbol| world.symbols.name(name).starts_with('p');
    let kept = record.instances().filter(|own| !padding(own.name()));
    let text =
        kept.map(|own| format!("{}{:?}={} ", world.symbols.name(own.name()), own.dataset(), own.value()));
    let touched = outcome.touched.iter().filter(|touched| !padding(touched.name)).cloned().collect();
    (text.collect(), touched)
}

fn apply(world: &World, old: &Record, how: usize, input: &str) -> Outcome {
    let doc = Doc::parse(input.as_bytes()).unwrap();
    let mode = [UPDATE, UPDATE, UPDATE, MERGE, CREATE][how];
    let input = world.reader(mode).entity(doc.root()).unwrap();
    match how {
        0 => append(old, input, NOW, false),
        1 => append(old, input, NOW, true),
        2 => update(old, input, NOW),
        3 => merge(old, input, Merge::default(), NOW),
        _ => replace(old, input, NOW),
    }
    .unwrap()
}

proptest! {
    #[test]
    fn a_wide_entity_changes_like_a_narrow_one(how in 0..5_usize, old in members(), input in members(), rest: bool) {
        let world = World::new();
        let old = stored(&old);
        let input = if how == 4 { stored(&input) } else { input };
        let narrow = world.create(&format!("{{\"id\":\"urn:a:1\",\"type\":\"T\"{old}}}"));
        let wide = world.create(&format!("{{\"id\":\"urn:a:1\",\"type\":\"T\"{old}{}}}", padding(0)));
        let more = if rest { padding(1) } else { String::new() };
        let one = apply(&world, &narrow, how, &format!("{{\"type\":\"T\"{input}}}"));
        let other = apply(&world, &wide, how, &format!("{{\"type\":\"T\"{input}{more}}}"));
        prop_assert_eq!(seen(&world, &narrow, &one), seen(&world, &wide, &other));
        prop_assert_eq!(one.not_updated, other.not_updated.into_iter().filter(|(name, _)| !name.starts_with('p')).collect::<Vec<_>>());
    }
}

/// Appends (or merges) `inputs` one after the other until one is refused; the refusal.
fn until_refused(start: &str, how: usize, inputs: impl Iterator<Item = String>) -> String {
    let world = World { budget: Budget::new(100_000), ..World::new() };
    let mut record = world.create(start);
    for text in inputs {
        let doc = Doc::parse(text.as_bytes()).unwrap();
        let input = world.reader([CREATE, MERGE][how]).entity(doc.root()).unwrap();
        let outcome = match how {
            0 => append(&record, input, NOW, true),
            _ => merge(&record, input, Merge::default(), NOW),
        };
        match outcome {
            Ok(outcome) => record = outcome.record.unwrap(),
            Err(error) => return error.to_string(),
        }
    }
    panic!("nothing was refused");
}

#[test]
fn an_entity_does_not_grow_without_bound() {
    let list =
        |make: &dyn Fn(usize) -> String, count: usize| (0..count).map(make).collect::<Vec<_>>().join(",");
    let scopes =
        |round: usize| format!("{{\"scope\":[{}]}}", list(&|n| format!("\"/s{round}_{n}\""), MAX_SCOPES));
    let types =
        |round: usize| format!("{{\"type\":[{}]}}", list(&|n| format!("\"T{round}_{n}\""), MAX_TYPES / 2));
    let datasets = |round: usize| {
        let one = |n: usize| format!("{{\"value\":1,\"datasetId\":\"urn:d:{round}_{n}\"}}");
        format!("{{\"a\":[{}]}}", list(&one, MAX_INSTANCES / 2))
    };
    let subs = |round: usize| {
        format!(
            "{{\"a\":{{\"type\":\"Property\",{}}}}}",
            list(&|n| format!("\"s{round}_{n}\":1"), MAX_SUBS / 2)
        )
    };
    let text = "x".repeat(MAX_ENTITY_BYTES / 8);
    let bytes = |round: usize| format!("{{\"a\":{{\"value\":{{\"m{round}\":\"{text}\"}}}}}}");
    let start = r#"{"id":"urn:a:1","type":"T","scope":"/a","a":{"value":{"m":1}}}"#;
    for (how, make, expected) in [
        (
            0,
            &scopes as &dyn Fn(usize) -> String,
            format!("the entity would have more than {MAX_SCOPES} scopes"),
        ),
        (0, &types, format!("the entity would have more than {MAX_TYPES} types")),
        (0, &datasets, format!("the entity would have more than {MAX_INSTANCES} attribute instances")),
        (1, &subs, format!("a: more than {MAX_SUBS} sub-attributes")),
        (1, &bytes, format!("the entity would have more than {MAX_ENTITY_BYTES} bytes")),
    ] {
        assert_eq!(until_refused(start, how, (0..10).map(make)), expected);
    }
}

#[test]
fn a_fragment_is_held_to_the_kind_that_the_attribute_has() {
    let world = World::new();
    let types: Vec<String> = (0..200).map(|n| format!("\"O{n}\"")).collect();
    let types = types.join(",");
    let old = world.create(&format!(
        "{{\"id\":\"urn:a:1\",\"type\":\"T\",\"r\":{{\"object\":\"urn:a:2\",\"objectType\":[{types}]}},\
         \"p\":{{\"value\":1,\"valueType\":[{types}]}}}}"
    ));
    for (name, fragment, expected) in [
        ("r", r#"{"unitCode":"KMH"}"#.to_owned(), "r.unitCode: a Relationship has no unit"),
        ("r", format!("{{\"valueType\":[{types}]}}"), "r: more than 255 types"),
        ("r", r#"{"valueType":"x"}"#.to_owned(), "r.valueType: belongs to properties alone"),
        ("p", r#"{"objectType":"x"}"#.to_owned(), "p.objectType: belongs to relationships alone"),
    ] {
        let doc = Doc::parse(fragment.as_bytes()).unwrap();
        let mut read = world.reader(UPDATE).attribute(name.into(), doc.root()).unwrap();
        let error = partial_update(&old, read.remove(0), NOW).unwrap_err();
        assert_eq!(error.to_string(), expected, "{fragment}");
    }
}
