//! Each operation on small entities, by clause.

use super::*;
use crate::input::{Mode, Reader};
use crate::json::Doc;
use crate::ld::Context;
use crate::render::{Renderer, Style};
use crate::symbol::{Budget, Symbols};

mod wide;

struct World {
    symbols: Symbols,
    budget: Budget,
    context: std::sync::Arc<Context>,
}

const CREATE: Mode = Mode { nulls: false, nested_nulls: false, simplified: false };
const UPDATE: Mode = Mode { nulls: true, nested_nulls: false, simplified: false };
const MERGE: Mode = Mode { nulls: true, nested_nulls: true, simplified: false };
const NOW: Instant = Instant(2_000_000);

impl World {
    fn new() -> Self {
        World { symbols: Symbols::new(), budget: Budget::new(1000), context: Context::identity().into() }
    }

    fn reader(&self, mode: Mode) -> Reader<'_> {
        Reader { context: &self.context, symbols: &self.symbols, budget: &self.budget, mode }
    }

    fn create(&self, text: &str) -> Record {
        let doc = Doc::parse(text.as_bytes()).unwrap();
        create(self.reader(CREATE).entity(doc.root()).unwrap(), Instant(1_000_000)).unwrap()
    }

    fn show(&self, record: &Record) -> serde_json::Value {
        let mut out = Vec::new();
        let renderer = Renderer {
            context: &self.context,
            symbols: &self.symbols,
            style: &Style::default(),
            now: Instant(0),
        };
        renderer.entity(record, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    fn check(
        &self,
        old: &str,
        mode: Mode,
        input: &str,
        change: impl FnOnce(&Record, EntityInput<'_>) -> Result<Outcome, Invalid>,
        expected: &str,
    ) -> Outcome {
        let old = self.create(old);
        let doc = Doc::parse(input.as_bytes()).unwrap();
        let outcome = change(&old, self.reader(mode).entity(doc.root()).unwrap()).unwrap();
        let record = outcome.record.as_ref().unwrap_or(&old);
        let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
        assert_eq!(self.show(record), expected, "{input}");
        outcome
    }
}

const OLD: &str = r#"{"id":"urn:a:1","type":"T","scope":"/a","temp":{"type":"Property","value":25,"unitCode":"CEL",
    "observedAt":"2022-03-14T01:59:26.535Z"},"rel":{"type":"Relationship","object":"urn:b:1"}}"#;

fn with_temp(temp: &str) -> String {
    format!(
        r#"{{"id":"urn:a:1","type":"T","scope":"/a","temp":{temp},"rel":{{"type":"Relationship","object":"urn:b:1"}}}}"#
    )
}

#[test]
fn update_replaces_whole_attributes_5_6_2() {
    let world = World::new();
    let expected = r#"{"id":"urn:a:1","type":"T","scope":"/a","temp":{"type":"Property","value":100},
        "rel":{"type":"Relationship","object":"urn:b:1"},"new":{"type":"Property","value":1}}"#;
    let input = r#"{"temp":{"value":100},"new":1,"gone":"urn:ngsi-ld:null"}"#;
    let outcome = world.check(OLD, UPDATE, input, |o, i| update(o, i, NOW), expected);
    assert_eq!(outcome.not_updated, [("gone".to_owned(), MISSING)]);
    assert_eq!(outcome.touched.len(), 2);
    let added = with_temp(
        r#"[{"type":"Property","value":25,"unitCode":"CEL","observedAt":"2022-03-14T01:59:26.535Z"},
            {"type":"Property","value":30,"datasetId":"urn:d:1"}]"#,
    );
    let input = r#"{"temp":{"value":30,"datasetId":"urn:d:1"}}"#;
    world.check(OLD, UPDATE, input, |o, i| update(o, i, NOW), &added);
}

