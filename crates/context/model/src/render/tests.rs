use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::json::Doc;
use crate::ld::{CoreVersion, Cores};
use crate::query::project::{self, Members};
use crate::query::{dataset, lang};
use crate::record::Kind;

mod joins;
mod meaning;
pub(crate) mod model;
mod oracle;

use model::{Ent, Inst, NOW, VOCAB, ent, entity, inst, iri};
use oracle::Ask;

/// The parts of a renderer that outlive it.
pub(super) struct World {
    pub(super) cores: Cores,
    pub(super) symbols: Symbols,
}

impl World {
    pub(super) fn new() -> Self {
        World { cores: Cores::new(), symbols: Symbols::new() }
    }

    pub(super) fn renderer<'w>(&'w self, style: &'w Style<'w>) -> Renderer<'w> {
        let context = self.cores.get(CoreVersion::V1_9);
        Renderer { context, symbols: &self.symbols, now: Instant(NOW), style }
    }

    pub(super) fn members(&self, text: &str) -> Members {
        let projection = project::parse("pick", text).unwrap();
        let core = self.cores.get(CoreVersion::V1_9);
        let expand = |name: &str| Ok(core.expand(name).unwrap().into());
        Members::new("pick", &projection, &expand).unwrap()
    }

    pub(super) fn projection(&self, pick: Option<&str>, omit: Option<&str>) -> Projection {
        let [pick, omit] = [pick, omit].map(|text| text.map(|text| self.members(text)));
        Projection::new(pick.as_ref(), omit.as_ref(), &self.symbols)
    }
}

/// Parses an answer; a member that stands twice fails.
pub(super) fn parsed(out: &[u8]) -> Value {
    Doc::parse(out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(out)));
    serde_json::from_slice(out).unwrap()
}

fn rendered(world: &World, style: &Style<'_>, record: &Record) -> Value {
    let mut out = Vec::new();
    world.renderer(style).entity(record, &mut out);
    parsed(&out)
}

/// Renders `ent` in each format.
#[track_caller]
fn check(ent: &Ent, normalized: Value, concise: Value, simplified: Value) {
    let world = World::new();
    let record = ent.record(&world.symbols);
    for (format, expected) in
        [(Format::Normalized, normalized), (Format::Concise, concise), (Format::Simplified, simplified)]
    {
        let style = Style { format, ..Style::default() };
        assert_eq!(rendered(&world, &style, &record), expected, "{format:?}");
    }
}

#[track_caller]
fn check_attribute(inst: Inst, normalized: Value, concise: Value, simplified: Value) {
    let wrap = |value| json!({"id": "urn:x:1", "type": "T", "a": value});
    check(&ent("urn:x:1", "T", vec![("a", inst)]), wrap(normalized), wrap(concise), wrap(simplified));
}

#[test]
fn clause_4_5_2_properties() {
    check_attribute(
        inst(Kind::Property, json!(5)),
        json!({"type": "Property", "value": 5}),
        json!(5),
        json!(5),
    );
    let dated = Inst { observed: Some(0), unit: Some("KMH".into()), ..inst(Kind::Property, json!([1, "x"])) };
    check_attribute(
        dated,
        json!({"type": "Property", "value": [1, "x"], "observedAt": "1970-01-01T00:00:00Z", "unitCode": "KMH"}),
        json!({"value": [1, "x"], "observedAt": "1970-01-01T00:00:00Z", "unitCode": "KMH"}),
        json!([1, "x"]),
    );
}

#[test]
fn clause_4_5_2_3_a_value_that_looks_like_an_attribute_stays_wrapped() {
    for value in [json!({"type": "X"}), json!({"value": 1}), json!([{"object": 1}]), json!({"unitCode": "x"})]
    {
        check_attribute(
            inst(Kind::Property, value.clone()),
            json!({"type": "Property", "value": value}),
            json!({"value": value}),
            value.clone(),
        );
    }
    for value in [json!({"city": "x"}), json!([{"city": "x"}]), json!([]), json!({})] {
        let wrapped = json!({"type": "Property", "value": value});
        check_attribute(inst(Kind::Property, value.clone()), wrapped, value.clone(), value);
    }
}

