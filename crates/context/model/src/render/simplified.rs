//! The simplified representation (4.5.4): values alone, without what is said about them.

use super::pen::{Pen, Place, close};
use super::scan;
use crate::record::{Instance, Kind};

/// Appends the value of one instance.
pub(super) fn value(pen: &mut Pen<'_, '_>, instance: Instance<'_>, place: Place<'_>) {
    match instance.kind() {
        Kind::Property | Kind::GeoProperty | Kind::ListProperty => {
            pen.out.extend_from_slice(instance.value_bytes());
        }
        Kind::Relationship | Kind::ListRelationship if pen.join.is_some() => {
            pen.joined_value(instance, place);
        }
        Kind::Relationship => pen.out.extend_from_slice(instance.value_bytes()),
        Kind::ListRelationship => targets(pen.out, instance.value()),
        Kind::LanguageProperty if pen.r.style.lang.is_some() => pen.text_in_one_language(instance),
        kind @ (Kind::LanguageProperty | Kind::JsonProperty | Kind::VocabProperty) => {
            pen.out.push(b'{');
            pen.prefix(kind, false);
            if kind == Kind::VocabProperty {
                pen.vocab(instance.value());
            } else {
                pen.out.extend_from_slice(instance.value_bytes());
            }
            pen.out.push(b'}');
        }
    }
}

/// `[{"object":"urn:a"}]` as `["urn:a"]`.
pub(super) fn targets(out: &mut Vec<u8>, value: &str) {
    out.push(b'[');
    for token in scan::strings(value) {
        out.extend_from_slice(token.as_bytes());
        out.push(b',');
    }
    close(out, b']');
}
