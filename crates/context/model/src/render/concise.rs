//! The concise representation (4.5.2.3, 4.5.3.3, 4.7.3): what a reader can infer is left out, and nothing
//! else. A value stands alone only where it would be read back as the same value of the same kind.

use super::pen::Pen;
use super::scan;
use crate::record::{Instance, Kind};

/// The GeoJSON geometries (4.7.1): an object of such a type is read as a GeoProperty.
const GEOMETRIES: [&str; 7] =
    ["Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon", "GeometryCollection"];

/// Members by which an object is read as an attribute rather than as a value.
const TELLING: [&str; 14] = [
    "type",
    "@type",
    "value",
    "object",
    "languageMap",
    "vocab",
    "json",
    "valueList",
    "objectList",
    "observedAt",
    "unitCode",
    "datasetId",
    "objectType",
    "valueType",
];

/// True when the value alone says all that the answer shows of the instance.
pub(super) fn is_bare(pen: &Pen<'_, '_>, instance: Instance<'_>) -> bool {
    let more = pen.r.style.sys_attrs || instance.has_slots() || !instance.members_bytes().is_empty();
    if more || (instance.has_subs() && instance.subs().any(|sub| pen.r.is_alive(sub))) {
        return false;
    }
    match instance.kind() {
        Kind::Property => !(is_container(instance) && is_ambiguous(instance.value())),
        Kind::GeoProperty => is_geometry(instance.value()),
        Kind::Relationship
        | Kind::LanguageProperty
        | Kind::VocabProperty
        | Kind::JsonProperty
        | Kind::ListProperty
        | Kind::ListRelationship => false,
    }
}

/// True when the type cannot be inferred from the members: geometries are read as those of a GeoProperty.
pub(super) fn needs_type(instance: Instance<'_>) -> bool {
    match instance.kind() {
        Kind::Property => is_container(instance) && is_geometry(instance.value()),
        Kind::GeoProperty => !is_geometry(instance.value()),
        Kind::Relationship
        | Kind::LanguageProperty
        | Kind::VocabProperty
        | Kind::JsonProperty
        | Kind::ListProperty
        | Kind::ListRelationship => false,
    }
}

/// Would be read as an attribute object, or as an array of instances.
fn is_ambiguous(value: &str) -> bool {
    match value.as_bytes().first() {
        Some(b'{') => tells_an_attribute(value),
        Some(b'[') => scan::first_item(value).is_some_and(tells_an_attribute),
        _ => false,
    }
}

fn tells_an_attribute(value: &str) -> bool {
    scan::members(value).any(|(name, _)| TELLING.iter().any(|known| scan::is(name, known)))
}

/// An object or an array; most values are not, and need no closer look.
fn is_container(instance: Instance<'_>) -> bool {
    matches!(instance.value_bytes().first(), Some(b'{' | b'['))
}

/// Reads as GeoJSON: its `type` is that of a geometry, and it has what geometries have.
pub(super) fn is_geometry(value: &str) -> bool {
    if is_written_as_usual(value) {
        return true;
    }
    let mut typed = false;
    let mut placed = false;
    for (name, inner) in scan::members(value) {
        typed |= scan::is(name, "type") && GEOMETRIES.iter().any(|known| scan::is(inner, known));
        placed |= scan::is(name, "coordinates") || scan::is(name, "geometries");
    }
    typed && placed
}

/// `{"type":"Point","coordinates":`: how geometries mostly begin, told without walking their vertices.
fn is_written_as_usual(value: &str) -> bool {
    let named = value.strip_prefix(r#"{"type":""#).and_then(|rest| rest.split_once(r#"","coordinates":"#));
    named.is_some_and(|(name, _)| GEOMETRIES.contains(&name))
}
