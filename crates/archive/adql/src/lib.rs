//! ADQL 2.1: from text to a typed tree, and back to text. Pure.
//!
//! ```text
//! text --lexer--> tokens --parser--> ast --resolver (catalogue)--> tree
//!                                    ast --printer--> text
//! ```

pub mod ast;
pub mod catalogue;
pub mod error;
pub mod fingerprint;
pub mod functions;
pub mod fuzz;
pub mod identifier;
pub mod language;
mod lexer;
pub mod lift;
pub mod limits;
pub mod parser;
mod printer;
pub mod report;
pub mod resolve;
pub mod span;
pub mod suggest;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod token;
pub mod tree;
pub mod types;
pub mod udf;
pub mod units;
