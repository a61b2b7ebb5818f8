//! Parts of a body (RFC 9110 14.2): one range of bytes. Several at once are passed over, as the standard allows.

use std::ops::Range;

use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue};

/// What a client wants of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    Whole,
    /// These bytes.
    Part(Range<u64>),
    /// Bytes that it does not have.
    Beyond,
}

/// What is wanted of a body of this length and tag.
pub(crate) fn wanted(headers: &HeaderMap, length: u64, tag: &HeaderValue) -> Wanted {
    // RFC 9110 13.1.5: of another state the client has nothing to go on with. Dates are not compared here.
    if headers.get(IF_RANGE).is_some_and(|known| known != tag) {
        return Wanted::Whole;
    }
    let mut values = headers.get_all(RANGE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Wanted::Whole };
    value.to_str().ok().and_then(|value| range(value, length)).unwrap_or(Wanted::Whole)
}

/// The one range that a field names; `None` for what is malformed or several, which count as not there.
fn range(value: &str, length: u64) -> Option<Wanted> {
    let (unit, range) = value.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") || range.contains(',') {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    let asked = match (number(first), number(last)) {
        (Some(first), _) if last.is_empty() => first..length,
        (Some(first), Some(last)) if first <= last => first..length.min(last.saturating_add(1)),
        (None, Some(count)) if first.is_empty() => length - length.min(count)..length,
        _ => return None,
    };
    // A range of the last zero bytes is empty too.
    Some(if asked.start < asked.end { Wanted::Part(asked) } else { Wanted::Beyond })
}

/// A number; one beyond counting is beyond any body.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}
