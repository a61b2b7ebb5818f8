//! Values in queries (4.9: Value, Range and URI; 4.6.3: dateTime, date and time).

use crate::json;
use crate::time::{self, Instant};

const DAY: i64 = 86_400_000_000;

/// One value of a query term, parsed once.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A JSON number.
    Number(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A quoted string; the instant is set when the text is a dateTime.
    Text(Box<str>, Option<Instant>),
    /// An unquoted dateTime.
    DateTime(Instant),
    /// An unquoted date, as days since 1970-01-01.
    Date(i64),
    /// An unquoted time, as microseconds since midnight UTC.
    Time(i64),
    /// Any other unquoted text: a URI, or a term that `expandValues` expands.
    Uri(Box<str>),
}

impl Literal {
    /// A quoted string.
    pub(crate) fn text(text: &str) -> Self {
        Literal::Text(text.into(), Instant::parse(text).ok())
    }

    /// What an unquoted token means; `None` when it can be nothing.
    pub(crate) fn from_token(token: &str) -> Option<Self> {
        let comparable = Self::comparable_from_token(token);
        comparable.or_else(|| match token {
            "true" => Some(Literal::Bool(true)),
            "false" => Some(Literal::Bool(false)),
            _ => token.starts_with(char::is_alphabetic).then(|| Literal::Uri(token.into())),
        })
    }

    /// ComparableValue of 4.9, unquoted.
    pub(crate) fn comparable_from_token(token: &str) -> Option<Self> {
        if !token.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return None;
        }
        let instant = || Instant::parse(token).ok().map(Literal::DateTime);
        let date = || time::days(token).map(Literal::Date);
        json_number(token)
            .map(Literal::Number)
            .or_else(instant)
            .or_else(date)
            .or_else(|| time_of_day(token).map(Literal::Time))
    }

    /// True for values that ordering operators and ranges accept.
    pub(crate) fn is_comparable(&self) -> bool {
        !matches!(self, Literal::Bool(_) | Literal::Uri(_))
    }

    /// True when both are of one data type.
    pub(crate) fn same_type(&self, other: &Literal) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl std::fmt::Display for Literal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Literal::Number(number) => write!(f, "{number}"),
            Literal::Bool(value) => write!(f, "{value}"),
            Literal::Text(text, _) => f.write_str(&json::quoted(text)),
            Literal::DateTime(instant) => write!(f, "{instant}"),
            Literal::Date(days) => {
                let instant = Instant(days * DAY).to_string();
                f.write_str(instant.split('T').next().unwrap_or_default())
            }
            Literal::Time(micros) => {
                let instant = Instant(*micros).to_string();
                f.write_str(instant.split('T').nth(1).unwrap_or_default())
            }
            Literal::Uri(uri) => f.write_str(uri),
        }
    }
}

/// `hh:mm:ss[.f]Z` of 4.6.3 as microseconds since midnight.
pub(crate) fn time_of_day(text: &str) -> Option<i64> {
    time::micros_of_day(text.strip_suffix('Z')?)
}

/// A number of RFC 8259 section 6 that is finite as a double.
pub(crate) fn json_number(text: &str) -> Option<f64> {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let body = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(body);
    if whole == 0 || (whole > 1 && body.starts_with('0')) {
        return None;
    }
    let mut rest = &body[whole..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        rest = (count > 0).then(|| &fraction[count..])?;
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        rest = (count > 0).then(|| &exponent[count..])?;
    }
    rest.is_empty().then(|| text.parse().ok()).flatten().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_4_9_tokens_become_typed_values() {
        for (token, literal) in [
            ("20", Some(Literal::Number(20.0))),
            ("-1.5e3", Some(Literal::Number(-1500.0))),
            ("true", Some(Literal::Bool(true))),
            ("1970-01-02", Some(Literal::Date(1))),
            ("00:00:01Z", Some(Literal::Time(1_000_000))),
            ("1970-01-01T00:00:01Z", Some(Literal::DateTime(Instant(1_000_000)))),
            ("urn:ngsi-ld:X:1", Some(Literal::Uri("urn:ngsi-ld:X:1".into()))),
            ("1e400", None),
            ("01", None),
            ("1.", None),
            (".5", None),
            ("", None),
            ("1970-13-01", None),
        ] {
            assert_eq!(Literal::from_token(token), literal, "{token}");
        }
    }

    #[test]
    fn what_is_printed_is_read_back() {
        for token in ["20", "-1.5", "true", "1970-01-02", "00:00:01.500Z", "2020-01-01T00:00:00Z", "urn:a:b"]
        {
            assert_eq!(Literal::from_token(token).unwrap().to_string(), token);
        }
        assert_eq!(Literal::text("a\"b").to_string(), r#""a\"b""#);
    }
}
