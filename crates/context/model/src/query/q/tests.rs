use std::cmp::Ordering;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::query::dataset::DatasetIds;
use crate::query::error::Problem;
use crate::query::limits::{MAX_DEPTH, MAX_LINKED, MAX_TERMS};
use crate::query::names::testing::{expand, iri};
use crate::query::testing::World;
use crate::record::Record;

fn compile(text: &str) -> Compiled {
    Compiled::new("q", &parse(text).unwrap(), Options::default(), &expand()).unwrap()
}

fn holds(world: &World, text: &str, record: &Record) -> bool {
    compile(text).matches(record, &Env::new(&world.symbols), None)
}

/// Asks each query of an entity whose attribute `a` is `attribute`.
fn check(attribute: &Value, cases: &[(&str, bool)]) {
    let world = World::new();
    let record = world.with(attribute);
    for (text, expected) in cases {
        assert_eq!(holds(&world, text, &record), *expected, "{text} on {attribute}");
    }
}

#[expect(clippy::needless_pass_by_value, reason = "reads as data")]
fn property(value: Value) -> Value {
    json!({"type": "Property", "value": value})
}

#[test]
fn clause_4_9_the_grammar_is_read_and_printed() {
    for (text, printed) in [
        ("temperature", "temperature"),
        ("temperature==20", "temperature==20"),
        (r#"brandName!="Mercedes""#, r#"brandName!="Mercedes""#),
        (
            "isParked==urn:ngsi-ld:OffStreetParking:Downtown1",
            "isParked==urn:ngsi-ld:OffStreetParking:Downtown1",
        ),
        (r#"((speed>50|rpm>3000);brandName=="Mercedes")"#, r#"(speed>50|rpm>3000);brandName=="Mercedes""#),
        ("(temperature>=20;temperature<=25)|capacity<=10", "temperature>=20;temperature<=25|capacity<=10"),
        ("temperature.observedAt>=2017-12-24T12:00:00Z", "temperature.observedAt>=2017-12-24T12:00:00Z"),
        (r#"address[city]=="Berlin""#, r#"address[city]=="Berlin""#),
        ("sensor.rawdata[airquality.particulate]==40", "sensor.rawdata[airquality.particulate]==40"),
        ("gender==Male", "gender==Male"),
        ("sensor{humidity}==40", "sensor{humidity}==40"),
        ("sensor{Device:humidity}==40", "sensor{Device:humidity}==40"),
        ("a{B,C:d{e.f[g]}}<5", "a{B,C:d{e.f[g]}}<5"),
        (r#"color=="black", "red""#, r#"color=="black","red""#),
        ("t==10..20", "t==10..20"),
        (r#"t!="a".."b""#, r#"t!="a".."b""#),
        ("t==2020-01-01..2021-01-01", "t==2020-01-01..2021-01-01"),
        ("t==10:00:00Z..11:00:00Z", "t==10:00:00Z..11:00:00Z"),
        ("t==http://a/../b", "t==http://a/../b"),
        (r#"color[*]!~="^r.d$""#, r#"color[*]!~="^r.d$""#),
        (r#"name~="\d+\.x""#, r#"name~="\\d+\\.x""#),
        ("name~=^(a|b);x", r#"name~="^(a|b)";x"#),
        ("!heading;speed>25", "!heading;speed>25"),
        (" a == 1 ; ( b | c ) ", "a==1;(b|c)"),
        ("ex:speed>1", "ex:speed>1"),
        ("https://a.b/speed>1", "https://a.b/speed>1"),
        ("a==true,false,1", "a==true,false,1"),
    ] {
        let query = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(query.to_string(), printed);
        assert_eq!(parse(printed), Ok(query));
    }
}

#[test]
fn clause_4_9_refusals_name_the_character() {
    for (text, error) in [
        ("", "q: expected an attribute name or \"(\" at character 1"),
        ("speed>", "q: expected a value at character 7"),
        ("speed=50", "q: expected an operator at character 6"),
        ("spéed==1;;b", "q: expected an attribute name or \"(\" at character 10"),
        ("(a;b", "q: expected \";\", \"|\" or \")\" at character 5"),
        ("a)", "q: expected \";\", \"|\" or the end at character 2"),
        ("a>4..5", "q: expected one value; ranges go with == and != only at character 3"),
        ("a>1,2", "q: expected one value; lists go with == and != only at character 3"),
        ("a<true", "q: expected a number, a quoted string, a date or a time at character 3"),
        ("a==1..\"x\"", "q: both ends of a range must have one data type at character 4"),
        ("a==1..x", "q: expected the upper end of the range at character 7"),
        ("a==1,2..3", "q: expected a value; a list holds no ranges at character 6"),
        ("a==\"x", "q: unterminated string at character 4"),
        (
            "a~=\"(?=x)\"",
            "q: regular expression not accepted: look-around, including look-ahead and look-behind, is not supported at character 4",
        ),
        ("a~=", "q: expected a regular expression at character 4"),
        ("a[b", "q: expected \".\" or \"]\" at character 4"),
        ("a[]", "q: expected a member name, a language or \"*\" at character 3"),
        ("a{b", "q: expected \".\", \"[\" or \"}\" at character 4"),
        ("a{B,c}", "q: expected \":\" after the types at character 6"),
        ("a.", "q: expected a sub-attribute name at character 3"),
        ("a==1e400", "q: expected a value at character 4"),
        ("a-b==1", "q: a name holds letters, numbers and \"_\" only at character 1"),
        ("))bad((", "q: expected an attribute name or \"(\" at character 1"),
    ] {
        let refusal = parse(text).unwrap_err();
        assert_eq!(refusal.to_string(), error);
        assert_eq!(refusal.problem(), Problem::BadRequestData);
    }
}

#[test]
fn limits_are_checked_before_they_cost_anything() {
    let deep = "(".repeat(MAX_DEPTH + 1);
    assert_eq!(parse(&deep).unwrap_err().problem(), Problem::TooComplexQuery);
    assert!(parse(&format!("{}a{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH))).is_ok());
    let many = vec!["a"; MAX_TERMS + 1].join(";");
    assert_eq!(parse(&many).unwrap_err().problem(), Problem::TooComplexQuery);
    let hops = format!("{}a{}", "r{".repeat(11), "}".repeat(11));
    assert_eq!(parse(&hops).unwrap_err().problem(), Problem::BadRequestData);
    assert!(parse(&"a".repeat(100_000)).is_err());
    assert_eq!(parse("a{b{c}}==1;d").unwrap().hops(), 2);
}

#[test]
fn clause_4_9_existence() {
    check(&property(json!(20)), &[("a", true), ("b", false), ("!a", false), ("!b", true), ("a.c", false)]);
    check(&property(json!({"city": "Berlin"})), &[("a[city]", true), ("a[zip]", false), ("!a[zip]", true)]);
}

#[test]
fn clause_4_9_numbers() {
    check(
        &property(json!(20.5)),
        &[
            ("a==20.5", true),
            ("a==2.05e1", true),
            ("a!=20.5", false),
            ("a>20", true),
            ("a>20.5", false),
            ("a>=20.5", true),
            ("a<21", true),
            ("a<=20", false),
            ("a==20..21", true),
            ("a==20.5..20.5", true),
            ("a!=20..21", false),
            ("a==21..30", false),
            ("a!=21..30", true),
            ("a==1,20.5", true),
            ("a!=1,2", true),
        ],
    );
}

#[test]
fn clause_4_9_different_data_types_are_unequal_and_not_ordered() {
    check(
        &property(json!("20")),
        &[
            ("a==20", false),
            ("a!=20", true),
            ("a>1", false),
            ("a<1", false),
            ("a==true", false),
            ("a!=1..30", true),
        ],
    );
    check(
        &property(json!({"x": 1})),
        &[("a==1", false), ("a!=1", true), ("a>0", false), ("a~=\"x\"", false)],
    );
    check(&property(json!(true)), &[("a==true", true), ("a!=true", false), ("a==\"true\"", false)]);
    check(&property(json!(5)), &[("a~=\"5\"", false), ("a!~=\"6\"", false)]);
}

#[test]
fn clause_4_9_strings_compare_by_code_point() {
    check(
        &property(json!("red \"é\"\n")),
        &[(r#"a=="red \"é\"\n""#, true), (r#"a=="red""#, false), (r#"a!="red""#, true), (r#"a>"red""#, true)],
    );
    check(
        &property(json!("b")),
        &[(r#"a=="a".."c""#, true), (r#"a>"B""#, true), (r#"a=="x","b""#, true), ("a==b", true)],
    );
}

#[test]
fn clause_4_9_arrays_are_equal_by_element() {
    check(
        &property(json!(["blue", "red", 3])),
        &[
            (r#"a=="red""#, true),
            (r#"a!="red""#, false),
            (r#"a!="green""#, true),
            (r#"a=="black","blue""#, true),
            (r#"a!="black","blue""#, false),
            ("a==3", true),
            ("a==1..5", true),
            ("a>1", false),
            ("a~=\"red\"", false),
            ("a!~=\"red\"", false),
        ],
    );
    check(&property(json!([])), &[("a==1", false), ("a!=1", true), ("a", true)]);
    check(
        &json!({"type": "ListProperty", "valueList": [1, 2]}),
        &[("a==2", true), ("a!=2", false), ("a==3", false)],
    );
}

#[test]
fn clause_4_9_relationships_know_equality_only() {
    check(
        &json!({"type": "Relationship", "object": "urn:a:1"}),
        &[
            ("a==urn:a:1", true),
            (r#"a=="urn:a:1""#, true),
            ("a!=urn:a:1", false),
            ("a!=urn:a:2", true),
            (r#"a>"urn:a""#, false),
            (r#"a<"urn:b""#, false),
            (r#"a~="urn""#, false),
            (r#"a!~="nothing""#, false),
            ("a==1", false),
            ("a!=1", true),
        ],
    );
    let several =
        [("a==urn:a:2", true), ("a!=urn:a:2", false), ("a!=urn:a:3", true), ("a==urn:a:3,urn:a:1", true)];
    check(&json!({"type": "Relationship", "object": ["urn:a:1", "urn:a:2"]}), &several);
    check(&json!({"type": "ListRelationship", "objectList": ["urn:a:1", "urn:a:2"]}), &several);
    check(
        &json!({"type": "ListRelationship", "objectList": [{"object": "urn:a:1"}, {"object": "urn:a:2"}]}),
        &several,
    );
}

#[test]
fn clause_4_9_language_properties() {
    check(
        &json!({"type": "LanguageProperty", "languageMap": {"fr": "rouge", "en": "red", "de": ["rot", "Katze"]}}),
        &[
            (r#"a[en]=="red""#, true),
            (r#"a[EN]=="red""#, true),
            (r#"a[en]=="rouge""#, false),
            (r#"a[en]!="rouge""#, true),
            (r#"a[es]=="red""#, false),
            (r#"a[es]!="red""#, false),
            (r#"a[de]=="rot""#, true),
            (r#"a[de]!="rot""#, false),
            (r#"a[*]=="rouge""#, true),
            (r#"a[*]=="Katze""#, true),
            (r#"a[*]!="red""#, false),
            (r#"a[*]!="blue""#, true),
            (r#"a=="rouge""#, true),
            (r#"a!="red""#, false),
            (r#"a[en]~="^r""#, true),
            (r#"a[*]~="^K""#, true),
            (r#"a[*]!~="^K""#, false),
            (r#"a[*]!~="^z""#, true),
            ("a[en]", true),
            ("a[es]", false),
        ],
    );
}

#[test]
fn clause_4_9_vocab_properties_compare_expanded() {
    let full = format!(r#"a=="{}""#, iri("commercial"));
    check(
        &json!({"type": "VocabProperty", "vocab": "commercial"}),
        &[(&full, true), ("a==commercial", false), ("a!=commercial", true)],
    );
    let world = World::new();
    let record = world.with(&json!({"type": "VocabProperty", "vocab": ["commercial", "x"]}));
    let names = ["a".to_owned()];
    for (options, expected) in [
        (Options { expand_values: &names, json_keys: &[] }, true),
        (Options { expand_values: &names, json_keys: &names }, false),
    ] {
        let query = Compiled::new("q", &parse("a==commercial").unwrap(), options, &expand()).unwrap();
        assert_eq!(query.matches(&record, &Env::new(&world.symbols), None), expected);
    }
}

#[test]
fn clause_4_9_trailing_paths_enter_compound_values() {
    check(
        &property(json!({"city": "Berlin", "geo": {"lat": 52.5, "tags": ["x", "y"]}, "none": null})),
        &[
            (r#"a[city]=="Berlin""#, true),
            (r#"a[city]!="Paris""#, true),
            (r#"a[zip]!="Paris""#, false),
            ("a[geo.lat]>50", true),
            (r#"a[geo.tags]=="y""#, true),
            ("a[geo.lat.x]", false),
            ("a[none]", true),
            ("a[none]==1", false),
        ],
    );
    check(
        &json!({"type": "JsonProperty", "json": {"id": "1", "value": "x"}}),
        &[(r#"a[value]=="x""#, true), (r#"a[id]=="1""#, true)],
    );
    check(
        &json!({"type": "GeoProperty", "value": {"type": "Point", "coordinates": [1, 2]}}),
        &[(r#"a[type]=="Point""#, true), ("a[coordinates]==2", true)],
    );
}

#[test]
fn clause_4_9_sub_attributes_and_members() {
    check(
        &json!({
            "type": "Property", "value": 40, "observedAt": "2018-01-01T12:00:00.5Z", "unitCode": "CEL",
            "datasetId": "urn:d:1", "valueType": "Temperature", "modifiedAt": "2021-01-01T00:00:00Z",
            "accuracy": {"type": "Property", "value": 0.5, "source": {"type": "Property", "value": {"p": 1}}}
        }),
        &[
            ("a.observedAt>=2017-12-24T12:00:00Z", true),
            ("a.observedAt==2018-01-01T12:00:00.500Z", true),
            (r#"a.observedAt>"2018-01-01T12:00:00Z""#, true),
            ("a.observedAt<2018-01-01T12:00:00Z", false),
            (r#"a.unitCode=="CEL""#, true),
            (r#"a.unitCode!="CEL""#, false),
            ("a.datasetId==urn:d:1", true),
            ("a.valueType==Temperature", true),
            ("a.valueType!=Temperature", false),
            ("a.valueType==Other", false),
            ("a.objectType", false),
            ("a.modifiedAt>2020-12-31T00:00:00Z", true),
            ("a.createdAt==2020-01-01T00:00:00Z", true),
            ("a.expiresAt", false),
            ("a.accuracy<1", true),
            ("a.accuracy.source[p]==1", true),
            ("a.other==1", false),
            ("a.unitCode[x]", false),
        ],
    );
}

#[test]
fn clause_4_8_system_attributes_of_the_entity() {
    let world = World::new();
    let record = world.record(&json!({
        "id": "urn:e:1", "type": "T", "scope": ["/Madrid", "/x"], "modifiedAt": "2021-01-01T00:00:00Z"
    }));
    for (text, expected) in [
        ("modifiedAt>2020-06-01T00:00:00Z", true),
        (r#"modifiedAt>"2020-06-01T00:00:00Z""#, true),
        ("createdAt>2020-06-01T00:00:00Z", false),
        ("expiresAt", false),
        (r#"scope=="/Madrid""#, true),
        (r#"scope!="/Madrid""#, false),
        (r#"scope~="^/M""#, true),
    ] {
        assert_eq!(holds(&world, text, &record), expected, "{text}");
    }
}

#[test]
fn clause_4_6_3_times_compare_as_times() {
    check(
        &property(json!("2020-01-01T00:00:00.0Z")),
        &[
            ("a==2020-01-01T00:00:00Z", true),
            (r#"a=="2020-01-01T00:00:00Z""#, true),
            ("a>2019-12-31T23:59:59Z", true),
            ("a==2019-01-01T00:00:00Z..2021-01-01T00:00:00Z", true),
            ("a==2020-01-01", false),
        ],
    );
    check(
        &property(json!("2020-01-31")),
        &[("a>2020-01-09", true), ("a==2020-01-31", true), ("a<12:00:00Z", false)],
    );
    check(&property(json!("09:00:00Z")), &[("a<10:00:00Z", true), ("a!=09:00:00.000Z", false)]);
    check(
        &property(json!({"@type": "DateTime", "@value": "2020-01-01T00:00:00Z"})),
        &[("a<2020-01-02T00:00:00Z", true), (r#"a=="2020-01-01T00:00:00Z""#, true)],
    );
}

#[test]
fn clause_4_5_5_any_instance_satisfies_unless_some_are_addressed() {
    let world = World::new();
    let record = world.with(&json!([
        {"type": "Property", "value": 1},
        {"type": "Property", "value": 2, "datasetId": "urn:d:2"}
    ]));
    let env = Env::new(&world.symbols);
    for (text, datasets, expected) in [
        ("a==1", None, true),
        ("a==2", None, true),
        ("a!=2", None, true),
        ("a==1", Some("urn:d:2"), false),
        ("a==2", Some("urn:d:2"), true),
        ("a!=2", Some("urn:d:2"), false),
        ("a==1", Some("@none"), true),
        ("a", Some("urn:d:3"), false),
    ] {
        let datasets = datasets.map(|own| DatasetIds::parse("datasetId", own).unwrap());
        assert_eq!(compile(text).matches(&record, &env, datasets.as_ref()), expected, "{text} {datasets:?}");
    }
}

#[test]
fn clause_4_9_linked_entities_are_followed() {
    let world = World::new();
    let device = world.record(&json!({"id": "urn:d:1", "type": "Device", "humidity": property(json!(40)),
        "owner": {"type": "Relationship", "object": "urn:o:1"}}));
    let owner = world.record(&json!({"id": "urn:o:1", "type": "Person", "name": property(json!("Bob"))}));
    let station = world.record(&json!({"id": "urn:s:1", "type": "Station",
        "sensor": {"type": "Relationship", "object": ["urn:gone", "urn:d:1"]}}));
    let resolve = |id: &str| match id {
        "urn:d:1" => Some(device.clone()),
        "urn:o:1" => Some(owner.clone()),
        _ => None,
    };
    let env = Env::linked(&world.symbols, &resolve);
    for (text, expected) in [
        ("sensor{humidity}==40", true),
        ("sensor{humidity}!=40", false),
        ("sensor{Device:humidity}==40", true),
        ("sensor{Vehicle,Device:humidity}==40", true),
        ("sensor{Vehicle:humidity}==40", false),
        ("sensor{humidity}", true),
        ("sensor{temperature}", false),
        ("!sensor{temperature}", true),
        (r#"sensor{Device:owner{Person:name}}=="Bob""#, true),
        (r#"sensor{owner{name}}=="Eve""#, false),
        ("humidity{a}==1", false),
    ] {
        assert_eq!(compile(text).matches(&station, &env, None), expected, "{text}");
    }
    assert!(!compile("sensor{humidity}").matches(&station, &Env::new(&world.symbols), None));
}

#[test]
fn an_evaluation_visits_a_bounded_number_of_linked_entities() {
    let world = World::new();
    let ids: Vec<String> = (0..50).map(|n| format!("urn:e:{n}")).collect();
    let entity =
        world.record(&json!({"id": "urn:e:0", "type": "T", "r": {"type": "Relationship", "object": ids}}));
    let visits = std::cell::Cell::new(0);
    let resolve = |_: &str| {
        visits.set(visits.get() + 1);
        Some(entity.clone())
    };
    let env = Env::linked(&world.symbols, &resolve);
    assert!(!compile("r{r{r{r{x}}}}==1").matches(&entity, &env, None));
    assert_eq!(env.gave_up(), Some(GaveUp::Links));
    assert_eq!(visits.get(), MAX_LINKED);
}

#[test]
fn a_query_that_compares_too_much_gives_up() {
    let world = World::new();
    let items = vec!["7"; 200_000].join(",");
    let record = world.with(&property(serde_json::from_str(&format!("[{items}]")).unwrap()));
    let values: Vec<String> = (100..400).map(|n| n.to_string()).collect();
    let list = values.join(",");
    let patterns = vec!["a~=\"x\""; 400].join(";");
    for (text, gave_up) in [
        ("a==7".to_owned(), None),
        ("a==8".to_owned(), None),
        (format!("a=={list}"), Some(GaveUp::Work)),
        (format!("a!={list}"), Some(GaveUp::Work)),
        (format!("{patterns}|a==8"), None),
        (vec!["a==8"; 400].join("|"), Some(GaveUp::Work)),
    ] {
        let env = Env::new(&world.symbols);
        let matched = compile(&text).matches(&record, &env, None);
        assert_eq!(env.gave_up(), gave_up, "{}", &text[..20]);
        assert_eq!(matched, text == "a==7", "{}", &text[..20]);
    }
}

#[test]
fn clause_4_9_names_that_are_no_attributes_are_refused() {
    for text in ["id==urn:a:1", "type==T", "owner{id}==urn:a:1"] {
        let error = Compiled::new("q", &parse(text).unwrap(), Options::default(), &expand()).unwrap_err();
        assert!(error.to_string().contains("is not an attribute; use the parameter"), "{error}");
    }
    let failing: Box<crate::query::names::Expand<'_>> = Box::new(|_| Err("no such prefix".into()));
    let error = Compiled::new("q", &parse("x:y").unwrap(), Options::default(), &failing).unwrap_err();
    assert_eq!(error.to_string(), "q: the name \"x:y\" cannot be expanded: no such prefix");
}

#[test]
fn clause_5_7_2_4_system_attributes_alone_do_not_qualify() {
    for (text, expected) in
        [("modifiedAt>2020-01-01T00:00:00Z", false), ("createdAt;a", true), ("a{b}", true)]
    {
        assert_eq!(parse(text).unwrap().names_attribute(), expected, "{text}");
    }
}

#[test]
fn required_attributes_are_necessary() {
    let world = World::new();
    let [a, b] = ["a", "b"].map(|name| world.symbol(name));
    for (text, required) in [
        ("a", Some(vec![a])),
        ("a;b==1", Some(vec![a, b])),
        ("a|b", Some(vec![])),
        ("(a;b)|a>1", Some(vec![a])),
        ("!a", Some(vec![])),
        ("a{x}==1", Some(vec![a])),
        ("unknown", None),
        ("unknown|a", Some(vec![a])),
        ("unknown;a", None),
        ("createdAt", Some(vec![])),
    ] {
        assert_eq!(compile(text).required(&world.symbols), required, "{text}");
    }
}

#[test]
fn values_list_names() {
    assert_eq!(parse_names("expandValues", "a, ex:b").unwrap(), ["a", "ex:b"]);
    assert_eq!(
        parse_names("jsonKeys", "a,").unwrap_err().to_string(),
        "jsonKeys: expected an attribute name at character 3"
    );
}

// Trees, printed and read again.

fn any_literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        any::<i32>().prop_map(|number| Literal::Number(f64::from(number) / 8.0)),
        any::<bool>().prop_map(Literal::Bool),
        "[a-c\"\\\\é;|()]{0,4}".prop_map(|text| Literal::text(&text)),
        (0..4_000_000_000_000_000_i64).prop_map(|micros| Literal::DateTime(crate::time::Instant(micros))),
        (-1000..40_000_i64).prop_map(Literal::Date),
        (0..86_400_000_000_i64).prop_map(Literal::Time),
        "urn:[a-c0-9:./-]{1,6}".prop_map(|text| Literal::Uri(text.into())),
    ]
}

fn any_test() -> impl Strategy<Value = Test> {
    let comparable = any_literal().prop_filter("comparable", Literal::is_comparable);
    let same = |(low, high): &(Literal, Literal)| low.same_type(high) && low.is_comparable();
    let operand = prop_oneof![
        any_literal().prop_map(Operand::One),
        prop::collection::vec(any_literal(), 2..4).prop_map(Operand::List),
        (any_literal(), any_literal())
            .prop_filter("same", same)
            .prop_map(|(low, high)| Operand::Range(low, high)),
    ];
    let order = prop::sample::select(vec![Order::Less, Order::LessEq, Order::Greater, Order::GreaterEq]);
    prop_oneof![
        Just(Test::Exists),
        Just(Test::Absent),
        (any::<bool>(), operand).prop_map(|(negated, operand)| Test::Equal { negated, operand }),
        (order, comparable).prop_map(|(operator, value)| Test::Order { operator, value }),
        (any::<bool>(), "[a-c.^$\"]{1,4}")
            .prop_map(|(negated, text)| Test::Pattern { negated, pattern: Pattern::compile(&text).unwrap() }),
    ]
}

fn any_path() -> impl Strategy<Value = Path> {
    let name = "[a-c][a-c0-9_]{0,2}";
    let hop = (name, prop::collection::vec(name, 0..3));
    let hop = hop.prop_map(|(relationship, types)| Hop { relationship, types });
    let names = prop::collection::vec(name, 1..3);
    let member = prop::collection::vec("[a-c*@-]{1,3}", 0..3);
    (prop::collection::vec(hop, 0..3), names, member).prop_map(|(hops, names, member)| Path {
        hops,
        names,
        member,
    })
}

fn any_query() -> impl Strategy<Value = Query> {
    let term = (any_path(), any_test()).prop_map(|(path, test)| Query::Term(Term { path, test }));
    term.prop_recursive(3, 12, 3, |inner| {
        let parts = prop::collection::vec(inner, 1..4);
        (any::<bool>(), parts)
            .prop_map(|(any, parts)| if any { Query::any(parts) } else { Query::all(parts) })
    })
}

/// Two-valued logic over existence of the attributes a to c, written out plainly.
fn oracle(query: &Query, has: &[&str]) -> bool {
    match query {
        Query::Any(parts) => parts.iter().any(|part| oracle(part, has)),
        Query::All(parts) => parts.iter().all(|part| oracle(part, has)),
        Query::Term(term) => has.contains(&term.path.names[0].as_str()) != (term.test == Test::Absent),
    }
}

fn existence_query() -> impl Strategy<Value = Query> {
    let term = ("[abc]", any::<bool>()).prop_map(|(name, absent)| {
        let path = Path { names: vec![name], ..Path::default() };
        Query::Term(Term { path, test: if absent { Test::Absent } else { Test::Exists } })
    });
    term.prop_recursive(4, 16, 3, |inner| {
        let parts = prop::collection::vec(inner, 1..4);
        (any::<bool>(), parts)
            .prop_map(|(any, parts)| if any { Query::any(parts) } else { Query::all(parts) })
    })
}

proptest! {
    #[test]
    fn printed_trees_read_back(query in any_query()) {
        prop_assert_eq!(parse(&query.to_string()), Ok(query));
    }

    #[test]
    fn any_text_is_answered(text in "[ab10.,:;|()\\[\\]{}=!<>~\"\\\\ é-]{0,24}") {
        if let Ok(query) = parse(&text) {
            let printed = query.to_string();
            prop_assert_eq!(parse(&printed), Ok(query.clone()), "{}", printed);
            let world = World::new();
            let record = world.with(&json!({"type": "Property", "value": {"a": 1}}));
            if let Ok(compiled) = Compiled::new("q", &query, Options::default(), &expand()) {
                compiled.matches(&record, &Env::new(&world.symbols), None);
            }
        }
    }

    #[test]
    fn any_unicode_is_answered(text in "\\PC{0,40}") {
        let _ = parse(&text);
    }

    #[test]
    fn logic_agrees_with_an_oracle(query in existence_query(), has in prop::collection::hash_set("[abc]", 0..3)) {
        let world = World::new();
        let mut entity = json!({"id": "urn:e:1", "type": "T"});
        for name in &has {
            entity[name] = property(json!(1));
        }
        let record = world.record(&entity);
        let has: Vec<&str> = has.iter().map(String::as_str).collect();
        let holds = holds(&world, &query.to_string(), &record);
        prop_assert_eq!(holds, oracle(&query, &has));
        let required = compile(&query.to_string()).required(&world.symbols);
        let all = required.is_some_and(|all| all.iter().all(|symbol| record.has(*symbol)));
        prop_assert!(all || !holds, "an attribute is called required and is not");
    }

    #[test]
    fn numbers_agree_with_plain_comparison(own in -5..5_i32, other in -5..5_i32) {
        let world = World::new();
        let record = world.with(&property(json!(own)));
        let found = own.cmp(&other);
        for (token, expected) in [
            ("==", found == Ordering::Equal),
            ("!=", found != Ordering::Equal),
            (">", found == Ordering::Greater),
            (">=", found != Ordering::Less),
            ("<", found == Ordering::Less),
            ("<=", found != Ordering::Greater),
        ] {
            prop_assert_eq!(holds(&world, &format!("a{token}{other}"), &record), expected);
        }
    }
}
