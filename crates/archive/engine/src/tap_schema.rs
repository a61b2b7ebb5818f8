//! TAP_SCHEMA: the catalogue as tables, itself included (TAP 1.1 section 4).

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, StringArray};
use trifid_archive_adql::identifier::identifier;
use trifid_archive_adql::types::{Field, Size, Type};
use trifid_archive_model::batch;
use trifid_archive_model::votable::{arraysize_of, datatype_of};

use crate::catalogue::{ColumnInfo, KeyInfo, Published, SchemaInfo, Snapshot, TableInfo};
use crate::error::QueryError;
use crate::table::{Table, TableHead};

/// The schema's name.
pub const SCHEMA: &str = "TAP_SCHEMA";

const SCHEMA_DESCRIPTION: &str = "The tables of this service, their columns, and how they hang together";

/// A column: name, type, whether it is principal, what it means.
type Column = (&'static str, Type, bool, &'static str);

const SCHEMAS: &[Column] = &[
    ("schema_name", Type::Text, true, "the schema, as a query writes it"),
    ("utype", Type::Text, false, "its role in a data model"),
    ("description", Type::Text, true, "what it holds"),
    ("schema_index", Type::Int, false, "its place in a listing"),
];

const TABLES: &[Column] = &[
    ("schema_name", Type::Text, true, "the schema that the table is in"),
    ("table_name", Type::Text, true, "the table, as a query writes it"),
    ("table_type", Type::Text, true, "table or view"),
    ("utype", Type::Text, false, "its role in a data model"),
    ("description", Type::Text, true, "what it holds"),
    ("table_index", Type::Int, false, "its place in a listing"),
];

const COLUMNS: &[Column] = &[
    ("table_name", Type::Text, true, "the table that the column is in"),
    ("column_name", Type::Text, true, "the column, as a query writes it"),
    ("datatype", Type::Text, true, "its VOTable datatype"),
    ("arraysize", Type::Text, false, "its VOTable arraysize"),
    ("xtype", Type::Text, false, "its DALI xtype"),
    ("size", Type::Int, false, "its length, where it has one; arraysize says more"),
    ("description", Type::Text, true, "what it means"),
    ("utype", Type::Text, false, "its role in a data model"),
    ("unit", Type::Text, true, "its unit, in VOUnits"),
    ("ucd", Type::Text, true, "its Unified Content Descriptor"),
    ("indexed", Type::Int, false, "1 if conditions on it are cheap, else 0"),
    ("principal", Type::Int, false, "1 if it belongs into a short selection, else 0"),
    ("std", Type::Int, false, "1 if a standard defines it, else 0"),
    ("column_index", Type::Int, false, "its place in a listing"),
];

const KEYS: &[Column] = &[
    ("key_id", Type::Text, true, "the foreign key"),
    ("from_table", Type::Text, true, "the table that refers"),
    ("target_table", Type::Text, true, "the table that is referred to"),
    ("description", Type::Text, true, "what it means"),
    ("utype", Type::Text, false, "its role in a data model"),
];

const KEY_COLUMNS: &[Column] = &[
    ("key_id", Type::Text, true, "the foreign key"),
    ("from_column", Type::Text, true, "the column that refers"),
    ("target_column", Type::Text, true, "the column that is referred to"),
];

