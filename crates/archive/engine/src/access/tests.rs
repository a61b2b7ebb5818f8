//! The index path against a plain look at every row.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Float32Array, Float64Array, Int32Array, RecordBatch, StringArray};
use proptest::prelude::*;
use trifid_archive_adql::fingerprint::fingerprint;
use trifid_archive_adql::language::Language;
use trifid_archive_adql::parser::parse;
use trifid_archive_adql::resolve::{Options, resolve};
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_model::batch;
use trifid_archive_model::sphere;

use super::*;
use crate::catalogue::{Published, Snapshot, TableInfo, Tables};
use crate::table::{Position, Table, TableHead};

/// A star: everything but its number may be absent.
#[derive(Clone, Debug)]
struct Star {
    id: i32,
    ra: Option<f64>,
    dec: Option<f64>,
    mag: Option<f32>,
    name: Option<String>,
}

fn table(stars: &[Star], indexed: &[usize], chunk_rows: usize) -> Table {
    let ucd = |mut field: Field, ucd: &str| {
        field.ucd = Some(ucd.into());
        field
    };
    let fields: Arc<[Field]> = [
        Field::new("id", Type::Int),
        ucd(Field::new("ra", Type::Double), "pos.eq.ra;meta.main"),
        ucd(Field::new("dec", Type::Double), "pos.eq.dec;meta.main"),
        Field::new("mag", Type::Float),
        Field::new("name", Type::Text),
    ]
    .into();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(stars.iter().map(|star| star.id))),
        Arc::new(Float64Array::from_iter(stars.iter().map(|star| star.ra))),
        Arc::new(Float64Array::from_iter(stars.iter().map(|star| star.dec))),
        Arc::new(Float32Array::from_iter(stars.iter().map(|star| star.mag))),
        Arc::new(StringArray::from_iter(stars.iter().map(|star| star.name.as_deref()))),
    ];
    let rows: RecordBatch = batch::batch(&fields, columns, stars.len()).unwrap();
    let position = Some(Position { lon: 1, lat: 2 });
    let head = TableHead { schema: "s".into(), name: "stars".into(), fields, position };
    Table::in_chunks(head, &[rows], indexed, chunk_rows).unwrap()
}

fn tables(table: Table) -> Arc<Tables> {
    let published = Published { table: Arc::new(table), info: TableInfo::default() };
    let snapshot = Snapshot::new(1, Vec::new(), vec![Arc::new(published)]);
    Arc::new(Tables { snapshot: Arc::new(snapshot), uploads: Vec::new() })
}

fn program(text: &str, tables: &Tables) -> Arc<Program> {
    let parsed = parse(text, Language::V2_1).unwrap();
    let resolved = resolve(&parsed, tables, &Options::default())
        .unwrap_or_else(|error| panic!("{}", error.report(text)));
    Arc::new(Program::compile(&resolved.query, tables).expect("a query for the index path"))
}

/// The ids that a query gives, in order.
fn ids(text: &str, tables: &Tables) -> Vec<i32> {
    let literals = fingerprint(text, Language::V2_1).unwrap().literals().to_vec();
    let running = program(text, tables).begin(&literals, None, true).unwrap().unwrap();
    let batches = running.all().unwrap();
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec()).collect()
}

fn sky() -> Vec<Star> {
    let star = |id: i32, ra: f64, dec: f64, mag: f32, name: &str| Star {
        id,
        ra: Some(ra),
        dec: Some(dec),
        mag: Some(mag),
        name: Some(name.into()),
    };
    let mut stars = vec![
        star(1, 10.0, 20.0, 5.0, "alpha"),
        star(2, 10.1, 20.1, 4.0, "alpine"),
        star(3, 359.95, 0.01, f32::NAN, "beta"),
        star(4, 0.05, -0.01, -1.5, "gamma"),
        star(5, 123.0, 89.99, 0.0, "delta"),
        star(6, 300.0, 89.98, -0.0, "delphi"),
    ];
    stars.push(Star { id: 7, ra: None, dec: Some(1.0), mag: None, name: None });
    stars
}

fn check(cases: &[(&str, &[i32])]) {
    for (indexed, chunk_rows) in [(&[0, 3, 4][..], 2), (&[][..], 3), (&[0, 3, 4][..], 100)] {
        let tables = tables(table(&sky(), indexed, chunk_rows));
        for (query, expected) in cases {
            let mut found = ids(query, &tables);
            if !query.contains("ORDER BY") {
                found.sort_unstable();
            }
            assert_eq!(found, *expected, "{query} with indexes {indexed:?}, chunks of {chunk_rows}");
        }
    }
}

