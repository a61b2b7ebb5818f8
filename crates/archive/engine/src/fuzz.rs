//! Entry points for fuzzing: any query over tables of every type is answered, by rows of the types that it
//! announced or by a message that is about the query. Nothing panics, and nothing fails because of us.

mod generate;
mod tables;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use trifid_archive_adql::language::Language;
use trifid_archive_adql::parser::parse;
use trifid_archive_adql::resolve::{Options, resolve};

use crate::error::QueryError;
use crate::reference::{Cancel, Interpreter, Limits, effort};

/// What a query may hold while it is fuzzed.
const LIMITS: Limits = Limits { rows: 10_000, bytes: 16 << 20 };

/// Pairings of rows beyond which a query is left alone: it would only take time.
const EFFORT: u64 = 20_000;

/// Reads `data` as a query and runs it.
///
/// # Panics
/// When it fails because of us, which is a defect.
pub fn query(data: &[u8]) {
    let _ = answered(&String::from_utf8_lossy(data));
}

/// Makes a query of `data` that has a meaning more often than not, and runs it.
///
/// # Panics
/// When it fails because of us, which is a defect.
pub fn made(data: &[u8]) {
    let _ = answered(&generate::query(data));
}

/// How many rows a query gives; `None` if it means nothing, fails because of what it asks, or is too much.
fn answered(text: &str) -> Option<usize> {
    let tables = tables::all();
    let parsed = parse(text, Language::V2_1).ok()?;
    let query = resolve(&parsed, tables.as_ref(), &Options::default()).ok()?.query;
    if effort(&query, tables) > EFFORT {
        return None;
    }
    let mut rows = 0;
    let done = Interpreter::new(LIMITS, 1).execute(&query, tables, &Cancel::default(), &mut |batch| {
        // The batch was made by the fields of the query: that it is there says that the types are right.
        rows += batch.num_rows();
        ControlFlow::Continue(())
    });
    match done {
        Ok(()) => Some(rows),
        Err(QueryError::Invalid(message) | QueryError::TooLarge(message)) => {
            assert!(!message.is_empty() && message.len() < 2048, "messages are bounded: {message}");
            None
        }
        Err(error) => panic!("{error}: {text}"),
    }
}
