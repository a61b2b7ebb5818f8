//! Identifiers in parameters: absolute URIs or IRIs (RFC 3986, RFC 3987), and comma separated lists of them.

use super::error::{Error, Reason};
use super::limits::{MAX_LIST, MAX_TEXT};

/// True for a scheme, a colon, and something after it without spaces, controls and delimiters.
pub(crate) fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let bad = |c: char| c.is_whitespace() || c.is_control() || "\"<>\\^`{|}".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(scheme_char)
        && !rest.is_empty()
        && !rest.contains(bad)
}

/// Reads a comma separated list of URIs, such as the parameter `id`.
pub fn parse_list(parameter: &'static str, text: &str) -> Result<Vec<Box<str>>, Error> {
    if text.len() > MAX_TEXT {
        return Err(Error::whole(parameter, Reason::TooLong(MAX_TEXT)));
    }
    let mut ids = Vec::new();
    for item in text.split(',').map(str::trim) {
        if !is_uri(item) {
            return Err(Error::invalid(parameter, format!("\"{item}\" is not a URI")));
        }
        if ids.len() == MAX_LIST {
            return Err(Error::whole(parameter, Reason::TooMany("identifiers", MAX_LIST)));
        }
        ids.push(item.into());
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_6_4_3_2_1_ids_are_uris() {
        for (text, count) in
            [("urn:a:1", Some(1)), ("urn:a:1, http://x/ü#y", Some(2)), ("a", None), ("", None)]
        {
            assert_eq!(parse_list("id", text).ok().map(|ids| ids.len()), count, "{text}");
        }
        for text in ["urn:", ":x", "1a:b", "a b:c", "urn:a b", "urn:a\"b", "not a uri"] {
            assert!(!is_uri(text), "{text}");
        }
    }
}