/// Table, columns, what it holds, and the columns by which it is asked.
type Definition = (&'static str, &'static [Column], &'static str, &'static [&'static str]);

const DEFINITIONS: [Definition; 5] = [
    ("schemas", SCHEMAS, "The schemas of this service", &[]),
    ("tables", TABLES, "The tables of this service", &["table_name"]),
    ("columns", COLUMNS, "The columns of all tables", &["table_name", "column_name"]),
    ("keys", KEYS, "The foreign keys between tables", &[]),
    ("key_columns", KEY_COLUMNS, "The columns of foreign keys", &[]),
];

/// The snapshot of these tables together with the TAP_SCHEMA that describes them.
pub fn with_tap_schema(
    generation: u64,
    mut schemas: Vec<SchemaInfo>,
    mut tables: Vec<Arc<Published>>,
) -> Result<Snapshot, QueryError> {
    schemas.push(SchemaInfo {
        name: SCHEMA.into(),
        description: Some(SCHEMA_DESCRIPTION.into()),
        utype: None,
        index: Some(100_000),
    });
    let heads: Vec<(TableHead, TableInfo)> = DEFINITIONS.iter().map(head).collect();
    let listed = tables.iter().map(|published| (&published.table.head, &published.info));
    let listed: Vec<(&TableHead, &TableInfo)> =
        listed.chain(heads.iter().map(|(head, info)| (head, info))).collect();
    let contents = [
        schema_rows(&schemas),
        table_rows(&listed),
        column_rows(&listed),
        key_rows(&listed),
        key_column_rows(&listed),
    ];
    let mut made = Vec::with_capacity(DEFINITIONS.len());
    for ((head, info), rows) in heads.iter().zip(contents) {
        let table = rows.table(head.clone(), info)?;
        made.push(Arc::new(Published { table: Arc::new(table), info: info.clone() }));
    }
    tables.extend(made);
    Ok(Snapshot::new(generation, schemas, tables))
}

fn head(definition: &Definition) -> (TableHead, TableInfo) {
    let (name, columns, description, asked) = *definition;
    let head = TableHead {
        schema: SCHEMA.into(),
        name: name.into(),
        fields: columns.iter().map(field).collect(),
        position: None,
    };
    let info = TableInfo {
        description: Some(description.into()),
        columns: (0..).zip(columns).map(|(at, column)| column_info(at, column, asked)).collect(),
        keys: keys(name),
        ..TableInfo::default()
    };
    (head, info)
}

fn field(column: &Column) -> Field {
    Field { description: Some(column.3.into()), ..Field::new(column.0, column.1) }
}

fn column_info(at: i32, column: &Column, asked: &[&str]) -> ColumnInfo {
    ColumnInfo {
        indexed: asked.contains(&column.0),
        principal: column.2,
        standard: true,
        index: Some(at + 1),
    }
}

/// The foreign keys within TAP_SCHEMA (TAP 1.1 4.4).
fn keys(table: &str) -> Vec<KeyInfo> {
    let key = |target: &str, columns: &[(&str, &str)]| KeyInfo {
        id: format!("{SCHEMA}.{table}.{target}").into(),
        target: format!("{SCHEMA}.{target}").into(),
        columns: columns.iter().map(|(from, to)| (Arc::from(*from), Arc::from(*to))).collect(),
        description: None,
        utype: None,
    };
    match table {
        "tables" => vec![key("schemas", &[("schema_name", "schema_name")])],
        "columns" => vec![key("tables", &[("table_name", "table_name")])],
        "key_columns" => vec![key("keys", &[("key_id", "key_id")])],
        "keys" => {
            let to = key("tables", &[("target_table", "table_name")]);
            let to = KeyInfo { id: format!("{}.to", to.id).into(), ..to };
            vec![key("tables", &[("from_table", "table_name")]), to]
        }
        _ => Vec::new(),
    }
}

/// A table's full name as a query writes it.
pub fn full_name(head: &TableHead) -> String {
    format!("{}.{}", identifier(&head.schema), identifier(&head.name))
}

/// Rows under construction: a cell is a text or a number, or absent.
struct Rows {
    columns: Vec<Cells>,
}

enum Cells {
    Text(Vec<Option<String>>),
    Number(Vec<Option<i32>>),
}

enum Cell {
    Text(Option<String>),
    Number(Option<i32>),
}

impl Cell {
    fn text(value: impl Into<String>) -> Self {
        Self::Text(Some(value.into()))
    }

    fn maybe(value: &Option<Arc<str>>) -> Self {
        Self::Text(value.as_deref().map(Into::into))
    }

    fn flag(value: bool) -> Self {
        Self::Number(Some(value.into()))
    }
}

impl Rows {
    fn new(columns: &[Column]) -> Self {
        let cells = |column: &Column| match column.1 {
            Type::Int => Cells::Number(Vec::new()),
            _ => Cells::Text(Vec::new()),
        };
        Self { columns: columns.iter().map(cells).collect() }
    }

    fn push<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(self.columns.len(), N);
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match (column, cell) {
                (Cells::Text(column), Cell::Text(text)) => column.push(text),
                (Cells::Number(column), Cell::Number(number)) => column.push(number),
                (Cells::Text(column), Cell::Number(_)) => column.push(None),
                (Cells::Number(column), Cell::Text(_)) => column.push(None),
            }
        }
    }

    fn table(self, head: TableHead, info: &TableInfo) -> Result<Table, QueryError> {
        let columns: Vec<ArrayRef> = self.columns.into_iter().map(Cells::array).collect();
        let rows = columns.first().map_or(0, |column| column.len());
        let batch = batch::batch(&head.fields, columns, rows).map_err(QueryError::internal)?;
        let indexed = crate::metadata::indexed(&head, info);
        Table::in_memory(head, &[batch], &indexed)
    }
}

