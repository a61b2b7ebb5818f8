use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::query::error::Problem;
use crate::query::names::testing::expand;
use crate::query::testing::World;

fn value(kind: &str, coordinates: &Value) -> String {
    json!({"type": kind, "coordinates": coordinates}).to_string()
}

fn holds(georel: &str, reference: (&str, &Value), target: (&str, &Value)) -> bool {
    let geo = parse(georel, reference.0, &reference.1.to_string()).unwrap();
    geo.matches_value(&value(target.0, target.1))
}

fn refusal(georel: &str, geometry: &str, coordinates: &str) -> String {
    let error = parse(georel, geometry, coordinates).unwrap_err();
    assert_eq!(error.problem(), Problem::BadRequestData);
    error.to_string()
}

#[test]
fn clause_4_10_georel_grammar() {
    for (text, relation) in [
        ("near;maxDistance==2000", Relation::NearMax(2000.0)),
        ("near;minDistance==1.5e2", Relation::NearMin(150.0)),
        ("within", Relation::Within),
        ("contains", Relation::Contains),
        ("intersects", Relation::Intersects),
        ("equals", Relation::Equals),
        ("disjoint", Relation::Disjoint),
        ("overlaps", Relation::Overlaps),
    ] {
        assert_eq!(Relation::parse(text), Ok(relation), "{text}");
        assert_eq!(Relation::parse(&relation.to_string()), Ok(relation));
    }
    for text in [
        "near;maxDistance==0",
        "near;maxDistance==-100",
        "near;maxDistance==-0",
        "near;maxDistance==5;minDistance==1",
        "near",
        "touches",
        "near;maxDistance==inf",
        "near;maxDistance==1e400",
        "near;maxDistance=5",
        "",
    ] {
        let error = Relation::parse(text).unwrap_err();
        assert_eq!((error.parameter, error.problem()), ("georel", Problem::BadRequestData), "{text}");
        assert!(error.at.is_some());
    }
}

#[test]
fn clause_4_10_parameters_come_together() {
    assert_eq!(parse_optional(None, None, None), Ok(None));
    assert!(parse_optional(Some("within"), Some("Point"), Some("[1,2]")).unwrap().is_some());
    for (given, missing) in [
        ((None, Some("Point"), Some("[1,2]")), "georel"),
        ((Some("within"), None, Some("[1,2]")), "geometry"),
        ((Some("within"), Some("Point"), None), "coordinates"),
    ] {
        let error = parse_optional(given.0, given.1, given.2).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{missing}: required by the other parameters of the geo-query")
        );
    }
}

#[test]
fn rfc_7946_refusals_name_the_place() {
    for (geometry, coordinates, error) in [
        (
            "Circle",
            "[1,2]",
            "geometry: \"Circle\" is not a geometry type: use Point, MultiPoint, LineString, MultiLineString, Polygon or MultiPolygon",
        ),
        (
            "GeometryCollection",
            "[]",
            "geometry: \"GeometryCollection\" is not a geometry type: use Point, MultiPoint, LineString, MultiLineString, Polygon or MultiPolygon",
        ),
        (
            "Point",
            "8,40",
            "coordinates: not a JSON array of coordinates: trailing characters after the JSON value at character 2",
        ),
        ("Point", "[8]", "coordinates: coordinates must be an array of two or more numbers"),
        ("Point", "{}", "coordinates: coordinates must be an array of two or more numbers"),
        ("Point", "[8,\"a\"]", "coordinates: coordinates must be an array of two or more numbers"),
        ("Point", "[8,40,null]", "coordinates: coordinates must be an array of numbers"),
        (
            "Point",
            "[8,140]",
            "coordinates: coordinates has the latitude 140, which is not within -90 and 90 (positions are longitude, latitude)",
        ),
        ("LineString", "[[1,2]]", "coordinates: coordinates needs at least 2 positions"),
        (
            "LineString",
            "[[1,2],[200,0]]",
            "coordinates: coordinates[1] has the longitude 200, which is not within -180 and 180 (positions are longitude, latitude)",
        ),
        ("MultiPoint", "[]", "coordinates: coordinates must be a non-empty array"),
        (
            "Polygon",
            "[[[0,0],[1,0],[1,1],[0,1]]]",
            "coordinates: coordinates[0] is not closed: its first and last position differ",
        ),
        ("Polygon", "[[[0,0],[1,0],[0,0]]]", "coordinates: coordinates[0] needs at least 4 positions"),
        (
            "MultiPolygon",
            "[[[[0,0],[1,0],[1,1],[0,0]],[1]]]",
            "coordinates: coordinates[0][1][0] must be an array of two or more numbers",
        ),
    ] {
        assert_eq!(refusal("within", geometry, coordinates), error);
    }
}

