//! The header `Link` (RFC 8288): where a client names its JSON-LD context (6.3.5), and where pages name
//! their neighbours (6.3.10).

use http::header::LINK;
use http::{HeaderMap, HeaderValue};

use crate::limits::LINKS_MAX;
use crate::problem::{Refusal, bad_data};

/// The relation of a link to a context.
const CONTEXT_REL: &str = "http://www.w3.org/ns/json-ld#context";

/// What follows the target in a context link that we write.
const CONTEXT_TAIL: &str = ">; rel=\"http://www.w3.org/ns/json-ld#context\"; type=\"application/ld+json\"";

/// The context that a request's `Link` headers name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContextLink {
    /// The context's URL.
    pub(crate) target: String,
    /// The client's own header when it holds this link and no other: ready to be sent back as it is.
    pub(crate) header: Option<HeaderValue>,
}

/// The one link with the context relation, if there is one.
pub(crate) fn context(headers: &HeaderMap) -> Result<Option<ContextLink>, Refusal> {
    let mut found: Option<ContextLink> = None;
    let mut count = 0;
    for value in headers.get_all(LINK) {
        let text = value.to_str().map_err(|_| bad_data("header `Link` is not plain ASCII"))?;
        let mut rest = text.trim();
        while !rest.is_empty() {
            count += 1;
            if count > LINKS_MAX {
                return Err(bad_data(format!("header `Link` has more than {LINKS_MAX} links")));
            }
            let (link, after) = next(rest)?;
            let alone = rest.len() == text.len() && after.is_empty();
            rest = after;
            if !link.is_context() {
                continue;
            }
            if found.is_some() {
                return Err(bad_data("header `Link` names more than one JSON-LD context"));
            }
            let header = alone.then(|| value.clone());
            found = Some(ContextLink { target: link.target.to_owned(), header });
        }
    }
    Ok(found)
}

/// One link of a header: `<target>; rel="..."; type="..."`.
#[derive(Debug, Default)]
struct Link<'h> {
    target: &'h str,
    rel: &'h str,
}

impl Link<'_> {
    fn is_context(&self) -> bool {
        self.rel.split_ascii_whitespace().any(|rel| rel == CONTEXT_REL)
    }
}

/// Takes one link off the front of `text`; also what comes after its comma.
fn next(text: &str) -> Result<(Link<'_>, &str), Refusal> {
    let malformed = || bad_data("header `Link` is not of the form `<url>; rel=\"...\"`");
    let inner = text.strip_prefix('<').ok_or_else(malformed)?;
    let (target, mut rest) = inner.split_once('>').ok_or_else(malformed)?;
    let mut link = Link { target: target.trim(), rel: "" };
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(',') {
            return Ok((link, after.trim_start()));
        }
        if rest.is_empty() {
            return Ok((link, rest));
        }
        let parameter = rest.strip_prefix(';').ok_or_else(malformed)?.trim_start();
        let (name, value, after) = attribute(parameter).ok_or_else(malformed)?;
        // RFC 8288 3.3: of several `rel` the first counts.
        if name.eq_ignore_ascii_case("rel") && link.rel.is_empty() {
            link.rel = value;
        }
        rest = after;
    }
}

/// Takes `name=value`, `name="value"` or a bare `name` off the front.
fn attribute(text: &str) -> Option<(&str, &str, &str)> {
    let end = text.find([';', ',', '=']).unwrap_or(text.len());
    let (name, rest) = (text[..end].trim(), &text[end..]);
    let Some(value) = rest.strip_prefix('=') else { return Some((name, "", rest)) };
    let value = value.trim_start();
    if let Some(quoted) = value.strip_prefix('"') {
        // Values that we look at hold no escaped quotes; one in another parameter only needs to be skipped.
        let end = closing_quote(quoted)?;
        return Some((name, &quoted[..end], &quoted[end + 1..]));
    }
    let end = value.find([';', ',']).unwrap_or(value.len());
    Some((name, value[..end].trim(), &value[end..]))
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

/// A `Link` header that names the context at `url`; none when the URL cannot stand in a header.
pub(crate) fn to_context(url: &str) -> Option<HeaderValue> {
    let mut value = Vec::with_capacity(url.len() + CONTEXT_TAIL.len() + 1);
    value.push(b'<');
    value.extend_from_slice(url.as_bytes());
    value.extend_from_slice(CONTEXT_TAIL.as_bytes());
    HeaderValue::from_maybe_shared(bytes::Bytes::from(value)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(values: &[&str]) -> Result<Option<String>, String> {
        let headers = values.iter().map(|value| (LINK, HeaderValue::from_str(value).unwrap())).collect();
        match context(&headers) {
            Ok(link) => Ok(link.map(|link| link.target)),
            Err(Refusal::Problem(problem)) => Err(problem.detail.into_owned()),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_context_is_found_by_its_relation() {
        let rel = "rel=\"http://www.w3.org/ns/json-ld#context\"";
        for (value, expected) in [
            (
                format!("<https://a/c.jsonld>; {rel}; type=\"application/ld+json\""),
                Some("https://a/c.jsonld"),
            ),
            (format!("<https://a/c>;{rel}"), Some("https://a/c")),
            (format!("<https://a/c> ; title=\"x, <y>; \\\" z\" ; {rel}"), Some("https://a/c")),
            (format!("<https://a/x>; rel=next, <https://a/c>; {rel}"), Some("https://a/c")),
            (format!("<https://a/c,d>; {rel}"), Some("https://a/c,d")),
            ("<https://a/c>; rel=http://www.w3.org/ns/json-ld#context".into(), Some("https://a/c")),
            ("<https://a/c>; rel=\"next\"".into(), None),
            ("<https://a/c>".into(), None),
            ("".into(), None),
        ] {
            assert_eq!(parse(&[&value]), Ok(expected.map(str::to_owned)), "{value}");
        }
        assert_eq!(parse(&[]), Ok(None));
    }

    #[test]
    fn a_broken_or_ambiguous_header_is_refused() {
        let link = "<https://a/c>; rel=\"http://www.w3.org/ns/json-ld#context\"";
        assert!(parse(&[link, link]).unwrap_err().contains("more than one"));
        for value in ["https://a/c", "<https://a/c", "<https://a/c> rel=x", "<a>; rel=\"x"] {
            assert!(parse(&[value]).unwrap_err().contains("not of the form"), "{value}");
        }
        let many = vec!["<a>"; LINKS_MAX + 1].join(",");
        assert!(parse(&[&many]).unwrap_err().contains("more than"));
    }

    #[test]
    fn a_link_of_ours_reads_back_and_can_be_echoed() {
        let header = to_context("https://a/c.jsonld").unwrap();
        let headers = HeaderMap::from_iter([(LINK, header.clone())]);
        let link = context(&headers).unwrap().unwrap();
        assert_eq!(link, ContextLink { target: "https://a/c.jsonld".into(), header: Some(header) });
        assert!(to_context("https://a/\n").is_none());
    }

    proptest! {
        #[test]
        fn any_link_is_answered(value in "[ -~]{0,80}") {
            let _ = parse(&[&value]);
        }
    }
}