#[test]
fn a_null_deletes_in_updates_and_is_refused_elsewhere_5_5_4() {
    let world = World::new();
    let expected =
        r#"{"id":"urn:a:1","type":"T","scope":"/a","rel":{"type":"Relationship","object":"urn:b:1"}}"#;
    for input in [r#"{"temp":{"value":"urn:ngsi-ld:null"}}"#, r#"{"temp":"urn:ngsi-ld:null"}"#] {
        world.check(OLD, UPDATE, input, |o, i| update(o, i, NOW), expected);
        let doc = Doc::parse(input.as_bytes()).unwrap();
        assert!(world.reader(CREATE).entity(doc.root()).is_err(), "{input}");
    }
}

#[test]
fn append_keeps_what_exists_when_told_to_5_6_3() {
    let world = World::new();
    let with_new = |temp: &str, scope: &str| {
        format!(
            r#"{{"id":"urn:a:1","type":["T","U"],"scope":{scope},"temp":{temp},
            "rel":{{"type":"Relationship","object":"urn:b:1"}},"n":{{"type":"Property","value":1}}}}"#
        )
    };
    let input = r#"{"type":"U","scope":"/b","temp":1,"n":1}"#;
    let replaced = with_new(r#"{"type":"Property","value":1}"#, r#""/b""#);
    world.check(OLD, CREATE, input, |o, i| append(o, i, NOW, false), &replaced);
    let old = r#"{"type":"Property","value":25,"unitCode":"CEL","observedAt":"2022-03-14T01:59:26.535Z"}"#;
    let kept = with_new(old, r#"["/a","/b"]"#);
    let outcome = world.check(OLD, CREATE, input, |o, i| append(o, i, NOW, true), &kept);
    assert_eq!(outcome.not_updated, [("temp".to_owned(), EXISTS)]);
}

#[test]
fn merge_goes_to_any_depth_5_5_12() {
    let world = World::new();
    let old = r#"{"id":"urn:a:1","type":"T","addr":{"type":"Property","value":{"street":"S","country":"G"},
        "src":{"type":"Property","value":1,"deep":{"type":"Property","value":2}}}}"#;
    let input = r#"{"addr":{"value":{"street":"P","country":"urn:ngsi-ld:null"},"src":{"type":"Property","deep":"urn:ngsi-ld:null"}}}"#;
    let expected = r#"{"id":"urn:a:1","type":"T","addr":{"type":"Property","value":{"street":"P"},
        "src":{"type":"Property","value":1}}}"#;
    world.check(old, MERGE, input, |o, i| merge(o, i, Merge::default(), NOW), expected);
}

#[test]
fn merge_may_not_change_the_kind_5_5_12() {
    let world = World::new();
    let old = world.create(OLD);
    for input in [r#"{"temp":{"type":"Relationship","object":"urn:c:1"}}"#, r#"{"rel":{"value":1}}"#] {
        let doc = Doc::parse(input.as_bytes()).unwrap();
        let input = world.reader(MERGE).entity(doc.root()).unwrap();
        assert!(merge(&old, input, Merge::default(), NOW).is_err());
    }
}

#[test]
fn merge_puts_a_string_under_its_language_6_5_3_4() {
    let world = World::new();
    let old = r#"{"id":"urn:a:1","type":"T","street":{"type":"LanguageProperty","languageMap":{"fr":"Grand Place"}}}"#;
    let expected = r#"{"id":"urn:a:1","type":"T","street":{"type":"LanguageProperty",
        "languageMap":{"fr":"Grand Place","nl":"Grote Markt"}}}"#;
    let how = Merge { lang: Some("nl"), observed: None };
    world.check(old, MERGE, r#"{"street":"Grote Markt"}"#, |o, i| merge(o, i, how, NOW), expected);
}

fn attribute<'v>(world: &World, doc: &'v Doc<'v>, mode: Mode) -> Vec<AttributeInput<'v>> {
    world.reader(mode).attribute("temp".into(), doc.root()).unwrap()
}

