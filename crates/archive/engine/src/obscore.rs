//! ObsCore 1.1: the standard's columns, and a user's own tables mapped onto them.
//!
//! A mapping says for each source table which expression gives which column of `ivoa.obscore`:
//!
//! ```toml
//! [[source]]
//! table = "survey.images"
//! where = "quality > 0"
//!
//! [source.columns]
//! dataproduct_type = "'image'"
//! calib_level = "2"
//! obs_collection = "'Northern Survey'"
//! obs_id = "image_id"
//! obs_publisher_did = "'ivo://example.org/survey?' || image_id"
//! s_ra = "ra"
//! s_region = "footprint"
//! ```
//!
//! Columns that are not mentioned are NULL, apart from those that must not be. Out of a mapping comes ADQL
//! ([`Mapping::queries`]); its answer, under the standard's metadata ([`fields`]), is the table. The table is
//! declared in the capabilities only while it is complete ([`is_complete`]).

mod columns;
mod make;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trifid_archive_adql::suggest::nearest;
use trifid_archive_adql::types::{Field, Type};

use crate::catalogue::{ColumnInfo, SchemaInfo, Snapshot, TableInfo};
use crate::error::QueryError;
use crate::metadata::Description;
use crate::metadata::description::{About, Column};

pub use columns::{MANDATORY, OPTIONAL, Standard};
pub use make::{MakeError, make, rows};

/// The schema of the table.
pub const SCHEMA: &str = "ivoa";

/// The name of the table.
pub const TABLE: &str = "obscore";

/// The identifier of the data model (ObsCore 1.1 section 5).
pub const IVOID: &str = "ivo://ivoa.net/std/ObsCore#core-1.1";

/// A mapping file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// The tables that observations come from.
    pub source: Vec<Source>,
}

/// One table of observations.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its full name.
    pub table: String,
    /// Which of its rows are observations to publish; all, without it.
    #[serde(default, rename = "where")]
    pub filter: Option<String>,
    /// ADQL expressions over the table, by column of ObsCore.
    pub columns: BTreeMap<String, String>,
}

/// Why a mapping makes no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MappingError {
    /// Not TOML, or not of this shape; says where.
    #[error("{0}")]
    Malformed(String),
    /// No source at all.
    #[error("the mapping names no source")]
    Empty,
    /// A column that ObsCore does not have.
    #[error(
        "ObsCore has no column {name}{}",
        .nearest.map(|near| format!("; did you mean {near}?")).unwrap_or_default()
    )]
    UnknownColumn {
        /// The name given.
        name: String,
        /// The nearest name that there is.
        nearest: Option<&'static str>,
    },
    /// A column without which an observation is none.
    #[error("the source {table} gives no {column}, which must not be NULL (ObsCore 1.1 section 4)")]
    Missing {
        /// The source.
        table: String,
        /// The column.
        column: &'static str,
    },
}

impl Mapping {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<Self, MappingError> {
        let mapping: Self =
            toml::from_str(text).map_err(|error| MappingError::Malformed(error.to_string()))?;
        mapping.check()?;
        Ok(mapping)
    }

    fn check(&self) -> Result<(), MappingError> {
        if self.source.is_empty() {
            return Err(MappingError::Empty);
        }
        for source in &self.source {
            for name in source.columns.keys() {
                standard(name).ok_or_else(|| unknown(name))?;
            }
            let given =
                |standard: &&Standard| !standard.required || source.columns.contains_key(standard.name);
            if let Some(missing) = MANDATORY.iter().find(|standard| !given(standard)) {
                return Err(MappingError::Missing { table: source.table.clone(), column: missing.name });
            }
        }
        Ok(())
    }

    /// The columns of the table: all mandatory ones, and the optional ones that some source gives.
    pub fn standards(&self) -> Vec<&'static Standard> {
        let given = |name: &str| self.source.iter().any(|source| source.columns.contains_key(name));
        MANDATORY.iter().chain(OPTIONAL.iter().filter(|standard| given(standard.name))).collect()
    }

    /// One query per source, whose columns are those of [`Self::standards`] in their types.
    pub fn queries(&self) -> Vec<String> {
        let standards = self.standards();
        self.source.iter().map(|source| source.query(&standards)).collect()
    }
}

