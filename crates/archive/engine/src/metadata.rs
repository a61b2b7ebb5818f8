//! What is said of tables beyond their rows: guessed from names, corrected by a file.
//!
//! A column that comes without a unit or a UCD gets them where its name and type leave little doubt ([`guess`]): a
//! catalogue out of a CSV file is then searchable by position and plots with axes. What the source itself says (a
//! VOTable's FIELD) is never overruled by a guess, and everything is overruled by the table's TOML file
//! ([`Description`]).

pub mod description;
pub mod guess;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use trifid_archive_adql::types::Field;

use crate::catalogue::{ColumnInfo, KeyInfo, TableInfo};
use crate::table::{Position, TableHead};

pub use description::{Description, DescriptionError};

/// Where a table's rows are on the sky: the columns whose UCDs say so, the main ones first.
pub fn position(fields: &[Field]) -> Option<Position> {
    let find = |wanted: &dyn Fn(&str) -> bool| {
        fields.iter().position(|field| field.ty.is_numeric() && field.ucd.as_deref().is_some_and(wanted))
    };
    let pair = |lon: &str, lat: &str| {
        let fits = |ucd: &str, word: &str| ucd.eq_ignore_ascii_case(word);
        Some(Position { lon: find(&|ucd| fits(ucd, lon))?, lat: find(&|ucd| fits(ucd, lat))? })
    };
    let main = pair("pos.eq.ra;meta.main", "pos.eq.dec;meta.main");
    main.or_else(|| pair("pos.eq.ra", "pos.eq.dec")).filter(|position| {
        let real = |at: usize| {
            use trifid_archive_adql::types::Type;
            matches!(fields[at].ty, Type::Float | Type::Double)
        };
        real(position.lon) && real(position.lat)
    })
}

/// A table's head and metadata out of its columns: guesses filled in, then the description applied.
pub fn describe(
    schema: &str,
    name: &str,
    fields: &[Field],
    description: &Description,
) -> Result<(TableHead, TableInfo), DescriptionError> {
    let mut fields: Vec<Field> = fields.to_vec();
    guess::fill(&mut fields);
    let columns = description.apply(&mut fields)?;
    let info = TableInfo {
        view: false,
        description: description.table.description.clone(),
        utype: description.table.utype.clone(),
        index: description.table.index,
        keys: description.keys(schema, name),
        columns,
    };
    let head = TableHead {
        schema: schema.into(),
        name: name.into(),
        position: position(&fields),
        fields: fields.into(),
    };
    Ok((head, info))
}

/// The columns worth an index: those that the metadata calls indexed, positions aside (they have one of their own).
pub fn indexed(head: &TableHead, info: &TableInfo) -> Vec<usize> {
    let by_sky =
        |at: &usize| head.position.is_some_and(|position| *at == position.lon || *at == position.lat);
    let wanted = info.columns.iter().enumerate().filter(|(_, column)| column.indexed).map(|(at, _)| at);
    wanted.filter(|at| !by_sky(at)).collect()
}

/// The metadata of a column of which nothing is said.
pub(crate) fn plain(field: &Field, position: Option<Position>, at: usize) -> ColumnInfo {
    let ucd = field.ucd.as_deref().unwrap_or_default();
    let main = ucd.split(';').any(|word| word == "meta.main");
    let identifier = ucd.starts_with("meta.id");
    let placed = position.is_some_and(|position| at == position.lon || at == position.lat);
    ColumnInfo {
        indexed: placed || identifier,
        principal: main || placed || identifier,
        standard: false,
        index: None,
    }
}

impl Description {
    fn keys(&self, schema: &str, name: &str) -> Vec<KeyInfo> {
        let key = |(at, key): (usize, &description::Key)| KeyInfo {
            id: format!("{schema}.{name}.{at}").into(),
            target: Arc::clone(&key.target),
            columns: key.columns.iter().map(|pair| (Arc::clone(&pair[0]), Arc::clone(&pair[1]))).collect(),
            description: key.description.clone(),
            utype: key.utype.clone(),
        };
        self.key.iter().enumerate().map(key).collect()
    }
}
