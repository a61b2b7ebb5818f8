//! The little of RFC 3986 that contexts need: is this an absolute IRI, and what does a relative reference
//! mean against a base.

/// True for text with a scheme (RFC 3986 3.1) and without the characters that no IRI may hold (RFC 3987 2.2).
pub fn is_absolute(text: &str) -> bool {
    scheme(text).is_some_and(|(_, rest)| !rest.is_empty()) && !text.bytes().any(forbidden)
}

fn forbidden(byte: u8) -> bool {
    byte <= b' '
        || byte == 0x7F
        || matches!(byte, b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`')
}

/// Splits a scheme from what follows its colon.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
    let goes_on = bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    (begins && goes_on).then_some((scheme, rest))
}

/// True for an absolute `http` or `https` URL with a host: what a context may be fetched from.
pub fn is_http(text: &str) -> bool {
    let Some((scheme, rest)) = scheme(text) else { return false };
    let host =
        rest.strip_prefix("//").is_some_and(|rest| !rest.starts_with(['/', '?', '#']) && !rest.is_empty());
    host && (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")) && is_absolute(text)
}

/// Resolves `reference` against the absolute IRI `base` (RFC 3986 5.2). The fragment is dropped: it does not
/// belong to the address of a document.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let reference = reference.split('#').next().unwrap_or_default();
    if scheme(reference).is_some() {
        return reference.to_owned();
    }
    let base = Parts::of(base);
    if let Some(authority) = reference.strip_prefix("//") {
        let (authority, path) = authority.split_at(authority.find(['/', '?']).unwrap_or(authority.len()));
        return base.with(Some(authority), &dotless(path));
    }
    if reference.is_empty() {
        return base.with(base.authority, &[base.path, base.query].concat());
    }
    if reference.starts_with('?') {
        return base.with(base.authority, &[base.path, reference].concat());
    }
    if reference.starts_with('/') {
        return base.with(base.authority, &dotless(reference));
    }
    base.with(base.authority, &dotless(&base.merge(reference)))
}

struct Parts<'a> {
    scheme: &'a str,
    authority: Option<&'a str>,
    path: &'a str,
    /// With its question mark.
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(base: &'a str) -> Parts<'a> {
        let base = base.split('#').next().unwrap_or_default();
        let (scheme, rest) = base.split_once(':').unwrap_or(("", base));
        let (authority, rest) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
                (Some(authority), rest)
            }
            None => (None, rest),
        };
        let (path, query) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
        Parts { scheme, authority, path, query }
    }

    fn with(&self, authority: Option<&str>, rest: &str) -> String {
        match authority {
            Some(authority) => [self.scheme, "://", authority, rest].concat(),
            None => [self.scheme, ":", rest].concat(),
        }
    }

    /// RFC 3986 5.2.3.
    fn merge(&self, reference: &str) -> String {
        match self.path.rfind('/') {
            Some(at) => [&self.path[..=at], reference].concat(),
            None if self.authority.is_some() => ["/", reference].concat(),
            None => reference.to_owned(),
        }
    }
}

/// Removes `.` and `..` segments from the path in front of a query (RFC 3986 5.2.4).
fn dotless(reference: &str) -> String {
    let (path, query) = reference.split_at(reference.find('?').unwrap_or(reference.len()));
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    let rooted = path.starts_with('/');
    if rooted {
        segments.next();
    }
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    [if rooted { "/" } else { "" }, &kept.join("/"), query].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_rfc_3986_5_4_resolve() {
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/./x", "http://a/b/c/g?y/./x"),
        ];
        for (reference, expected) in cases {
            assert_eq!(resolve("http://a/b/c/d;p?q", reference), expected, "{reference}");
        }
        assert_eq!(resolve("http://a", "g"), "http://a/g");
    }

    #[test]
    fn absolute_iris_are_told_from_names() {
        for iri in ["http://a", "urn:ngsi-ld:x", "a:b", "x+y:z"] {
            assert!(is_absolute(iri), "{iri}");
        }
        for name in ["speed", "", ":x", "a:", "1a:b", "_:b", "http://a b", "a:\"", "a:<x>"] {
            assert!(!is_absolute(name), "{name}");
        }
    }

    #[test]
    fn only_http_urls_with_a_host_can_be_fetched() {
        assert!(is_http("https://example.org/c.jsonld") && is_http("HTTP://h"));
        for url in ["ftp://h/x", "file:///etc/passwd", "http:///x", "http:x", "http://", "//h/x", "x.jsonld"]
        {
            assert!(!is_http(url), "{url}");
        }
    }

    proptest! {
        #[test]
        fn any_reference_against_an_http_base_stays_absolute(reference in "[a-z./?#:]{0,20}") {
            let resolved = resolve("http://h/a/b?q", &reference);
            prop_assert!(scheme(&resolved).is_some(), "{}", resolved);
            prop_assert!(!resolved.contains('#'));
        }
    }
}
