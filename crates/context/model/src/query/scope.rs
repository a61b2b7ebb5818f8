//! The scope query language (4.19): `/a/b`, `+` for one level, a trailing `/#` for the scope and all below
//! it, `;` (and), `|` or `,` (or), parentheses around a conjunction.
//!
//! Beyond the grammar: the first slash may be missing (as in scopes, 4.18, and in the clause's own example
//! 5), a conjunction that stands alone needs no parentheses, and `/#` may stand within a conjunction.

use super::error::{Error, Reason};
use super::limits::{MAX_PATH, MAX_TERMS};
use super::scan::Scanner;

/// A scope query: alternatives, each a conjunction of patterns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeQuery(Vec<Vec<ScopePattern>>);

/// One scope with wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ScopePattern {
    /// `None` stands for `+`.
    levels: Vec<Option<Box<str>>>,
    /// A trailing `/#`.
    subtree: bool,
}

/// Reads a scope query. Never panics; an entry point for fuzzing.
pub fn parse(text: &str) -> Result<ScopeQuery, Error> {
    let mut scan = Scanner::new("scopeQ", text)?;
    let mut count = 0;
    let mut alternatives = vec![conjunction(&mut scan, &mut count)?];
    while scan.eat(",") || scan.eat("|") {
        alternatives.push(conjunction(&mut scan, &mut count)?);
    }
    if scan.at_end() {
        Ok(ScopeQuery(alternatives))
    } else {
        Err(scan.expected("\"/\", \";\", \"|\", \",\" or the end"))
    }
}

fn conjunction(scan: &mut Scanner<'_>, count: &mut usize) -> Result<Vec<ScopePattern>, Error> {
    scan.skip_spaces();
    let grouped = scan.eat("(");
    let mut patterns = vec![pattern(scan, count)?];
    while scan.eat(";") {
        patterns.push(pattern(scan, count)?);
    }
    if grouped {
        scan.expect(")", "\";\" or \")\"")?;
        scan.skip_spaces();
    }
    Ok(patterns)
}

fn pattern(scan: &mut Scanner<'_>, count: &mut usize) -> Result<ScopePattern, Error> {
    if *count == MAX_TERMS {
        return Err(scan.fail(Reason::TooMany("scopes", MAX_TERMS)));
    }
    *count += 1;
    scan.skip_spaces();
    let mut own = ScopePattern { levels: Vec::new(), subtree: false };
    scan.eat("/");
    loop {
        if scan.eat("#") {
            own.subtree = true;
            break;
        }
        if own.levels.len() == MAX_PATH * 4 {
            return Err(scan.fail(Reason::TooMany("scope levels", MAX_PATH * 4)));
        }
        own.levels.push(level(scan)?);
        if !scan.eat("/") {
            break;
        }
    }
    scan.skip_spaces();
    Ok(own)
}

fn level(scan: &mut Scanner<'_>) -> Result<Option<Box<str>>, Error> {
    if scan.eat("+") {
        return Ok(None);
    }
    if !scan.peek().is_some_and(char::is_alphabetic) {
        return Err(scan.expected("a scope level, \"+\" or \"#\""));
    }
    Ok(Some(scan.take_while(|c| c.is_alphanumeric() || c == '_').into()))
}

impl ScopeQuery {
    /// True when an entity with these scopes is selected; one without scopes never is.
    #[expect(clippy::needless_pass_by_value, reason = "iterators are handed over, as everywhere")]
    pub fn matches<'s>(&self, scopes: impl Iterator<Item = &'s str> + Clone) -> bool {
        let some = |pattern: &ScopePattern| scopes.clone().any(|scope| pattern.matches(scope));
        self.0.iter().any(|patterns| patterns.iter().all(some))
    }
}

impl ScopePattern {
    fn matches(&self, scope: &str) -> bool {
        let mut levels = scope.strip_prefix('/').unwrap_or(scope).split('/');
        let fits = |wanted: &Option<Box<str>>| {
            levels.next().is_some_and(|level| wanted.as_deref().is_none_or(|name| name == level))
        };
        self.levels.iter().all(fits) && (self.subtree || levels.next().is_none())
    }
}

impl std::fmt::Display for ScopeQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, patterns) in self.0.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "|" })?;
            let printed: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            match printed.as_slice() {
                [one] => f.write_str(one)?,
                several => write!(f, "({})", several.join(";"))?,
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for ScopePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.levels.iter().try_for_each(|level| write!(f, "/{}", level.as_deref().unwrap_or("+")))?;
        f.write_str(if self.subtree { "/#" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(query: &str, scopes: &[&str], matches: bool) {
        let query = parse(query).unwrap();
        assert_eq!(query.matches(scopes.iter().copied()), matches, "{query} {scopes:?}");
    }

    #[test]
    fn clause_4_19_examples_select_what_the_clause_says() {
        check("/Madrid", &["/Madrid"], true);
        check("/Madrid", &["Madrid"], true);
        check("/Madrid", &["/Madrid/Gardens"], false);
        for scope in
            ["/Madrid/Gardens", "/Madrid/Gardens/ParqueNorte", "/Madrid/Gardens/ParqueNorte/Parterre1"]
        {
            check("/Madrid/Gardens/#", &[scope], true);
        }
        check("/Madrid/Gardens/#", &["/Madrid"], false);
        check("/Madrid/Gardens/#", &["/Madrid/GardensX"], false);
        check("/Madrid/+/ParqueNorte", &["/Madrid/Sights/ParqueNorte"], true);
        check("/Madrid/+/ParqueNorte", &["/Madrid/ParqueNorte"], false);
        check("(/Madrid/Districts;/CompanyA)", &["/CompanyA", "/Madrid/Districts"], true);
        check("(/Madrid/Districts;/CompanyA)", &["/CompanyA"], false);
        check("(/Madrid/Districts;/CompanyA)|CompanyB", &["/CompanyB"], true);
        check("/A/B;/C,/D", &["/D"], true);
        check("/A/B;/C,/D", &["/A/B", "/C"], true);
        check("/A/B;/C,/D", &["/C"], false);
    }

    #[test]
    fn clause_4_19_hash_alone_selects_any_explicit_scope() {
        check("/#", &["/x/y"], true);
        check("/#", &[], false);
    }

    #[test]
    fn clause_4_19_refusals_name_the_place() {
        for (text, error) in [
            ("", "scopeQ: expected a scope level, \"+\" or \"#\" at character 1"),
            ("/a//b", "scopeQ: expected a scope level, \"+\" or \"#\" at character 4"),
            ("(/a;/b", "scopeQ: expected \";\" or \")\" at character 7"),
            ("/#/a", "scopeQ: expected \"/\", \";\", \"|\", \",\" or the end at character 3"),
            ("/a+", "scopeQ: expected \"/\", \";\", \"|\", \",\" or the end at character 3"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), error);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered_and_printing_reads_back(text in "[ab/+#;|,() é]{0,14}") {
            if let Ok(query) = parse(&text) {
                prop_assert_eq!(parse(&query.to_string()), Ok(query));
            }
        }
    }
}
