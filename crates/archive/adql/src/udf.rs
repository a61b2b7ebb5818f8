//! What the language declares of itself beyond ADQL's core (TAPRegExt 1.0 2.3, ADQL 2.1 4.1), as data for the
//! capabilities document. The user-defined functions come from the table that the resolver reads.

use std::fmt::Write as _;

use crate::functions::table::{DEFINITIONS, Definition, Form, Group, Wants, Yields};
use crate::types::{Element, Type};

/// A group of optional features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureGroup {
    /// Its `type`, in lower case (ADQL 2.1 4.1).
    pub ivoid: &'static str,
    /// What of it is supported.
    pub features: Vec<Feature>,
}

/// One optional feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name; of a user-defined function the signature: `name(arg TYPE, ...) -> TYPE`.
    pub form: String,
    /// What it does, where the standard does not say.
    pub description: Option<&'static str>,
}

macro_rules! ivoid {
    ($group:literal) => {
        concat!("ivo://ivoa.net/std/tapregext#features-", $group)
    };
}

/// The optional features of ADQL 2.1 that we have: all of them, and the user-defined functions.
pub fn language_features() -> Vec<FeatureGroup> {
    let named = |names: &[&str]| names.iter().map(|name| Feature::named(name)).collect::<Vec<_>>();
    let mut string = of_group(Group::String);
    string.push(Feature::named("ILIKE"));
    vec![
        FeatureGroup { ivoid: ivoid!("adqlgeo"), features: of_group(Group::Geometry) },
        FeatureGroup { ivoid: ivoid!("adql-string"), features: string },
        FeatureGroup { ivoid: ivoid!("adql-conditional"), features: of_group(Group::Conditional) },
        FeatureGroup { ivoid: ivoid!("adql-common-table"), features: named(&["WITH"]) },
        FeatureGroup { ivoid: ivoid!("adql-sets"), features: named(&["UNION", "EXCEPT", "INTERSECT"]) },
        FeatureGroup { ivoid: ivoid!("adql-type"), features: named(&["CAST"]) },
        FeatureGroup { ivoid: ivoid!("adql-unit"), features: of_group(Group::Unit) },
        FeatureGroup { ivoid: ivoid!("adql-offset"), features: named(&["OFFSET"]) },
        FeatureGroup { ivoid: ivoid!("udf"), features: user_defined() },
    ]
}

impl Feature {
    fn named(name: &str) -> Self {
        Self { form: name.to_owned(), description: None }
    }
}

fn of_group(group: Group) -> Vec<Feature> {
    DEFINITIONS.iter().filter(|it| it.group == group).map(|it| Feature::named(it.names[0])).collect()
}

/// Each name and each form of each user-defined function.
fn user_defined() -> Vec<Feature> {
    let ours = DEFINITIONS.iter().filter(|it| it.group == Group::UserDefined);
    ours.flat_map(|definition| {
        let description = Some(definition.description);
        let named = move |name: &'static str| {
            definition.forms.iter().map(move |form| Feature { form: signature(name, form), description })
        };
        definition.names.iter().copied().flat_map(named)
    })
    .collect()
}

/// `name(arg TYPE, ...) -> TYPE` (ADQL 2.1 4.3.2).
pub fn signature(name: &str, form: &Form) -> String {
    format!("{name}{} -> {}", parameters(form), result_type(form))
}

/// `(arg TYPE, ...)`
fn parameters(form: &Form) -> String {
    let mut text = String::from("(");
    for (index, parameter) in form.parameters.iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(text, "{comma}{} {}", parameter.name, argument_type(parameter.wants));
    }
    text.push_str(if form.variadic { ", ...)" } else { ")" });
    text
}

/// The arguments of a function, in all its forms, as a message says it.
pub fn usage(definition: &Definition) -> String {
    let forms: Vec<String> = definition.forms.iter().map(parameters).collect();
    forms.join(" or ")
}

