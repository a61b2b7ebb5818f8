//! FITS: binary tables, written and read (FITS Standard 4.0, section 7.3).
//!
//! ```text
//! SIMPLE  = T ... END                       primary header, no data           blocks of 2880 bytes
//! XTENSION= 'BINTABLE' ... NAXIS1, NAXIS2, TTYPEn, TFORMn ... END             the table's header
//! row row row ...                           big-endian, all of one length
//! array array ...                           the heap: arrays of variable length
//! ```
//!
//! **Written** in two passes, since the header says what only a look at every row can tell: [`Survey`] looks,
//! then [`Encoder`] writes header, rows and heap. Whoever calls them keeps the rows in between. What FITS cannot say:
//!
//! * NULL among reals is NaN, so a NaN reads back as NULL; a complex number, point or circle without any
//!   number too;
//! * a `bit` becomes a logical, and an array of bits too unless all are of one length and none is NULL;
//! * an empty array is NULL, and so is one without an item that is not NULL;
//! * arrays of several lengths lose their dimensions, those of strings become the text of a JSON array;
//! * a NUL inside text becomes a blank. Text is UTF-8, of which the standard allows the ASCII part only:
//!   other readers may show the rest as `?`. Headers are ASCII, and there it is `?` here too.
//!
//! `TCOMMn`, `TUCDn`, `TUTYPn` (as STIL writes them) and `TXTYPn` carry description, UCD, utype and xtype;
//! `QSTATUS` says whether rows were withheld. Column names and other strings longer than a card are
//! continued.
//!
//! **Read**: all forms with their scaling, sign conventions, nulls and dimensions, and ASCII tables. Variable
//! arrays need a source that can go back ([`Reader::seekable`]), or fit into memory. Not read: tables
//! compressed by tiles, `TSCALn` of complex numbers. Scaled numbers are `double`.

mod ascii;
mod card;
mod columns;
mod decode;
mod form;
mod header;
mod layout;
mod read;
mod source;
mod survey;
mod write;

pub use header::Wanted;
pub use read::Reader;
pub use survey::Survey;
pub use write::Encoder;

use crate::read::{ReadError, TableReader};

/// Body of a fuzz target: whatever the bytes, the table in them is read or refused, from a stream as from a
/// file.
pub fn fuzz(data: &[u8]) {
    let stream = Reader::new(data, &Wanted::FirstTable).and_then(|reader| drain(reader));
    let file =
        Reader::seekable(std::io::Cursor::new(data), &Wanted::FirstTable).and_then(|reader| drain(reader));
    if let (Ok(stream), Ok(file)) = (stream, file) {
        assert_eq!(stream, file, "a stream and a file hold the same table");
    }
}

/// Rows of the table, and how they print.
fn drain(mut reader: Reader<'_>) -> Result<(usize, String), ReadError> {
    let (mut rows, mut printed) = (0, String::new());
    while let Some(batch) = reader.next_batch(1000)? {
        rows += batch.num_rows();
        if printed.is_empty() {
            printed = format!("{batch:?}");
        }
    }
    Ok((rows, printed))
}

#[cfg(test)]
mod tests;
