//! The parameters of TAP and DALI, read from a [`Form`].
//!
//! Names ignore case, values do not, and what is not known is ignored (DALI 1.1 3.1). An empty value is none. A
//! parameter that may stand once must not stand twice (DALI 1.1 3.2), except with the same value again; UPLOAD adds
//! up.

use trifid_archive_adql::language::Language;

use crate::fault::{Fault, quoted};
use crate::form::Form;
use crate::limits::{FORMAT_BYTES_MAX, RUN_ID_CHARS_MAX};

/// What a request asks of TAP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Params<'f> {
    /// REQUEST, a relic of TAP 1.0 (DALI 1.1 3.4.1).
    pub(crate) operation: Operation,
    /// LANG; ADQL where it is not said (clients of old leave it out).
    pub(crate) language: Language,
    /// QUERY (TAP 1.1 2.7.2).
    pub(crate) query: Option<&'f str>,
    /// RESPONSEFORMAT, or FORMAT where that is not there (TAP 1.1 2.7.3).
    pub(crate) format: Option<&'f str>,
    /// MAXREC (TAP 1.1 2.7.4).
    pub(crate) max_rows: Option<u64>,
    /// RUNID (TAP 1.1 2.7.5).
    pub(crate) run_id: Option<&'f str>,
    /// The values of UPLOAD, in order.
    pub(crate) uploads: Vec<&'f str>,
}

/// What REQUEST names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Operation {
    /// `doQuery`, or nothing.
    #[default]
    Query,
    /// `getCapabilities`.
    Capabilities,
}

/// The parameters that are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Request,
    Lang,
    Query,
    ResponseFormat,
    Format,
    MaxRec,
    RunId,
    Upload,
}

impl Name {
    const ALL: [(&'static str, Self); 8] = [
        ("QUERY", Self::Query),
        ("LANG", Self::Lang),
        ("RESPONSEFORMAT", Self::ResponseFormat),
        ("FORMAT", Self::Format),
        ("MAXREC", Self::MaxRec),
        ("REQUEST", Self::Request),
        ("RUNID", Self::RunId),
        ("UPLOAD", Self::Upload),
    ];

    fn of(text: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|(_, name)| *name)
    }
}

impl<'f> Params<'f> {
    /// Reads the parameters of a form.
    pub(crate) fn read(form: &'f Form<'_>) -> Result<Self, Fault> {
        let mut single: [Option<&'f str>; 8] = [None; 8];
        let mut uploads = Vec::new();
        for (name, value) in &form.pairs {
            match Name::of(name) {
                None => {}
                _ if value.is_empty() => {}
                Some(Name::Upload) => uploads.push(value.as_ref()),
                Some(name) => set(&mut single[name as usize], name, value)?,
            }
        }
        let get = |name: Name| single[name as usize];
        Ok(Self {
            operation: get(Name::Request).map_or(Ok(Operation::Query), operation)?,
            language: get(Name::Lang).map_or(Ok(Language::default()), language)?,
            query: get(Name::Query),
            format: get(Name::ResponseFormat).or(get(Name::Format)).map(bounded_format).transpose()?,
            max_rows: get(Name::MaxRec).map(max_rows).transpose()?,
            run_id: get(Name::RunId).map(run_id),
            uploads,
        })
    }

    /// The query, which a request that wants one answered must have.
    pub(crate) fn needed_query(&self) -> Result<&'f str, Fault> {
        self.query
            .filter(|query| !query.trim().is_empty())
            .ok_or_else(|| Fault::invalid("the parameter QUERY is missing; it holds the query, in ADQL"))
    }
}

fn set<'f>(place: &mut Option<&'f str>, name: Name, value: &'f str) -> Result<(), Fault> {
    if place.is_some_and(|before| before != value) {
        let (name, _) =
            Name::ALL.iter().find(|(_, known)| *known == name).expect("every name is in the list");
        return Err(Fault::invalid(format!(
            "the parameter {name} stands more than once, with different values"
        )));
    }
    *place = Some(value);
    Ok(())
}

/// The format that a form asks for, whatever else is wrong with it: faults are told in its family.
pub(crate) fn asked_format<'f>(form: &'f Form<'_>) -> Option<&'f str> {
    let value = |wanted: Name| {
        let mut pairs = form.pairs.iter().filter(move |(name, _)| Name::of(name) == Some(wanted));
        pairs.find(|(_, value)| !value.is_empty()).map(|(_, value)| value.as_ref())
    };
    value(Name::ResponseFormat).or_else(|| value(Name::Format))
}

fn operation(value: &str) -> Result<Operation, Fault> {
    match value {
        "doQuery" => Ok(Operation::Query),
        "getCapabilities" => Ok(Operation::Capabilities),
        other => Err(Fault::invalid(format!(
            "the parameter REQUEST takes doQuery or getCapabilities, not {}",
            quoted(other)
        ))),
    }
}

