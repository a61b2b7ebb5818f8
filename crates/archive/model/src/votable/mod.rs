//! VOTable: the table format of the Virtual Observatory, written and read as a stream.
//!
//! ```text
//! <VOTABLE><RESOURCE type="results">
//!   <INFO name="QUERY_STATUS" value="OK"/> ...   [`Head`](crate::write::Head)       known before the first row
//!   <TABLE> <FIELD .../> ...                     [`render_fields`]                  the same for every run of a plan
//!     <DATA><BINARY2><STREAM encoding="base64">  rows, encoded batch by batch
//!     ...</STREAM></BINARY2></DATA></TABLE>
//!   <INFO name="QUERY_STATUS" value="OVERFLOW"/> [`End`](crate::write::End)         the tail decides
//! </RESOURCE></VOTABLE>
//! ```
//!
//! Three serialisations carry the rows (VOTable 1.5 section 5): TABLEDATA is text in elements, BINARY is big-endian
//! values in base64 where NULL is a value given up for it, BINARY2 is the same with a mask of nulls before each
//! row. What does not come back as it was:
//!
//! | value | TABLEDATA | BINARY | BINARY2 |
//! |---|---|---|---|
//! | text that is not ASCII in `char` | exact | `?` | `?` |
//! | empty text, empty array | NULL | NULL | exact |
//! | control characters in text | U+FFFD | exact but NUL | exact but NUL |
//! | NaN, alone or all of a fixed array | exact | NULL | exact |
//! | the least `short`, `int`, `long` | exact | refused | exact |
//! | `unsignedByte` | exact | declared `short` | exact |
//! | fixed array of `unsignedByte` | exact | declared variable | exact |
//! | NULL among fixed arrays of `bit` | exact | refused | exact |
//! | `bit` | exact | declared `boolean` | declared `boolean` |
//!
//! Text that is not ASCII belongs into a column that says so with [`unicode`](trifid_archive_adql::types::Field).
//!
//! In all three a NULL within an array is the least value of whole numbers (`VALUES null`), NaN of reals, `?` of
//! booleans, the empty string of text, and refused of `bit` and `unsignedByte`, which have no value to spare;
//! strings within an array lose trailing blanks. In the binary forms a string that does not fit a fixed `arraysize`
//! is refused rather than cut.
//!
//! Limits: external streams, the FITS serialisation and documents with a DOCTYPE are refused by the reader.

mod base64;
mod binary;
pub(crate) mod column;
pub(crate) mod declare;
pub(crate) mod fuzz;
mod head;
pub mod limits;
mod plan;
mod read;
mod strings;
mod tabledata;
mod writer;
mod xml;

pub use declare::{arraysize_of, datatype_of};
pub use head::{error_document, field_id, render_fields};
pub use read::{ReadOptions, Reader};
pub use writer::{Options, Serialization, Version, Writer};

#[cfg(test)]
mod tests;