impl Source {
    fn query(&self, standards: &[&Standard]) -> String {
        let mut text = "SELECT ".to_owned();
        for (at, standard) in standards.iter().enumerate() {
            let expression = self.columns.get(standard.name).map_or("NULL", String::as_str);
            let comma = if at == 0 { "" } else { ",\n  " };
            // Writing to a string does not fail.
            let _ = match standard.cast() {
                Some(target) => write!(text, "{comma}CAST({expression} AS {target}) AS {}", standard.name),
                None => write!(text, "{comma}{expression} AS {}", standard.name),
            };
        }
        let _ = write!(text, "\nFROM {}", self.table);
        if let Some(filter) = &self.filter {
            let _ = write!(text, "\nWHERE {filter}");
        }
        text
    }
}

fn unknown(name: &str) -> MappingError {
    let names = MANDATORY.iter().chain(OPTIONAL).map(|standard| standard.name);
    MappingError::UnknownColumn { name: name.into(), nearest: nearest(name, names) }
}

/// The standard's column of this name.
pub fn standard(name: &str) -> Option<&'static Standard> {
    MANDATORY.iter().chain(OPTIONAL).find(|standard| standard.name == name)
}

impl Standard {
    /// The column as results and TAP_SCHEMA describe it.
    pub fn field(&self) -> Field {
        let kept = |text: &'static str| (!text.is_empty()).then(|| Arc::from(text));
        Field {
            unit: kept(self.unit),
            ucd: kept(self.ucd),
            utype: Some(format!("obscore:{}", self.utype).into()),
            description: kept(self.description),
            ..Field::new(self.name, self.ty)
        }
    }

    fn cast(&self) -> Option<&'static str> {
        match self.ty {
            Type::Int => Some("INTEGER"),
            Type::Long => Some("BIGINT"),
            Type::Double => Some("DOUBLE PRECISION"),
            Type::Text => Some("VARCHAR"),
            // A region is whatever geometry or text the source has.
            _ => None,
        }
    }

    fn info(&self, at: usize) -> ColumnInfo {
        ColumnInfo {
            indexed: self.indexed,
            principal: self.principal,
            standard: true,
            index: i32::try_from(at + 1).ok(),
        }
    }
}

/// The columns of a table of these standards.
pub fn fields(standards: &[&Standard]) -> Arc<[Field]> {
    standards.iter().map(|standard| standard.field()).collect()
}

/// What TAP_SCHEMA says of the table.
pub fn table_info(standards: &[&Standard]) -> TableInfo {
    TableInfo {
        view: false,
        description: Some("Observations, in the columns of the IVOA's ObsCore 1.1".into()),
        // TAP 1.1 4.2; ObsCore 1.1 appendix C.
        utype: Some(IVOID.into()),
        index: Some(1),
        columns: standards.iter().enumerate().map(|(at, standard)| standard.info(at)).collect(),
        keys: Vec::new(),
    }
}

/// The standard's metadata as the description of a stored table: the text of its TOML file.
pub fn description(standards: &[&Standard]) -> Result<String, QueryError> {
    let info = table_info(standards);
    let mut description = Description::default();
    description.schema =
        About { description: schema_info().description, utype: None, index: schema_info().index };
    description.table = About { description: info.description, utype: info.utype, index: info.index };
    for (standard, column) in standards.iter().zip(info.columns) {
        let said = Column {
            indexed: Some(column.indexed),
            principal: Some(column.principal),
            standard: Some(true),
            index: column.index,
            ..Column::default()
        };
        description.column.insert(standard.name.into(), said);
    }
    toml::to_string(&description).map_err(QueryError::internal)
}

/// What TAP_SCHEMA says of the schema.
pub fn schema_info() -> SchemaInfo {
    SchemaInfo {
        name: SCHEMA.into(),
        description: Some("Tables whose columns the IVOA has defined".into()),
        utype: None,
        index: Some(1),
    }
}

/// Whether `ivoa.obscore` is published with every mandatory column in its type.
pub fn is_complete(snapshot: &Snapshot) -> bool {
    let Some(published) = snapshot.table(SCHEMA, TABLE) else { return false };
    let fields = &published.table.head.fields;
    let has = |standard: &Standard| fields.iter().any(|f| *f.name == *standard.name && f.ty == standard.ty);
    MANDATORY.iter().all(has)
}
