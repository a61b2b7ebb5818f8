use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::query::names::testing::expand;
use crate::query::q::Options;
use crate::query::testing::World;
use crate::query::{geo, q, scope, types, uri};

fn types_of(text: &str) -> Types {
    Types::new("type", &types::parse("type", text).unwrap(), &expand()).unwrap()
}

fn selector(ids: Option<&str>, pattern: Option<&str>, types: Option<&str>) -> Selector {
    Selector::new(
        ids.map(|text| uri::parse_list("id", text).unwrap()),
        pattern.map(|text| Pattern::parse("idPattern", text).unwrap()),
        types.map(types_of),
    )
}

fn query(text: &str) -> Compiled {
    Compiled::new("q", &q::parse(text).unwrap(), Options::default(), &expand()).unwrap()
}

fn name(term: &str) -> Name {
    Name::expand("attrs", term, &expand()).unwrap()
}

fn vehicle() -> Value {
    json!({"id": "urn:v:1", "type": ["Vehicle", "Car"], "scope": "/Madrid/x",
        "speed": {"type": "Property", "value": 50},
        "location": {"type": "GeoProperty", "value": {"type": "Point", "coordinates": [8, 40]}}})
}

#[test]
fn clause_5_7_2_4_every_part_must_hold() {
    let world = World::new();
    let record = world.record(&vehicle());
    let env = Env::new(&world.symbols);
    let by = |selectors: Vec<Selector>| Filter { selectors, ..Filter::default() };
    let geo = |coordinates: &str| {
        GeoQuery::new(geo::parse("near;maxDistance==10", "Point", coordinates).unwrap(), None, &expand())
            .unwrap()
    };
    for (what, filter, expected) in [
        ("nothing", Filter::default(), true),
        ("id", by(vec![selector(Some("urn:v:2,urn:v:1"), None, None)]), true),
        ("other id", by(vec![selector(Some("urn:v:2"), None, None)]), false),
        ("pattern", by(vec![selector(None, Some("^urn:v:.$"), None)]), true),
        ("other pattern", by(vec![selector(None, Some("x"), None)]), false),
        ("type", by(vec![selector(None, None, Some("(Car;Vehicle)"))]), true),
        ("other type", by(vec![selector(None, None, Some("(Car;Bus)"))]), false),
        ("id of other type", by(vec![selector(Some("urn:v:1"), None, Some("Bus"))]), false),
        (
            "one of two",
            by(vec![selector(None, None, Some("Bus")), selector(Some("urn:v:1"), None, None)]),
            true,
        ),
        ("attrs", Filter { attributes: Some(vec![name("none"), name("speed")]), ..Filter::default() }, true),
        ("other attrs", Filter { attributes: Some(vec![name("none")]), ..Filter::default() }, false),
        ("q", Filter { q: Some(query("speed>=50")), ..Filter::default() }, true),
        ("other q", Filter { q: Some(query("speed>50")), ..Filter::default() }, false),
        ("scope", Filter { scope: Some(scope::parse("/Madrid/#").unwrap()), ..Filter::default() }, true),
        ("other scope", Filter { scope: Some(scope::parse("/Paris").unwrap()), ..Filter::default() }, false),
        ("geo", Filter { geo: Some(geo("[8,40]")), ..Filter::default() }, true),
        ("other geo", Filter { geo: Some(geo("[9,40]")), ..Filter::default() }, false),
        (
            "q of a dataset",
            Filter {
                q: Some(query("speed")),
                datasets: Some(DatasetIds::parse("datasetId", "urn:d:1").unwrap()),
                ..Filter::default()
            },
            false,
        ),
        (
            "all",
            Filter {
                selectors: vec![selector(Some("urn:v:1"), None, Some("*"))],
                attributes: Some(vec![name("speed")]),
                q: Some(query("speed==50")),
                geo: Some(geo("[8,40]")),
                scope: Some(scope::parse("/#").unwrap()),
                datasets: Some(DatasetIds::parse("datasetId", "@none").unwrap()),
            },
            true,
        ),
    ] {
        assert_eq!(filter.matches(&record, &env), expected, "{what}");
    }
}

