//! What is refused, in words that say where and what would be right.

use super::*;
use crate::json::Doc;
use crate::ld::Context;
use crate::symbol::{Budget, Symbols};

/// The refusal of an entity with this member; empty when it is accepted.
fn refusal(member: &str) -> String {
    let text = format!("{{\"id\":\"urn:a:1\",\"type\":\"T\",{member}}}");
    let (context, symbols, budget) = (Context::identity(), Symbols::new(), Budget::new(1000));
    let reader = Reader { context: &context, symbols: &symbols, budget: &budget, mode: Mode::default() };
    let doc = Doc::parse(text.as_bytes()).unwrap();
    reader.entity(doc.root()).err().map_or_else(String::new, |error| error.to_string())
}

#[test]
fn a_refusal_names_the_member_and_the_mistake() {
    const TYPES: &str = "use Property, GeoProperty, Relationship, LanguageProperty, VocabProperty, JsonProperty, \
                         ListProperty or ListRelationship (4.5)";
    for (member, expected) in [
        (r#""a":{"type":"string","value":1}"#, format!("a.type: \"string\" is no attribute type: {TYPES}")),
        (
            r#""a":{"type":"Property","value":1,"b":{"type":"Property ","value":1}}"#,
            format!("a.b.type: \"Property \" is no attribute type: {TYPES}"),
        ),
        (r#""a":{"type":5,"value":1}"#, "a.type: must be a string".into()),
        (
            r#""location":{"type":"Property","value":{"type":"Point","coordinates":[1,2]}}"#,
            "location: must be a GeoProperty holding a GeoJSON geometry (4.7.1)".into(),
        ),
        (
            r#""location":{"type":"Point","coordinates":[-56.6,168.4]}"#,
            "location: coordinates has the latitude 168.4, which is not within -90 and 90 (positions are \
             longitude, latitude)"
                .into(),
        ),
        (
            r#""address":{"type":"PostalAddress","street":"x"}"#,
            "address: its \"type\" is no attribute type; wrap an object value that has a \"type\" of its own in \
             {\"value\": ...} (4.5.2.3)"
                .into(),
        ),
        (
            r#""a":{"type":"Property","value":1,"observedAt":"2021-03-11T15:51:02+05:30"}"#,
            "a.observedAt: \"2021-03-11T15:51:02+05:30\" is not a UTC dateTime such as 2026-01-31T12:00:00.5Z"
                .into(),
        ),
        (
            r#""a":{"type":"Relationship","object":"2020-03-17T08:45:00Z"}"#,
            "a.object: \"2020-03-17T08:45:00Z\" is not a URI such as urn:ngsi-ld:Vehicle:1 (4.5.1)".into(),
        ),
        (r#""unitCode":"KMH""#, "unitCode: belongs inside an attribute and cannot be one itself (4.5.1)".into()),
        (
            r#""featuredArtist ":1"#,
            "\"featuredArtist \" is not a valid name: a letter, then letters, digits and underscores, or an IRI \
             (4.6.2)"
                .into(),
        ),
        (
            r#""a":{"type":"Property","value":1,"object":"urn:a:2"}"#,
            "a: has more than one of value, object, languageMap, vocab, json, valueList, objectList".into(),
        ),
        (
            r#""a":{"type":"Relationship","value":1}"#,
            "a.value: does not belong to a Relationship, which has object".into(),
        ),
        (r#""a":{"type":"Property","value":null}"#, "a.value: must not be null".into()),
        (r#""scope":"/a//b""#, "scope: \"/a//b\" is not a scope: levels of letters, digits and underscores, each \
                                beginning with a letter, separated by / (4.18)".into()),
    ] {
        assert_eq!(refusal(member), expected, "{member}");
    }
}

#[test]
fn what_people_post_is_accepted() {
    for member in [
        r#""a":{"type":"Property","value":{"@type":"DateTime","@value":"2022-07-01T17:00:00.00Z"}}"#,
        r#""a":{"@type":"DateTime","@value":"yesterday"}"#,
        r#""a":"2022-07-01T17:00:00+01:00/2022-07-01T18:00:00+01:00""#,
        r#""a":{"type":"Property","value":{"type":"PostalAddress","street":"x"}}"#,
        r#""a":{"type":"Property","value":{"type":"Point","coordinates":[1,2]}}"#,
        r#""a":{"type":"Property","value":[],"b":{"c":1}}"#,
        r#""a":{"type":"Property","value":1,"createdAt":"not ours to read"}"#,
    ] {
        assert_eq!(refusal(member), "", "{member}");
    }
}

#[test]
fn a_refusal_is_short_whatever_was_sent() {
    let long = "x".repeat(100_000);
    for member in [
        format!("\"{long}\":1"),
        format!("\"a\":{{\"value\":1,\"observedAt\":\"{long}\"}}"),
        format!("\"a\":{{\"type\":\"{long}\",\"value\":1}}"),
        format!("\"a\":{{\"object\":\"{long}\"}}"),
        format!("\"a\":{{\"type\":\"GeoProperty\",\"value\":{{\"type\":\"{long}\",\"coordinates\":[]}}}}"),
        format!("\"a\":{{\"type\":\"LanguageProperty\",\"languageMap\":{{\"{long}\":1}}}}"),
        format!("\"scope\":\"{long}-\""),
    ] {
        let refusal = refusal(&member);
        assert!((1..600).contains(&refusal.len()), "{refusal}");
    }
}
