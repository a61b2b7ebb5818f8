//! The head of a request, in its two forms: with and without tagged fields (KIP-482).

use bytes::Bytes;

use super::Malformed;
use super::reader::Reader;

/// What every request says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) key: i16,
    pub(crate) version: i16,
    pub(crate) correlation: i32,
    pub(crate) client: Option<Bytes>,
}

/// Splits a request into its head and its body. `flexible` says whether heads of this key and version have tagged
/// fields.
pub(crate) fn split(frame: Bytes, flexible: impl Fn(i16, i16) -> bool) -> Result<(Head, Bytes), Malformed> {
    let mut reader = Reader::new(frame, false);
    let (key, version, correlation) = (reader.i16()?, reader.i16()?, reader.i32()?);
    // The client's name keeps its old form in both heads.
    let client = reader.text()?;
    let mut reader = Reader::new(reader.rest(), flexible(key, version));
    reader.tags(|_, _| ())?;
    Ok((Head { key, version, correlation, client }, reader.rest()))
}
