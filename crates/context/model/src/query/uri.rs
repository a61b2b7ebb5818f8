//! Comma separated lists of identifiers, such as the parameter `id` (table 6.4.3.2-1).

use super::error::{Error, Reason};
use super::limits::{MAX_LIST, MAX_TEXT};
use crate::name;

/// Reads a comma separated list of URIs, such as the parameter `id`.
pub fn parse_list(parameter: &'static str, text: &str) -> Result<Vec<Box<str>>, Error> {
    if text.len() > MAX_TEXT {
        return Err(Error::whole(parameter, Reason::TooLong(MAX_TEXT)));
    }
    let mut ids = Vec::new();
    for item in text.split(',').map(str::trim) {
        if !name::is_uri(item) {
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
        for (text, count) in [
            ("urn:a:1", Some(1)),
            ("urn:a:1, http://x/ü#y", Some(2)),
            ("a", None),
            ("urn:a b:1", None),
            ("urn:a,", None),
            ("", None),
        ] {
            assert_eq!(parse_list("id", text).ok().map(|ids| ids.len()), count, "{text}");
        }
    }
}