#[test]
fn clause_4_7_3_geometries_are_those_of_geo_properties() {
    let point = json!({"type": "Point", "coordinates": [1, 2]});
    let geo = json!({"type": "GeoProperty", "value": point});
    check_attribute(inst(Kind::GeoProperty, point.clone()), geo, point.clone(), point.clone());
    let plain = json!({"type": "Property", "value": point});
    check_attribute(inst(Kind::Property, point.clone()), plain.clone(), plain, point);
}

#[test]
fn the_other_kinds() {
    let pairs = [
        (Kind::Relationship, json!("urn:x:2"), json!("urn:x:2")),
        (Kind::Relationship, json!(["urn:x:2", "urn:x:3"]), json!(["urn:x:2", "urn:x:3"])),
        (
            Kind::LanguageProperty,
            json!({"en": "a", "fr": "b"}),
            json!({"languageMap": {"en": "a", "fr": "b"}}),
        ),
        (Kind::JsonProperty, json!({"type": "x"}), json!({"json": {"type": "x"}})),
        (Kind::VocabProperty, json!("male"), json!({"vocab": "male"})),
        (Kind::VocabProperty, json!(["male", "old"]), json!({"vocab": ["male", "old"]})),
        (Kind::ListProperty, json!([1, 2]), json!([1, 2])),
    ];
    for (kind, value, simplified) in pairs {
        let member = kind.value_member();
        let concise = json!({ member: value });
        check_attribute(
            inst(kind, value.clone()),
            json!({"type": kind.name(), member: value}),
            concise,
            simplified,
        );
    }
    let objects = json!([{"object": "urn:x:2"}, {"object": "urn:x:3"}]);
    check_attribute(
        inst(Kind::ListRelationship, objects.clone()),
        json!({"type": "ListRelationship", "objectList": objects}),
        json!({"objectList": ["urn:x:2", "urn:x:3"]}),
        json!(["urn:x:2", "urn:x:3"]),
    );
}

#[test]
fn clause_4_5_5_several_instances() {
    let mut entity = ent("urn:x:1", "T", vec![("a", inst(Kind::Property, json!(5)))]);
    let second = Inst { dataset: Some("urn:d:1".into()), ..inst(Kind::Property, json!({"b": 1})) };
    entity.attributes[0].1.push(second);
    check(
        &entity,
        json!({"id": "urn:x:1", "type": "T", "a": [
            {"type": "Property", "value": 5},
            {"type": "Property", "value": {"b": 1}, "datasetId": "urn:d:1"},
        ]}),
        json!({"id": "urn:x:1", "type": "T", "a": [{"value": 5}, {"value": {"b": 1}, "datasetId": "urn:d:1"}]}),
        json!({"id": "urn:x:1", "type": "T", "a": {"dataset": {"@none": 5, "urn:d:1": {"b": 1}}}}),
    );
    let world = World::new();
    let record = entity.record(&world.symbols);
    let datasets = dataset::DatasetIds::parse("datasetId", "urn:d:1").unwrap();
    let style = Style { format: Format::Simplified, datasets: Some(datasets), ..Style::default() };
    assert_eq!(rendered(&world, &style, &record)["a"], json!({"b": 1}));
}

#[test]
fn clause_4_15_one_language() {
    let world = World::new();
    let street =
        Inst { observed: Some(0), ..inst(Kind::LanguageProperty, json!({"fr": "Place", "nl": "Markt"})) };
    let record = ent("urn:x:1", "T", vec![("street", street)]).record(&world.symbols);
    let preferences = lang::parse("nl-BE,fr;q=0.5").unwrap();
    let at = "1970-01-01T00:00:00Z";
    for (format, expected) in [
        (Format::Normalized, json!({"type": "Property", "value": "Markt", "lang": "nl", "observedAt": at})),
        (Format::Concise, json!({"value": "Markt", "lang": "nl", "observedAt": at})),
        (Format::Simplified, json!("Markt")),
    ] {
        let style = Style { format, lang: Some(&preferences), ..Style::default() };
        assert_eq!(rendered(&world, &style, &record)["street"], expected);
    }
}

