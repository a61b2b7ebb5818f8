//! Simple cone search over every table with a position (SCS 1.03).
//!
//! A cone is a query like any other, written here, so that it takes the same way through plan cache and index. What is
//! particular is what the standard of 2008 wants: the three columns that clients look for bear the UCDs of those
//! days, the identifier is text, a radius of zero asks for the columns alone, and a mistake is a VOTable with INFO
//! name="Error".

use std::fmt::Write as _;
use std::sync::Arc;

use trifid_archive_adql::identifier::identifier;
use trifid_archive_adql::language::Language;
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::catalogue::Published;
use trifid_archive_engine::tap_schema::full_name;
use trifid_base_web::{Request, Response};

use super::tables;
use crate::ArchiveFace;
use crate::fault::{ErrorForm, Fault, quoted};
use crate::form::Form;
use crate::params::{Params, max_rows};

/// The form of a result where the client asks for none (SCS 1.03 2.2).
const FORMAT: &str = "text/xml";

/// A cone: what the parameters say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cone {
    pub(crate) ra: f64,
    pub(crate) dec: f64,
    pub(crate) radius: f64,
    /// How many columns are wanted: 1, 2 or 3.
    pub(crate) verbosity: u8,
}

impl ArchiveFace {
    /// Answers a cone search over the table called `name`.
    pub(crate) async fn cone(&self, request: &Request, name: &str) -> Response {
        let answered = self.cone_form(request, name).await;
        answered.unwrap_or_else(|fault| fault.into_response(&ErrorForm::Cone))
    }

    async fn cone_form(&self, request: &Request, name: &str) -> Result<Response, Fault> {
        let snapshot = self.archive.snapshot();
        let published = tables::find(&snapshot, name)
            .ok_or_else(|| Fault::not_found(format!("there is no table {}", quoted(name))))?;
        let columns = columns_of(published)?;
        let form = Form::read(request)?;
        let cone = read(&form)?;
        let text = query(published, &columns, cone);
        let params = Params {
            language: Language::default(),
            query: Some(&text),
            format: Some(value(&form, "RESPONSEFORMAT")?.unwrap_or(FORMAT)),
            // SCS 1.03 2.1: a radius of zero asks for the columns alone.
            max_rows: if cone.radius == 0.0 {
                Some(0)
            } else {
                value(&form, "MAXREC")?.map(max_rows).transpose()?
            },
            ..Params::default()
        };
        let checked = self.check(&params, &[]).await?;
        let shown = shown(checked.fields());
        self.deliver(request, checked.showing(shown)).await
    }
}

/// The columns that a cone search needs, by their places.
#[derive(Clone, Copy, Debug)]
struct Columns {
    id: Option<usize>,
    lon: usize,
    lat: usize,
}

fn columns_of(published: &Published) -> Result<Columns, Fault> {
    let head = &published.table.head;
    let position = head.position.ok_or_else(|| {
        Fault::not_found(format!("the table {} has no position on the sky", full_name(head)))
    })?;
    let with = |ucd: &str| head.fields.iter().position(|field| field.ucd.as_deref() == Some(ucd));
    let id = with("meta.id;meta.main").or_else(|| with("meta.id"));
    Ok(Columns { id, lon: position.lon, lat: position.lat })
}

/// The one value of a parameter.
fn value<'f>(form: &'f Form<'_>, name: &str) -> Result<Option<&'f str>, Fault> {
    let values =
        form.pairs.iter().filter(|(found, value)| found.eq_ignore_ascii_case(name) && !value.is_empty());
    let mut values = values.map(|(_, value)| value.trim());
    let first = values.next();
    match values.next() {
        Some(_) => Err(Fault::invalid(format!("the parameter {name} stands more than once"))),
        None => Ok(first),
    }
}

/// A needed number between two bounds.
fn number(form: &Form<'_>, name: &str, least: f64, most: f64) -> Result<f64, Fault> {
    let text =
        value(form, name)?.ok_or_else(|| Fault::invalid(format!("the parameter {name} is missing")))?;
    let found = text.parse().ok().filter(|number: &f64| (least..=most).contains(number));
    found.ok_or_else(|| {
        Fault::invalid(format!(
            "the parameter {name} is a number of degrees from {least} to {most}, not {}",
            quoted(text)
        ))
    })
}

/// SCS 1.03 2.1.
fn read(form: &Form<'_>) -> Result<Cone, Fault> {
    let verbosity = match value(form, "VERB")? {
        None | Some("2") => 2,
        Some("1") => 1,
        Some("3") => 3,
        Some(other) => {
            return Err(Fault::invalid(format!("the parameter VERB takes 1, 2 or 3, not {}", quoted(other))));
        }
    };
    Ok(Cone {
        ra: number(form, "RA", 0.0, 360.0)?,
        dec: number(form, "DEC", -90.0, 90.0)?,
        radius: number(form, "SR", 0.0, 180.0)?,
        verbosity,
    })
}

