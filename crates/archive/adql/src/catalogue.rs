//! What the resolver asks of a catalogue.

use std::sync::Arc;

use crate::types::Field;

/// A table as the resolver sees it.
#[derive(Clone, Debug)]
pub struct Table {
    /// The schema as declared.
    pub schema: Arc<str>,
    /// The name as declared, without its schema.
    pub name: Arc<str>,
    /// The columns in order.
    pub fields: Arc<[Field]>,
}

/// The tables that a query may name. Names arrive as they were written: an unquoted one matches any case, a
/// quoted one exactly ([`Name::matches`]).
pub trait Catalogue {
    /// The tables that `schema` (any, where there is none) and `table` fit. More than one makes the name ambiguous;
    /// an implementation prefers an exact match of the declared case.
    fn find(&self, schema: Option<&Name>, table: &Name) -> Vec<Table>;

    /// Every table's full name, for suggestions after a mistake.
    fn names(&self) -> Vec<String>;
}

/// A name as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    /// Its characters, without quotes.
    pub text: Arc<str>,
    /// Whether it stood in double quotes, which makes case count.
    pub quoted: bool,
}

impl Name {
    /// Whether a declared name is meant.
    pub fn matches(&self, declared: &str) -> bool {
        if self.quoted { *self.text == *declared } else { self.text.eq_ignore_ascii_case(declared) }
    }
}
