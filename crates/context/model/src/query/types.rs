//! The entity type selection language (4.17): `A|B`, `A,B`, `(A;B)`, and `*` of table 6.4.3.2-1.
//!
//! Names may be URIs, which may contain the operators; they end at the first one, so such URIs need a
//! context that gives them short names (4.17 recommends those). Beyond the grammar, a conjunction that
//! stands alone needs no parentheses.

use smallvec::SmallVec;

use super::error::{Error, Reason};
use super::limits::MAX_TERMS;
use super::names::{Expand, Name};
use super::scan::Scanner;
use crate::name;
use crate::symbol::{Symbol, Symbols};

/// A selection as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeSelection {
    /// `*`: every type.
    All,
    /// Alternatives, each a conjunction of one or more types.
    AnyOf(Vec<Vec<String>>),
}

/// Reads a selection. Never panics; an entry point for fuzzing.
pub fn parse(parameter: &'static str, text: &str) -> Result<TypeSelection, Error> {
    let mut scan = Scanner::new(parameter, text)?;
    scan.skip_spaces();
    if scan.rest().trim_end() == "*" {
        return Ok(TypeSelection::All);
    }
    let mut count = 0;
    let mut alternatives = vec![alternative(&mut scan, &mut count)?];
    while scan.eat(",") || scan.eat("|") {
        alternatives.push(alternative(&mut scan, &mut count)?);
    }
    if scan.at_end() {
        Ok(TypeSelection::AnyOf(alternatives))
    } else {
        Err(scan.expected("\",\", \"|\", \";\" or the end"))
    }
}

fn alternative(scan: &mut Scanner<'_>, count: &mut usize) -> Result<Vec<String>, Error> {
    scan.skip_spaces();
    let grouped = scan.eat("(");
    let mut types = vec![type_name(scan, count)?];
    while scan.eat(";") {
        types.push(type_name(scan, count)?);
    }
    if grouped {
        scan.expect(")", "\";\" or \")\"")?;
        scan.skip_spaces();
    }
    Ok(types)
}

fn type_name(scan: &mut Scanner<'_>, count: &mut usize) -> Result<String, Error> {
    if *count == MAX_TERMS {
        return Err(scan.fail(Reason::TooMany("types", MAX_TERMS)));
    }
    *count += 1;
    scan.skip_spaces();
    if !scan.peek().is_some_and(char::is_alphabetic) {
        return Err(scan.expected("an entity type"));
    }
    let ends = |c: char| ",|;()\"<>\\^`{}*".contains(c) || c.is_whitespace() || c.is_control();
    let mark = scan.mark();
    let own = scan.take_while(|c| !ends(c));
    if !name::is_name(own) {
        return Err(
            scan.fail_at(mark, Reason::Expected("the name of an entity type (4.6.2) or a URI".into()))
        );
    }
    scan.skip_spaces();
    Ok(own.to_owned())
}

impl std::fmt::Display for TypeSelection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TypeSelection::AnyOf(alternatives) = self else { return f.write_str("*") };
        for (n, types) in alternatives.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "," })?;
            match types.as_slice() {
                [one] => f.write_str(one)?,
                several => write!(f, "({})", several.join(";"))?,
            }
        }
        Ok(())
    }
}

/// A selection with expanded names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Types {
    /// Every type.
    All,
    /// Alternatives, each a conjunction.
    AnyOf(Box<[SmallVec<[Name; 1]>]>),
}

impl Types {
    /// Expands the names of `selection`.
    pub fn new(
        parameter: &'static str,
        selection: &TypeSelection,
        expand: &Expand<'_>,
    ) -> Result<Self, Error> {
        let TypeSelection::AnyOf(alternatives) = selection else { return Ok(Types::All) };
        let name = |term: &String| Name::expand(parameter, term, expand);
        let expanded = alternatives.iter().map(|types| types.iter().map(name).collect::<Result<_, _>>());
        Ok(Types::AnyOf(expanded.collect::<Result<_, Error>>()?))
    }

