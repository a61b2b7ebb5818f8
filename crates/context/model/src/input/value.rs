//! The value of an attribute, checked by kind and brought into the form in which it is stored.

use std::borrow::Cow;

use super::Invalid;
use crate::json::{self, Doc, Kind as Json, Value};
use crate::ld::Context;
use crate::limits::MAX_ITEMS;
use crate::name::{self, NULL};
use crate::query::geo;
use crate::record::Kind;

const GEOMETRIES: [&str; 7] =
    ["Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon", "GeometryCollection"];

pub(super) fn not_a_uri(text: &str) -> Invalid {
    Invalid::new(format!("\"{}\" is not a URI such as urn:ngsi-ld:Vehicle:1 (4.5.1)", name::shown(text)))
}

/// Looks like GeoJSON: its `type` is that of a geometry.
pub(super) fn is_geometry(value: Value<'_>) -> bool {
    let named = value.get("type").and_then(Value::as_str);
    named.is_some_and(|name| GEOMETRIES.contains(&name.as_ref()))
        && (value.get("coordinates").is_some() || value.get("geometries").is_some())
}

/// The value that deletes an attribute: the NGSI-LD Null, or for a language map `{"@none": Null}` (4.6.5).
pub(super) fn is_null(member: &str, value: Value<'_>) -> bool {
    value.is_str(NULL)
        || (member == "languageMap"
            && value.members().count() == 1
            && value.get("@none").is_some_and(|inner| inner.is_str(NULL)))
}

/// True when the NGSI-LD Null stands anywhere inside `value`.
pub fn holds_null(value: Value<'_>) -> bool {
    match value.kind() {
        Json::String => value.is_str(NULL),
        Json::Array => value.items().any(holds_null),
        Json::Object => value.members().any(|(_, inner)| holds_null(inner)),
        Json::Null | Json::Bool | Json::Number => false,
    }
}

/// Checks values under one context.
pub(super) struct Values<'c> {
    pub(super) context: &'c Context,
    /// The NGSI-LD Null may stand inside compound values.
    pub(super) nulls: bool,
}

impl Values<'_> {
    /// The stored text of a value of `kind`.
    pub(super) fn of_kind<'d>(&self, kind: Kind, value: Value<'d>) -> Result<Cow<'d, str>, Invalid> {
        if value.is_null() {
            return Err(Invalid::new("must not be null"));
        }
        // `json` is opaque (4.5.24): what looks like a Null inside it is data.
        if kind != Kind::JsonProperty && !self.nulls && holds_null(value) {
            return Err(Invalid::new("the NGSI-LD Null is not allowed inside a value here (5.5.4)"));
        }
        match kind {
            Kind::Property => Ok(value.minified()),
            Kind::GeoProperty => geometry(value),
            Kind::Relationship => relationship(value),
            Kind::LanguageProperty => self.language_map(value),
            Kind::VocabProperty => self.vocab(value),
            Kind::JsonProperty => json_value(value),
            Kind::ListProperty if value.is_array() => Ok(value.minified()),
            Kind::ListProperty => Err(Invalid::new("must be an array (4.5.21)")),
            Kind::ListRelationship => object_list(value),
        }
    }

    fn language_map<'d>(&self, value: Value<'d>) -> Result<Cow<'d, str>, Invalid> {
        if !value.is_object() || value.members().count() > MAX_ITEMS {
            return Err(Invalid::new("must be an object from language tags to strings (4.5.18)"));
        }
        for (tag, text) in value.members() {
            let strings = text.is_array() && text.items().all(|item| item.kind() == Json::String);
            if tag.is_empty() {
                return Err(Invalid::new("a language tag must not be empty (4.5.18)"));
            }
            if text.kind() != Json::String && !strings {
                return Err(Invalid::new("must be a string or an array of strings (4.6.5)").at(&tag));
            }
        }
        Ok(value.minified())
    }

    fn vocab<'d>(&self, value: Value<'d>) -> Result<Cow<'d, str>, Invalid> {
        if value.is_array() && value.items().count() <= MAX_ITEMS {
            let terms = value.items().map(|item| self.term(item)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Cow::Owned(format!("[{}]", terms.join(","))));
        }
        self.term(value).map(Cow::Owned)
    }

    /// One vocabulary term, expanded and quoted.
    fn term(&self, value: Value<'_>) -> Result<String, Invalid> {
        let text =
            value.as_str().ok_or_else(|| Invalid::new("must be a string or an array of strings (4.5.20)"))?;
        if text == NULL {
            return Ok(json::quoted(&text));
        }
        let expanded = self.context.expand(&text).map_err(|error| Invalid::new(error.to_string()))?;
        Ok(json::quoted(&expanded))
    }
}

/// A geometry, or the string that holds one (4.7.2).
fn geometry<'d>(value: Value<'d>) -> Result<Cow<'d, str>, Invalid> {
    let refuse = |error: geo::GeoError| Invalid::new(error.to_string());
    let Some(text) = value.as_str() else {
        return geo::validate(value).map(|()| value.minified()).map_err(refuse);
    };
    let doc = Doc::parse(text.as_bytes()).map_err(|_| Invalid::new("is no GeoJSON geometry (4.7.2)"))?;
    geo::validate(doc.root()).map_err(refuse)?;
    Ok(Cow::Owned(doc.root().minified().into_owned()))
}

fn target(value: Value<'_>) -> Result<(), Invalid> {
    let text = value.as_str().ok_or_else(|| Invalid::new("must be a URI or an array of URIs (4.5.3)"))?;
    if name::is_uri(&text) { Ok(()) } else { Err(not_a_uri(&text)) }
}

fn relationship<'d>(value: Value<'d>) -> Result<Cow<'d, str>, Invalid> {
    if !value.is_array() {
        return target(value).map(|()| value.minified());
    }
    if value.items().count() > MAX_ITEMS {
        return Err(Invalid::new(format!("more than {MAX_ITEMS} targets")));
    }
    value.items().try_for_each(target)?;
    Ok(value.minified())
}

fn json_value<'d>(value: Value<'d>) -> Result<Cow<'d, str>, Invalid> {
    if matches!(value.kind(), Json::Object | Json::Array) {
        return Ok(value.minified());
    }
    Err(Invalid::new("must be a JSON object or an array (4.5.24)"))
}

/// Bare URIs and `{"object": URI}` alike; stored in the latter, normalized form (4.5.22).
fn object_list<'d>(value: Value<'d>) -> Result<Cow<'d, str>, Invalid> {
    if !value.is_array() || value.items().count() > MAX_ITEMS {
        return Err(Invalid::new("must be an array of URIs (4.5.22)"));
    }
    let mut out = String::from("[");
    for item in value.items() {
        let uri = if item.is_object() { item.get("object") } else { Some(item) };
        let uri =
            uri.ok_or_else(|| Invalid::new("each entry must be a URI or {\"object\": URI} (4.5.22)"))?;
        target(uri)?;
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str("{\"object\":");
        out.push_str(uri.raw());
        out.push('}');
    }
    out.push(']');
    Ok(Cow::Owned(out))
}
