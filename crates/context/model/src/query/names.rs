//! Names in compiled queries: expanded once, looked up among the symbols at most until found.

use std::sync::OnceLock;

use super::error::{Error, Reason};
use crate::ld::Context;
use crate::symbol::{Symbol, Symbols};

/// Expands a term by the request's `@context` (5.5.7); the error says in words why it cannot.
pub type Expand<'a> = dyn Fn(&str) -> Result<Box<str>, String> + 'a;

/// The way `context` expands, for the compiled forms of this module's siblings.
pub fn expander(context: &Context) -> impl Fn(&str) -> Result<Box<str>, String> + '_ {
    |term| context.expand(term).map(|iri| Box::from(iri.as_ref())).map_err(|error| error.to_string())
}

/// Where the core context keeps the names of system attributes and other non-reified members.
const CORE: &str = "https://uri.etsi.org/ngsi-ld/";

/// An expanded name.
///
/// The symbol is looked up, never introduced: a name that no write has used is looked up again at the next
/// use, so that a filter that outlives a request (a subscription) sees names which appear later. One `Name`
/// serves one table of symbols.
#[derive(Debug, Clone)]
pub struct Name {
    iri: Box<str>,
    symbol: OnceLock<Symbol>,
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.iri == other.iri
    }
}

impl Eq for Name {}

impl Name {
    /// The name `term` of `parameter`, expanded.
    pub fn expand(parameter: &'static str, term: &str, expand: &Expand<'_>) -> Result<Self, Error> {
        let iri = expand(term)
            .map_err(|why| Error::whole(parameter, Reason::Name { name: term.to_owned(), why }))?;
        Ok(Name { iri, symbol: OnceLock::new() })
    }

    /// The expanded name.
    pub fn iri(&self) -> &str {
        &self.iri
    }

    /// The name's symbol, if some write has introduced it.
    pub fn symbol(&self, symbols: &Symbols) -> Option<Symbol> {
        self.symbol.get().copied().or_else(|| {
            let found = symbols.get(&self.iri)?;
            Some(*self.symbol.get_or_init(|| found))
        })
    }
}

/// What is not an attribute instance but is addressed like one: the system attributes and the non-reified
/// members (4.8, 4.5.2). The core context is protected, so the short names always mean these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the standard's")]
pub enum Member {
    CreatedAt,
    ModifiedAt,
    DeletedAt,
    ExpiresAt,
    ObservedAt,
    DatasetId,
    UnitCode,
    ValueType,
    ObjectType,
    Scope,
}

impl Member {
    /// The member that `term` means, as a short name or as the core context expands it.
    pub fn from_term(term: &str) -> Option<Member> {
        Some(match term.strip_prefix(CORE).unwrap_or(term) {
            "createdAt" => Member::CreatedAt,
            "modifiedAt" => Member::ModifiedAt,
            "deletedAt" => Member::DeletedAt,
            "expiresAt" => Member::ExpiresAt,
            "observedAt" => Member::ObservedAt,
            "datasetId" => Member::DatasetId,
            "unitCode" => Member::UnitCode,
            "valueType" | "hasValueType" => Member::ValueType,
            "objectType" | "hasObjectType" => Member::ObjectType,
            "scope" => Member::Scope,
            _ => return None,
        })
    }

    /// True for the members of an entity itself, not only of attributes.
    pub fn is_of_entity(self) -> bool {
        match self {
            Member::CreatedAt
            | Member::ModifiedAt
            | Member::DeletedAt
            | Member::ExpiresAt
            | Member::Scope => true,
            Member::ObservedAt
            | Member::DatasetId
            | Member::UnitCode
            | Member::ValueType
            | Member::ObjectType => false,
        }
    }

    /// True for the members whose values are type names, expanded like names.
    pub(crate) fn is_expanded(self) -> bool {
        matches!(self, Member::ValueType | Member::ObjectType)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::Expand;

    /// Expands like a context with a vocabulary and no terms.
    pub(crate) fn expand() -> Box<Expand<'static>> {
        Box::new(|term| Ok(if term.contains("://") { term.into() } else { iri(term).into() }))
    }

    pub(crate) fn iri(term: &str) -> String {
        format!("https://example.org/{term}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::Budget;

    #[test]
    fn a_name_finds_its_symbol_when_a_write_introduces_it() {
        let symbols = Symbols::new();
        let name = Name::expand("q", "speed", &testing::expand()).unwrap();
        assert_eq!(name.symbol(&symbols), None);
        let symbol = symbols.intern(name.iri(), &Budget::new(1)).unwrap();
        assert_eq!(name.symbol(&symbols), Some(symbol));
        assert_eq!(symbols.len(), 1);
    }

    #[test]
    fn core_members_are_known_short_and_expanded() {
        assert_eq!(Member::from_term("observedAt"), Some(Member::ObservedAt));
        assert_eq!(Member::from_term("https://uri.etsi.org/ngsi-ld/createdAt"), Some(Member::CreatedAt));
        assert_eq!(Member::from_term("https://uri.etsi.org/ngsi-ld/default-context/createdAt"), None);
        assert_eq!(Member::from_term("speed"), None);
    }
}