    /// True when an entity of these types is selected.
    #[expect(clippy::needless_pass_by_value, reason = "iterators are handed over, as everywhere")]
    pub fn matches(&self, own: impl Iterator<Item = Symbol> + Clone, symbols: &Symbols) -> bool {
        let has =
            |name: &Name| name.symbol(symbols).is_some_and(|wanted| own.clone().any(|own| own == wanted));
        match self {
            Types::All => true,
            Types::AnyOf(alternatives) => alternatives.iter().any(|types| types.iter().all(has)),
        }
    }

    /// Types such that every selected entity has one of them; `None` for `*`. An index look-up over them
    /// may select too much, never too little.
    pub fn candidates(&self, symbols: &Symbols) -> Option<Vec<Symbol>> {
        let Types::AnyOf(alternatives) = self else { return None };
        let known = |types: &SmallVec<[Name; 1]>| {
            types.iter().map(|name| name.symbol(symbols)).collect::<Option<SmallVec<[Symbol; 1]>>>()
        };
        // A conjunction selects a subset of its first type; one with an unknown type selects nothing.
        let mut found: Vec<Symbol> = alternatives.iter().filter_map(known).map(|types| types[0]).collect();
        found.sort_unstable();
        found.dedup();
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::names::testing;
    use super::*;
    use crate::symbol::Budget;
    use proptest::prelude::*;

    #[test]
    fn clause_4_17_selections_are_read() {
        for (text, printed) in [
            ("Building", "Building"),
            ("Building|House", "Building,House"),
            ("(Home;Vehicle)", "(Home;Vehicle)"),
            ("(Home;Vehicle)|Motorhome", "(Home;Vehicle),Motorhome"),
            ("Home;Vehicle,Motorhome", "(Home;Vehicle),Motorhome"),
            ("(Home)", "Home"),
            ("https://a.b/c#D, E", "https://a.b/c#D,E"),
            ("*", "*"),
        ] {
            assert_eq!(parse("type", text).map(|own| own.to_string()), Ok(printed.to_owned()), "{text}");
        }
        for (text, error) in [
            ("", "type: expected an entity type at character 1"),
            ("A,,B", "type: expected an entity type at character 3"),
            ("(A;B", "type: expected \";\" or \")\" at character 5"),
            ("A)", "type: expected \",\", \"|\", \";\" or the end at character 2"),
            ("A,*", "type: expected an entity type at character 3"),
        ] {
            assert_eq!(parse("type", text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn clause_4_17_conjunctions_need_every_type() {
        let symbols = Symbols::new();
        let budget = Budget::new(10);
        let [a, b, c] = ["A", "B", "C"].map(|name| symbols.intern(&testing::iri(name), &budget).unwrap());
        for (text, own, matches) in [
            ("A", vec![a, b], true),
            ("A", vec![b], false),
            ("(A;B)", vec![a], false),
            ("(A;B)", vec![b, a], true),
            ("(A;B),C", vec![c], true),
            ("(A;Unknown)", vec![a], false),
            ("Unknown", vec![a], false),
            ("*", vec![], true),
        ] {
            let types = Types::new("type", &parse("type", text).unwrap(), &testing::expand()).unwrap();
            assert_eq!(types.matches(own.iter().copied(), &symbols), matches, "{text}");
            let candidates = types.candidates(&symbols);
            let over = candidates.is_none_or(|some| some.iter().any(|symbol| own.contains(symbol)));
            assert!(over || !matches, "{text}: the candidates miss a match");
        }
        assert_eq!(symbols.len(), 3);
    }

    proptest! {
        #[test]
        fn any_text_is_answered_and_printing_reads_back(text in "[AB:/,|;()* ]{0,12}") {
            if let Ok(selection) = parse("type", &text) {
                prop_assert_eq!(parse("type", &selection.to_string()), Ok(selection));
            }
        }
    }
}