impl Cells {
    fn array(self) -> ArrayRef {
        match self {
            Self::Text(texts) => Arc::new(StringArray::from(texts)),
            Self::Number(numbers) => Arc::new(Int32Array::from(numbers)),
        }
    }
}

fn schema_rows(schemas: &[SchemaInfo]) -> Rows {
    let mut rows = Rows::new(SCHEMAS);
    for schema in schemas {
        rows.push([
            Cell::text(identifier(&schema.name)),
            Cell::maybe(&schema.utype),
            Cell::maybe(&schema.description),
            Cell::Number(schema.index),
        ]);
    }
    rows
}

fn table_rows(tables: &[(&TableHead, &TableInfo)]) -> Rows {
    let mut rows = Rows::new(TABLES);
    for (head, info) in tables {
        rows.push([
            Cell::text(identifier(&head.schema)),
            Cell::text(full_name(head)),
            Cell::text(if info.view { "view" } else { "table" }),
            Cell::maybe(&info.utype),
            Cell::maybe(&info.description),
            Cell::Number(info.index),
        ]);
    }
    rows
}

fn column_rows(tables: &[(&TableHead, &TableInfo)]) -> Rows {
    let mut rows = Rows::new(COLUMNS);
    for (head, info) in tables {
        let table = full_name(head);
        for (field, column) in head.fields.iter().zip(&info.columns) {
            rows.push(column_row(&table, field, column));
        }
    }
    rows
}

fn column_row(table: &str, field: &Field, column: &ColumnInfo) -> [Cell; 14] {
    [
        Cell::text(table),
        Cell::text(identifier(&field.name)),
        Cell::text(datatype_of(field)),
        Cell::Text(arraysize_of(field)),
        Cell::maybe(&field.xtype),
        Cell::Number(length(field)),
        Cell::maybe(&field.description),
        Cell::maybe(&field.utype),
        Cell::maybe(&field.unit),
        Cell::maybe(&field.ucd),
        Cell::flag(column.indexed),
        Cell::flag(column.principal),
        Cell::flag(column.standard),
        Cell::Number(column.index),
    ]
}

/// The length of a one-dimensional value (TAP 1.1 4.3: NULL for scalars and more dimensions).
fn length(field: &Field) -> Option<i32> {
    match field.size {
        Size::Fixed(count) | Size::Variable(Some(count)) => i32::try_from(count).ok(),
        Size::One | Size::Variable(None) | Size::Shape(..) => None,
    }
}

fn key_rows(tables: &[(&TableHead, &TableInfo)]) -> Rows {
    let mut rows = Rows::new(KEYS);
    for (head, key) in all_keys(tables) {
        rows.push([
            Cell::text(&*key.id),
            Cell::text(full_name(head)),
            Cell::text(&*key.target),
            Cell::maybe(&key.description),
            Cell::maybe(&key.utype),
        ]);
    }
    rows
}

fn key_column_rows(tables: &[(&TableHead, &TableInfo)]) -> Rows {
    let mut rows = Rows::new(KEY_COLUMNS);
    for (_, key) in all_keys(tables) {
        for (from, to) in &key.columns {
            rows.push([Cell::text(&*key.id), Cell::text(identifier(from)), Cell::text(identifier(to))]);
        }
    }
    rows
}

fn all_keys<'a>(
    tables: &'a [(&'a TableHead, &'a TableInfo)],
) -> impl Iterator<Item = (&'a TableHead, &'a KeyInfo)> {
    tables.iter().flat_map(|(head, info)| info.keys.iter().map(move |key| (*head, key)))
}
