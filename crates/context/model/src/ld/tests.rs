use std::sync::{Arc, LazyLock};

use proptest::prelude::*;

use super::limits::{
    MAX_CHAIN, MAX_CONFLICTS, MAX_DOCUMENTS, MAX_IRI_BYTES, MAX_PIECES, MAX_PREFIX_LENGTHS, MAX_TERMS,
};
use super::*;
use crate::json::Doc;
use crate::symbol::{Budget, Symbols};

const USER: &str = r#"{
    "ex": "https://example.org/terms#",
    "speed": "ex:speed",
    "Vehicle": {"@id": "ex:Vehicle"},
    "velocity": {"@id": "ex:speed", "@type": "@id"},
    "gone": null,
    "backwards": {"@reverse": "ex:of"},
    "identifier": "@id",
    "location": "ex:elsewhere"
}"#;

static CORES: LazyLock<Cores> = LazyLock::new(Cores::new);

/// A web of documents by URL, and the context that `value` makes of it.
fn try_load(value: &str, web: &[(&str, &str)]) -> Result<Context, ContextError> {
    let doc = Doc::parse(value.as_bytes()).unwrap();
    let mut loader = Loader::new(Arc::new(parse_context(doc.root(), None)?));
    while let Step::Need(urls) = loader.step()? {
        for url in urls {
            let (_, text) = web.iter().find(|(known, _)| **known == *url).expect("the test knows the URL");
            loader.supply(&url, Arc::new(parse_document(text.as_bytes(), &url)?));
        }
    }
    loader.finish(&CORES, CoreVersion::V1_8, Announcement::json(doc.root()))
}

fn load(value: &str) -> Context {
    try_load(value, &[]).unwrap()
}

fn refused(value: &str, expected: &str) {
    let error = try_load(value, &[]).unwrap_err();
    assert_eq!(error.to_string(), expected, "{value}");
}

fn round_trips(context: &Context, name: &str, iri: &str) {
    assert_eq!(context.expand(name).unwrap(), iri, "{name}");
    let compacted = context.compact(iri);
    assert_eq!(context.expand(&compacted).unwrap(), iri, "{name}: {compacted}");
}

#[test]
fn names_of_a_user_context_expand_as_5_5_7_says() {
    let context = load(USER);
    for (name, iri) in [
        ("speed", "https://example.org/terms#speed"),
        ("Vehicle", "https://example.org/terms#Vehicle"),
        ("ex:other", "https://example.org/terms#other"),
        ("https://example.org/x", "https://example.org/x"),
        ("urn:x:y", "urn:x:y"),
        ("unknown", "https://uri.etsi.org/ngsi-ld/default-context/unknown"),
        ("identifier", "@id"),
        ("id", "@id"),
        ("@type", "@type"),
        ("ngsi-ld:Thing", "https://uri.etsi.org/ngsi-ld/Thing"),
    ] {
        round_trips(&context, name, iri);
    }
}

#[test]
fn the_core_cannot_be_overridden_wherever_it_stands() {
    let url = CoreVersion::V1_8.url();
    for value in [USER.to_owned(), format!("[\"{url}\", {USER}]"), format!("[{USER}, \"{url}\"]")] {
        let context = load(&value);
        round_trips(&context, "location", "https://uri.etsi.org/ngsi-ld/location");
        assert_eq!(context.compact("https://example.org/terms#elsewhere"), "ex:elsewhere");
    }
}

#[test]
fn compaction_takes_the_shortest_term_then_the_bare_name_then_a_prefix() {
    let context = load(USER);
    for (iri, name) in [
        ("https://example.org/terms#speed", "speed"),
        ("https://example.org/terms#other", "ex:other"),
        ("https://uri.etsi.org/ngsi-ld/default-context/foo", "foo"),
        ("https://uri.etsi.org/ngsi-ld/Thing", "ngsi-ld:Thing"),
        ("https://uri.etsi.org/ngsi-ld/default-context/location", "ngsi-ld:default-context/location"),
        ("https://nowhere.example/x", "https://nowhere.example/x"),
        ("@id", "id"),
        ("@type", "type"),
    ] {
        assert_eq!(context.compact(iri), name);
    }
}

