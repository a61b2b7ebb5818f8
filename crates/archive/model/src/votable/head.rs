//! The parts of a document around its rows.

use std::sync::Arc;

use trifid_archive_adql::types::Field;

use super::declare::declare;
use super::writer::{Serialization, Version};
use super::xml;
use crate::write::{End, Head, Info};

/// The FIELD elements of a table, as [`Head::rendered`] takes them. With `ids` each has an ID for service
/// descriptors to refer to, the one that [`field_id`] tells.
pub fn render_fields(fields: &[Field], serialization: Serialization, ids: bool) -> Arc<[u8]> {
    let mut out = Vec::with_capacity(fields.len() * 96);
    for (at, field) in fields.iter().enumerate() {
        let id = ids.then(|| field_id(fields, at));
        render_field(field, serialization, id.as_deref(), &mut out);
    }
    out.into()
}

/// The XML ID of a column: its name as far as XML allows, made unique within the table.
pub fn field_id(fields: &[Field], at: usize) -> String {
    let plain = |field: &Field| {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
        let name: String = field.name.chars().map(allowed).collect();
        if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            name
        } else {
            format!("_{name}")
        }
    };
    let id = plain(&fields[at]);
    let is_taken = fields.iter().enumerate().any(|(other, field)| other != at && plain(field) == id);
    if is_taken { format!("{id}..{at}") } else { id }
}

fn render_field(field: &Field, serialization: Serialization, id: Option<&str>, out: &mut Vec<u8>) {
    let declared = declare(field, serialization);
    out.extend_from_slice(b"<FIELD");
    let attributes = [
        ("name", Some(field.name.as_ref())),
        ("ID", id),
        ("datatype", Some(declared.datatype)),
        ("arraysize", declared.arraysize.as_deref()),
        ("xtype", declared.xtype.as_deref()),
        ("unit", field.unit.as_deref()),
        ("ucd", field.ucd.as_deref()),
        ("utype", field.utype.as_deref()),
    ];
    for (name, value) in attributes {
        if let Some(value) = value {
            xml::named(name, value, out);
        }
    }
    let description = field.description.as_deref().filter(|text| !text.is_empty());
    if description.is_none() && declared.null.is_none() {
        out.extend_from_slice(b"/>\n");
        return;
    }
    out.push(b'>');
    if let Some(text) = description {
        describe(text, out);
    }
    if let Some(null) = declared.null {
        out.extend_from_slice(b"<VALUES");
        xml::named("null", itoa::Buffer::new().format(null), out);
        out.extend_from_slice(b"/>");
    }
    out.extend_from_slice(b"</FIELD>\n");
}

fn describe(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<DESCRIPTION>");
    xml::text(text, out);
    out.extend_from_slice(b"</DESCRIPTION>");
}

/// Appends all that precedes the first row.
pub(super) fn begin(head: &Head, serialization: Serialization, version: Version, out: &mut Vec<u8>) {
    open(version, out);
    // DALI 1.1 section 4.4: what is known at the start is said before the table.
    info(&Info::new("QUERY_STATUS", "OK"), out);
    head.infos.iter().for_each(|said| info(said, out));
    out.extend_from_slice(b"<TABLE");
    if let Some(name) = &head.name {
        xml::named("name", name, out);
    }
    out.extend_from_slice(b">\n");
    if let Some(text) = &head.description {
        describe(text, out);
        out.push(b'\n');
    }
    match &head.rendered {
        Some(rendered) => out.extend_from_slice(rendered),
        None => {
            out.extend_from_slice(&render_fields(&head.fields, serialization, head.descriptors.is_some()));
        }
    }
    out.extend_from_slice(match serialization {
        Serialization::TableData => b"<DATA><TABLEDATA>\n",
        Serialization::Binary => b"<DATA><BINARY><STREAM encoding=\"base64\">\n",
        Serialization::Binary2 => b"<DATA><BINARY2><STREAM encoding=\"base64\">\n",
    });
}

/// Appends all that follows the last row.
pub(super) fn finish(head: &Head, serialization: Serialization, end: &End, out: &mut Vec<u8>) {
    out.extend_from_slice(match serialization {
        Serialization::TableData => b"</TABLEDATA></DATA>\n</TABLE>\n",
        Serialization::Binary => b"</STREAM></BINARY></DATA>\n</TABLE>\n",
        Serialization::Binary2 => b"</STREAM></BINARY2></DATA>\n</TABLE>\n",
    });
    match end {
        End::Complete => {}
        End::Overflow => info(&Info::new("QUERY_STATUS", "OVERFLOW"), out),
        End::Failed(message) => info(&failure(message), out),
    }
    out.extend_from_slice(b"</RESOURCE>\n");
    if let Some(descriptors) = &head.descriptors {
        out.extend_from_slice(descriptors);
    }
    out.extend_from_slice(b"</VOTABLE>\n");
}

/// Appends a document that says why there is no result (DALI 1.1 section 4.2), valid XML whatever the message holds.
pub fn error_document(version: Version, message: &str, infos: &[Info], out: &mut Vec<u8>) {
    open(version, out);
    info(&failure(message), out);
    infos.iter().for_each(|said| info(said, out));
    out.extend_from_slice(b"</RESOURCE>\n</VOTABLE>\n");
}

fn failure(message: &str) -> Info {
    Info::new("QUERY_STATUS", "ERROR").with_text(message)
}

fn open(version: Version, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<VOTABLE");
    xml::named("version", version.as_str(), out);
    // One namespace for all of 1.x from 1.3 (VOTable 1.5 section 3.1).
    out.extend_from_slice(b" xmlns=\"http://www.ivoa.net/xml/VOTable/v1.3\">\n<RESOURCE type=\"results\">\n");
}

fn info(said: &Info, out: &mut Vec<u8>) {
    out.extend_from_slice(b"<INFO");
    xml::named("name", &said.name, out);
    xml::named("value", &said.value, out);
    match said.text.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => {
            out.push(b'>');
            xml::text(text, out);
            out.extend_from_slice(b"</INFO>\n");
        }
        None => out.extend_from_slice(b"/>\n"),
    }
}
