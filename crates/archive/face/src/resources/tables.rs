//! The published tables as a document (VOSI 1.1 3.3, TAP 1.1 2.5, VODataService 1.1).
//!
//! Whole, or without columns (`detail=min`), or one table alone. Whatever can be asked for is rendered once per
//! snapshot and kept, compressed too: clients ask for it each time they connect, and for some archives it is megabytes.

use trifid_archive_adql::identifier::identifier;
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::catalogue::{ColumnInfo, KeyInfo, Published, SchemaInfo, Snapshot};
use trifid_archive_engine::tap_schema::full_name;
use trifid_archive_model::votable;

use crate::fault::{Fault, quoted};
use crate::xml;

/// How much is told of each table (VOSI 1.1 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Without columns and keys.
    Min,
    /// Everything.
    Max,
}

impl Detail {
    /// What the parameter DETAIL says; everything where it says nothing.
    pub(crate) fn parse(value: Option<&str>) -> Result<Self, Fault> {
        match value {
            None | Some("") => Ok(Self::Max),
            Some(word) if word.eq_ignore_ascii_case("max") => Ok(Self::Max),
            Some(word) if word.eq_ignore_ascii_case("min") => Ok(Self::Min),
            Some(other) => {
                Err(Fault::invalid(format!("the parameter detail takes min or max, not {}", quoted(other))))
            }
        }
    }
}

const NAMESPACES: &str = " xmlns:vosi=\"http://www.ivoa.net/xml/VOSITables/v1.0\" \
    xmlns:vs=\"http://www.ivoa.net/xml/VODataService/v1.1\" \
    xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"";

const PROLOGUE: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

/// All tables.
pub(crate) fn document(snapshot: &Snapshot, detail: Detail) -> String {
    let mut out = String::with_capacity(64 << 10);
    out.push_str(PROLOGUE);
    out.push_str("<vosi:tableset");
    out.push_str(NAMESPACES);
    out.push_str(" xsi:type=\"vs:TableSet\">\n");
    for info in &snapshot.schemas {
        schema(&mut out, snapshot, info, detail);
    }
    out.push_str("</vosi:tableset>\n");
    out
}

/// One table, if there is one of this name.
pub(crate) fn one(published: &Published) -> String {
    let mut out = String::with_capacity(8 << 10);
    out.push_str(PROLOGUE);
    out.push_str("<vosi:table");
    out.push_str(NAMESPACES);
    out.push_str(" xsi:type=\"vs:Table\"");
    table(&mut out, published, Detail::Max);
    out.push_str("</vosi:table>\n");
    out
}

/// The table that a path means: by its full name as a query would write it, or, unquoted, in any case.
pub(crate) fn find<'s>(snapshot: &'s Snapshot, name: &str) -> Option<&'s Published> {
    let tables = || snapshot.tables.iter().map(AsRef::as_ref);
    let called =
        |wanted: &dyn Fn(&str) -> bool| tables().find(|published| wanted(&full_name(&published.table.head)));
    called(&|full| full == name).or_else(|| called(&|full| full.eq_ignore_ascii_case(name))).or_else(|| {
        // Without quotes although it needs them: whoever copied it from a listing elsewhere means the same.
        tables().find(|published| {
            let head = &published.table.head;
            name.strip_prefix(&*head.schema).and_then(|rest| rest.strip_prefix('.')) == Some(&*head.name)
        })
    })
}

fn schema(out: &mut String, snapshot: &Snapshot, info: &SchemaInfo, detail: Detail) {
    out.push_str("<schema>");
    xml::element(out, "name", &identifier(&info.name));
    xml::optional(out, "description", info.description.as_deref());
    xml::optional(out, "utype", info.utype.as_deref());
    out.push('\n');
    for published in snapshot.tables.iter().filter(|published| published.table.head.schema == info.name) {
        out.push_str("<table");
        table(out, published, detail);
        out.push_str("</table>\n");
    }
    out.push_str("</schema>\n");
}

/// The rest of a table's start tag and what it holds.
fn table(out: &mut String, published: &Published, detail: Detail) {
    let (head, info) = (&published.table.head, &published.info);
    xml::attribute(out, "type", if info.view { "view" } else { "table" });
    out.push('>');
    xml::element(out, "name", &full_name(head));
    xml::optional(out, "description", info.description.as_deref());
    xml::optional(out, "utype", info.utype.as_deref());
    out.push('\n');
    if detail == Detail::Min {
        return;
    }
    let unsaid = ColumnInfo::default();
    for (at, field) in head.fields.iter().enumerate() {
        column(out, field, info.columns.get(at).unwrap_or(&unsaid));
    }
    info.keys.iter().for_each(|key| foreign_key(out, key));
}

fn column(out: &mut String, field: &Field, info: &ColumnInfo) {
    out.push_str(if info.standard { "<column std=\"true\">" } else { "<column>" });
    xml::element(out, "name", &identifier(&field.name));
    xml::optional(out, "description", field.description.as_deref());
    xml::optional(out, "unit", field.unit.as_deref());
    xml::optional(out, "ucd", field.ucd.as_deref());
    xml::optional(out, "utype", field.utype.as_deref());
    data_type(out, field);
    if info.indexed {
        out.push_str("<flag>indexed</flag>");
    }
    if info.principal {
        out.push_str("<flag>principal</flag>");
    }
    out.push_str("</column>\n");
}

/// VODataService 1.1 3.5.3.
fn data_type(out: &mut String, field: &Field) {
    out.push_str("<dataType xsi:type=\"vs:VOTableType\"");
    if let Some(size) = votable::arraysize_of(field) {
        xml::attribute(out, "arraysize", &size);
    }
    if let Some(xtype) = field.xtype.as_deref().filter(|_| field.ty != Type::Null) {
        xml::attribute(out, "extendedType", xtype);
    }
    out.push('>');
    xml::text(out, votable::datatype_of(field));
    out.push_str("</dataType>");
}

fn foreign_key(out: &mut String, key: &KeyInfo) {
    out.push_str("<foreignKey>");
    xml::element(out, "targetTable", &key.target);
    for (from, to) in &key.columns {
        out.push_str("<fkColumn>");
        xml::element(out, "fromColumn", &identifier(from));
        xml::element(out, "targetColumn", &identifier(to));
        out.push_str("</fkColumn>");
    }
    xml::optional(out, "description", key.description.as_deref());
    xml::optional(out, "utype", key.utype.as_deref());
    out.push_str("</foreignKey>\n");
}
