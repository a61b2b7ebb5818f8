//! The body of a query by POST (5.2.23) as the parameters that the same query by GET would have.
//!
//! Lists become comma separated text and geometries their JSON text, so that one reading of each language serves
//! both bindings. What a query string cannot say stays apart: several entity selectors (5.2.33).

use std::borrow::Cow;

use trifid_context_model::json::{Kind, Value};

use super::{Param, Params};
use crate::limits::LIST_MEMBERS_MAX;
use crate::problem::{Refusal, bad_data};

/// One entry of `entities` (5.2.33).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Selector<'b> {
    /// The type selection (4.17).
    pub(crate) types: Cow<'b, str>,
    /// The entities by id; they outrank the pattern.
    pub(crate) ids: Vec<Cow<'b, str>>,
    /// The pattern that ids match.
    pub(crate) id_pattern: Option<Cow<'b, str>>,
}

/// Reads the body into `params`; yields the entity selectors.
pub(crate) fn read<'b>(body: Value<'b>, params: &mut Params<'b>) -> Result<Vec<Selector<'b>>, Refusal> {
    if !body.is_object() {
        return Err(bad_data("a query is a JSON object"));
    }
    let mut reader = Reader { params, selectors: Vec::new(), is_query: false };
    for (name, value) in body.members() {
        reader.member(&name, value)?;
    }
    match reader.is_query {
        true => Ok(reader.selectors),
        false => Err(bad_data("member `type` is missing; it is `Query`")),
    }
}

struct Reader<'p, 'b> {
    params: &'p mut Params<'b>,
    selectors: Vec<Selector<'b>>,
    is_query: bool,
}

impl<'b> Reader<'_, 'b> {
    fn member(&mut self, name: &str, value: Value<'b>) -> Result<(), Refusal> {
        match name {
            "type" | "@type" => self.kind(value),
            "@context" => Ok(()),
            "entities" => self.entities(value),
            "geoQ" => self.geo_query(value),
            "ordering" => self.ordering(value),
            "temporalQ" => Err(bad_data("member `temporalQ` is for queries of the temporal evolution alone")),
            "attrs" => self.list(Param::Attrs, value),
            "pick" => self.list(Param::Pick, value),
            "omit" => self.list(Param::Omit, value),
            "datasetId" => self.list(Param::DatasetId, value),
            "containedBy" => self.list(Param::ContainedBy, value),
            "expandValues" => self.list(Param::ExpandValues, value),
            "jsonKeys" => self.list(Param::JsonKeys, value),
            "q" => self.text(Param::Q, name, value),
            "csf" => self.text(Param::Csf, name, value),
            "scopeQ" => self.text(Param::ScopeQ, name, value),
            "lang" => self.text(Param::Lang, name, value),
            "join" => self.text(Param::Join, name, value),
            "geometryProperty" => self.text(Param::GeometryProperty, name, value),
            "joinLevel" => self.raw(Param::JoinLevel, name, value, Kind::Number),
            "splitEntities" => self.raw(Param::SplitEntities, name, value, Kind::Bool),
            "local" => self.raw(Param::Local, name, value, Kind::Bool),
            _ => Err(bad_data(format!("member `{name}` is not one of a query"))),
        }
    }

    /// Table 5.2.23-1: `type` is `Query`.
    fn kind(&mut self, value: Value<'b>) -> Result<(), Refusal> {
        self.is_query = value.is_str("Query");
        if self.is_query { Ok(()) } else { Err(bad_data("member `type` is `Query`")) }
    }

    fn add(&mut self, param: Param, value: Cow<'b, str>) -> Result<(), Refusal> {
        if self.params.has(param) {
            return Err(bad_data(format!("`{}` is in the query string and in the body", param.name())));
        }
        self.params.add(param, value)
    }

    fn text(&mut self, param: Param, name: &str, value: Value<'b>) -> Result<(), Refusal> {
        let text = value.as_str().ok_or_else(|| bad_data(format!("member `{name}` is a string")))?;
        self.add(param, text)
    }

    fn raw(&mut self, param: Param, name: &str, value: Value<'b>, kind: Kind) -> Result<(), Refusal> {
        if value.kind() != kind {
            let kind = if kind == Kind::Bool { "true or false" } else { "a number" };
            return Err(bad_data(format!("member `{name}` is {kind}")));
        }
        self.add(param, Cow::Borrowed(value.raw()))
    }

    /// A list of strings that is not empty, or one string.
    fn list(&mut self, param: Param, value: Value<'b>) -> Result<(), Refusal> {
        let mut text = String::new();
        for item in strings(param.name(), value)? {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&item);
        }
        self.add(param, Cow::Owned(text))
    }

    fn entities(&mut self, value: Value<'b>) -> Result<(), Refusal> {
        let mut items = value.items().peekable();
        if items.peek().is_none() {
            return Err(bad_data("member `entities` is a list of selectors that is not empty"));
        }
        for item in items {
            if self.selectors.len() >= LIST_MEMBERS_MAX {
                return Err(bad_data(format!(
                    "member `entities` has more than {LIST_MEMBERS_MAX} selectors"
                )));
            }
            self.selectors.push(selector(item)?);
        }
        Ok(())
    }

    /// A GeoQuery (5.2.13).
    fn geo_query(&mut self, value: Value<'b>) -> Result<(), Refusal> {
        for (name, value) in members("geoQ", value)? {
            match &*name {
                "georel" => self.text(Param::Georel, "geoQ.georel", value)?,
                "geometry" => self.text(Param::Geometry, "geoQ.geometry", value)?,
                "geoproperty" => self.text(Param::Geoproperty, "geoQ.geoproperty", value)?,
                "coordinates" => self.coordinates(Param::Coordinates, "geoQ.coordinates", value, true)?,
                _ => return Err(bad_data(format!("member `geoQ.{name}` is not one of a geo-query"))),
            }
        }
        Ok(())
    }

    /// OrderingParams (5.2.43).
    fn ordering(&mut self, value: Value<'b>) -> Result<(), Refusal> {
        for (name, value) in members("ordering", value)? {
            match &*name {
                "orderBy" => self.list(Param::OrderBy, value)?,
                "coordinates" => self.coordinates(Param::OrderFrom, "ordering.coordinates", value, false)?,
                "geometry" => self.text(Param::OrderGeometry, "ordering.geometry", value)?,
                "collation" => self.text(Param::Collation, "ordering.collation", value)?,
                _ => return Err(bad_data(format!("member `ordering.{name}` is not one of an ordering"))),
            }
        }
        Ok(())
    }

    /// Coordinates as a JSON array; in a geo-query also as the text of one (4.7.2).
    fn coordinates(
        &mut self,
        param: Param,
        name: &str,
        value: Value<'b>,
        text_too: bool,
    ) -> Result<(), Refusal> {
        match value.kind() {
            Kind::Array => self.add(param, value.minified()),
            Kind::String if text_too => self.text(param, name, value),
            _ => Err(bad_data(format!("member `{name}` is an array of numbers"))),
        }
    }
}