#[test]
fn an_entity_without_anything_shown_is_told() {
    let world = World::new();
    let record = ent("urn:x:1", "T", vec![("a", inst(Kind::Property, json!(5)))]).record(&world.symbols);
    let style = Style {
        projection: world.projection(Some("b"), None),
        context: Some(b"\"urn:c\""),
        ..Style::default()
    };
    let mut out = Vec::new();
    assert!(!world.renderer(&style).entity(&record, &mut out));
    assert_eq!(parsed(&out), json!({"@context": "urn:c"}));
    out.clear();
    let renderer = world.renderer(&style);
    renderer.open_list(&mut out);
    assert!(!renderer.item(&record, &mut out));
    renderer.close_list(&mut out);
    assert_eq!(out, b"[]");
}

#[test]
fn lists_and_the_context_in_the_body() {
    let world = World::new();
    let record = ent("urn:x:1", "T", vec![]).record(&world.symbols);
    let mut style = Style { context: Some(b"[\"urn:c\"]"), ..Style::default() };
    let list = |style: &Style<'_>| {
        let (renderer, mut out) = (world.renderer(style), Vec::new());
        renderer.open_list(&mut out);
        assert!(renderer.item(&record, &mut out) && renderer.item(&record, &mut out));
        renderer.close_list(&mut out);
        parsed(&out)
    };
    let one = json!({"id": "urn:x:1", "type": "T", "@context": ["urn:c"]});
    assert_eq!(list(&style), json!([one, one]));
    style.feature = Some(Feature { geometry: None });
    let one = json!({"id": "urn:x:1", "type": "Feature", "geometry": null, "properties": {"type": "T"}});
    assert_eq!(
        list(&style),
        json!({"type": "FeatureCollection", "features": [one, one], "@context": ["urn:c"]})
    );
}

#[test]
fn clause_4_5_16_1_the_geometry_of_a_feature() {
    let world = World::new();
    let point = |n: i32| json!({"type": "Point", "coordinates": [n, n]});
    let geo = |n, dataset: Option<&str>| Inst {
        dataset: dataset.map(str::to_owned),
        ..inst(Kind::GeoProperty, point(n))
    };
    let mut entity = ent("urn:x:1", "T", vec![("speed", inst(Kind::Property, json!(5)))]);
    entity.attributes.push(("place".into(), vec![geo(1, Some("urn:d:1")), geo(2, None)]));
    entity.attributes.push(("other".into(), vec![geo(3, Some("urn:d:1")), geo(4, Some("urn:d:2"))]));
    entity.attributes.push(("only".into(), vec![geo(5, Some("urn:d:1"))]));
    let record = entity.record(&world.symbols);
    let datasets = dataset::DatasetIds::parse("datasetId", "urn:d:2,urn:d:1").unwrap();
    for (name, datasets, expected) in [
        ("place", None, point(2)),
        ("place", Some(datasets.clone()), point(1)),
        ("other", None, Value::Null),
        ("other", Some(datasets), point(3)),
        ("only", None, point(5)),
        ("speed", None, Value::Null),
        ("missing", None, Value::Null),
    ] {
        let feature = Some(Feature { geometry: world.symbols.get(&iri(name)) });
        let style = Style { feature, datasets, format: Format::Simplified, ..Style::default() };
        let value = rendered(&world, &style, &record);
        assert_eq!((&value["geometry"], &value["type"]), (&expected, &json!("Feature")), "{name}");
        assert!(value["properties"].get("id").is_none());
    }
}

