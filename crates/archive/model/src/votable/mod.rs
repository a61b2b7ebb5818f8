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
//! row. BINARY2 alone holds every value of every type exactly. What the others cannot hold:
//!
//! | value | TABLEDATA | BINARY |
//! |---|---|---|
//! | empty text, empty array | reads back as NULL | reads back as NULL |
//! | NaN, alone | exact | reads back as NULL (section 6: NaN is the null of reals) |
//! | the least `short`, `int`, `long` | exact, in an array NULL | refused: it stands for NULL |
//! | NULL among `unsignedByte` | exact | exact: the column is declared `short` |
//! | NULL among `bit` | exact | refused |
//! | NULL among fixed arrays of `bit` and `unsignedByte` | exact | exact: they are declared variable |
//!
//! In all three a NULL within an array is the least value of whole numbers (`VALUES null`), NaN of reals, `?` of
//! booleans, the empty string of text, and refused of `bit` and `unsignedByte`, which have no value to spare; strings within
//! an array lose trailing blanks; a string that does not fit a fixed `arraysize` is refused rather than cut.
//!
//! Limits: external streams, the FITS serialisation and documents with a DOCTYPE are refused by the reader.

mod base64;
mod binary;
pub(crate) mod column;
pub(crate) mod declare;
mod head;
pub mod limits;
mod plan;
mod read;
mod tabledata;
mod writer;
mod xml;

pub use declare::{arraysize_of, datatype_of};
pub use head::{error_document, field_id, render_fields};
pub use read::{ReadOptions, Reader};
pub use writer::{Options, Serialization, Version, Writer};

#[cfg(test)]
mod tests;