fn members<'b>(
    name: &str,
    value: Value<'b>,
) -> Result<impl Iterator<Item = (Cow<'b, str>, Value<'b>)>, Refusal> {
    if value.is_object() {
        Ok(value.members())
    } else {
        Err(bad_data(format!("member `{name}` is an object")))
    }
}

/// The strings of a list that is not empty, or the one string.
fn strings<'b>(name: &str, value: Value<'b>) -> Result<Vec<Cow<'b, str>>, Refusal> {
    if let Some(text) = value.as_str() {
        return Ok(vec![text]);
    }
    let items: Option<Vec<Cow<'b, str>>> =
        value.items().take(LIST_MEMBERS_MAX + 1).map(Value::as_str).collect();
    match items {
        Some(items) if items.len() > LIST_MEMBERS_MAX => {
            Err(bad_data(format!("member `{name}` has more than {LIST_MEMBERS_MAX} items")))
        }
        Some(items) if value.is_array() && !items.is_empty() => Ok(items),
        _ => Err(bad_data(format!("member `{name}` is a list of strings that is not empty"))),
    }
}

/// An EntitySelector (5.2.33); `type` is what it cannot be without.
fn selector(value: Value<'_>) -> Result<Selector<'_>, Refusal> {
    let mut selector = Selector::default();
    for (name, value) in members("entities", value)? {
        match &*name {
            "type" | "@type" => {
                let types = value.as_str().filter(|text| !text.is_empty());
                selector.types =
                    types.ok_or_else(|| bad_data("member `entities.type` is a type selection"))?;
            }
            "id" | "@id" => selector.ids = strings("entities.id", value)?,
            "idPattern" => {
                let pattern = value.as_str();
                selector.id_pattern =
                    Some(pattern.ok_or_else(|| bad_data("member `entities.idPattern` is a string"))?);
            }
            _ => return Err(bad_data(format!("member `entities.{name}` is not one of a selector"))),
        }
    }
    if selector.types.is_empty() {
        return Err(bad_data("member `entities.type` is missing"));
    }
    Ok(selector)
}

#[cfg(test)]
mod tests {
    use trifid_context_model::json::Doc;

    use super::*;

    /// The parameters and selectors, or the refusal.
    fn shown(body: &str) -> String {
        let doc = Doc::parse(body.as_bytes()).unwrap();
        let mut params = Params::default();
        let selectors = match read(doc.root(), &mut params) {
            Ok(selectors) => selectors,
            Err(Refusal::Problem(problem)) => return problem.detail.into_owned(),
            Err(other) => panic!("{other:?}"),
        };
        let mut shown: String =
            params.iter().map(|(param, value)| format!("{}={value};", param.name())).collect();
        for selector in selectors {
            shown += &format!("[{} {:?} {:?}]", selector.types, selector.ids, selector.id_pattern);
        }
        shown
    }

    #[test]
    fn members_become_parameters() {
        for (body, expected) in [
            (r#"{"type":"Query","q":"a>1","pick":["id","b{c,d}"]}"#, "q=a>1;pick=id,b{c,d};"),
            (
                r#"{"type":"Query","entities":[{"type":"A"},{"type":"B,C","id":["urn:a:1"],"idPattern":"x"}]}"#,
                r#"[A [] None][B,C ["urn:a:1"] Some("x")]"#,
            ),
            (
                r#"{"type":"Query","geoQ":{"georel":"within","geometry":"Point","coordinates":[1, 2]}}"#,
                "georel=within;geometry=Point;coordinates=[1,2];",
            ),
            (
                r#"{"type":"Query","ordering":{"orderBy":["a;desc","b"],"coordinates":[8,40],"collation":"de"}}"#,
                "orderBy=a;desc,b;orderFrom=[8,40];collation=de;",
            ),
            (
                r#"{"type":"Query","join":"inline","joinLevel":2,"splitEntities":true,"@context":"x"}"#,
                "join=inline;joinLevel=2;splitEntities=true;",
            ),
            (r#"{"type":"Query","datasetId":"@none"}"#, "datasetId=@none;"),
        ] {
            assert_eq!(shown(body), expected, "{body}");
        }
    }

    #[test]
    fn what_is_no_query_is_refused_by_name() {
        for (body, part) in [
            ("[]", "a JSON object"),
            ("{}", "`type` is missing"),
            (r#"{"type":"NotQuery"}"#, "`type` is `Query`"),
            (r#"{"type":"Query","q":42}"#, "`q` is a string"),
            (r#"{"type":"Query","attrs":[]}"#, "`attrs` is a list of strings"),
            (r#"{"type":"Query","attrs":[1]}"#, "`attrs` is a list of strings"),
            (r#"{"type":"Query","entities":[]}"#, "`entities` is a list of selectors"),
            (r#"{"type":"Query","entities":{}}"#, "`entities` is a list of selectors"),
            (r#"{"type":"Query","entities":[{"id":"urn:a:1"}]}"#, "`entities.type` is missing"),
            (r#"{"type":"Query","entities":[{"type":"A","id":["urn:a:1",5]}]}"#, "`entities.id`"),
            (r#"{"type":"Query","entities":[{"type":"A","x":1}]}"#, "`entities.x`"),
            (r#"{"type":"Query","temporalQ":{}}"#, "`temporalQ`"),
            (r#"{"type":"Query","joinLevel":"2"}"#, "`joinLevel` is a number"),
            (r#"{"type":"Query","geoQ":[]}"#, "`geoQ` is an object"),
            (
                r#"{"type":"Query","ordering":{"orderBy":["id"],"coordinates":"8,40"}}"#,
                "`ordering.coordinates`",
            ),
            (r#"{"type":"Query","ordering":{"geometry":5}}"#, "`ordering.geometry` is a string"),
            (r#"{"type":"Query","colour":1}"#, "`colour`"),
        ] {
            assert!(shown(body).contains(part), "{body}: {}", shown(body));
        }
    }

    #[test]
    fn the_query_string_and_the_body_do_not_contradict_each_other() {
        let doc = Doc::parse(br#"{"type":"Query","lang":"en"}"#).unwrap();
        let mut params = Params::parse(Some("lang=fr"), crate::params::Set::ALL).unwrap();
        assert!(read(doc.root(), &mut params).is_err());
    }
}