#[test]
fn names_that_cannot_be_names_are_told_apart() {
    let context = load(USER);
    assert_eq!(context.expand(""), Err(NameError::Empty));
    assert_eq!(context.expand("@foo"), Err(NameError::Keyword("@foo".into())));
    assert_eq!(context.expand("_:b"), Err(NameError::Blank("_:b".into())));
    for name in ["gone", "backwards"] {
        assert_eq!(context.expand(name), Err(NameError::Unusable(name.into())));
    }
}

#[test]
fn every_core_term_round_trips_in_every_version() {
    for version in CoreVersion::ALL {
        let context = CORES.get(version);
        let text = version.document();
        let doc = Doc::parse(text.as_bytes()).unwrap();
        let members = doc.root().get("@context").unwrap();
        for (term, _) in members.members().filter(|(term, _)| !term.starts_with('@')) {
            let iri = context.expand(&term).unwrap();
            assert_eq!(context.compact(&iri), term, "{version:?}");
            assert!(is_absolute(&iri) || iri.starts_with('@'), "{iri}");
        }
        assert_eq!(context.link(), Some(version.url()));
        assert_eq!(context.json(), format!("\"{}\"", version.url()));
    }
}

#[test]
fn the_generated_core_document_means_what_the_table_means() {
    let text = CoreVersion::V1_8.document();
    let doc = Doc::parse(text.as_bytes()).unwrap();
    // Under other names, so that the built-in core does not answer for the document.
    let renamed: Vec<String> = doc
        .root()
        .get("@context")
        .unwrap()
        .members()
        .filter(|(term, _)| !term.starts_with('@') && term != "ngsi-ld" && term != "geojson")
        .map(|(term, value)| {
            let id = value.get("@id").unwrap_or(value).as_str().unwrap().into_owned();
            format!("\"my{term}\": \"{}\"", if id.starts_with("attribute") { "attributeCount" } else { &id })
        })
        .collect();
    let context = load(&format!("{{{}}}", renamed.join(",")));
    for name in ["value", "Property", "bbox", "createdAt", "type", "description", "entityMap"] {
        let core = CORES.get(CoreVersion::V1_8).expand(name).unwrap().into_owned();
        assert_eq!(context.expand(&format!("my{name}")).unwrap(), core);
    }
}

#[test]
fn the_version_that_is_named_last_is_the_core() {
    let version = |value: &str| load(value).version();
    assert_eq!(version("{}"), Some(CoreVersion::V1_8));
    let (old, new) = (CoreVersion::V1_6.url(), CoreVersion::V1_9.url());
    assert_eq!(version(&format!("[\"{old}\", \"{new}\"]")), Some(CoreVersion::V1_9));
    assert_eq!(version(&format!("\"{old}\"")), Some(CoreVersion::V1_6));
}

