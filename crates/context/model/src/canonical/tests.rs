use proptest::prelude::*;

use super::*;
use crate::render::tests::model::{self, ent, entity, inst};

fn written(record: &Record, symbols: &Symbols) -> Vec<u8> {
    let mut out = Vec::new();
    write(record, symbols, &mut out);
    out
}

/// Equal in every byte; both records must use the same table.
fn same(a: &Record, b: &Record) -> bool {
    let parts = |record: &Record| {
        let instances: Vec<Vec<u8>> = record.instances().map(|instance| instance.bytes().to_vec()).collect();
        let times = (record.created(), record.modified(), record.expires());
        let scopes: Vec<String> = record.scopes().map(str::to_owned).collect();
        (record.id().to_owned(), record.types().collect::<Vec<_>>(), scopes, times, instances)
    };
    parts(a) == parts(b)
}

#[test]
fn the_form_is_this() {
    let symbols = Symbols::new();
    let mut speed = inst(Kind::Property, serde_json::json!(55));
    speed.subs.push(("by".into(), vec![inst(Kind::Relationship, serde_json::json!("urn:x:2"))]));
    speed.slots.push((Slot::ValueType, "Speed".into()));
    speed.expires = Some(1);
    let other =
        model::Inst { dataset: Some("urn:d:1".into()), ..inst(Kind::Property, serde_json::json!(56)) };
    let mut entity = ent("urn:x:1", "T", vec![("speed", speed)]);
    entity.attributes[0].1.push(other);
    entity.scopes.push("/a".into());
    let text = String::from_utf8(written(&entity.record(&symbols), &symbols)).unwrap();
    let times = r#""createdAt":"1970-01-01T00:00:00Z","modifiedAt":"1970-01-01T00:00:00Z""#;
    let vocab = model::VOCAB;
    let expected = [
        &format!(r#"{{"format":1,"id":"urn:x:1","type":["{vocab}T"],"scope":["/a"],{times},"#),
        &format!(r#""{vocab}speed":[{{"type":"Property","value":55,"valueType":["{vocab}Speed"],{times},"#),
        r#""expiresAt":"1970-01-01T00:00:00.000001Z","#,
        &format!(r#""{vocab}by":{{"type":"Relationship","object":"urn:x:2",{times}}}}},"#),
        &format!(r#"{{"type":"Property","value":56,"datasetId":"urn:d:1",{times}}}]}}"#),
    ];
    assert_eq!(text, expected.concat());
}

#[test]
fn names_that_could_be_members_are_told_apart() {
    let (symbols, budget) = (Symbols::new(), Budget::new(10));
    let mut draft = Draft {
        id: "urn:x:1".into(),
        types: SmallVec::new(),
        scopes: Vec::new(),
        created: Instant(0),
        modified: Instant(0),
        expires: None,
        instances: Vec::new(),
    };
    draft.types.push(symbols.intern("type", &budget).unwrap());
    for name in ["type", "id", ":", ":a", "a:b"] {
        let symbol = symbols.intern(name, &budget).unwrap();
        let mut bytes = Vec::new();
        InstanceDraft::new(Kind::Property, "1".into()).encode(symbol, &mut bytes);
        draft.insert(symbol, Cow::Owned(bytes));
    }
    let record = draft.encode();
    assert!(same(&read(&written(&record, &symbols), &symbols, &budget).unwrap(), &record));
}

#[test]
fn what_write_did_not_write_is_refused() {
    let (symbols, budget) = (Symbols::new(), Budget::new(1));
    let times = r#""createdAt":"1970-01-01T00:00:00Z","modifiedAt":"1970-01-01T00:00:00Z""#;
    let good = format!(r#"{{"format":1,"id":"urn:x:1","type":["a:T"],{times}}}"#);
    assert!(read(good.as_bytes(), &symbols, &budget).is_ok());
    let refused = |text: &str| read(text.as_bytes(), &symbols, &budget).unwrap_err().to_string();
    assert_eq!(
        refused(&good.replace("1,\"id", "2,\"id")),
        "written in format 2; this version reads format 1"
    );
    assert_eq!(
        refused(&good.replace("a:T", "a:U")),
        "this tenant has introduced 1 distinct names of types and attributes and may introduce no more"
    );
    for (from, to, error) in [
        (r#""format":1,"#, "", "member \"format\" does not come first at byte 0"),
        (r#""id":"urn:x:1","#, "", "member \"id\" is missing at byte 0"),
        (r#","type":["a:T"]"#, "", "member \"type\" is missing at byte 0"),
        (r#"["a:T"]"#, "[]", "member \"type\" is no list of names, or too long a one at byte 34"),
        (r#"["a:T"]"#, "[1]", "member \"type\" holds what is no name at byte 35"),
        ("createdAt", "created", "member \"created\" is unknown at byte 52"),
        (
            "00Z\"}",
            "00Z\",\"a:T\":5}",
            "member \"a:T\" does not begin with the type of an attribute at byte 119",
        ),
        ("\"id\":", "\"id\": ", "member \"\" has white space around it or is no object at byte 0"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good);
        assert_eq!(refused(&text), error, "{text}");
    }
    assert_eq!(refused("["), "unexpected end of JSON text at byte 1");
}

#[test]
fn an_instance_stands_for_itself() {
    let (symbols, budget) = (Symbols::new(), Budget::new(10));
    let record =
        ent("urn:x:1", "T", vec![("a", inst(Kind::Property, serde_json::json!(5)))]).record(&symbols);
    let instance = record.instances().next().unwrap();
    let mut out = Vec::new();
    write_instance(instance, &symbols, &mut out);
    assert_eq!(read_instance(&out, &symbols, &budget).unwrap(), instance.bytes());
    assert!(read_instance(b"{}", &symbols, &budget).is_err());
    assert!(read_instance(br#"{"id":{}}"#, &symbols, &budget).is_err());
}

proptest! {
    #[test]
    fn reading_inverts_writing(ent in entity()) {
        let symbols = Symbols::new();
        let record = ent.record(&symbols);
        let text = written(&record, &symbols);
        let budget = Budget::new(u32::MAX);
        prop_assert!(same(&read(&text, &symbols, &budget).unwrap(), &record));
        // Another process numbers its names otherwise.
        let others = Symbols::new();
        others.intern("a:first", &budget).unwrap();
        prop_assert_eq!(written(&read(&text, &others, &budget).unwrap(), &others), text);
        for instance in record.instances() {
            let mut out = Vec::new();
            write_instance(instance, &symbols, &mut out);
            prop_assert_eq!(&read_instance(&out, &symbols, &budget).unwrap(), instance.bytes());
        }
    }

    #[test]
    fn damage_is_answered(ent in entity(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let symbols = Symbols::new();
        let mut text = written(&ent.record(&symbols), &symbols);
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(record) = read(&text, &symbols, &Budget::new(u32::MAX)) {
            // What is read is whole: it can be written and read again.
            let again = written(&record, &symbols);
            prop_assert!(same(&read(&again, &symbols, &Budget::new(u32::MAX)).unwrap(), &record));
        }
    }
}