#[test]
fn conditions_on_values() {
    check(&[
        ("SELECT id FROM stars WHERE id = 3", &[3]),
        ("SELECT id FROM stars WHERE 3 = id AND name = 'beta'", &[3]),
        ("SELECT id FROM stars WHERE id IN (5, 1, 5, 99)", &[1, 5]),
        ("SELECT id FROM stars WHERE id BETWEEN 2 AND 3", &[2, 3]),
        ("SELECT id FROM stars WHERE id > 2.5 AND id <= 4.0", &[3, 4]),
        ("SELECT id FROM stars WHERE mag = 0", &[5, 6]),
        ("SELECT id FROM stars WHERE mag < 0.5", &[4, 5, 6]),
        ("SELECT id FROM stars WHERE mag > 4.5", &[1, 3]),
        ("SELECT id FROM stars WHERE mag > -1.5 AND mag < 5", &[2, 5, 6]),
        ("SELECT id FROM stars WHERE mag IS NULL", &[7]),
        ("SELECT id FROM stars WHERE mag = NULL", &[]),
        ("SELECT id FROM stars WHERE name LIKE 'alp%'", &[1, 2]),
        ("SELECT id FROM stars WHERE name LIKE 'alp_a'", &[1]),
        ("SELECT id FROM stars WHERE name LIKE 'delta'", &[5]),
        ("SELECT id FROM stars WHERE name LIKE '%a' AND id < 4", &[1, 3]),
        ("SELECT id FROM stars WHERE name = 'beta' OR id = 1", &[1, 3]),
        ("SELECT id FROM stars", &[1, 2, 3, 4, 5, 6, 7]),
    ]);
}

#[test]
fn conditions_on_the_sky() {
    check(&[
        ("SELECT id FROM stars WHERE 1 = CONTAINS(POINT(ra, dec), CIRCLE(10, 20, 0.05))", &[1]),
        (
            "SELECT id FROM stars WHERE CONTAINS(POINT('ICRS', ra, dec), CIRCLE('ICRS', 10, 20, 0.5)) = 1",
            &[1, 2],
        ),
        ("SELECT id FROM stars WHERE DISTANCE(ra, dec, 0, 0) < 0.1", &[3, 4]),
        ("SELECT id FROM stars WHERE 0.1 > DISTANCE(POINT(0, 0), POINT(ra, dec))", &[3, 4]),
        ("SELECT id FROM stars WHERE DISTANCE(0, 90, ra, dec) <= 0.03", &[5, 6]),
        ("SELECT id FROM stars WHERE DISTANCE(ra, dec, 0, 0) > 89", &[5, 6]),
        (
            "SELECT id FROM stars WHERE 1 = CONTAINS(POINT(ra, dec), POLYGON(9, 19, 11, 19, 11, 21, 9, 21))",
            &[1, 2],
        ),
        ("SELECT id FROM stars WHERE 1 = CONTAINS(POINT(ra, dec), CIRCLE(0, 0, 180))", &[1, 2, 3, 4, 5, 6]),
        ("SELECT id FROM stars WHERE 0 = CONTAINS(POINT(ra, dec), CIRCLE(10, 20, 1))", &[3, 4, 5, 6]),
        ("SELECT id FROM stars WHERE 1 = CONTAINS(POINT(ra, dec), REGION('CIRCLE ICRS 10 20 0.05'))", &[1]),
        ("SELECT id FROM stars WHERE 1 = INTERSECTS(CIRCLE(10, 20, 0.5), POINT(ra, dec))", &[1, 2]),
    ]);
}

/// Stars all over the sky, more of them at the places where queries look; every tenth is nowhere.
fn crowded() -> Vec<Star> {
    let mut seed = 7_u64;
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut place = |id: i32| match id % 10 {
        0 => (None, Some(1.0)),
        1..4 => (Some(draw() * 2.0 - 1.0), Some(draw() * 2.0 - 1.0)),
        4..6 => (Some(draw() * 360.0), Some(90.0 - draw())),
        _ => (Some(draw() * 360.0), Some((draw() * 2.0 - 1.0).asin().to_degrees())),
    };
    let star = |id: i32| {
        let (ra, dec) = place(id);
        Star { id, ra: ra.map(|ra| ra.rem_euclid(360.0)), dec, mag: Some(id as f32), name: None }
    };
    (0..4000).map(star).collect()
}

