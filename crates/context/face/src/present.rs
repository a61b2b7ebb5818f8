//! From parameters to a style: how entities are shown (6.3.7, 6.3.11, 6.3.15, 4.15, 4.21, 4.23).

use trifid_context_model::ld::Context;
use trifid_context_model::query::lang::{self, LanguagePreferences};
use trifid_context_model::query::names::Name;
use trifid_context_model::query::project::{self, Members};
use trifid_context_model::render::{Feature, Format, Projection, Style};
use trifid_context_model::symbol::Symbols;

use crate::media::Media;
use crate::params::{Form, OptionsOf, Param, Params, Set};
use crate::problem::{Refusal, bad_data};
use crate::select::{check_hops, datasets, expander};

/// The parameters that make a style.
pub(crate) const STYLE: Set = Set::of(&[
    Param::Attrs,
    Param::Pick,
    Param::Omit,
    Param::Format,
    Param::Options,
    Param::Lang,
    Param::DatasetId,
    Param::GeometryProperty,
    Param::Join,
    Param::JoinLevel,
    Param::ContainedBy,
]);

/// Where linked entities go (4.5.23).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinForm {
    /// Behind the entities that link to them.
    Flat,
    /// Inside the relationships.
    Inline,
}

/// Linked entity retrieval as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Joining {
    pub(crate) form: JoinForm,
    pub(crate) levels: usize,
    /// Entities that are not entered again.
    pub(crate) contained_by: Vec<String>,
}

/// `join`, `joinLevel` and `containedBy`; none when nothing is joined.
pub(crate) fn joining(params: &Params<'_>) -> Result<Option<Joining>, Refusal> {
    let levels = params.join_level()?;
    let contained_by = params.list(Param::ContainedBy)?.unwrap_or_default();
    if let Some(bad) = contained_by.iter().find(|id| !trifid_context_model::name::is_uri(id)) {
        return Err(bad_data(format!("`containedBy`: \"{}\" is not a URI", bad.escape_debug())));
    }
    let form = match params.get(Param::Join) {
        Some("flat") => JoinForm::Flat,
        Some("inline") => JoinForm::Inline,
        Some("@none") | None => return Ok(None),
        Some(other) => {
            return Err(bad_data(format!("`join` is `flat`, `inline` or `@none`, not `{other}`")));
        }
    };
    let contained_by = contained_by.into_iter().map(str::to_owned).collect();
    Ok(Some(Joining { form, levels: levels.unwrap_or(1), contained_by }))
}

/// The parameter `lang`.
pub(crate) fn language(params: &Params<'_>) -> Result<Option<LanguagePreferences>, Refusal> {
    Ok(params.get(Param::Lang).map(lang::parse).transpose()?)
}

/// The style, but for the language and the context, which it borrows from elsewhere.
pub(crate) fn style<'r>(
    params: &Params<'_>,
    media: Media,
    context: &Context,
    symbols: &Symbols,
    levels: usize,
) -> Result<Style<'r>, Refusal> {
    let options = params.options(OptionsOf::Reading)?;
    Ok(Style {
        format: match options.form {
            None | Some(Form::Normalized) => Format::Normalized,
            Some(Form::Concise) => Format::Concise,
            Some(Form::Simplified) => Format::Simplified,
        },
        sys_attrs: options.sys_attrs,
        projection: projection(params, context, symbols, levels)?,
        datasets: datasets(params)?,
        feature: feature(params, media, context, symbols)?,
        ..Style::default()
    })
}

fn projection(
    params: &Params<'_>,
    context: &Context,
    symbols: &Symbols,
    levels: usize,
) -> Result<Projection, Refusal> {
    let expand = expander(context);
    let written = |param: Param| params.get(param).map(|text| project::parse(param.name(), text)).transpose();
    let (pick, omit) = (written(Param::Pick)?, written(Param::Omit)?);
    project::check(pick.as_ref(), omit.as_ref(), params.has(Param::Attrs))?;
    for (name, projection) in [("pick", &pick), ("omit", &omit)] {
        check_hops(name, projection.as_ref().map_or(0, project::Projection::hops), levels)?;
    }
    if let Some(text) = params.get(Param::Attrs) {
        let members = Members::of_attrs(&project::parse_attrs(text)?, &expand)?;
        return Ok(Projection::of_attributes(&members, symbols));
    }
    if pick.is_none() && omit.is_none() {
        return Ok(Projection::default());
    }
    let bind = |name, projection: Option<project::Projection>| {
        projection.map(|projection| Members::new(name, &projection, &expand)).transpose()
    };
    Ok(Projection::new(bind("pick", pick)?.as_ref(), bind("omit", omit)?.as_ref(), symbols))
}

/// 4.5.16.1: the geometry is that of `location` unless another property is named, which only GeoJSON allows
/// (5.7.1.4).
fn feature(
    params: &Params<'_>,
    media: Media,
    context: &Context,
    symbols: &Symbols,
) -> Result<Option<Feature>, Refusal> {
    let property = params.get(Param::GeometryProperty);
    if media != Media::GeoJson {
        return match property {
            Some(_) => Err(bad_data("`geometryProperty` needs the header `Accept: application/geo+json`")),
            None => Ok(None),
        };
    }
    let name = Name::expand("geometryProperty", property.unwrap_or("location"), &expander(context))?;
    Ok(Some(Feature { geometry: name.symbol(symbols) }))
}
