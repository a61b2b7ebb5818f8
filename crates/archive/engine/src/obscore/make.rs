//! Making the table out of a mapping: its queries run, their rows put under the standard's columns.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, RecordBatch, new_null_array};
use trifid_archive_adql::language::Language;
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_model::batch::{self, physical};

use super::{Mapping, SCHEMA, Standard, TABLE, fields, schema_info, table_info};
use crate::archive::Archive;
use crate::catalogue::{Published, SchemaInfo};
use crate::error::QueryError;
use crate::metadata::{indexed, position};
use crate::table::{Table, TableHead};

/// Why a mapping gives no table.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// One of its expressions or tables.
    #[error("the source {table}: {error}")]
    Query {
        /// The source.
        table: String,
        /// What is wrong with it.
        error: QueryError,
    },
    /// A value that must not be NULL is.
    #[error("the source {table} has rows whose {column} is NULL, which ObsCore forbids")]
    Null {
        /// The source.
        table: String,
        /// The column.
        column: &'static str,
    },
    /// A column of another type than the standard's.
    #[error("the source {table} gives {found} for {column}, which is {wanted}")]
    Type {
        /// The source.
        table: String,
        /// The column.
        column: &'static str,
        /// The type found.
        found: Type,
        /// The type of the standard.
        wanted: Type,
    },
}

/// The table in memory, with the schema that it is in.
pub async fn make(archive: &Archive, mapping: &Mapping) -> Result<(SchemaInfo, Published), MakeError> {
    let standards = mapping.standards();
    let batches = rows(archive, mapping).await?;
    let fields = fields(&standards);
    let head = TableHead { schema: SCHEMA.into(), name: TABLE.into(), position: position(&fields), fields };
    let info = table_info(&standards);
    let wanted = indexed(&head, &info);
    let table = Table::in_memory(head, &batches, &wanted)
        .map_err(|error| MakeError::Query { table: format!("{SCHEMA}.{TABLE}"), error })?;
    Ok((schema_info(), Published { table: Arc::new(table), info }))
}

/// The rows of all sources in the standard's columns.
pub async fn rows(archive: &Archive, mapping: &Mapping) -> Result<Vec<RecordBatch>, MakeError> {
    let standards = mapping.standards();
    let fields = fields(&standards);
    let mut batches = Vec::new();
    for (source, query) in mapping.source.iter().zip(mapping.queries()) {
        let failed = |error| MakeError::Query { table: source.table.clone(), error };
        let prepared = archive.prepare(&query, Language::V2_1, Vec::new()).map_err(failed)?;
        let mut answer = archive.start(&prepared, None, None).map_err(failed)?;
        let given = Arc::clone(answer.fields());
        while let Some(rows) = answer.next().await.map_err(failed)? {
            batches.push(standardised(&source.table, &rows, &given, &standards, &fields)?);
        }
    }
    Ok(batches)
}

fn standardised(
    table: &str,
    rows: &RecordBatch,
    given: &[Field],
    standards: &[&'static Standard],
    fields: &[Field],
) -> Result<RecordBatch, MakeError> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(standards.len());
    for ((standard, column), field) in standards.iter().zip(rows.columns()).zip(given) {
        if standard.required && column.logical_null_count() > 0 {
            return Err(MakeError::Null { table: table.into(), column: standard.name });
        }
        columns.push(if *column.data_type() == physical(standard.ty) {
            Arc::clone(column)
        } else if field.ty == Type::Null {
            new_null_array(&physical(standard.ty), rows.num_rows())
        } else {
            return Err(MakeError::Type {
                table: table.into(),
                column: standard.name,
                found: field.ty,
                wanted: standard.ty,
            });
        });
    }
    batch::batch(fields, columns, rows.num_rows())
        .map_err(|error| MakeError::Query { table: table.into(), error: QueryError::internal(error) })
}
