use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::query::names::testing::expand;
use crate::query::testing::World;

fn order(order_by: &str, from: Option<&str>, geometry: Option<&str>, collation: Collation) -> Ordering {
    let reference = Ordering::reference(geometry, from).unwrap();
    Ordering::new(&parse(order_by).unwrap(), reference, collation, &expand()).unwrap()
}

/// Sorts entities and gives the last part of their identifiers.
fn sorted(world: &World, ordering: &Ordering, entities: &[Value]) -> String {
    let mut keyed: Vec<(SortKey, Record)> = entities
        .iter()
        .map(|entity| world.record(entity))
        .map(|record| (ordering.key(&record, &world.symbols), record))
        .collect();
    keyed.sort_by(|(a, _), (b, _)| ordering.compare(a, b));
    keyed
        .iter()
        .map(|(_, record)| record.id().rsplit(':').next().unwrap().to_owned())
        .collect::<Vec<_>>()
        .join("")
}

#[expect(clippy::needless_pass_by_value, reason = "reads as data")]
fn entity(id: &str, attribute: Value) -> Value {
    json!({"id": format!("urn:e:{id}"), "type": "T", "a": attribute})
}

#[expect(clippy::needless_pass_by_value, reason = "reads as data")]
fn property(id: &str, value: Value) -> Value {
    entity(id, json!({"type": "Property", "value": value}))
}

#[test]
fn clause_4_23_3_the_grammar_is_read_and_printed() {
    for (text, printed) in [
        ("name", "name;asc"),
        ("name,age;desc", "name;asc,age;desc"),
        ("address[city]", "address[city];asc"),
        ("name.observedAt", "name.observedAt;asc"),
        ("location;dist-asc", "location;dist-asc"),
        ("type;asc,name.subProperty;desc, name ; asc", "type;asc,name.subProperty;desc,name;asc"),
    ] {
        let terms = parse(text).unwrap();
        let back: Vec<String> = terms.iter().map(ToString::to_string).collect();
        assert_eq!(back.join(","), printed);
        assert_eq!(parse(printed), Ok(terms));
    }
    for (text, error) in [
        ("", "orderBy: expected an attribute name at character 1"),
        ("name,,age", "orderBy: expected an attribute name at character 6"),
        ("name;up", "orderBy: expected asc, desc, dist-asc or dist-desc at character 6"),
        ("name age", "orderBy: expected \";\", \",\" or the end at character 6"),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), error);
    }
    assert!(parse(&vec!["a"; 17].join(",")).is_err());
}

#[test]
fn clause_4_23_2_data_types_follow_each_other() {
    let world = World::new();
    let entities = [
        json!({"id": "urn:e:m", "type": "T"}),
        entity("l", json!({"type": "JsonProperty", "json": null})),
        property("k", json!({"@type": "DateTime", "@value": "2020-01-01T00:00:00Z"})),
        property("j", json!({"@type": "Date", "@value": "2020-01-01"})),
        entity("i", json!({"type": "Property", "value": "12:00:00Z", "valueType": "Time"})),
        property("h", json!(true)),
        property("g", json!(false)),
        property("f", json!([1])),
        property("e", json!({"x": 1})),
        property("d", json!("b")),
        property("c", json!("a")),
        property("b", json!(10)),
        property("a", json!(-2.5)),
    ];
    let ascending = order("a", None, None, Collation::CodePoint);
    assert_eq!(sorted(&world, &ascending, &entities), "abcdefghijklm");
    let descending = order("a;desc", None, None, Collation::CodePoint);
    assert_eq!(sorted(&world, &descending, &entities), "kjihgfedcbalm");
}

#[test]
fn clause_4_23_1_members_sub_attributes_and_system_attributes() {
    let world = World::new();
    let building = |n: usize, sub: u32| {
        let city = ["", "B", "A", "C"][n];
        json!({"id": format!("urn:e:{n}"), "type": if n == 3 { "A" } else { "B" }, "createdAt": format!("202{sub}-01-01T00:00:00Z"),
            "name": {"type": "Property", "value": "x", "createdAt": format!("202{sub}-01-01T00:00:00Z"),
                "sub": {"type": "Property", "value": sub}},
            "address": {"type": "Property", "value": {"city": city}}})
    };
    let entities = [building(1, 2), building(2, 3), building(3, 1)];
    for (order_by, expected) in [
        ("id", "123"),
        ("id;desc", "321"),
        ("createdAt", "312"),
        ("name.createdAt;desc", "213"),
        ("name.sub", "312"),
        ("address[city]", "213"),
        ("type,id;desc", "321"),
        ("name,type,name.sub;desc", "321"),
        ("unknown", "123"),
    ] {
        let ordering = order(order_by, None, None, Collation::root());
        assert_eq!(sorted(&world, &ordering, &entities), expected, "{order_by}");
    }
    assert!(order("id;desc", None, None, Collation::root()).is_by_id());
    assert!(!order("id,name", None, None, Collation::root()).is_by_id());
}

