//! What is published, as one immutable snapshot, and the tables that a single query may name.

use std::collections::HashMap;
use std::sync::Arc;

use trifid_archive_adql::catalogue::{Catalogue, Name, Table as Named};

use crate::table::Table;

/// A schema's metadata (TAP 1.1 4.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaInfo {
    /// Its name as declared.
    pub name: Arc<str>,
    /// What it holds.
    pub description: Option<Arc<str>>,
    /// The data model's role.
    pub utype: Option<Arc<str>>,
    /// Its place in listings.
    pub index: Option<i32>,
}

/// A table's metadata beside that of its fields (TAP 1.1 4.2 to 4.4).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableInfo {
    /// Whether it is derived from another (`view`).
    pub view: bool,
    /// What it holds.
    pub description: Option<Arc<str>>,
    /// The data model's role.
    pub utype: Option<Arc<str>>,
    /// Its place in listings.
    pub index: Option<i32>,
    /// One for each field.
    pub columns: Vec<ColumnInfo>,
    /// Foreign keys.
    pub keys: Vec<KeyInfo>,
}

/// A column's metadata beside its field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnInfo {
    /// Whether conditions on it are cheap.
    pub indexed: bool,
    /// Whether it belongs into a short selection.
    pub principal: bool,
    /// Whether a standard defines it.
    pub standard: bool,
    /// Its place in listings.
    pub index: Option<i32>,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyInfo {
    /// Its name, unique in the service.
    pub id: Arc<str>,
    /// The full name of the table that it leads to.
    pub target: Arc<str>,
    /// Pairs of a column here and a column there.
    pub columns: Vec<(Arc<str>, Arc<str>)>,
    /// What it means.
    pub description: Option<Arc<str>>,
    /// The data model's role.
    pub utype: Option<Arc<str>>,
}

/// A table and what is said of it.
#[derive(Debug)]
pub struct Published {
    /// The rows.
    pub table: Arc<Table>,
    /// The metadata.
    pub info: TableInfo,
}

/// Everything that is published at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The schemas in the order of listings.
    pub schemas: Vec<SchemaInfo>,
    /// The tables in the order of listings.
    pub tables: Vec<Arc<Published>>,
    /// Changes with every snapshot: plans made for another do not hold.
    pub generation: u64,
    /// Lower-cased table name to places in `tables`.
    by_name: HashMap<String, Vec<usize>>,
}

impl Snapshot {
    /// A snapshot of these tables, in listing order.
    pub fn new(generation: u64, schemas: Vec<SchemaInfo>, tables: Vec<Arc<Published>>) -> Self {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, published) in tables.iter().enumerate() {
            by_name.entry(published.table.head.name.to_ascii_lowercase()).or_default().push(place);
        }
        Self { schemas, tables, generation, by_name }
    }

    /// The table with exactly this declared name.
    pub fn table(&self, schema: &str, name: &str) -> Option<&Arc<Published>> {
        let fits = |place: &&usize| {
            let head = &self.tables[**place].table.head;
            *head.schema == *schema && *head.name == *name
        };
        let places = self.by_name.get(&name.to_ascii_lowercase())?;
        places.iter().find(fits).map(|place| &self.tables[*place])
    }
}

/// The schema of uploaded tables (TAP 1.1 2.7.6).
pub const UPLOAD_SCHEMA: &str = "TAP_UPLOAD";

/// The tables that one query may name: a snapshot, and what came with the query.
#[derive(Clone, Debug)]
pub struct Tables {
    /// What is published.
    pub snapshot: Arc<Snapshot>,
    /// What was uploaded; schema [`UPLOAD_SCHEMA`].
    pub uploads: Vec<Arc<Table>>,
}

impl Tables {
    /// The table that a resolved query means.
    pub fn get(&self, schema: &str, name: &str) -> Option<&Arc<Table>> {
        if schema == UPLOAD_SCHEMA {
            return self.uploads.iter().find(|table| *table.head.name == *name);
        }
        self.snapshot.table(schema, name).map(|published| &published.table)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.uploads.iter().chain(self.snapshot.tables.iter().map(|published| &published.table))
    }
}

impl Catalogue for Tables {
    fn find(&self, schema: Option<&Name>, table: &Name) -> Vec<Named> {
        let places = self.snapshot.by_name.get(&table.text.to_ascii_lowercase());
        let published = places.into_iter().flatten().map(|place| &self.snapshot.tables[*place].table);
        let fits = |found: &&Arc<Table>| {
            table.matches(&found.head.name) && schema.is_none_or(|schema| schema.matches(&found.head.schema))
        };
        let mut found: Vec<&Arc<Table>> = self.uploads.iter().chain(published).filter(fits).collect();
        if found.iter().any(|one| *one.head.name == *table.text) {
            found.retain(|one| *one.head.name == *table.text);
        }
        found.into_iter().map(|one| named(one)).collect()
    }

    fn names(&self) -> Vec<String> {
        self.all().map(|table| format!("{}.{}", table.head.schema, table.head.name)).collect()
    }
}

fn named(table: &Table) -> Named {
    let head = &table.head;
    Named { schema: head.schema.clone(), name: head.name.clone(), fields: head.fields.clone() }
}
