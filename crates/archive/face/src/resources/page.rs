//! The page for people: what tables there are, a place to write a query, its result.
//!
//! Plain HTML made here, which works without its script: the form is an ordinary form, an example is a link that fills
//! it. Style and script come from the binary, and the policy of the page allows nothing else, so it works without a
//! network and a name in a catalogue that looks like markup does nothing.

use std::fmt::Write as _;

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue};
use trifid_archive_adql::identifier::identifier;
use trifid_archive_adql::types::Field;
use trifid_archive_engine::catalogue::{Published, Snapshot};
use trifid_archive_engine::tap_schema::full_name;
use trifid_base_web::{Body, Response};

use super::examples::Example;
use crate::fault::Fault;
use crate::limits::PAGE_COLUMNS_MAX;
use crate::percent;
use crate::xml;

const CSS: &str = include_str!("../../assets/page.css");
const JS: &str = include_str!("../../assets/page.js");

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What the page shows.
pub(crate) struct Facts<'f> {
    /// The path of the door's root.
    pub(crate) root: &'f str,
    pub(crate) title: &'f str,
    pub(crate) snapshot: &'f Snapshot,
    pub(crate) examples: &'f [Example],
    /// The query that stands in the editor.
    pub(crate) query: Option<&'f str>,
    pub(crate) output_limit: u64,
}

