//! Whole queries over small tables, from their text. Answers were compared with PostgreSQL 15.

mod backend;
mod properties;
mod queries;

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::{Array as _, ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use trifid_archive_adql::language::Language;
use trifid_archive_adql::parser::parse;
use trifid_archive_adql::resolve::{Options, resolve};
use trifid_archive_adql::tree::{ColumnRef, Expr, Kind, Query};
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_model::batch::batch;

use super::{Interpreter, Limits};
use crate::catalogue::{Published, Snapshot, TableInfo, Tables};
use crate::error::QueryError;
use crate::eval::{Cells, Context, Input, evaluate};
use crate::table::{Table, TableHead};

pub(super) fn ints(values: &[Option<i32>]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

pub(super) fn longs(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

pub(super) fn doubles(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

pub(super) fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// A table of the schema `t`, in chunks of two rows.
pub(super) fn table(name: &str, columns: Vec<(&str, Type, ArrayRef)>) -> Arc<Published> {
    let rows = columns.first().map_or(0, |column| column.2.len());
    let fields: Arc<[Field]> = columns.iter().map(|(name, ty, _)| Field::new(*name, *ty)).collect();
    let arrays = columns.into_iter().map(|column| column.2).collect();
    let batch = batch(&fields, arrays, rows).unwrap();
    let head = TableHead { schema: "t".into(), name: name.into(), fields, position: None };
    let table = Arc::new(Table::in_chunks(head, &[batch], &[], 2).unwrap());
    Arc::new(Published { table, info: TableInfo::default() })
}

pub(super) fn tables(published: Vec<Arc<Published>>) -> Arc<Tables> {
    Arc::new(Tables { snapshot: Arc::new(Snapshot::new(1, Vec::new(), published)), uploads: Vec::new() })
}

/// Stars and what was observed of them.
pub(super) fn sky() -> Arc<Tables> {
    let star = table(
        "star",
        vec![
            ("id", Type::Int, ints(&[Some(1), Some(2), Some(3), Some(4), Some(5)])),
            ("name", Type::Text, texts(&[Some("Sirius"), Some("Vega"), Some("Deneb"), None, Some("Algol")])),
            ("mag", Type::Double, doubles(&[Some(-1.5), Some(0.0), Some(1.25), Some(f64::NAN), None])),
            ("class", Type::Text, texts(&[Some("A"), Some("A"), Some("A"), Some("K"), Some("B")])),
        ],
    );
    let obs = table(
        "obs",
        vec![
            ("id", Type::Int, ints(&[Some(1), Some(1), Some(2), Some(4), Some(9), None])),
            ("band", Type::Text, texts(&[Some("V"), Some("B"), Some("V"), Some("I"), Some("V"), Some("B")])),
            ("flux", Type::Long, longs(&[Some(10), Some(20), Some(5), Some(7), None, Some(1)])),
        ],
    );
    let empty = table("empty", vec![("id", Type::Int, ints(&[])), ("x", Type::Double, doubles(&[]))]);
    tables(vec![star, obs, empty])
}

pub(super) fn resolved(text: &str, tables: &Tables) -> Arc<Query> {
    let query = parse(text, Language::V2_1).unwrap_or_else(|error| panic!("{}", error.report(text)));
    let resolved = resolve(&query, tables, &Options::default());
    resolved.unwrap_or_else(|error| panic!("{}", error.report(text))).query
}

/// A column as texts.
struct Column(ArrayRef);

impl Input for Column {
    fn rows(&self) -> usize {
        self.0.len()
    }

    fn column(&self, _: ColumnRef) -> Result<Cells, QueryError> {
        Ok(Cells::Array(self.0.clone()))
    }
}

/// The rows of batches, values parted by `|`, NULL as `-`.
pub(super) fn lines(fields: &[Field], batches: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in batches {
        let columns = fields.iter().zip(batch.columns()).map(|(field, column)| {
            let own = Expr::column(ColumnRef { depth: 0, relation: 0, column: 0 }, field.ty);
            let text = Expr::new(Kind::Cast(Box::new(own)), Type::Text);
            evaluate(&text, &Column(column.clone()), &Context::default()).unwrap()
        });
        let columns: Vec<ArrayRef> = columns.collect();
        for row in 0..batch.num_rows() {
            let cell = |column: &ArrayRef| match column.is_null(row) {
                true => "-".to_owned(),
                false => column.as_string::<i32>().value(row).to_owned(),
            };
            lines.push(columns.iter().map(cell).collect::<Vec<_>>().join("|"));
        }
    }
    lines
}

pub(super) fn answer_with(text: &str, tables: &Tables, limits: Limits) -> Result<Vec<String>, QueryError> {
    let query = resolved(text, tables);
    let batches = Interpreter::new(limits, 1).collect(&query, tables)?;
    Ok(lines(&query.fields, &batches))
}

pub(super) fn answer(text: &str, tables: &Tables) -> Result<Vec<String>, QueryError> {
    answer_with(text, tables, Limits::default())
}

/// The answer of a query over [`sky`], rows parted by blanks.
#[track_caller]
pub(super) fn check(text: &str, expected: &str) {
    assert_eq!(answer(text, &sky()).unwrap().join(" "), expected, "{text}");
}

/// The same where rows have no order.
#[track_caller]
pub(super) fn check_set(text: &str, expected: &str) {
    let mut found = answer(text, &sky()).unwrap();
    found.sort();
    assert_eq!(found.join(" "), expected, "{text}");
}

#[track_caller]
pub(super) fn refused(text: &str) -> String {
    match answer(text, &sky()) {
        Ok(found) => panic!("{found:?}"),
        Err(error) => error.to_string(),
    }
}