fn argument_type(wants: Wants) -> &'static str {
    match wants {
        Wants::Double | Wants::Number => "DOUBLE PRECISION",
        Wants::Long => "BIGINT",
        Wants::Text | Wants::TextLiteral => "VARCHAR",
        Wants::Timestamp => "TIMESTAMP",
        Wants::Point => "POINT",
        Wants::Geometry => "GEOMETRY",
        Wants::Any => "ANY",
    }
}

fn result_type(form: &Form) -> String {
    match form.result {
        Yields::Type(Type::Array(Element::Double)) => "DOUBLE PRECISION[]".to_owned(),
        Yields::Type(Type::Array(Element::Long)) => "BIGINT[]".to_owned(),
        Yields::Type(ty) => ty.to_string(),
        Yields::Truth => "INTEGER".to_owned(),
        Yields::Arguments => {
            let generic = |wants| matches!(wants, Wants::Any | Wants::Number | Wants::Geometry);
            let argument = form.parameters.iter().find(|parameter| generic(parameter.wants));
            argument.map_or("ANY", |parameter| argument_type(parameter.wants)).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(ivoid: &str) -> Vec<String> {
        let groups = language_features();
        let group = groups.iter().find(|group| group.ivoid.ends_with(ivoid)).expect(ivoid);
        group.features.iter().map(|feature| feature.form.clone()).collect()
    }

    #[test]
    fn ivoids_are_in_lower_case() {
        for group in language_features() {
            assert_eq!(group.ivoid, group.ivoid.to_lowercase());
            assert!(!group.features.is_empty(), "{}", group.ivoid);
        }
    }

    #[test]
    fn every_optional_feature_of_the_standard_is_declared() {
        assert_eq!(
            forms("features-adqlgeo"),
            [
                "POINT",
                "CIRCLE",
                "BOX",
                "POLYGON",
                "REGION",
                "CENTROID",
                "AREA",
                "COORD1",
                "COORD2",
                "COORDSYS",
                "CONTAINS",
                "INTERSECTS",
                "DISTANCE",
            ]
        );
        assert_eq!(forms("-adql-string"), ["LOWER", "UPPER", "ILIKE"]);
        assert_eq!(forms("-adql-conditional"), ["COALESCE"]);
        assert_eq!(forms("-adql-unit"), ["IN_UNIT"]);
        assert_eq!(forms("-adql-sets"), ["UNION", "EXCEPT", "INTERSECT"]);
    }

    #[test]
    fn signatures_follow_the_grammar() {
        let udfs = forms("features-udf");
        for expected in [
            "ivo_healpix_index(hpx_order BIGINT, lon DOUBLE PRECISION, lat DOUBLE PRECISION) -> BIGINT",
            "ivo_healpix_index(hpx_order BIGINT, pt POINT) -> BIGINT",
            "ivo_nocasematch(val VARCHAR, pattern VARCHAR) -> INTEGER",
            "gavo_transform(from_sys VARCHAR, to_sys VARCHAR, geo GEOMETRY) -> GEOMETRY",
            "gavo_to_mjd(d TIMESTAMP) -> DOUBLE PRECISION",
            "stddev(x DOUBLE PRECISION) -> DOUBLE PRECISION",
        ] {
            assert!(udfs.iter().any(|form| form == expected), "{expected} in {udfs:#?}");
        }
        for form in &udfs {
            let name = form.split('(').next().expect("a name");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
            );
            assert!(form.contains(") -> ") && form.len() < 250, "{form}");
        }
    }

    #[test]
    fn names_are_unique_and_forms_differ_in_length() {
        let mut names: Vec<String> = Definition::all_names().map(str::to_lowercase).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for definition in DEFINITIONS {
            let mut lengths: Vec<usize> = definition.forms.iter().map(|it| it.parameters.len()).collect();
            lengths.sort_unstable();
            lengths.dedup();
            assert_eq!(lengths.len(), definition.forms.len(), "{:?}", definition.names);
            let described = !definition.description.is_empty();
            assert_eq!(described, definition.group == Group::UserDefined, "{:?}", definition.names);
        }
    }
}