fn validated(text: &str) -> Result<(), GeoError> {
    validate(json::Doc::parse(text.as_bytes()).unwrap().root())
}

#[test]
fn clause_4_7_values_are_validated_on_input() {
    for text in [
        r#"{"type":"Point","coordinates":[8.5,40,12.3]}"#,
        r#"{"coordinates":[[1,2],[3,4]],"type":"LineString","bbox":[1,2,3,4]}"#,
        r#""{\"type\":\"Point\",\"coordinates\":[8,40]}""#,
        // Self-intersecting, as in the conformance suite: not judged.
        r#"{"type":"Polygon","coordinates":[[[0,0],[1,1],[1,0],[0,1],[0,0]]]}"#,
    ] {
        assert_eq!(validated(text), Ok(()), "{text}");
    }
    for (text, error) in [
        ("5", GeoError::NotGeometry),
        ("\"Antwerp\"", GeoError::NotGeometry),
        (r#""\"{}\"""#, GeoError::NotGeometry),
        (r#"{"type":"Point"}"#, GeoError::NotGeometry),
        (r#"{"coordinates":[1,2]}"#, GeoError::NotGeometry),
        (r#"{"type":"Feature","coordinates":[1,2]}"#, GeoError::Type("Feature".into())),
    ] {
        assert_eq!(validated(text), Err(error), "{text}");
    }
    let many = vec!["[1,2]"; MAX_VERTICES + 1].join(",");
    let text = format!(r#"{{"type":"MultiPoint","coordinates":[{many}]}}"#);
    assert_eq!(validated(&text), Err(GeoError::TooMany(MAX_VERTICES)));
}

#[test]
fn clause_4_10_relations_to_points() {
    let square =
        json!([[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]);
    for (georel, target, expected) in [
        ("within", json!([2, 2]), true),
        ("within", json!([5, 5]), false),
        ("within", json!([0, 5]), false),
        ("within", json!([20, 5]), false),
        ("intersects", json!([2, 2]), true),
        ("intersects", json!([0, 5]), true),
        ("intersects", json!([5, 5]), false),
        ("disjoint", json!([5, 5]), true),
        ("disjoint", json!([20, 5]), true),
        ("disjoint", json!([2, 2]), false),
        ("contains", json!([2, 2]), false),
        ("equals", json!([2, 2]), false),
        ("overlaps", json!([2, 2]), false),
    ] {
        assert_eq!(holds(georel, ("Polygon", &square), ("Point", &target)), expected, "{georel} {target}");
    }
    let point = json!([13.3986, 52.5547]);
    for (georel, expected) in [
        ("equals", true),
        ("contains", true),
        ("within", true),
        ("intersects", true),
        ("disjoint", false),
        ("overlaps", false),
    ] {
        assert_eq!(holds(georel, ("Point", &point), ("Point", &point)), expected, "{georel}");
    }
}

#[test]
fn clause_4_10_relations_between_shapes() {
    let square = |x: i32, size: i32| json!([[[x, 0], [x + size, 0], [x + size, size], [x, size], [x, 0]]]);
    let (big, small, beside) = (square(0, 10), square(2, 2), square(5, 10));
    for (georel, target, reference, expected) in [
        ("within", &small, &big, true),
        ("within", &big, &small, false),
        ("within", &beside, &big, false),
        ("contains", &big, &small, true),
        ("contains", &small, &big, false),
        ("overlaps", &beside, &big, true),
        ("overlaps", &small, &big, false),
        ("intersects", &beside, &big, true),
        ("equals", &big, &big, true),
        ("equals", &big, &beside, false),
        ("disjoint", &square(20, 1), &big, true),
        ("disjoint", &small, &big, false),
    ] {
        assert_eq!(
            holds(georel, ("Polygon", reference), ("Polygon", target)),
            expected,
            "{georel} {target} {reference}"
        );
    }
    let around = json!([[[0, 10], [10, 10], [10, 0], [0, 0], [0, 10]]]);
    assert!(holds("equals", ("Polygon", &big), ("Polygon", &around)));
    assert!(holds("contains", ("Point", &json!([3, 1])), ("Polygon", &big)));
    assert!(holds("intersects", ("LineString", &json!([[-1, 5], [11, 5]])), ("Polygon", &big)));
    assert!(holds(
        "within",
        ("MultiPolygon", &json!([big, square(30, 5)])),
        ("MultiPoint", &json!([[31, 1], [1, 1]]))
    ));
    assert!(!holds(
        "within",
        ("MultiPolygon", &json!([big, square(30, 5)])),
        ("MultiPoint", &json!([[29, 1], [1, 1]]))
    ));
    assert!(holds(
        "overlaps",
        ("MultiLineString", &json!([[[0, 0], [4, 0]]])),
        ("LineString", &json!([[2, 0], [6, 0]]))
    ));
}

/// The polygons of the conformance suite's case 019_11, the first of which crosses itself.
#[test]
fn clause_4_10_self_intersecting_targets_are_answered() {
    let crossing = json!([[
        [13.2865906, 52.5648645],
        [13.2879639, 52.5648645],
        [13.2797241, 52.4988679],
        [13.477478, 52.4712703],
        [13.5049438, 52.5373084],
        [13.2865906, 52.5648645]
    ]]);
    let other = json!([[
        [13.3023834, 52.4903066],
        [13.3027267, 52.4905156],
        [13.2745743, 52.465632],
        [13.3343124, 52.4185447],
        [13.4311295, 52.47107],
        [13.3023834, 52.4903066]
    ]]);
    let meets = json!([[
        [13.3456421, 52.4794848],
        [13.3641815, 52.4428773],
        [13.4177399, 52.4730023],
        [13.3459854, 52.479903],
        [13.3456421, 52.4794848]
    ]]);
    let inside = json!([[
        [13.3844376, 52.5356966],
        [13.3844376, 52.5356966],
        [13.381691, 52.5123012],
        [13.4235764, 52.5100027],
        [13.4331894, 52.5273425],
        [13.3844376, 52.5356966]
    ]]);
    let outside = json!([[
        [13.1369019, 52.5198225],
        [13.1365585, 52.5200314],
        [13.131752, 52.4980907],
        [13.1832504, 52.5026887],
        [13.1369019, 52.5198225]
    ]]);
    let second = json!([[
        [13.315773, 52.4757209],
        [13.339119, 52.4443421],
        [13.3892441, 52.4669371],
        [13.315773, 52.4757209]
    ]]);
    for (georel, geometry, reference, count) in [
        ("equals", "Polygon", &crossing, 1),
        ("intersects", "Polygon", &meets, 1),
        ("contains", "Polygon", &inside, 1),
        ("contains", "Polygon", &outside, 0),
        ("disjoint", "Polygon", &outside, 2),
        ("within", "Polygon", &other, 1),
        ("overlaps", "Polygon", &meets, 1),
        ("contains", "Point", &json!([13.3442688, 52.4650045]), 1),
    ] {
        let targets = [&crossing, &second];
        let found =
            targets.iter().filter(|target| holds(georel, (geometry, reference), ("Polygon", target))).count();
        assert_eq!(found, count, "{georel} {reference}");
    }
}

#[test]
fn clause_4_10_near_is_in_metres() {
    for (georel, reference, target, expected) in [
        (
            "near;maxDistance==15000",
            ("Point", json!([13.388930, 52.534473])),
            ("Point", json!([13.3986, 52.5547])),
            true,
        ),
        ("near;maxDistance==2000", ("Point", json!([8, 40])), ("Point", json!([8.01, 40.01])), true),
        ("near;maxDistance==1000", ("Point", json!([8, 40])), ("Point", json!([8.01, 40.01])), false),
        ("near;minDistance==1000", ("Point", json!([8, 40])), ("Point", json!([8.01, 40.01])), true),
        ("near;minDistance==2000", ("Point", json!([8, 40])), ("Point", json!([8.01, 40.01])), false),
        ("near;minDistance==2000", ("Point", json!([8, 40])), ("Point", json!([50, 40])), true),
        // From the nearest point of a line, not from its ends.
        (
            "near;maxDistance==2000",
            ("LineString", json!([[0, 60], [10, 60]])),
            ("Point", json!([10, 60.009])),
            true,
        ),
        (
            "near;maxDistance==2000",
            ("LineString", json!([[0, 60], [10, 60]])),
            ("Point", json!([5, 60.009])),
            true,
        ),
        (
            "near;maxDistance==2000",
            ("LineString", json!([[0, 61], [10, 61]])),
            ("Point", json!([10, 60.009])),
            false,
        ),
        // A degree of longitude is short near the pole.
        (
            "near;maxDistance==20000",
            ("Point", json!([0, 85])),
            ("LineString", json!([[1, 85], [0, 85.6]])),
            true,
        ),
        (
            "near;maxDistance==5000",
            ("Point", json!([0, 85])),
            ("LineString", json!([[1, 85], [0, 85.6]])),
            false,
        ),
        // Across the antimeridian and over the pole.
        ("near;maxDistance==30000", ("Point", json!([179.9, 0])), ("Point", json!([-179.9, 0])), true),
        (
            "near;maxDistance==30000",
            ("Point", json!([179.9, 0])),
            ("LineString", json!([[-179.9, -1], [-179.9, 1]])),
            true,
        ),
        ("near;maxDistance==30000", ("Point", json!([0, 89.9])), ("Point", json!([180, 89.9])), true),
        // Within a polygon the distance is zero; in its hole it is not.
        (
            "near;maxDistance==1",
            ("Polygon", json!([[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]])),
            ("Point", json!([5, 5])),
            true,
        ),
        (
            "near;minDistance==1",
            ("Polygon", json!([[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]])),
            ("Point", json!([5, 5])),
            false,
        ),
        (
            "near;maxDistance==1000",
            ("Point", json!([5, 5])),
            (
                "Polygon",
                json!([
                    [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]],
                    [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]
                ]),
            ),
            false,
        ),
        (
            "near;maxDistance==120000",
            ("LineString", json!([[0, 0], [1, 0]])),
            ("LineString", json!([[0, 1], [1, 1]])),
            true,
        ),
        (
            "near;maxDistance==100000",
            ("LineString", json!([[0, 0], [1, 0]])),
            ("LineString", json!([[0, 1], [1, 1]])),
            false,
        ),
        (
            "near;maxDistance==1",
            ("LineString", json!([[0, 0], [2, 2]])),
            ("LineString", json!([[0, 2], [2, 0]])),
            true,
        ),
    ] {
        let found = holds(georel, (reference.0, &reference.1), (target.0, &target.1));
        assert_eq!(found, expected, "{georel} {reference:?} {target:?}");
    }
}

#[test]
fn clause_4_10_the_property_is_location_unless_named() {
    let world = World::new();
    let point = |x: i32| json!({"type": "GeoProperty", "value": {"type": "Point", "coordinates": [x, 40]}});
    let entity = world.record(&json!({
        "id": "urn:a:1", "type": "T", "location": point(0), "observationSpace": point(8),
        "noGeo": {"type": "Property", "value": {"type": "Point", "coordinates": [8, 40]}},
        "text": {"type": "GeoProperty", "value": "{\"type\":\"Point\",\"coordinates\":[8,40]}"},
        "several": [point(1), {"type": "GeoProperty", "datasetId": "urn:d:1", "value": {"type": "Point", "coordinates": [8, 40]}}]
    }));
    for (property, georel, expected) in [
        (None, "near;maxDistance==2000", false),
        (Some(""), "near;minDistance==2000", true),
        (Some("observationSpace"), "near;maxDistance==2000", true),
        (Some("noGeo"), "near;maxDistance==2000", false),
        (Some("text"), "near;maxDistance==2000", true),
        // 5.7.2.4: any instance suffices.
        (Some("several"), "near;maxDistance==2000", true),
        // Whatever the relation, an entity without the property does not match.
        (Some("absent"), "disjoint", false),
        (Some("absent"), "near;minDistance==1", false),
    ] {
        let geo = parse(georel, "Point", "[8, 40]").unwrap();
        let query = GeoQuery::new(geo, property, &expand()).unwrap();
        assert_eq!(query.matches(&entity, &world.symbols), expected, "{property:?} {georel}");
    }
}

#[test]
fn what_was_read_can_be_forwarded() {
    let geo = parse("near;maxDistance==5", "Polygon", "[ [[0,0],[1,0],\n[1,1],[0,0]] ]").unwrap();
    assert_eq!(geo.relation().to_string(), "near;maxDistance==5");
    assert_eq!(geo.reference().kind().name(), "Polygon");
    assert_eq!(geo.reference().coordinates(), "[[[0,0],[1,0],[1,1],[0,0]]]");
    let doc = json::Doc::parse(br#"{"a":[8, 40],"b":"[8,40]"}"#).unwrap();
    assert_eq!(coordinates_text(doc.root().get("a").unwrap()), "[8, 40]");
    assert_eq!(coordinates_text(doc.root().get("b").unwrap()), "[8,40]");
}

// Small whole coordinates make touching, crossing and degenerate shapes frequent.

fn position() -> impl Strategy<Value = Value> {
    (-3..4_i32, -3..4_i32).prop_map(|(x, y)| json!([x, y]))
}

fn line() -> impl Strategy<Value = Value> {
    prop::collection::vec(position(), 2..5).prop_map(Value::from)
}

fn ring() -> impl Strategy<Value = Value> {
    prop::collection::vec(position(), 3..6).prop_map(|mut positions| {
        positions.push(positions[0].clone());
        Value::from(positions)
    })
}

fn polygon() -> impl Strategy<Value = Value> {
    prop::collection::vec(ring(), 1..3).prop_map(Value::from)
}

fn shape() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        position().prop_map(|own| ("Point", own)),
        prop::collection::vec(position(), 1..4).prop_map(|own| ("MultiPoint", Value::from(own))),
        line().prop_map(|own| ("LineString", own)),
        prop::collection::vec(line(), 1..3).prop_map(|own| ("MultiLineString", Value::from(own))),
        polygon().prop_map(|own| ("Polygon", own)),
        prop::collection::vec(polygon(), 1..3).prop_map(|own| ("MultiPolygon", Value::from(own))),
    ]
}

/// An axis-parallel box and whether a point lies within it or on its edge, decided by comparison.
fn rectangle() -> impl Strategy<Value = ([i32; 4], Value)> {
    (-3..3_i32, -3..3_i32, 1..4_i32, 1..4_i32).prop_map(|(x, y, w, h)| {
        let corners = json!([[[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]]]);
        ([x, y, x + w, y + h], corners)
    })
}

fn inner(a: [i32; 4], b: [i32; 4]) -> bool {
    a[0].max(b[0]) < a[2].min(b[2]) && a[1].max(b[1]) < a[3].min(b[3])
}

fn touches(a: [i32; 4], b: [i32; 4]) -> bool {
    a[0].max(b[0]) <= a[2].min(b[2]) && a[1].max(b[1]) <= a[3].min(b[3])
}

fn covers(a: [i32; 4], b: [i32; 4]) -> bool {
    a[0] <= b[0] && a[1] <= b[1] && a[2] >= b[2] && a[3] >= b[3]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_two_shapes_are_answered(a in shape(), b in shape(), metres in 1.0..500_000.0_f64) {
        for georel in ["within", "contains", "intersects", "equals", "overlaps"] {
            let found = holds(georel, (a.0, &a.1), (b.0, &b.1));
            let area = parse(georel, a.0, &a.1.to_string()).unwrap().area().unwrap();
            let own = bounds(&value(b.0, &b.1)).unwrap();
            prop_assert!(!found || area.intersects(&own), "the area misses a match");
        }
        let meets = holds("intersects", (a.0, &a.1), (b.0, &b.1));
        prop_assert_eq!(holds("disjoint", (a.0, &a.1), (b.0, &b.1)), !meets);
        prop_assert_eq!(holds("intersects", (b.0, &b.1), (a.0, &a.1)), meets);
        let near = holds(&format!("near;maxDistance=={metres}"), (a.0, &a.1), (b.0, &b.1));
        prop_assert_eq!(holds(&format!("near;minDistance=={metres}"), (a.0, &a.1), (b.0, &b.1)), !near);
        prop_assert!(near || !meets, "what meets is near");
    }

    #[test]
    fn rectangles_agree_with_plain_comparison((a, target) in rectangle(), (b, reference) in rectangle()) {
        let ask = |georel: &str| holds(georel, ("Polygon", &reference), ("Polygon", &target));
        prop_assert_eq!(ask("intersects"), touches(a, b));
        prop_assert_eq!(ask("disjoint"), !touches(a, b));
        prop_assert_eq!(ask("within"), covers(b, a));
        prop_assert_eq!(ask("contains"), covers(a, b));
        prop_assert_eq!(ask("equals"), a == b);
        prop_assert_eq!(ask("overlaps"), inner(a, b) && !covers(a, b) && !covers(b, a));
    }

    #[test]
    fn points_agree_with_plain_comparison((b, reference) in rectangle(), x in -3..6_i32, y in -3..6_i32) {
        let ask = |georel: &str| holds(georel, ("Polygon", &reference), ("Point", &json!([x, y])));
        let strictly = b[0] < x && x < b[2] && b[1] < y && y < b[3];
        prop_assert_eq!(ask("intersects"), covers(b, [x, y, x, y]));
        prop_assert_eq!(ask("within"), strictly);
    }

    #[test]
    fn distances_to_lines_agree_with_sampling(
        from in (-20.0..20.0_f64, -80.0..80.0_f64),
        start in (-20.0..20.0_f64, -80.0..80.0_f64),
        by in (-8.0..8.0_f64, -8.0..8.0_f64),
    ) {
        let from = Coord { x: from.0, y: from.1 };
        let at = |share: f64| Coord { x: start.0 + share * by.0, y: start.1 + share * by.1 };
        let line = geo_types::LineString(vec![at(0.0), at(1.0)]);
        let lines = Lines::new(line.lines().collect());
        let found = distance::least_from(from, &Geometry::LineString(line), &lines, 0.0);
        let sampled = (0..=2000).map(|n| distance::between(from, at(f64::from(n) / 2000.0))).fold(f64::INFINITY, f64::min);
        prop_assert!(found <= sampled * 1.000_001 + 0.01, "{found} is farther than {sampled}");
        prop_assert!(found >= sampled - 1500.0 , "{found} is nearer than any point: {sampled}");
    }

    #[test]
    fn distances_between_shapes_agree_with_all_pairs(
        a in prop::collection::vec((-3.0..3.0_f64, -3.0..3.0_f64), 2..8),
        b in prop::collection::vec((4.0..9.0_f64, -9.0..9.0_f64), 2..8),
    ) {
        let line = |own: &[(f64, f64)]| own.iter().map(|(x, y)| json!([x, y])).collect::<Vec<_>>();
        let reference = Reference::parse(("g", "c"), "LineString", &json!(line(&b)).to_string()).unwrap();
        let found = reference.distance(&value("LineString", &json!(line(&a)))).unwrap();
        let single = |own: &[(f64, f64)], other: &[(f64, f64)]| {
            let pairs = other.windows(2).flat_map(|two| own.iter().map(move |at| (at, two)));
            let each = pairs.map(|(at, two)| {
                let reference = Reference::parse(("g", "c"), "LineString", &json!(line(two)).to_string()).unwrap();
                reference.distance(&value("Point", &json!([at.0, at.1]))).unwrap()
            });
            each.fold(f64::INFINITY, f64::min)
        };
        let plain = single(&a, &b).min(single(&b, &a));
        prop_assert!((found - plain).abs() <= plain * 1e-4, "{found} {plain}");
    }

    #[test]
    fn any_text_is_answered(text in "[\\[\\]0-9.,e\" -]{0,20}", kind in "Point|MultiPoint|LineString|Polygon|MultiPolygon") {
        let _ = parse("within", &kind, &text);
        let value = format!(r#"{{"type":"{kind}","coordinates":{text}}}"#);
        if let Ok(doc) = json::Doc::parse(value.as_bytes()) {
            prop_assert_eq!(validate(doc.root()).is_ok(), parse("within", &kind, &text).is_ok());
        }
        let _ = bounds(&value);
    }
}
