//! Entry points for fuzzing: any input is answered, none panics; and what was understood is understood again.

mod generate;
mod slots;
#[cfg(test)]
mod tests;

use crate::error::Problem;
use crate::fingerprint::fingerprint;
use crate::language::Language;
use crate::parser::parse;

/// Reads `data` as a query in both languages. What is refused has a message; what is understood prints as a text that
/// means the same, and has the literals of its fingerprint.
///
/// # Panics
/// When one of that is not so, which is a defect.
pub fn query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for language in [Language::V2_0, Language::V2_1] {
        match parse(&text, language) {
            Ok(query) => {
                slots::check(&query, &fingerprint(&text, language).expect("what was parsed has been lexed"));
                reread(&query.to_string(), &query, language);
            }
            Err(error) => {
                let report = error.report(&text).to_string();
                assert!(report.len() < 2048, "messages are bounded");
            }
        }
    }
}

/// Makes a syntax tree of `data`, prints it and parses what was printed: it is the same tree.
///
/// # Panics
/// When it is not, which is a defect.
pub fn tree(data: &[u8]) {
    let query = generate::query(data);
    reread(&query.to_string(), &query, Language::V2_1);
}

/// Reads `data` as a query about the tables of the tests. Whatever it means, it is answered: by a tree that is bound to
/// its own literals as it is, or by a message.
///
/// # Panics
/// When it is not, which is a defect.
#[cfg(any(test, feature = "testing"))]
pub fn meaning(data: &[u8]) {
    use crate::resolve::{Options, resolve};
    use crate::testing::Tables;
    let text = String::from_utf8_lossy(data);
    let Ok(query) = parse(&text, Language::V2_1) else { return };
    match resolve(&query, &Tables::demo(), &Options::default()) {
        Ok(resolved) => {
            let own = fingerprint(&text, Language::V2_1).expect("what was parsed has been lexed");
            let bound = resolved.bind(own.literals()).expect("a tree is that of its own text");
            assert!(std::sync::Arc::ptr_eq(&bound, &resolved.query), "nothing differs");
            let names = bound.fields.iter().map(|field| field.name.to_ascii_lowercase());
            let unique: std::collections::HashSet<String> = names.collect();
            assert_eq!(unique.len(), bound.fields.len(), "result columns have names of their own");
        }
        Err(error) => {
            assert!(error.span.end as usize <= text.len(), "mistakes have a place in the text");
            assert!(error.report(&text).to_string().len() < 4096, "messages are bounded");
        }
    }
}

fn reread(printed: &str, query: &crate::ast::Query, language: Language) {
    match parse(printed, language) {
        Ok(again) => assert_eq!(again, *query, "{printed}"),
        // Canonical text may have parentheses and blanks that the query went without.
        Err(error) if is_bound(&error.problem) => {}
        Err(error) => panic!("{}", error.report(printed)),
    }
}

fn is_bound(problem: &Problem) -> bool {
    matches!(problem, Problem::TooLong | Problem::TooManyTokens | Problem::TooDeep)
}