/// Whatever way in a cone takes (the rows of few cells, of many, all of a chunk) it is the same cone.
#[test]
fn cones_of_all_sizes() {
    let tables = tables(table(&crowded(), &[0], 700));
    let mut sizes = Vec::new();
    for (lon, lat) in [(0.0, 0.0), (359.9, -0.5), (200.0, 90.0), (10.0, -90.0), (123.0, 45.0)] {
        for radius in [0.0, 0.01, 0.3, 1.0, 1.5, 20.0, 37.0, 80.0, 179.0, 180.0] {
            for condition in [
                format!("1 = CONTAINS(POINT(ra, dec), CIRCLE({lon}, {lat}, {radius}))"),
                format!("DISTANCE(ra, dec, {lon}, {lat}) <= {radius}"),
                format!("mag > 1000 AND 1 = INTERSECTS(CIRCLE({lon}, {lat}, {radius}), POINT(ra, dec))"),
                format!("DISTANCE(ra, dec, {lon}, {lat}) < {radius} AND id > 3990"),
            ] {
                let query = format!("SELECT id FROM stars WHERE {condition}");
                let (mut found, mut wanted) = (ids(&query, &tables), interpreted(&query, &tables));
                found.sort_unstable();
                wanted.sort_unstable();
                assert_eq!(found, wanted, "{query}");
                sizes.push(found.len());
            }
        }
    }
    for between in [1..200, 300..2000, 2001..3601] {
        assert!(sizes.iter().any(|size| between.contains(size)), "{between:?}");
    }
}

#[test]
fn what_a_small_cone_asks_is_decided_by_its_rows() {
    let tables = tables(table(&crowded(), &[], 700));
    let decided = |condition: &str| {
        let text = format!("SELECT id FROM stars WHERE {condition}");
        let program = program(&text, &tables);
        let literals = fingerprint(&text, Language::V2_1).unwrap().literals().to_vec();
        program.begin(&literals, None, true).unwrap().unwrap().filters()
    };
    assert_eq!(decided("1 = CONTAINS(POINT(ra, dec), CIRCLE(0, 0, 0.3))"), 0);
    assert_eq!(decided("mag > 5 AND 1 = CONTAINS(POINT(ra, dec), CIRCLE(0, 0, 0.3))"), 1);
    assert_eq!(decided("DISTANCE(ra, dec, 0, 0) < 0.3"), 1);
    assert_eq!(decided("1 = CONTAINS(POINT(ra, dec), CIRCLE(0, 0, 180))"), 1);
}

#[test]
fn order_offset_and_top() {
    check(&[
        ("SELECT id FROM stars ORDER BY id DESC", &[7, 6, 5, 4, 3, 2, 1]),
        ("SELECT TOP 3 id FROM stars ORDER BY mag, id", &[4, 5, 6]),
        ("SELECT TOP 3 id FROM stars ORDER BY mag DESC, id", &[7, 3, 1]),
        ("SELECT TOP 1 id FROM stars ORDER BY name", &[1]),
        ("SELECT id FROM stars WHERE id > 2 ORDER BY name DESC OFFSET 1", &[4, 5, 6, 3]),
        ("SELECT TOP 2 id FROM stars ORDER BY id OFFSET 3", &[4, 5]),
        ("SELECT TOP 0 id FROM stars ORDER BY id", &[]),
    ]);
}

/// Positions that like the poles and the wrap of right ascension.
fn coordinate() -> impl Strategy<Value = (f64, f64)> {
    let lon = prop_oneof![0.0..360.0, -0.5..0.5, 359.5..360.5, Just(0.0), Just(180.0)];
    let lat = prop_oneof![-90.0..90.0, 89.0..90.0, -90.0..-89.0, -0.5..0.5, Just(90.0), Just(-90.0)];
    (lon, lat)
}

/// Where a star is, if anywhere.
type Place = Option<(f64, f64)>;

