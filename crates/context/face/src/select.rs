//! From parameters to a filter: which entities a request is about (5.7.2.4, 5.6.21.4).
//!
//! GET and POST come here with the same parameters; only entity selectors of a POST body stand beside them. The rules
//! that a single parameter cannot know are here: a query must not be too wide, a wildcard type is local, and
//! linked entities are asked about no deeper than they are retrieved.

use trifid_context_model::ld::Context;
use trifid_context_model::query::dataset::DatasetIds;
use trifid_context_model::query::entity::{Filter, Selector};
use trifid_context_model::query::geo::{self, GeoQuery};
use trifid_context_model::query::names::{Expand, Member, Name};
use trifid_context_model::query::order::{self, Collation, Ordering};
use trifid_context_model::query::pattern::Pattern;
use trifid_context_model::query::q;
use trifid_context_model::query::types::{self, TypeSelection, Types};
use trifid_context_model::query::{Error, project, scope, uri};

use crate::params::body;
use crate::params::{Param, Params, Set};
use crate::problem::{Refusal, bad_data};

/// The parameters that make a filter.
pub(crate) const FILTER: Set = Set::of(&[
    Param::Type,
    Param::Id,
    Param::IdPattern,
    Param::Attrs,
    Param::Q,
    Param::Csf,
    Param::ScopeQ,
    Param::Georel,
    Param::Geometry,
    Param::Coordinates,
    Param::Geoproperty,
    Param::DatasetId,
    Param::ExpandValues,
    Param::JsonKeys,
    Param::Local,
    Param::SplitEntities,
]);

/// The parameters that make an order (4.23).
pub(crate) const ORDER: Set =
    Set::of(&[Param::OrderBy, Param::OrderFrom, Param::OrderGeometry, Param::Collation]);

/// Expands names by a context, as the query languages want it.
pub(crate) fn expander(context: &Context) -> impl Fn(&str) -> Result<Box<str>, String> + '_ {
    |term| context.expand(term).map(Into::into).map_err(|error| error.to_string())
}

/// The filter of a request. `levels` is how many linked entities in a row it retrieves; none without `join`.
pub(crate) fn filter(
    params: &Params<'_>,
    selectors: &[body::Selector<'_>],
    context: &Context,
    levels: usize,
) -> Result<Filter, Refusal> {
    let expand = expander(context);
    params.boolean(Param::SplitEntities)?;
    let mut builder = Builder { params, expand: &expand, narrow: is_local(params, selectors)? };
    let filter = Filter {
        selectors: builder.selectors(selectors)?,
        attributes: builder.attributes()?,
        q: builder.query(levels)?,
        geo: builder.geo()?,
        scope: params.get(Param::ScopeQ).map(scope::parse).transpose()?,
        datasets: datasets(params)?,
    };
    // A context source filter (csf) chooses among registrations; here it only has to be one (5.7.2.4).
    params.get(Param::Csf).map(|text| q::parse_as("csf", text)).transpose()?;
    if builder.narrow { Ok(filter) } else { Err(too_wide()) }
}

fn too_wide() -> Refusal {
    bad_data(
        "the query is too wide: name an entity type, an attribute that is no system attribute (in `attrs` or \
         `q`), a geo-relation, or `local=true` (5.7.2.4)",
    )
}

/// Whether the request is limited to what this broker holds itself. `type=*` implies it (Table 6.4.3.2-1).
fn is_local(params: &Params<'_>, selectors: &[body::Selector<'_>]) -> Result<bool, Refusal> {
    let asked = params.optional_boolean(Param::Local)?;
    let every_type = params.get(Param::Type).is_some_and(|text| text.trim() == "*")
        || selectors.iter().any(|selector| selector.types.trim() == "*");
    match (every_type, asked) {
        (true, Some(false)) => Err(bad_data("`type=*` is local; `local=false` contradicts it")),
        (every_type, asked) => Ok(every_type || asked == Some(true)),
    }
}

struct Builder<'p, 'e> {
    params: &'p Params<'e>,
    expand: &'p Expand<'p>,
    /// Something was given that makes the query narrow enough.
    narrow: bool,
}

