//! What a request says: name and value pairs, and files. From a query string, a form, or a multipart body.
//!
//! The order is the client's; names are compared without case later (DALI 1.1 3.1). A POST may say some of it in the
//! query and the rest in the body. What a job keeps of its creation, and adds to while it is pending, is a [`Form`]
//! too.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use trifid_base_web::Request;

use crate::fault::Fault;
use crate::limits::PAIRS_MAX;
use crate::multipart;
use crate::percent;

/// Everything that a request says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form<'r> {
    /// Names and values, decoded.
    pub(crate) pairs: Vec<(Cow<'r, str>, Cow<'r, str>)>,
    /// What came as files.
    pub(crate) files: Vec<File>,
}

/// A file that came with a request.
#[derive(Clone, Debug)]
pub(crate) struct File {
    /// The name of its part, which `param:` refers to.
    pub(crate) part: String,
    /// Its media type, where the client said it.
    pub(crate) media: Option<String>,
    /// What it holds: a slice of the request's body.
    pub(crate) bytes: Bytes,
}

impl<'r> Form<'r> {
    /// Reads the query and the body of a request.
    pub(crate) fn read(request: &'r Request) -> Result<Self, Fault> {
        let mut form = Self::default();
        form.add(request.query().unwrap_or_default())?;
        if !request.body.is_empty() {
            form.add_body(request)?;
        }
        Ok(form)
    }

    fn add_body(&mut self, request: &'r Request) -> Result<(), Fault> {
        let media = request.headers.get(CONTENT_TYPE).map_or("", |value| value.to_str().unwrap_or("?"));
        let name = media.split(';').next().unwrap_or_default().trim();
        if name.eq_ignore_ascii_case("multipart/form-data") {
            return multipart::read(media, &request.body, self);
        }
        if !name.is_empty() && !name.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Fault::unsupported(
                "the body must be application/x-www-form-urlencoded or multipart/form-data",
            ));
        }
        let text = std::str::from_utf8(&request.body).map_err(|_| not_utf8())?;
        // Some clients end their form with a line.
        self.add(text.trim_end_matches(['\r', '\n']))
    }

    /// Adds the pairs of a query string or of a urlencoded form.
    pub(crate) fn add(&mut self, raw: &'r str) -> Result<(), Fault> {
        let mut rest = raw;
        while !rest.is_empty() {
            let (pair, more) = parted(rest, b'&');
            rest = more;
            if pair.is_empty() {
                continue;
            }
            let (name, value) = parted(pair, b'=');
            let name = percent::form(name).ok_or_else(not_utf8)?;
            let value = percent::form(value).ok_or_else(not_utf8)?;
            self.push(name, value)?;
        }
        Ok(())
    }

    /// Adds one pair.
    pub(crate) fn push(&mut self, name: Cow<'r, str>, value: Cow<'r, str>) -> Result<(), Fault> {
        if self.pairs.len() == PAIRS_MAX {
            return Err(Fault::invalid(format!("the request has more than {PAIRS_MAX} parameters")));
        }
        self.pairs.push((name, value));
        Ok(())
    }
}

/// What is before a sign in ASCII and what is after it, or all and nothing.
fn parted(text: &str, at: u8) -> (&str, &str) {
    match memchr::memchr(at, text.as_bytes()) {
        Some(place) => (&text[..place], &text[place + 1..]),
        None => (text, ""),
    }
}

/// What is said of text in another encoding.
pub(crate) fn not_utf8() -> Fault {
    Fault::invalid("the parameters are not in UTF-8")
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Method};
    use proptest::prelude::*;

    use super::*;

    fn pairs(raw: &str) -> Result<Vec<(String, String)>, Fault> {
        let mut form = Form::default();
        form.add(raw)?;
        Ok(form.pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    fn post(query: &str, media: Option<&'static str>, body: &'static [u8]) -> Request {
        let mut request = Request::new(Method::POST, format!("/tap/sync{query}").parse().unwrap());
        request.headers.extend(media.map(|media| (CONTENT_TYPE, HeaderValue::from_static(media))));
        request.body = Bytes::from_static(body);
        request
    }

    #[test]
    fn pairs_are_split_before_they_are_decoded() {
        let expected = [("a", "1"), ("QUERY", "x&y=z"), ("b", ""), ("c", ""), ("", "d")];
        let found = pairs("a=1&&QUERY=x%26y%3Dz&b&c=&=d").unwrap();
        assert!(found.iter().map(|(n, v)| (n.as_str(), v.as_str())).eq(expected), "{found:?}");
    }

    #[test]
    fn there_are_only_so_many() {
        assert!(pairs(&"a=b&".repeat(PAIRS_MAX)).is_ok());
        assert!(pairs(&"a=b&".repeat(PAIRS_MAX + 1)).is_err());
    }

    #[test]
    fn query_and_body_add_up() {
        let request = post("?LANG=ADQL", Some("application/x-www-form-urlencoded"), b"QUERY=q%20%2B\r\n");
        let form = Form::read(&request).unwrap();
        let expected: [(Cow<'_, str>, Cow<'_, str>); 2] =
            [("LANG".into(), "ADQL".into()), ("QUERY".into(), "q +".into())];
        assert_eq!(form.pairs, expected);
        assert!(Form::read(&post("", None, b"QUERY=q")).is_ok(), "without a type it is a form");
    }

    #[test]
    fn other_bodies_are_refused() {
        for (media, body, status) in [
            ("application/json", &b"{}"[..], 415),
            ("application/x-www-form-urlencoded", b"QUERY=\xff", 400),
            ("multipart/form-data", b"--b--", 400),
        ] {
            assert_eq!(Form::read(&post("", Some(media), body)).unwrap_err().status(), status, "{media}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(raw in "[a-zA-Z&=%+;0-9]{0,60}") {
            let _ = pairs(&raw);
        }
    }
}