/// The places of the columns to show, in the table's order.
fn chosen(published: &Published, columns: Columns, verbosity: u8) -> Vec<usize> {
    let all = 0..published.table.head.fields.len();
    let is_needed = |at: usize| Some(at) == columns.id || at == columns.lon || at == columns.lat;
    let is_principal = |at: usize| published.info.columns.get(at).is_some_and(|info| info.principal);
    let any_principal = all.clone().any(is_principal);
    match verbosity {
        1 => all.filter(|at| is_needed(*at)).collect(),
        2 if any_principal => all.filter(|at| is_needed(*at) || is_principal(*at)).collect(),
        _ => all.collect(),
    }
}

fn query(published: &Published, columns: &Columns, cone: Cone) -> String {
    let head = &published.table.head;
    let name = |at: usize| identifier(&head.fields[at].name);
    let mut text = "SELECT ".to_owned();
    for (index, at) in chosen(published, *columns, cone.verbosity).into_iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let name = name(at);
        // Writing to a string does not fail.
        let _ = if Some(at) == columns.id && head.fields[at].ty != Type::Text {
            // SCS 1.03 2.2: the identifier is a string.
            write!(text, "{comma}CAST({name} AS VARCHAR) AS {name}")
        } else {
            write!(text, "{comma}{name}")
        };
    }
    let (lon, lat) = (name(columns.lon), name(columns.lat));
    let Cone { ra, dec, radius, .. } = cone;
    let _ =
        write!(text, " FROM {} WHERE DISTANCE({lon}, {lat}, {ra:?}, {dec:?}) <= {radius:?}", full_name(head));
    text
}

/// The columns with the UCDs that clients of simple cone search look for (SCS 1.03 2.2); each occurs once.
fn shown(fields: &Arc<[Field]>) -> Arc<[Field]> {
    let mut wanted = vec![
        (["meta.id;meta.main", "meta.id"], "ID_MAIN"),
        (["pos.eq.ra;meta.main", "pos.eq.ra"], "POS_EQ_RA_MAIN"),
        (["pos.eq.dec;meta.main", "pos.eq.dec"], "POS_EQ_DEC_MAIN"),
    ];
    let mut fields: Vec<Field> = fields.to_vec();
    for (ucds, old) in wanted.drain(..) {
        let place =
            ucds.iter().find_map(|ucd| fields.iter().position(|field| field.ucd.as_deref() == Some(*ucd)));
        if let Some(place) = place {
            fields[place].ucd = Some(old.into());
        }
    }
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str) -> Result<Cone, String> {
        let mut form = Form::default();
        form.add(raw).unwrap();
        read(&form).map_err(|fault| fault.message().into_owned())
    }

    #[test]
    fn a_cone_is_three_numbers() {
        let cone = Cone { ra: 10.5, dec: -5.0, radius: 0.25, verbosity: 2 };
        assert_eq!(check("RA=10.5&dec=-5&SR=.25"), Ok(cone));
        assert_eq!(check("ra=0&DEC=90&sr=180&verb=3&x=y").unwrap().verbosity, 3);
    }

    #[test]
    fn mistakes_are_named() {
        for (raw, word) in [
            ("DEC=1&SR=1", "RA is missing"),
            ("RA=1&DEC=1&SR=", "SR is missing"),
            ("RA=361&DEC=1&SR=1", "RA"),
            ("RA=-1&DEC=1&SR=1", "RA"),
            ("RA=1&DEC=91&SR=1", "DEC"),
            ("RA=1&DEC=1&SR=-1", "SR"),
            ("RA=NaN&DEC=1&SR=1", "RA"),
            ("RA=1&DEC=inf&SR=1", "DEC"),
            ("RA=1h&DEC=1&SR=1", "1h"),
            ("RA=1&RA=2&DEC=1&SR=1", "more than once"),
            ("RA=1&DEC=1&SR=1&VERB=4", "VERB"),
        ] {
            assert!(check(raw).unwrap_err().contains(word), "{raw}");
        }
    }

    #[test]
    fn the_columns_that_clients_look_for_have_their_old_names() {
        let field = |name: &str, ucd: &str| Field { ucd: Some(ucd.into()), ..Field::new(name, Type::Double) };
        let fields: Arc<[Field]> = vec![
            field("other", "meta.id"),
            field("id", "meta.id;meta.main"),
            field("ra", "pos.eq.ra;meta.main"),
            field("dec", "pos.eq.dec"),
            field("dec2", "pos.eq.dec"),
        ]
        .into();
        let ucds: Vec<String> =
            shown(&fields).iter().map(|field| field.ucd.as_deref().unwrap().to_owned()).collect();
        assert_eq!(ucds, ["meta.id", "ID_MAIN", "POS_EQ_RA_MAIN", "POS_EQ_DEC_MAIN", "pos.eq.dec"]);
    }
}
