//! `gavo_match`: regular expressions, bounded.
//!
//! The `regex` crate matches in time linear in the text whatever the pattern, and a limit on the size of a compiled
//! pattern refuses those that are bombs.

use regex::{Regex, RegexBuilder};
use trifid_archive_adql::types::Type;

use super::cells::{Cells, Shape, any_null, boolean_array, nulls, searched_for, texts};
use crate::error::QueryError;
use crate::limits::{REGEX_BYTES, REGEX_PATTERNS};

/// A pattern, compiled.
fn compile(pattern: &str) -> Result<Regex, QueryError> {
    let built = RegexBuilder::new(pattern).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => QueryError::TooLarge(
            "the regular expression takes too much memory; shorten its repetitions".into(),
        ),
        error => QueryError::invalid(format!("the regular expression cannot be read: {error}")),
    })
}

/// `gavo_match(pattern, text)`.
pub(super) fn matches(pattern: &Cells, text: &Cells) -> Result<Cells, QueryError> {
    if any_null(&[pattern, text]) {
        return Ok(Cells::null(Type::Boolean, text.rows()));
    }
    let shape = Shape::of(&[pattern, text], text.rows());
    let (patterns, array) = (searched_for(pattern)?, texts(text)?);
    let given = nulls(&[pattern, text], shape);
    let mut last: Option<(&str, Regex)> = None;
    let mut compiled = 0;
    let mut truths = Vec::with_capacity(shape.len);
    for row in 0..shape.len {
        if given.as_ref().is_some_and(|given| given.is_null(row)) {
            truths.push(false);
            continue;
        }
        let wanted = patterns.value(pattern.place(row));
        let known = last.take().filter(|(known, _)| *known == wanted);
        let (_, regex) = last.insert(match known {
            Some(known) => known,
            None => {
                compiled += 1;
                if compiled > REGEX_PATTERNS {
                    return Err(QueryError::TooLarge("too many different regular expressions".into()));
                }
                (wanted, compile(wanted)?)
            }
        });
        truths.push(regex.is_match(array.value(text.place(row))));
    }
    Ok(shape.cells(boolean_array(truths.into(), given)))
}
