use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: Result<(&str, &str), NameError>) {
    let name = StreamName::new(text);
    assert_eq!(name.as_ref().map(|n| (n.namespace(), n.local())).map_err(|e| *e), expected, "{text:?}");
    assert_eq!(CacheName::new(text).err(), expected.err(), "{text:?}");
}

#[test]
fn the_first_dot_splits() {
    check("orders", Ok(("default", "orders")));
    check("demo.readings", Ok(("demo", "readings")));
    check("demo.readings.raw", Ok(("demo", "readings.raw")));
    check("a..b", Ok(("a", ".b")));
    check("__consumer_offsets", Ok(("default", "__consumer_offsets")));
}

#[test]
fn a_stream_has_one_name() {
    check("default.orders", Err(NameError::DefaultNamespace));
    check("default", Ok(("default", "default")));
}

#[test]
fn what_is_no_name() {
    check("", Err(NameError::Empty));
    check("a.", Err(NameError::Empty));
    check(".a", Err(NameError::Empty));
    check(".", Err(NameError::Dots));
    check("..", Err(NameError::Dots));
    check("a b", Err(NameError::Character(' ')));
    check("größe", Err(NameError::Character('ö')));
    check(&"x".repeat(249), Ok(("default", &"x".repeat(249))));
    check(&"x".repeat(250), Err(NameError::TooLong { len: 250, max: 249 }));
    check(&format!("{}.x", "n".repeat(65)), Err(NameError::TooLong { len: 65, max: 64 }));
}

#[test]
fn scopes_have_no_dots() {
    assert_eq!(Tenant::new("a.b"), Err(NameError::Character('.')));
    assert_eq!(Namespace::new(""), Err(NameError::Empty));
    assert_eq!(Tenant::default().as_str(), "default");
}

#[test]
fn groups_are_called_what_they_like() {
    assert!(GroupName::new("console-consumer-1 (größe)").is_ok());
    assert_eq!(GroupName::new("a\n"), Err(NameError::Character('\n')));
}

#[test]
fn internal_names() {
    assert!(StreamName::new("_trifid.offsets").unwrap().is_internal());
    assert!(!StreamName::new("__consumer_offsets").unwrap().is_internal());
}

proptest! {
    #[test]
    fn a_name_is_made_of_its_parts(text in "[a-d.]{0,12}") {
        if let Ok(name) = StreamName::new(&text) {
            let namespace = Namespace::new(name.namespace()).unwrap();
            prop_assert_eq!(StreamName::within(&namespace, name.local()).unwrap(), name);
        }
    }
}