#[test]
fn clause_4_23_1_strings_are_collated() {
    let world = World::new();
    let entities = [property("1", json!("b")), property("2", json!("á")), property("3", json!("A"))];
    assert_eq!(sorted(&world, &order("a", None, None, Collation::root()), &entities), "321");
    assert_eq!(sorted(&world, &order("a", None, None, Collation::CodePoint), &entities), "312");
}

#[test]
fn clause_4_23_3_distance_orders_geo_properties_first() {
    let world = World::new();
    let point = |id: &str, x: f64, y: f64| {
        entity(id, json!({"type": "GeoProperty", "value": {"type": "Point", "coordinates": [x, y]}}))
    };
    let entities = [
        property("4", json!(7)),
        point("3", 10.0, 45.0),
        point("2", 9.0, 41.0),
        point("1", 8.01, 40.01),
        json!({"id": "urn:e:5", "type": "T"}),
    ];
    assert_eq!(
        sorted(&world, &order("a;dist-asc", Some("[8,40]"), None, Collation::root()), &entities),
        "12345"
    );
    assert_eq!(
        sorted(&world, &order("a;dist-desc", Some("[8,40]"), None, Collation::root()), &entities),
        "43215"
    );
    let line = order("a;dist-asc", Some("[[10,45],[10,44]]"), Some("LineString"), Collation::root());
    assert_eq!(sorted(&world, &line, &entities), "32145");
}

#[test]
fn clause_5_7_2_4_distance_needs_a_place() {
    let terms = parse("location;dist-asc").unwrap();
    let error = Ordering::new(&terms, None, Collation::root(), &expand()).unwrap_err();
    assert_eq!(error.to_string(), "orderFrom: required by dist-asc and dist-desc");
    assert_eq!(Ordering::reference(None, Some("8,40")).unwrap_err().parameter, "orderFrom");
    assert_eq!(Ordering::reference(Some("Blob"), Some("[8,40]")).unwrap_err().parameter, "orderGeometry");
}

#[test]
fn the_default_instance_is_sorted_by() {
    let world = World::new();
    let instances = |id: &str, default: i32, other: i32| {
        entity(
            id,
            json!([{"type": "Property", "value": other, "datasetId": "urn:d:1"}, {"type": "Property", "value": default}]),
        )
    };
    let entities = [instances("1", 2, 1), instances("2", 1, 5)];
    assert_eq!(sorted(&world, &order("a", None, None, Collation::root()), &entities), "21");
    let language = |id: &str, en: &str| {
        entity(id, json!({"type": "LanguageProperty", "languageMap": {"@none": "x", "en": en}}))
    };
    let entities = [language("1", "b"), language("2", "a")];
    assert_eq!(sorted(&world, &order("a[en]", None, None, Collation::root()), &entities), "21");
    assert_eq!(sorted(&world, &order("a", None, None, Collation::root()), &entities), "12");
}

proptest! {
    #[test]
    fn any_text_is_answered_and_printing_reads_back(text in "[ab;,.\\[\\]dist asc-]{0,16}") {
        if let Ok(terms) = parse(&text) {
            let printed: Vec<String> = terms.iter().map(ToString::to_string).collect();
            prop_assert_eq!(parse(&printed.join(",")), Ok(terms));
        }
    }

    #[test]
    fn the_order_is_total(values in prop::collection::vec(0..12_usize, 3)) {
        let samples = [json!(1), json!(2), json!("a"), json!("b"), json!(true), json!({"x": 1}), json!([1]), json!([2]), Value::Null,
            json!({"@type": "DateTime", "@value": "2020-01-01T00:00:00Z"}), json!("2020-01-01"), json!(-0.0)];
        let world = World::new();
        for order_by in ["a", "a;desc"] {
            let ordering = order(order_by, None, None, Collation::root());
            let keys: Vec<SortKey> = values.iter()
                .map(|index| world.record(&entity("1", json!({"type": "JsonProperty", "json": samples[*index]}))))
                .map(|record| ordering.key(&record, &world.symbols)).collect();
            let compare = |a: usize, b: usize| ordering.compare(&keys[a], &keys[b]);
            prop_assert_eq!(compare(0, 1), compare(1, 0).reverse());
            prop_assert_eq!(compare(0, 0), Order::Equal);
            prop_assert!(!(compare(0, 1).is_le() && compare(1, 2).is_le()) || compare(0, 2).is_le());
        }
    }
}
