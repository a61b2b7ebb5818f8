//! ADQL 2.1: from text to a typed tree, and back to text. Pure.
//!
//! ```text
//! text --lexer--> tokens --parser--> ast --resolver (catalogue)--> tree
//!                                    ast --printer--> text
//! ```

pub mod catalogue;
pub mod functions;
pub mod tree;
pub mod types;
