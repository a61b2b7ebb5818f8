//! Queries to learn from (DALI 1.1 2.3, TAP 1.1 2.6): a page that programs can read.
//!
//! Examples come from whoever runs the archive; where they give none, the tables themselves make some: a look at the
//! first rows, a cone around a position of the sky.

use std::fmt::Write as _;

use trifid_archive_adql::identifier::identifier;
use trifid_archive_engine::catalogue::{Published, Snapshot};
use trifid_archive_engine::tap_schema::{self, full_name};

use crate::xml;

/// A query that shows something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// What it shows, in a few words: its name.
    pub name: String,
    /// What it does, for people; may be empty.
    pub description: String,
    /// The query.
    pub query: String,
    /// The table that it is about.
    pub table: Option<String>,
}

/// Tables that examples are made for where nobody gave any.
const MADE_FOR_MAX: usize = 8;

/// The examples that tables make by themselves.
pub(crate) fn made(snapshot: &Snapshot) -> Vec<Example> {
    let own = |published: &&&Published| &*published.table.head.schema != tap_schema::SCHEMA;
    let tables: Vec<&Published> = snapshot.tables.iter().map(AsRef::as_ref).collect();
    let mut examples: Vec<Example> =
        tables.iter().filter(own).take(MADE_FOR_MAX).flat_map(|published| of(published)).collect();
    examples.push(Example {
        name: "Tables and how many columns they have".into(),
        description: "Every service describes its tables in tables of their own.".into(),
        query: "SELECT table_name, COUNT(*) AS columns\nFROM TAP_SCHEMA.columns\n\
                GROUP BY table_name\nORDER BY table_name"
            .into(),
        table: Some("TAP_SCHEMA.columns".into()),
    });
    examples
}

fn of(published: &Published) -> Vec<Example> {
    let head = &published.table.head;
    let name = full_name(head);
    let mut examples = vec![Example {
        name: format!("The first rows of {name}"),
        description: String::new(),
        query: format!("SELECT TOP 10 *\nFROM {name}"),
        table: Some(name.clone()),
    }];
    if let Some(position) = head.position {
        let [lon, lat] = [position.lon, position.lat].map(|at| identifier(&head.fields[at].name));
        // In the words of ADQL 2.0, which every client understands.
        examples.push(Example {
            name: format!("A cone in {name}"),
            description: "Rows within one degree of the Pleiades.".into(),
            query: format!(
                "SELECT TOP 100 *\nFROM {name}\n\
                 WHERE 1 = CONTAINS(POINT('ICRS', {lon}, {lat}), CIRCLE('ICRS', 56.75, 24.12, 1))"
            ),
            table: Some(name),
        });
    }
    examples
}

/// The document (DALI 1.1 2.3.1: RDFa in XHTML).
pub(crate) fn document(title: &str, examples: &[Example]) -> String {
    let mut out = String::with_capacity(4 << 10);
    out.push_str(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE html>\n\
         <html xmlns=\"http://www.w3.org/1999/xhtml\"><head><title>",
    );
    xml::text(&mut out, title);
    out.push_str(
        ": examples</title></head>\n<body vocab=\"http://www.ivoa.net/rdf/examples#\">\n<h1>Examples</h1>\n",
    );
    for (at, example) in examples.iter().enumerate() {
        section(&mut out, at, example);
    }
    out.push_str("</body></html>\n");
    out
}

fn section(out: &mut String, at: usize, example: &Example) {
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<div id=\"example-{at}\" resource=\"#example-{at}\" typeof=\"example\">\n<h2 property=\"name\">"
    );
    xml::text(out, &example.name);
    out.push_str("</h2>\n");
    xml::optional(out, "p", Some(&example.description));
    if let Some(table) = &example.table {
        out.push_str("<p>Table: <em property=\"table\">");
        xml::text(out, table);
        out.push_str("</em></p>\n");
    }
    out.push_str("<pre property=\"query\">");
    xml::text(out, &example.query);
    out.push_str("</pre>\n</div>\n");
}