#[test]
fn one_attribute_alone() {
    let world = World::new();
    let mut entity = ent("urn:x:1", "T", vec![("a", inst(Kind::Property, json!(5)))]);
    let record = entity.record(&world.symbols);
    entity.attributes[0].1[0].expires = Some(NOW);
    let expired = entity.record(&world.symbols);
    let (style, name) = (Style::default(), world.symbols.get(&iri("a")).unwrap());
    let renderer = world.renderer(&style);
    let mut out = Vec::new();
    assert!(renderer.shows_any_attribute(&record) && !renderer.shows_any_attribute(&expired));
    assert!(renderer.attribute(&record, name, &mut out));
    assert_eq!(parsed(&out), json!({"type": "Property", "value": 5}));
    out.clear();
    assert!(!renderer.attribute(&expired, name, &mut out));
    assert!(out.is_empty());
}

/// Which members, by name.
fn some_names() -> impl Strategy<Value = Vec<String>> {
    let names = vec!["id", "type", "scope", "a", "b", "speed", "name", "createdAt", "unheard"];
    prop::sample::subsequence(names, 1..5).prop_map(|names| names.into_iter().map(str::to_owned).collect())
}

fn ask() -> impl Strategy<Value = Ask> {
    let format = prop::sample::select(vec![Format::Normalized, Format::Concise, Format::Simplified]);
    let lang = prop::option::of(prop::sample::select(vec!["en", "fr;q=0.5,en;q=0.2", "*"]));
    let datasets = prop::sample::subsequence(vec![None, Some("urn:d:1".to_owned())], 1..3);
    let omit = prop_oneof![2 => Just(Vec::new()), 1 => some_names()];
    (format, any::<bool>(), lang, prop::option::of(some_names()), omit, prop::option::weighted(0.3, datasets))
        .prop_map(|(format, sys_attrs, lang, pick, mut omit, datasets)| {
            omit.retain(|name| pick.as_ref().is_none_or(|pick| !pick.contains(name)));
            let lang = lang.map(|text| lang::parse(text).unwrap());
            Ask { format, sys_attrs, lang, pick, omit, datasets }
        })
}

/// Renders `ent` as `ask` says.
fn answer(ent: &Ent, ask: &Ask) -> Value {
    let world = World::new();
    let record = ent.record(&world.symbols);
    let pick = ask.pick.as_ref().map(|names| names.join(","));
    let omit = Some(ask.omit.join(",")).filter(|names| !names.is_empty());
    let datasets = ask.datasets.as_ref().map(|datasets| {
        let names = datasets.iter().map(|dataset| dataset.as_deref().unwrap_or("@none"));
        dataset::DatasetIds::from_items("datasetId", names).unwrap()
    });
    let style = Style {
        format: ask.format,
        sys_attrs: ask.sys_attrs,
        lang: ask.lang.as_ref(),
        projection: world.projection(pick.as_deref(), omit.as_deref()),
        datasets,
        feature: None,
        context: None,
    };
    rendered(&world, &style, &record)
}

proptest! {
    #[test]
    fn an_answer_is_what_the_oracle_says(ent in entity(), ask in ask()) {
        let answer = answer(&ent, &ask);
        if ask.format != Format::Concise {
            prop_assert_eq!(answer, ask.entity(&ent));
            return Ok(());
        }
        let mut normalized = answer.clone();
        for (name, value) in normalized.as_object_mut().unwrap() {
            if ent.attributes.iter().any(|(own, _)| own == name) {
                *value = oracle::normalize(value);
            }
        }
        prop_assert_eq!(normalized, ask.entity(&ent), "concise: {}", answer);
    }

    #[test]
    fn a_context_with_full_names_changes_names_alone(ent in entity()) {
        let world = World::new();
        let record = ent.record(&world.symbols);
        let (identity, style) = (crate::ld::Context::identity(), Style::default());
        let full = Renderer { context: &identity, ..world.renderer(&style) };
        let (mut long, mut short) = (Vec::new(), Vec::new());
        full.entity(&record, &mut long);
        world.renderer(&style).entity(&record, &mut short);
        parsed(&long);
        let shortened = String::from_utf8(long).unwrap().replace(VOCAB, "");
        prop_assert_eq!(shortened, String::from_utf8(short).unwrap());
    }
}
