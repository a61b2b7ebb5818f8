//! A table's metadata as people edit it: a TOML file beside the data.
//!
//! ```toml
//! [schema]
//! description = "Catalogues of the northern survey"
//!
//! [table]
//! description = "Stars brighter than 12 mag"
//!
//! [column.ra]
//! unit = "deg"
//! ucd = "pos.eq.ra;meta.main"
//! description = "Right ascension, epoch 2016.0"
//!
//! [column.vmag]
//! indexed = true          # an index for fast conditions and ORDER BY
//!
//! [[key]]
//! target = "survey.exposures"
//! columns = [["exposure", "id"]]
//! ```
//!
//! Every key is optional; an unknown one, or a column that the table does not have, is an error.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trifid_archive_adql::suggest::nearest;
use trifid_archive_adql::types::{Field, Type};

use super::{plain, position};
use crate::catalogue::ColumnInfo;

/// A file's contents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Description {
    /// The schema.
    pub schema: About,
    /// The table.
    pub table: About,
    /// Its columns, by declared name.
    pub column: BTreeMap<String, Column>,
    /// Its foreign keys.
    pub key: Vec<Key>,
}

/// What is said of a schema or a table.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct About {
    /// What it holds.
    pub description: Option<Arc<str>>,
    /// The data model's role.
    pub utype: Option<Arc<str>>,
    /// Its place in listings.
    pub index: Option<i32>,
}

/// What is said of a column; what is absent stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Column {
    /// VOUnits.
    pub unit: Option<Arc<str>>,
    /// UCD 1+.
    pub ucd: Option<Arc<str>>,
    /// The data model's role.
    pub utype: Option<Arc<str>>,
    /// The xtype.
    pub xtype: Option<Arc<str>>,
    /// What it means.
    pub description: Option<Arc<str>>,
    /// Whether it gets an index.
    pub indexed: Option<bool>,
    /// Whether it belongs into a short selection.
    pub principal: Option<bool>,
    /// Whether a standard defines it.
    pub standard: Option<bool>,
    /// Its place in listings.
    pub index: Option<i32>,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The full name of the table that it leads to.
    pub target: Arc<str>,
    /// Pairs of a column here and a column there.
    pub columns: Vec<[Arc<str>; 2]>,
    /// What it means.
    #[serde(default)]
    pub description: Option<Arc<str>>,
    /// The data model's role.
    #[serde(default)]
    pub utype: Option<Arc<str>>,
}

/// Why a file describes no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// Not TOML, or not of this shape; says where.
    #[error("{0}")]
    Malformed(String),
    /// A column that the table does not have.
    #[error("it describes the column {name}, which the table does not have{}", hint(.nearest.as_deref()))]
    UnknownColumn {
        /// The name given.
        name: String,
        /// The nearest name that there is.
        nearest: Option<String>,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

impl Description {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, DescriptionError> {
        toml::from_str(text).map_err(|error| DescriptionError::Malformed(error.to_string()))
    }

    /// Changes what fields say of themselves, and tells the rest of each column's metadata.
    pub(super) fn apply(&self, fields: &mut [Field]) -> Result<Vec<ColumnInfo>, DescriptionError> {
        for (name, column) in &self.column {
            let at = find(fields, name)?;
            column.apply(&mut fields[at]);
        }
        let place = position(fields);
        let mut infos: Vec<ColumnInfo> =
            fields.iter().enumerate().map(|(at, field)| plain(field, place, at)).collect();
        for (name, column) in &self.column {
            column.mark(&mut infos[find(fields, name)?]);
        }
        Ok(infos)
    }
}

fn find(fields: &[Field], name: &str) -> Result<usize, DescriptionError> {
    let exact = fields.iter().position(|field| *field.name == *name);
    let found = exact.or_else(|| fields.iter().position(|field| field.name.eq_ignore_ascii_case(name)));
    found.ok_or_else(|| DescriptionError::UnknownColumn {
        name: name.into(),
        nearest: nearest(name, fields.iter().map(|field| &*field.name)).map(Into::into),
    })
}

/// The xtypes of regions that are written as text (DALI 1.2 3.12, 3.13; TAP 1.0 2.5).
fn is_region(xtype: &str) -> bool {
    matches!(xtype, "shape" | "multishape" | "adql:REGION")
}

impl Column {
    fn apply(&self, field: &mut Field) {
        let set = |target: &mut Option<Arc<str>>, value: &Option<Arc<str>>| {
            if let Some(value) = value {
                *target = (!value.is_empty()).then(|| Arc::clone(value));
            }
        };
        set(&mut field.unit, &self.unit);
        set(&mut field.ucd, &self.ucd);
        set(&mut field.utype, &self.utype);
        set(&mut field.xtype, &self.xtype);
        if field.ty == Type::Text && field.xtype.as_deref().is_some_and(is_region) {
            // Text either way; now it can stand in CONTAINS and INTERSECTS.
            field.ty = Type::Region;
        }
        set(&mut field.description, &self.description);
    }

    fn mark(&self, info: &mut ColumnInfo) {
        info.indexed = self.indexed.unwrap_or(info.indexed);
        info.principal = self.principal.unwrap_or(info.principal);
        info.standard = self.standard.unwrap_or(info.standard);
        info.index = self.index.or(info.index);
    }
}