#[test]
fn definitions_may_stand_in_any_order_and_use_earlier_contexts() {
    let context = load(r#"{"a": "p:a", "p": "q:p/", "q": "http://q.example/"}"#);
    round_trips(&context, "a", "http://q.example/p/a");
    let context = load(r#"[{"p": "http://p.example/"}, {"a": "p:a"}, {"b": {"@id": "a"}}]"#);
    round_trips(&context, "b", "http://p.example/a");
}

#[test]
fn later_contexts_win_and_null_forgets() {
    let context = load(r#"[{"a": "http://one.example/a"}, {"a": "http://two.example/a"}]"#);
    round_trips(&context, "a", "http://two.example/a");
    let context = load(r#"[{"a": "http://one.example/a"}, null, {"b": "http://two.example/b"}]"#);
    round_trips(&context, "a", "https://uri.etsi.org/ngsi-ld/default-context/a");
    round_trips(&context, "b", "http://two.example/b");
}

#[test]
fn a_users_vocab_serves_the_users_definitions_alone() {
    let context = load(r#"{"@vocab": "http://v.example/", "a": "b", "c": {"@type": "@id"}}"#);
    round_trips(&context, "a", "http://v.example/b");
    round_trips(&context, "c", "http://v.example/c");
    // The core is the last context, and its @vocab with it (4.4).
    round_trips(&context, "d", "https://uri.etsi.org/ngsi-ld/default-context/d");
}

#[test]
fn only_prefixes_take_part_in_compact_iris() {
    let context = load(
        r#"{"plain": "http://a.example/x", "object": {"@id": "http://b.example/"},
            "forced": {"@id": "http://c.example/x", "@prefix": true}}"#,
    );
    assert_eq!(context.expand("plain:y").unwrap(), "plain:y");
    assert_eq!(context.expand("object:y").unwrap(), "object:y");
    round_trips(&context, "forced:y", "http://c.example/xy");
}

#[test]
fn a_defined_compact_iri_is_not_given_away_for_another_iri() {
    // `ex:a` is a term of its own, so the IRI that it would stand for needs another name.
    let context =
        load(r#"[{"ex": "http://one.example/", "ex:a": {"@id": "ex:a"}}, {"ex": "http://two.example/"}]"#);
    round_trips(&context, "ex:a", "http://one.example/a");
    assert_eq!(context.compact("http://two.example/a"), "http://two.example/a");
    assert_eq!(context.compact("http://two.example/b"), "ex:b");
}

#[test]
fn documents_are_followed_relative_to_their_own_address() {
    let web = [
        ("http://h.example/d/one.jsonld", r#"{"@context": ["../two.jsonld", {"a": "p:a"}], "other": 1}"#),
        ("http://h.example/two.jsonld", r#"{"@context": [["d/three.jsonld"]]}"#),
        ("http://h.example/d/three.jsonld", r#"{"@context": {"p": "http://p.example/"}}"#),
    ];
    let context = try_load(r#""http://h.example/d/one.jsonld""#, &web).unwrap();
    round_trips(&context, "a", "http://p.example/a");
    assert_eq!(context.link(), Some("http://h.example/d/one.jsonld"));
}

#[test]
fn what_an_answer_names_is_what_the_client_named() {
    let web = [("http://h.example/c", r#"{"@context": {}}"#)];
    let one = try_load(r#"["http://h.example/c"]"#, &web).unwrap();
    assert_eq!((one.link(), one.json()), (Some("http://h.example/c"), r#"["http://h.example/c"]"#));
    let inline = load(r#"{ "a": "urn:a" }"#);
    assert_eq!((inline.link(), inline.json()), (None, r#"{"a":"urn:a"}"#));
}

#[test]
fn documents_that_include_themselves_are_refused() {
    let web = [
        ("http://h.example/a", r#"{"@context": "b"}"#),
        ("http://h.example/b", r#"{"@context": ["c", "a"]}"#),
        ("http://h.example/c", r#"{"@context": {}}"#),
    ];
    let error = try_load(r#""http://h.example/a""#, &web).unwrap_err();
    assert_eq!(error, ContextError::Cycle("http://h.example/a".into()));
    // Twice, but not inside itself, is allowed.
    assert!(try_load(r#"["http://h.example/c", "http://h.example/c"]"#, &web).is_ok());
}

#[test]
fn documents_that_multiply_are_refused() {
    let urls: Vec<String> = (0..=MAX_DOCUMENTS).map(|n| format!("http://h.example/{n}")).collect();
    let texts: Vec<String> =
        (1..=MAX_DOCUMENTS).map(|n| format!("{{\"@context\": [\"{n}\", \"{n}\"]}}")).collect();
    let mut web: Vec<(&str, &str)> =
        urls.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let error = try_load(r#""http://h.example/0""#, &web).unwrap_err();
    assert_eq!(error, ContextError::TooManyDocuments);
    web.truncate(20);
    web.push(("http://h.example/20", r#"{"@context": {}}"#));
    let error = try_load(r#""http://h.example/0""#, &web).unwrap_err();
    assert_eq!(error, ContextError::TooManyPieces);
}

#[test]
fn what_is_no_context_is_refused_with_its_place() {
    refused("42", "an @context is a URL, an object or an array of these, not a number");
    refused("true", "an @context is a URL, an object or an array of these, not a boolean");
    refused(r#"[{}, 7]"#, "an @context is a URL, an object or an array of these, not a number");
    refused(
        r#""context.jsonld""#,
        "the @context reference \"context.jsonld\" is not an absolute http or https URL",
    );
    refused(
        r#""file:///etc/passwd""#,
        "the @context reference \"file:///etc/passwd\" is not an absolute http or https URL",
    );
    refused(r#"{"@vocab": 1}"#, "in the @context, @vocab is neither a string nor null");
    refused(r#"{"@vocab": "a b"}"#, "in the @context, @vocab is no IRI");
    refused(r#"{"@version": 1.0}"#, "in the @context, @version is not 1.1");
    refused(
        r#"{"@import": "http://x"}"#,
        "in the @context, @import is not supported; name the document in the array instead",
    );
    refused(r#"{"@protected": "yes"}"#, "in the @context, @protected is not a boolean");
    assert_eq!(parse_document(b"[]", "http://x").unwrap_err(), ContextError::Missing);
    assert!(matches!(parse_document(b"{", "http://x").unwrap_err(), ContextError::Json(_)));
}

#[test]
fn a_bad_term_is_refused_by_name() {
    let term = |value: &str, reason: &str| refused(value, &format!("in the @context, the term {reason}"));
    term(
        r#"{"a": {"@id": "urn:a", "@context": {}}}"#,
        r#""a" has a scoped @context, which a user @context cannot have (5.5.7)"#,
    );
    term(r#"{"a": "b:x", "b": "a:y"}"#, r#""a" is defined by itself"#);
    term(r#"{"a": 5}"#, r#""a" is defined neither by a string nor by an object nor by null"#);
    term(r#"{"@id": "urn:a"}"#, r#""@id" is a keyword of JSON-LD"#);
    term(r#"{"": "urn:a"}"#, r#""" is empty"#);
    term(r#"{"a": "http://x y"}"#, r#""a" stands for "http://x y", which is no IRI"#);
    term(r#"{"a": "@context"}"#, r#""a" cannot stand for @context"#);
    term(r#"{"a": "@other"}"#, r#""a" stands for "@other", which is no IRI"#);
    term(r#"{"x:a": "urn:b"}"#, r#""x:a" looks like an IRI but stands for another one"#);
    term(r#"{"a": {"@id": 5}}"#, r#""a" has a member @id of the wrong kind"#);
    term(r#"{"a": {"@id": "urn:a", "@type": 5}}"#, r#""a" has a member @type of the wrong kind"#);
    term(
        r#"{"a": {"@id": "urn:a", "@container": "@bag"}}"#,
        r#""a" has a member @container of the wrong kind"#,
    );
    term(r#"{"a:b": {"@id": "a:b", "@prefix": true}}"#, r#""a:b" has a member @prefix of the wrong kind"#);
    term(
        r#"[{"@protected": true, "a": "urn:a"}, {"a": "urn:b"}]"#,
        r#""a" is protected by an earlier @context and cannot be redefined"#,
    );
    term(
        r#"[{"a": {"@id": "urn:a", "@protected": true}}, null]"#,
        r#""a" is protected by an earlier @context and cannot be redefined"#,
    );
    assert!(try_load(r#"[{"@protected": true, "a": "urn:a"}, {"a": "urn:a"}]"#, &[]).is_ok());
}

#[test]
fn expansion_bombs_are_refused() {
    let chain = |length: usize| {
        let links: Vec<String> = (1..length).map(|n| format!("\"p{n}\": \"p{}:x/\"", n + 1)).collect();
        format!("{{{}, \"p{length}\": \"http://h.example/\"}}", links.join(","))
    };
    assert!(try_load(&chain(MAX_CHAIN), &[]).is_ok());
    let error = try_load(&chain(MAX_CHAIN + 1), &[]).unwrap_err();
    assert!(matches!(error, ContextError::Term { reason: TermError::Chain, .. }), "{error}");

    let long = format!("{{\"a\": \"http://h/{}\"}}", "x".repeat(MAX_IRI_BYTES));
    let error = try_load(&long, &[]).unwrap_err();
    assert!(matches!(error, ContextError::Term { reason: TermError::Length, .. }), "{error}");

    let many: Vec<String> = (0..=MAX_TERMS).map(|n| format!("\"t{n}\":\"urn:{n}\"")).collect();
    assert_eq!(try_load(&format!("{{{}}}", many.join(",")), &[]).unwrap_err(), ContextError::TooManyTerms);

    let pieces = format!("[{}]", vec!["{}"; MAX_PIECES + 1].join(","));
    assert_eq!(try_load(&pieces, &[]).unwrap_err(), ContextError::TooManyPieces);
    let large = vec![b' '; limits::MAX_DOCUMENT_BYTES + 1];
    assert_eq!(parse_document(&large, "http://x").unwrap_err(), ContextError::Large);
}

#[test]
fn much_text_in_few_bytes_is_refused() {
    // Each term repeats a long prefix, so a document well below its limit would expand beyond all measure.
    let prefix = format!("http://h.example/{}/", "x".repeat(2000));
    let terms: Vec<String> = (0..20_000).map(|n| format!("\"t{n}\":\"p:{n}\"")).collect();
    let text = format!("{{\"p\":\"{prefix}\",{}}}", terms.join(","));
    assert_eq!(try_load(&text, &[]).unwrap_err(), ContextError::TooMuchText);
}

#[test]
fn prefixes_that_make_compaction_dear_are_refused() {
    let lengths = |count: usize| {
        let prefixes: Vec<String> =
            (1..=count).map(|n| format!("\"p{n}\": \"urn:{}/\"", "x".repeat(n))).collect();
        try_load(&format!("{{{}}}", prefixes.join(",")), &[])
    };
    // The core brings two prefixes of other lengths.
    assert!(lengths(200).is_ok());
    assert_eq!(lengths(MAX_PREFIX_LENGTHS + 1).unwrap_err(), ContextError::TooManyPrefixes);

    let conflicts = |count: usize| {
        let old: Vec<String> =
            (0..count).map(|n| format!("\"p{n}\":\"urn:a/\",\"p{n}:x\":\"urn:a/x\"")).collect();
        let new: Vec<String> = (0..count).map(|n| format!("\"p{n}\":\"urn:b/\"")).collect();
        try_load(&format!("[{{{}}},{{{}}}]", old.join(","), new.join(",")), &[])
    };
    let context = conflicts(MAX_CONFLICTS).unwrap();
    assert_eq!((context.compact("urn:b/x"), context.compact("urn:b/y")), ("urn:b/x".into(), "p0:y".into()));
    assert_eq!(conflicts(MAX_CONFLICTS + 1).unwrap_err(), ContextError::TooManyConflicts);
}

#[test]
fn the_identity_context_changes_nothing() {
    let context = Context::identity();
    for name in ["speed", "id", "", "https://x.example/y", "@foo"] {
        assert_eq!(context.expand(name).unwrap(), name);
        assert_eq!(context.compact(name), name);
    }
    assert_eq!(context.version(), None);
}

#[test]
fn a_key_is_the_compacted_name_as_a_json_string() {
    let symbols = Symbols::new();
    let budget = Budget::new(10);
    let context = load(r#"{"a\"b": "http://x.example/q"}"#);
    let quote = symbols.intern("http://x.example/q", &budget).unwrap();
    let bare = symbols.intern("https://uri.etsi.org/ngsi-ld/default-context/speed", &budget).unwrap();
    assert_eq!(context.key(&symbols, quote), br#""a\"b""#);
    assert_eq!(context.key(&symbols, bare), br#""speed""#);
    assert!(std::ptr::eq(context.key(&symbols, bare), context.key(&symbols, bare)));
    assert_eq!(Context::identity().key(&symbols, quote), br#""http://x.example/q""#);
}

#[test]
fn the_weight_grows_with_the_terms() {
    let (none, one, two) = (load("{}"), load(r#"{"a": "urn:a"}"#), load(r#"{"a": "urn:a", "b": "urn:b"}"#));
    assert!(none.weight() < one.weight() && one.weight() < two.weight());
    assert!((none.is_empty(), one.len(), two.len()) == (true, 1, 2));
}

/// Terms that collide with core terms, prefixes, keywords and each other.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-c]{1,2}",
        "[a-c]:[a-c/#]{0,3}",
        "(id|type|location|value|geojson|ngsi-ld|@id|@type|@vocab|@x)",
        "(ngsi-ld|geojson):[a-c]{0,2}",
        "https://uri\\.etsi\\.org/ngsi-ld/(default-context/)?[a-c/]{0,3}",
        "http://h/[a-c]{0,2}[/#]?[a-c]?",
        "[a-z:/#@\"é ]{0,6}",
    ]
}

fn definition() -> impl Strategy<Value = serde_json::Value> {
    let iri = prop_oneof![name(), "http://h/[a-c]{0,2}[/#]?", "[a-c]:[a-c]?"];
    prop_oneof![
        4 => iri.clone().prop_map(serde_json::Value::String),
        2 => (iri, any::<bool>(), any::<bool>())
            .prop_map(|(id, prefix, own)| if own {
                serde_json::json!({"@type": "@id", "@prefix": prefix})
            } else {
                serde_json::json!({"@id": id, "@prefix": prefix})
            }),
        1 => Just(serde_json::Value::Null),
    ]
}

fn context_value() -> impl Strategy<Value = serde_json::Value> {
    let object = prop::collection::btree_map(name(), definition(), 0..6)
        .prop_map(|map| serde_json::Value::Object(map.into_iter().collect()));
    prop::collection::vec(object, 1..4).prop_map(serde_json::Value::from)
}

/// Leaves out definitions that are refused alone, so that most contexts survive.
fn acceptable(value: &serde_json::Value) -> serde_json::Value {
    let keep = |object: &serde_json::Value| {
        let kept = object.as_object().unwrap().iter().filter(|(name, definition)| {
            let alone = serde_json::json!({ (*name).clone(): definition });
            try_load(&alone.to_string(), &[]).is_ok()
        });
        serde_json::Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    value.as_array().unwrap().iter().map(keep).collect()
}

proptest! {
    #[test]
    fn compaction_is_the_exact_inverse_of_expansion(
        value in context_value(),
        names in prop::collection::vec(name(), 1..20),
    ) {
        let Ok(context) = try_load(&acceptable(&value).to_string(), &[]) else { return Ok(()) };
        let terms: Vec<String> = context.terms().map(str::to_owned).collect();
        for name in names.iter().chain(&terms) {
            let Ok(iri) = context.expand(name) else { continue };
            let compacted = context.compact(&iri);
            let again = context.expand(&compacted).map(|iri| iri.into_owned());
            prop_assert_eq!(again, Ok(iri.clone().into_owned()), "{} via {}", name, compacted);
            // Compacting once is final.
            prop_assert_eq!(context.compact(&iri), compacted);
        }
    }

    #[test]
    fn no_user_context_changes_a_core_name(value in context_value()) {
        let Ok(context) = try_load(&acceptable(&value).to_string(), &[]) else { return Ok(()) };
            let core = CORES.get(CoreVersion::V1_8);
        for name in ["id", "type", "location", "value", "geojson", "ngsi-ld:x", "createdAt"] {
            prop_assert_eq!(context.expand(name), core.expand(name));
            let iri = core.expand(name).unwrap();
            // A user may have a shorter prefix for the namespace of the core, but no other term for its IRIs.
            prop_assert!(name == "ngsi-ld:x" || context.compact(&iri) == name, "{}", name);
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = fuzz(&bytes);
    }

    #[test]
    fn any_context_document_is_answered(value in context_value(), extra in "[\\[\\]{}:,\"@a-c0-9 ]{0,8}") {
        let _ = fuzz(serde_json::json!({ "@context": value }).to_string().as_bytes());
        let _ = fuzz(format!("{{\"@context\": {{\"a\": {extra}}}}}").as_bytes());
    }
}
