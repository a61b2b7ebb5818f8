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
