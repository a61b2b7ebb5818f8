//! Where a redirect leads: the resolution of a reference against a URL (RFC 3986 5.2).

use http::Uri;

/// The absolute URL that `reference` means when it stands in the answer from `base`; without its fragment.
pub(crate) fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default().trim();
    if has_scheme(reference) {
        // What is no hierarchical URL (`mailto:`) has no scheme and host at once.
        return reference.parse().ok().filter(|uri: &Uri| uri.scheme().is_some() && uri.host().is_some());
    }
    let scheme = base.scheme_str()?;
    let authority = base.authority()?.as_str();
    let text = if let Some(rest) = reference.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else {
        format!("{scheme}://{authority}{}", target(base, reference))
    };
    text.parse().ok()
}

/// Whether a reference begins with a scheme (RFC 3986 3.1).
fn has_scheme(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Path and query.
fn target(base: &Uri, reference: &str) -> String {
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let (path, query) = match path {
        "" => (base.path().to_owned(), query.or_else(|| base.query())),
        absolute if absolute.starts_with('/') => (without_dots(absolute), query),
        relative => {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            (without_dots(&format!("{folder}/{relative}")), query)
        }
    };
    query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"))
}

/// Takes `.` and `..` out of an absolute path (RFC 3986 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (at, segment) in segments.iter().enumerate() {
        let is_last = at + 1 == segments.len();
        match *segment {
            "." => {}
            ".." => drop(kept.pop()),
            other => kept.push(other),
        }
        if is_last && matches!(*segment, "." | "..") {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The examples of RFC 3986 5.4, as far as they are HTTP URLs.
    #[test]
    fn references_resolve_as_the_examples_say() {
        let base: Uri = "http://a/b/c/d;p?q".parse().unwrap();
        for (reference, expected) in [
            ("http://x/y", "http://x/y"),
            ("https://x:8443", "https://x:8443/"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
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
            ("../../../../g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
        ] {
            assert_eq!(
                resolve(&base, reference).map(|uri| uri.to_string()).as_deref(),
                Some(expected),
                "{reference}"
            );
        }
    }

    #[test]
    fn what_is_no_url_leads_nowhere() {
        let base: Uri = "http://a/b".parse().unwrap();
        for reference in ["mailto:x@y", "http://", "javascript:alert(1)", "http://a b/", "//"] {
            assert_eq!(resolve(&base, reference), None, "{reference}");
        }
    }

    proptest! {
        #[test]
        fn any_location_is_resolved_or_refused(reference in "\\PC{0,60}") {
            let base: Uri = "http://a/b/c".parse().unwrap();
            if let Some(uri) = resolve(&base, &reference) {
                prop_assert!(uri.scheme().is_some() && uri.host().is_some());
            }
        }
    }
}