/// TAP 1.1 2.7.1.
fn language(value: &str) -> Result<Language, Fault> {
    Language::named(value).ok_or_else(|| {
        Fault::invalid(format!(
            "the query language {} is not known here; LANG takes ADQL, ADQL-2.0 or ADQL-2.1",
            quoted(value)
        ))
    })
}

fn bounded_format(value: &str) -> Result<&str, Fault> {
    if value.len() > FORMAT_BYTES_MAX {
        return Err(Fault::invalid("the parameter RESPONSEFORMAT is longer than any format's name"));
    }
    Ok(value)
}

/// DALI 1.1 3.4.4: a whole number, not negative. One beyond what can be counted is no bound at all.
pub(crate) fn max_rows(value: &str) -> Result<u64, Fault> {
    let digits = value.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::invalid(format!(
            "the parameter MAXREC is a whole number of rows, not {}",
            quoted(value)
        )));
    }
    Ok(digits.parse().unwrap_or(u64::MAX))
}

/// DALI 1.1 3.4.6: at most 64 characters are kept.
fn run_id(value: &str) -> &str {
    let end = value.char_indices().nth(RUN_ID_CHARS_MAX).map_or(value.len(), |(at, _)| at);
    &value[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(raw: &str, test: impl FnOnce(Result<Params<'_>, Fault>)) {
        let mut form = Form::default();
        form.add(raw).unwrap();
        test(Params::read(&form));
    }

    #[test]
    fn names_ignore_case_and_unknown_ones_are_ignored() {
        check("query=q&Lang=ADQL-2.0&rEsponseFormat=csv&x=1&X=2&maxrec=7&VERSION=1.0&VERSION=9", |params| {
            let params = params.unwrap();
            let wanted = Params {
                language: Language::V2_0,
                query: Some("q"),
                format: Some("csv"),
                max_rows: Some(7),
                ..Params::default()
            };
            assert_eq!(params, wanted);
        });
    }

    #[test]
    fn an_empty_value_is_none() {
        check("QUERY=q&FORMAT=csv&RESPONSEFORMAT=&MAXREC=&LANG=&RUNID=&UPLOAD=", |params| {
            let wanted = Params { query: Some("q"), format: Some("csv"), ..Params::default() };
            assert_eq!(params.unwrap(), wanted);
        });
    }

    #[test]
    fn single_parameters_stand_once_and_uploads_add_up() {
        check("QUERY=a&query=b", |params| assert!(params.unwrap_err().message().contains("QUERY")));
        check("LANG=ADQL&LANG=ADQL", |params| assert!(params.is_ok(), "the same again is no contradiction"));
        check("UPLOAD=a,b&upload=c,d", |params| assert_eq!(params.unwrap().uploads, ["a,b", "c,d"]));
    }

    #[test]
    fn wrong_values_are_named() {
        for (raw, word) in [
            ("LANG=SQL", "ADQL-2.1"),
            ("LANG=ADQL-3.0", "ADQL-3.0"),
            ("MAXREC=-1", "MAXREC"),
            ("MAXREC=1e3", "MAXREC"),
            ("MAXREC=ten", "ten"),
            ("REQUEST=doquery", "doQuery"),
        ] {
            check(raw, |params| assert!(params.unwrap_err().message().contains(word), "{raw}"));
        }
        let long = format!("FORMAT={}", "f".repeat(FORMAT_BYTES_MAX + 1));
        check(&long, |params| assert!(params.is_err()));
    }

    #[test]
    fn numbers_beyond_counting_are_no_bound() {
        check("MAXREC=99999999999999999999999", |params| {
            assert_eq!(params.unwrap().max_rows, Some(u64::MAX));
        });
    }

    #[test]
    fn a_run_id_is_cut_at_a_character() {
        let raw = format!("RUNID={}", "%C3%A9".repeat(70));
        check(&raw, |params| assert_eq!(params.unwrap().run_id.unwrap().chars().count(), RUN_ID_CHARS_MAX));
    }

    #[test]
    fn the_format_is_known_even_if_the_rest_is_wrong() {
        let mut form = Form::default();
        form.add("MAXREC=x&FORMAT=json").unwrap();
        assert_eq!(asked_format(&form), Some("json"));
    }

    proptest! {
        #[test]
        fn any_pairs_are_answered(pairs in proptest::collection::vec(("(?i)(query|lang|maxrec|runid|upload|format|x)", "\\PC{0,12}"), 0..6)) {
            let mut form = Form::default();
            for (name, value) in pairs {
                form.push(name.into(), value.into()).unwrap();
            }
            let _ = Params::read(&form);
        }
    }
}