/// The page.
pub(crate) fn answer(facts: &Facts<'_>) -> Response {
    let mut response = html(document(facts));
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

fn html(document: String) -> Response {
    let mut response = Response::new(Body::full(document));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer"));
    response
}

/// A file of the page.
pub(crate) fn asset(name: &str) -> Result<Response, Fault> {
    let (media, body) = match name {
        "page.css" => ("text/css; charset=utf-8", CSS),
        "page.js" => ("text/javascript; charset=utf-8", JS),
        _ => return Err(Fault::not_found("there is no such file")),
    };
    let mut response = Response::new(Body::full(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

fn document(facts: &Facts<'_>) -> String {
    let mut out = String::with_capacity(32 << 10);
    out.push_str("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    xml::element(&mut out, "title", facts.title);
    let root = facts.root;
    // Writing to a string does not fail.
    let _ = write!(out, "<link rel=\"stylesheet\" href=\"{root}/assets/page.css\"></head>\n<body><header>");
    xml::element(&mut out, "h1", facts.title);
    let _ = writeln!(
        out,
        "<nav><a href=\"{root}/examples\">examples</a><a href=\"{root}/async\">jobs</a>\
         <a href=\"{root}/tables\">tables</a><a href=\"{root}/capabilities\">capabilities</a>\
         <a href=\"{root}/availability\">availability</a></nav></header>\n<main>"
    );
    tree(&mut out, facts);
    out.push_str("<section>\n");
    editor(&mut out, facts);
    samples(&mut out, facts);
    let _ = write!(
        out,
        "</section>\n</main>\n<script src=\"{root}/assets/page.js\" defer></script></body></html>\n"
    );
    out
}

/// The schemas, their tables, and the columns of these, as far as a page can bear them.
fn tree(out: &mut String, facts: &Facts<'_>) {
    let snapshot = facts.snapshot;
    let columns: usize = snapshot.tables.iter().map(|published| published.table.head.fields.len()).sum();
    let with_columns = columns <= PAGE_COLUMNS_MAX;
    out.push_str("<aside>\n<h2>Tables</h2>\n");
    for (at, schema) in snapshot.schemas.iter().enumerate() {
        out.push_str(if at == 0 { "<details open><summary>" } else { "<details><summary>" });
        xml::text(out, &schema.name);
        out.push_str("</summary>\n");
        xml::optional(out, "p", schema.description.as_deref());
        let tables = snapshot.tables.iter().filter(|published| published.table.head.schema == schema.name);
        tables.for_each(|published| table(out, facts.root, published, with_columns));
        out.push_str("</details>\n");
    }
    out.push_str("</aside>\n");
}

fn table(out: &mut String, root: &str, published: &Published, with_columns: bool) {
    let head = &published.table.head;
    let name = full_name(head);
    out.push_str("<details><summary>");
    xml::text(out, &head.name);
    // Writing to a string does not fail.
    let _ = match published.table.rows() {
        1 => write!(out, " <small>1 row</small></summary>\n<p>"),
        rows => write!(out, " <small>{rows} rows</small></summary>\n<p>"),
    };
    xml::text(out, published.info.description.as_deref().unwrap_or_default());
    out.push_str(" <a href=\"#editor\"");
    xml::attribute(out, "data-name", &name);
    out.push_str(">insert</a> <a");
    let mut target = format!("{root}/tables/");
    percent::encode(&mut target, &name);
    xml::attribute(out, "href", &target);
    out.push_str(">describe</a></p>\n");
    if with_columns {
        out.push_str("<ul>\n");
        head.fields.iter().for_each(|field| column(out, field));
        out.push_str("</ul>\n");
    }
    out.push_str("</details>\n");
}

fn column(out: &mut String, field: &Field) {
    let name = identifier(&field.name);
    out.push_str("<li><a href=\"#editor\"");
    xml::attribute(out, "data-name", &name);
    let told = [field.description.as_deref(), field.ucd.as_deref()];
    let told: Vec<&str> = told.into_iter().flatten().collect();
    xml::attribute(out, "title", &told.join("\n"));
    out.push('>');
    xml::text(out, &name);
    out.push_str("</a> <small>");
    xml::text(out, &field.ty.to_string());
    if let Some(unit) = &field.unit {
        out.push_str(" [");
        xml::text(out, unit);
        out.push(']');
    }
    out.push_str("</small></li>\n");
}

fn editor(out: &mut String, facts: &Facts<'_>) {
    let root = facts.root;
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<h2>Query</h2>\n<form id=\"query\" method=\"post\" action=\"{root}/sync\">\n\
         <input type=\"hidden\" name=\"LANG\" value=\"ADQL\">\n\
         <textarea id=\"editor\" name=\"QUERY\" aria-label=\"query\" spellcheck=\"false\" autofocus>"
    );
    // A text area drops the line end that follows its tag.
    out.push('\n');
    xml::text(out, facts.query.unwrap_or_else(|| first(facts.examples)));
    out.push_str(
        "</textarea>\n<p><button>Run</button>\n<label>Rows <input type=\"number\" name=\"MAXREC\" min=\"0\"",
    );
    let _ = writeln!(out, " max=\"{}\" value=\"1000\"></label>", facts.output_limit);
    out.push_str("<label>Format <select id=\"format\" name=\"RESPONSEFORMAT\">");
    for (value, label) in [
        ("html", "on this page"),
        ("votable", "VOTable"),
        ("csv", "CSV"),
        ("tsv", "TSV"),
        ("json", "JSON"),
        ("fits", "FITS"),
        ("text", "text"),
    ] {
        let _ = write!(out, "<option value=\"{value}\">{label}</option>");
    }
    out.push_str("</select></label></p>\n</form>\n<div id=\"outcome\" aria-live=\"polite\"></div>\n");
}

fn first(examples: &[Example]) -> &str {
    examples.first().map_or("", |example| &example.query)
}

fn samples(out: &mut String, facts: &Facts<'_>) {
    out.push_str("<h2>Examples</h2>\n<ul>\n");
    for example in facts.examples {
        let mut target = format!("{}?QUERY=", facts.root);
        percent::encode(&mut target, &example.query);
        out.push_str("<li><a");
        xml::attribute(out, "href", &target);
        xml::attribute(out, "data-query", &example.query);
        xml::attribute(out, "title", &example.description);
        out.push('>');
        xml::text(out, &example.name);
        out.push_str("</a></li>\n");
    }
    out.push_str("</ul>\n");
}