#[test]
fn hints_tell_what_is_necessary() {
    let world = World::new();
    let speed = world.symbol("speed");
    let location = world.symbol("location");
    let car = world.symbol("Car");
    let filter = Filter {
        selectors: vec![
            selector(Some("urn:v:2,urn:v:1"), None, Some("Car")),
            selector(Some("urn:v:3"), None, Some("Car,Unknown")),
        ],
        attributes: Some(vec![name("speed"), name("unknown")]),
        q: Some(query("speed>5")),
        geo: Some(
            GeoQuery::new(
                geo::parse("within", "Polygon", "[[[0,0],[1,0],[1,1],[0,0]]]").unwrap(),
                None,
                &expand(),
            )
            .unwrap(),
        ),
        ..Filter::default()
    };
    let hints = filter.hints(&world.symbols);
    assert!(!hints.nothing);
    assert_eq!(
        hints.ids.unwrap().iter().map(|id| &**id).collect::<Vec<_>>(),
        ["urn:v:1", "urn:v:2", "urn:v:3"]
    );
    assert_eq!(hints.types, Some(vec![car]));
    assert_eq!(hints.attributes, [speed, location]);
    assert_eq!(hints.some_attribute, Some(vec![speed]));
    assert_eq!(hints.area, Some((location, Bounds { min: [0.0, 0.0], max: [1.0, 1.0] })));

    for filter in [
        Filter { q: Some(query("unknown==1")), ..Filter::default() },
        Filter { attributes: Some(vec![name("unknown")]), ..Filter::default() },
        Filter { selectors: vec![selector(None, None, Some("Unknown"))], ..Filter::default() },
    ] {
        assert!(filter.hints(&world.symbols).nothing, "{filter:?}");
    }
    let everything = Filter {
        selectors: vec![selector(None, None, Some("*")), selector(None, None, Some("Car"))],
        ..Filter::default()
    };
    assert_eq!(everything.hints(&world.symbols), Hints::default());
}

#[test]
fn compiled_filters_and_orders_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Filter>();
    shared::<crate::query::order::Ordering>();
    shared::<crate::query::project::Members>();
}

fn admitted(hints: &Hints, record: &Record) -> bool {
    !hints.nothing
        && hints.ids.as_ref().is_none_or(|ids| ids.iter().any(|id| **id == *record.id()))
        && hints.types.as_ref().is_none_or(|types| record.types().any(|own| types.contains(&own)))
        && hints.attributes.iter().all(|own| record.has(*own))
        && hints.some_attribute.as_ref().is_none_or(|some| some.iter().any(|own| record.has(*own)))
        && hints.area.is_none_or(|(property, area)| {
            record
                .attribute(property)
                .any(|own| geo::bounds(own.value()).is_some_and(|own| area.intersects(&own)))
        })
}

fn any_filter() -> impl Strategy<Value = Filter> {
    let types = prop::sample::select(vec!["A", "B", "(A;B)", "A,Unknown", "*", "Unknown"]);
    let ids = prop::sample::select(vec!["urn:e:1", "urn:e:1,urn:e:2"]);
    let one =
        (prop::option::of(ids), prop::option::of(types)).prop_map(|(ids, types)| selector(ids, None, types));
    let q = prop::sample::select(vec!["x", "x==1", "!x", "x|y>1", "(x;y)|unknown", "unknown", "y!=1;x"]);
    let georel = prop::sample::select(vec![
        "near;maxDistance==200000",
        "near;minDistance==200000",
        "disjoint",
        "intersects",
        "equals",
    ]);
    let geo = georel.prop_map(|georel| {
        GeoQuery::new(geo::parse(georel, "Point", "[1,1]").unwrap(), None, &expand()).unwrap()
    });
    let attributes =
        prop::collection::vec(prop::sample::select(vec!["x", "y", "unknown"]).prop_map(name), 1..3);
    (
        prop::collection::vec(one, 0..3),
        prop::option::of(attributes),
        prop::option::of(q.prop_map(query)),
        prop::option::of(geo),
    )
        .prop_map(|(selectors, attributes, q, geo)| Filter {
            selectors,
            attributes,
            q,
            geo,
            ..Filter::default()
        })
}

fn any_entity() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec![json!("A"), json!("B"), json!(["A", "B"])]);
    let number = || prop::option::of(0..3_i32);
    (1..3_u8, types, number(), number(), prop::option::of((0..3_i32, 0..3_i32))).prop_map(
        |(id, types, x, y, at)| {
            let mut entity = json!({"id": format!("urn:e:{id}"), "type": types});
            for (name, value) in [("x", x), ("y", y)] {
                if let Some(value) = value {
                    entity[name] = json!({"type": "Property", "value": value});
                }
            }
            if let Some((lon, lat)) = at {
                entity["location"] =
                    json!({"type": "GeoProperty", "value": {"type": "Point", "coordinates": [lon, lat]}});
            }
            entity
        },
    )
}

proptest! {
    #[test]
    fn hints_never_exclude_a_match(filter in any_filter(), entity in any_entity()) {
        let world = World::new();
        let record = world.record(&entity);
        let matches = filter.matches(&record, &Env::new(&world.symbols));
        prop_assert!(!matches || admitted(&filter.hints(&world.symbols), &record), "{filter:?}");
    }
}