fn stars() -> impl Strategy<Value = Vec<Star>> {
    let star = (prop::option::weighted(0.9, coordinate()), prop::option::weighted(0.9, -2i8..3));
    prop::collection::vec(star, 0..60).prop_map(|stars| {
        let star = |(id, (at, mag)): (i32, (Place, Option<i8>))| Star {
            id,
            ra: at.map(|at| at.0),
            dec: at.map(|at| at.1),
            mag: mag.map(f32::from),
            name: None,
        };
        (0..).zip(stars).map(star).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_cone_is_what_the_distances_say(
        stars in stars(), at in coordinate(), chunk in 1usize..20,
        radius in prop_oneof![0.0..1.0, 0.0..180.0, Just(180.0), Just(0.0)],
    ) {
        let tables = tables(table(&stars, &[], chunk));
        let (lon, lat) = at;
        let query = format!("SELECT id FROM stars WHERE DISTANCE(ra, dec, {lon:?}, {lat:?}) <= {radius:?}");
        let mut found = ids(&query, &tables);
        found.sort_unstable();
        let slack = 1e-9;
        for star in &stars {
            let Some((ra, dec)) = star.ra.zip(star.dec) else {
                prop_assert!(!found.contains(&star.id));
                continue;
            };
            let distance = sphere::distance(ra, dec, lon, lat);
            if distance < radius - slack || distance > radius + slack {
                prop_assert_eq!(found.contains(&star.id), distance < radius, "star {} at {}", star.id, distance);
            }
        }
    }

    #[test]
    fn indexes_change_nothing(stars in stars(), low in -3i8..3, chunk in 1usize..20, top in 0usize..8) {
        let with = tables(table(&stars, &[0, 3], chunk));
        let without = tables(table(&stars, &[], 1000));
        for query in [
            format!("SELECT id FROM stars WHERE mag >= {low} AND id < 30 ORDER BY id"),
            format!("SELECT TOP {top} id FROM stars WHERE mag IN ({low}, 1) ORDER BY id DESC"),
            format!("SELECT TOP {top} id, mag FROM stars WHERE id <> 3 ORDER BY mag DESC, id OFFSET 1"),
        ] {
            prop_assert_eq!(ids(&query, &with), ids(&query, &without), "{}", query);
        }
    }
}

/// A condition over the stars, written by the grammar.
fn condition_text() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        (-3i32..60).prop_map(|n| n.to_string()),
        (-300i32..300).prop_map(|n| format!("{:.2}", f64::from(n) / 100.0))
    ];
    let column =
        prop_oneof![Just("id"), Just("mag"), Just("ra"), Just("dec"), Just("-mag"), Just("id + mag")];
    let operator = prop_oneof![Just("="), Just("<>"), Just("<"), Just("<="), Just(">"), Just(">=")];
    let compared = (column.clone(), operator, number.clone()).prop_map(|(c, o, n)| format!("{c} {o} {n}"));
    let flipped = (number.clone(), Just("<"), column.clone()).prop_map(|(n, o, c)| format!("{n} {o} {c}"));
    let between = (column.clone(), number.clone(), number.clone())
        .prop_map(|(c, a, b)| format!("{c} BETWEEN {a} AND {b}"));
    let list = (column.clone(), prop::collection::vec(number, 1..5))
        .prop_map(|(c, l)| format!("{c} IN ({})", l.join(", ")));
    let null = column.prop_map(|c| format!("{c} IS NULL"));
    let cone = (coordinate(), 0.0..90.0f64)
        .prop_map(|((lon, lat), r)| format!("DISTANCE(ra, dec, {lon:?}, {lat:?}) < {r:?}"));
    let circle = (coordinate(), 0.0..90.0f64)
        .prop_map(|((lon, lat), r)| format!("1 = CONTAINS(POINT(ra, dec), CIRCLE({lon:?}, {lat:?}, {r:?}))"));
    let leaf = prop_oneof![compared, flipped, between, list, null, cone, circle];
    leaf.prop_recursive(2, 8, 3, |inner| {
        let joined = |word: &'static str| move |parts: Vec<String>| format!("({})", parts.join(word));
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(joined(" AND ")),
            prop::collection::vec(inner.clone(), 2..4).prop_map(joined(" OR ")),
            inner.prop_map(|part| format!("NOT ({part})")),
        ]
    })
}

/// The ids that the interpreter gives.
fn interpreted(text: &str, tables: &Tables) -> Vec<i32> {
    let parsed = parse(text, Language::V2_1).unwrap();
    let resolved = resolve(&parsed, tables, &Options::default())
        .unwrap_or_else(|error| panic!("{}", error.report(text)));
    let batches = crate::reference::Interpreter::default().collect(&resolved.query, tables).unwrap();
    batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_index_path_answers_like_the_interpreter(
        stars in stars(), condition in condition_text(), chunk in 1usize..20, top in prop::option::of(0usize..8),
        order in prop_oneof![Just("id"), Just("id DESC"), Just("mag, id"), Just("mag DESC, id DESC")], indexed in any::<bool>(),
    ) {
        let indexed: &[usize] = if indexed { &[0, 3, 4] } else { &[] };
        let tables = tables(table(&stars, indexed, chunk));
        let top = top.map(|top| format!("TOP {top} ")).unwrap_or_default();
        let query = format!("SELECT {top}id, mag FROM stars WHERE {condition} ORDER BY {order}");
        prop_assert_eq!(ids(&query, &tables), interpreted(&query, &tables), "{}", query);
    }
}