#[test]
fn partial_update_overwrites_members_5_5_8() {
    let world = World::new();
    let old = world.create(OLD);
    let doc =
        Doc::parse(br#"{"value":100,"observedAt":"2022-03-14T13:00:00.000Z","acc":{"value":1}}"#).unwrap();
    let instance = attribute(&world, &doc, UPDATE).pop().unwrap();
    let outcome = partial_update(&old, instance, NOW).unwrap();
    let expected = with_temp(
        r#"{"type":"Property","value":100,"unitCode":"CEL","observedAt":"2022-03-14T13:00:00.000Z",
            "acc":{"type":"Property","value":1}}"#,
    );
    let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let record = outcome.record.unwrap();
    assert_eq!(world.show(&record), expected);
    assert_eq!(record.modified(), NOW);
    assert_eq!(record.created(), Instant(1_000_000));
    let temp = record.instances().next().unwrap();
    assert_eq!((temp.created(), temp.modified()), (Instant(1_000_000), NOW));

    let doc = Doc::parse(br#"{"acc":{"value":1}}"#).unwrap();
    let outcome = partial_update(&old, attribute(&world, &doc, UPDATE).pop().unwrap(), NOW).unwrap();
    assert_eq!(world.show(&outcome.record.unwrap())["temp"]["acc"]["value"], 1, "no bare value");
}

#[test]
fn a_missing_instance_is_reported_5_6_4() {
    let world = World::new();
    let old = world.create(OLD);
    let doc = Doc::parse(br#"{"value":1,"datasetId":"urn:d:9"}"#).unwrap();
    let instance = attribute(&world, &doc, UPDATE).pop().unwrap();
    assert_eq!(partial_update(&old, instance, NOW).unwrap_err(), Refused::NoAttribute("temp".into()));
}

#[test]
fn rewriting_the_same_content_is_told_apart() {
    let world = World::new();
    let old = world.create(OLD);
    for (text, changed) in [(r#"{"value":25}"#, false), (r#"{"value":26}"#, true)] {
        let doc = Doc::parse(text.as_bytes()).unwrap();
        let instance = attribute(&world, &doc, UPDATE).pop().unwrap();
        assert_eq!(partial_update(&old, instance, NOW).unwrap().touched[0].changed, changed, "{text}");
    }
}

#[test]
fn delete_takes_the_instance_asked_for_5_6_5() {
    let world = World::new();
    let old = world.create(
        r#"{"id":"urn:a:1","type":"T","temp":[{"type":"Property","value":1},
            {"type":"Property","value":2,"datasetId":"urn:d:1"}]}"#,
    );
    let temp = world.symbols.get("temp").unwrap();
    for (which, left) in [
        (Which::Default, r#"{"type":"Property","value":2,"datasetId":"urn:d:1"}"#),
        (Which::Dataset("@none"), r#"{"type":"Property","value":2,"datasetId":"urn:d:1"}"#),
        (Which::Dataset("urn:d:1"), r#"{"type":"Property","value":1}"#),
    ] {
        let record = delete_attribute(&old, temp, "temp", which, NOW).unwrap().record.unwrap();
        let left: serde_json::Value = serde_json::from_str(left).unwrap();
        assert_eq!(world.show(&record)["temp"], left, "{which:?}");
    }
    let record = delete_attribute(&old, temp, "temp", Which::All, NOW).unwrap().record.unwrap();
    assert!(!record.has(temp));
    assert!(delete_attribute(&old, temp, "temp", Which::Dataset("urn:d:2"), NOW).is_err());
}

#[test]
fn replace_keeps_the_creation_time_alone_5_6_18() {
    let world = World::new();
    let old = world.create(OLD);
    let doc = Doc::parse(br#"{"id":"urn:a:1","type":"U","n":1}"#).unwrap();
    let outcome = replace(&old, world.reader(CREATE).entity(doc.root()).unwrap(), NOW).unwrap();
    let record = outcome.record.unwrap();
    let expected = serde_json::json!({"id":"urn:a:1","type":"U","n":{"type":"Property","value":1}});
    assert_eq!(world.show(&record), expected);
    assert_eq!((record.created(), record.modified()), (Instant(1_000_000), NOW));
    let deleted = outcome.touched.iter().filter(|touched| touched.effect == Effect::Deleted).count();
    assert_eq!((outcome.touched.len(), deleted), (3, 2));

    for members in [r#""type":["T","U"],"scope":"/a""#, r#""type":"T","scope":["/b","/c"]"#] {
        let input = format!(r#"{{"id":"urn:a:1",{members}}}"#);
        let old = r#"{"id":"urn:a:1","type":"T","scope":"/a"}"#;
        world.check(old, CREATE, &input, |o, i| replace(o, i, NOW), &input);
    }
}

#[test]
fn replace_writes_also_where_there_are_no_attributes_5_6_18() {
    let world = World::new();
    let old = r#"{"id":"urn:a:1","type":"T","scope":"/a"}"#;
    let new = r#"{"id":"urn:a:1","type":"U","scope":"/b"}"#;
    world.check(old, CREATE, new, |o, i| replace(o, i, NOW), new);
}

#[test]
fn what_has_expired_is_removed_4_22() {
    let world = World::new();
    let old = world.create(
        r#"{"id":"urn:a:1","type":"T","gone":{"value":1,"expiresAt":"1970-01-01T00:00:01Z"},
            "stays":{"value":2,"expiresAt":"1970-01-01T00:00:03Z"}}"#,
    );
    let outcome = remove_expired(&old, NOW);
    assert_eq!(outcome.touched.len(), 1);
    assert_eq!(outcome.record.unwrap().attribute_names().count(), 1);
}

#[test]
fn two_spellings_of_one_name_are_refused() {
    let mut world = World::new();
    world.context = crate::ld::Cores::new().get(crate::ld::CoreVersion::LATEST).clone();
    let vocab = crate::ld::DEFAULT_VOCAB;
    for text in [
        format!(r#"{{"id":"urn:a:1","type":"T","n":1,"m":2,"{vocab}n":3}}"#),
        format!(r#"{{"id":"urn:a:1","type":"T","n":1,"{vocab}n":3}}"#),
        format!(
            r#"{{"id":"urn:a:1","type":"T","n":[{{"value":1}},{{"value":2,"datasetId":"urn:d:1"}}],"{vocab}n":3}}"#
        ),
        format!(r#"{{"id":"urn:a:1","type":"T","m":{{"value":1,"n":1,"x":2,"{vocab}n":3}}}}"#),
    ] {
        let doc = Doc::parse(text.as_bytes()).unwrap();
        let error = world.reader(CREATE).entity(doc.root()).unwrap_err();
        assert!(error.to_string().ends_with("expands to the same name as another member"), "{error}");
    }
}

#[test]
fn instances_of_one_sub_attribute_stay_neighbours() {
    let world = World::new();
    let old = r#"{"id":"urn:a:1","type":"T","n":{"value":1,"a":{"value":1},"b":{"value":2}}}"#;
    let input = r#"{"n":{"type":"Property","a":{"value":3,"datasetId":"urn:d:1"}}}"#;
    let outcome = world.check(
        old,
        MERGE,
        input,
        |o, i| merge(o, i, Merge::default(), NOW),
        r#"{"id":"urn:a:1","type":"T","n":{"type":"Property","value":1,
            "a":[{"type":"Property","value":1},{"type":"Property","value":3,"datasetId":"urn:d:1"}],
            "b":{"type":"Property","value":2}}}"#,
    );
    let record = outcome.record.unwrap();
    let names: Vec<Symbol> = record.instances().next().unwrap().subs().map(|sub| sub.name()).collect();
    assert_eq!(names[0], names[1]);
}