impl Builder<'_, '_> {
    fn selectors(&mut self, selectors: &[body::Selector<'_>]) -> Result<Vec<Selector>, Refusal> {
        self.narrow |= !selectors.is_empty() || self.params.has(Param::Type);
        let of_body = selectors.iter().map(|selector| self.selector_of_body(selector));
        let mut all = of_body.collect::<Result<Vec<_>, _>>()?;
        let [types, ids, pattern] =
            [Param::Type, Param::Id, Param::IdPattern].map(|param| self.params.get(param));
        if types.is_some() || ids.is_some() || pattern.is_some() {
            let ids = ids.map(|text| uri::parse_list("id", text)).transpose()?;
            let types = types.map(|text| self.types(text)).transpose()?;
            all.push(Selector::new(ids, pattern_of(pattern)?, types));
        }
        Ok(all)
    }

    /// Table 5.2.33-1: ids outrank the pattern.
    fn selector_of_body(&self, selector: &body::Selector<'_>) -> Result<Selector, Refusal> {
        let types = Some(self.types(&selector.types)?);
        if selector.ids.is_empty() {
            return Ok(Selector::new(None, pattern_of(selector.id_pattern.as_deref())?, types));
        }
        // One by one: an id may hold a comma here, which a query string could not say.
        let mut ids = Vec::with_capacity(selector.ids.len());
        for id in &selector.ids {
            if !trifid_context_model::name::is_uri(id) {
                return Err(bad_data(format!(
                    "member `entities.id`: \"{}\" is not a URI",
                    id.escape_debug()
                )));
            }
            ids.push(id.as_ref().into());
        }
        Ok(Selector::new(Some(ids), None, types))
    }

    fn types(&self, text: &str) -> Result<Types, Error> {
        Types::new("type", &types::parse("type", text)?, self.expand)
    }

    fn attributes(&mut self) -> Result<Option<Vec<Name>>, Refusal> {
        let Some(text) = self.params.get(Param::Attrs) else { return Ok(None) };
        let names = project::parse_attrs(text)?;
        self.narrow |= project::names_attribute(&names);
        Ok(Some(expanded("attrs", &names, self.expand)?))
    }

    fn query(&mut self, levels: usize) -> Result<Option<q::Compiled>, Refusal> {
        let Some(text) = self.params.get(Param::Q) else {
            return self.no_query_of(&[Param::ExpandValues, Param::JsonKeys]).map(|()| None);
        };
        let query = q::parse(text)?;
        check_hops("q", query.hops(), levels)?;
        self.narrow |= query.terms().iter().any(|term| is_about_attribute(&term.path));
        let names = |param: Param| {
            let text = self.params.get(param);
            text.map(|text| q::parse_names(param.name(), text)).transpose().map(Option::unwrap_or_default)
        };
        let (expand_values, json_keys) = (names(Param::ExpandValues)?, names(Param::JsonKeys)?);
        let options = q::Options { expand_values: &expand_values, json_keys: &json_keys };
        Ok(Some(q::Compiled::new("q", &query, options, self.expand)?))
    }

    /// What means nothing without `q`.
    fn no_query_of(&self, params: &[Param]) -> Result<(), Refusal> {
        match params.iter().find(|param| self.params.has(**param)) {
            Some(param) => {
                Err(bad_data(format!("`{}` says something of `q`, which is missing", param.name())))
            }
            None => Ok(()),
        }
    }

    fn geo(&mut self) -> Result<Option<GeoQuery>, Refusal> {
        let [georel, geometry, coordinates, property] =
            [Param::Georel, Param::Geometry, Param::Coordinates, Param::Geoproperty]
                .map(|param| self.params.get(param));
        let geo = geo::parse_optional(georel, geometry, coordinates)?;
        if geo.is_none() && property.is_some() {
            return Err(crate::problem::invalid(
                "geoproperty: needs georel, geometry and coordinates (4.10)",
            ));
        }
        self.narrow |= geo.is_some();
        Ok(geo.map(|geo| GeoQuery::new(geo, property, self.expand)).transpose()?)
    }
}

fn expanded(parameter: &'static str, names: &[String], expand: &Expand<'_>) -> Result<Vec<Name>, Error> {
    names.iter().map(|term| Name::expand(parameter, term, expand)).collect()
}

/// The parameter `attrs`.
pub(crate) fn attributes(params: &Params<'_>, context: &Context) -> Result<Option<Vec<Name>>, Refusal> {
    let Some(text) = params.get(Param::Attrs) else { return Ok(None) };
    Ok(Some(expanded("attrs", &project::parse_attrs(text)?, &expander(context))?))
}

fn pattern_of(text: Option<&str>) -> Result<Option<Pattern>, Error> {
    text.map(|text| Pattern::parse("idPattern", text)).transpose()
}

/// An attribute that clients define, or one of a linked entity.
fn is_about_attribute(path: &q::Path) -> bool {
    let system = |term: &String| matches!(term.as_str(), "id" | "type") || Member::from_term(term).is_some();
    !path.hops.is_empty() || path.names.first().is_some_and(|term| !system(term))
}

/// 5.7.2.4: linked entities are asked about only as deep as they are retrieved.
pub(crate) fn check_hops(parameter: &str, hops: usize, levels: usize) -> Result<(), Refusal> {
    if hops <= levels {
        return Ok(());
    }
    Err(bad_data(match levels {
        0 => format!("`{parameter}` is about linked entities, which needs `join`"),
        _ => format!("`{parameter}` follows {hops} linked entities in a row; `joinLevel` allows {levels}"),
    }))
}

/// The parameter `datasetId`.
pub(crate) fn datasets(params: &Params<'_>) -> Result<Option<DatasetIds>, Error> {
    params.get(Param::DatasetId).map(|text| DatasetIds::parse("datasetId", text)).transpose()
}

/// The type gate of an operation on one entity: it must match, or the entity counts as absent (4.17).
pub(crate) fn gate(params: &Params<'_>, context: &Context) -> Result<Option<Types>, Refusal> {
    let Some(text) = params.get(Param::Type) else { return Ok(None) };
    match types::parse("type", text)? {
        TypeSelection::All => Ok(None),
        selection => Ok(Some(Types::new("type", &selection, &expander(context))?)),
    }
}

/// The order that is asked for.
pub(crate) fn order(params: &Params<'_>, context: &Context) -> Result<Option<Ordering>, Refusal> {
    let [from, geometry] = [Param::OrderFrom, Param::OrderGeometry].map(|param| params.get(param));
    // Checked also where there is nothing to order: a mistake is told, not passed over.
    // 4.23.1 leaves it to the deployment how texts are ordered when nobody asks: here by code point, which no
    // change of a library's rules can change.
    let collation = params.get(Param::Collation).map_or(Ok(Collation::CodePoint), Collation::parse)?;
    let reference = Ordering::reference(geometry, from)?;
    let Some(text) = params.get(Param::OrderBy) else { return Ok(None) };
    let terms = order::parse(text)?;
    Ok(Some(Ordering::new(&terms, reference, collation, &expander(context))?))
}
