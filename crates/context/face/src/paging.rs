//! Links to the neighbouring pages (6.3.10): the query as it was asked, with another `offset`.
//!
//! Parameters are written in alphabetical order, so that the same page has the same link however it was asked
//! for. They stand in one header with the context's link.

use bytes::Bytes;
use http::HeaderValue;
use smallvec::SmallVec;

use crate::media::Media;
use crate::params::{Paging, Param};
use crate::percent::{self, Place};
use crate::write;

/// The links to the pages before and after this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Neighbours {
    pub(crate) previous: Option<usize>,
    pub(crate) next: Option<usize>,
}

impl Neighbours {
    /// The offsets of the neighbours of a page; `more` tells that elements follow it.
    pub(crate) fn of(page: Paging, more: bool) -> Self {
        let Paging { limit, offset, .. } = page;
        if limit == 0 {
            return Neighbours { previous: None, next: None };
        }
        let previous = (offset > 0).then(|| offset.saturating_sub(limit));
        Neighbours { previous, next: more.then_some(offset + limit) }
    }

    /// The `Link` header of the page: `context`, then the neighbours.
    pub(crate) fn link<'p>(
        self,
        context: Option<HeaderValue>,
        path: &str,
        params: &(impl Iterator<Item = (Param, &'p str)> + Clone),
        limit: usize,
        media: Media,
    ) -> Option<HeaderValue> {
        let links = [(self.previous, "prev"), (self.next, "next")];
        let mut links = links.into_iter().filter_map(|(offset, rel)| Some((offset?, rel))).peekable();
        if links.peek().is_none() {
            return context;
        }
        let mut value = Vec::with_capacity(512);
        value.extend_from_slice(context.as_ref().map_or(&[], HeaderValue::as_bytes));
        for (offset, rel) in links {
            if !value.is_empty() {
                value.extend_from_slice(b", ");
            }
            write_target(&mut value, path, params.clone(), limit, offset);
            for part in ["; rel=\"", rel, "\";type=\"", media.name(), "\""] {
                value.extend_from_slice(part.as_bytes());
            }
        }
        let value = HeaderValue::from_maybe_shared(Bytes::from(value));
        Some(value.expect("encoding leaves visible ASCII alone"))
    }
}

enum Value<'p> {
    Text(&'p str),
    Number(usize),
}

fn write_target<'p>(
    out: &mut Vec<u8>,
    path: &str,
    params: impl Iterator<Item = (Param, &'p str)>,
    limit: usize,
    offset: usize,
) {
    let kept = params.filter(|(param, _)| !matches!(param, Param::Limit | Param::Offset));
    let mut pairs: SmallVec<[(&str, Value<'_>); 8]> =
        kept.map(|(param, value)| (param.name(), Value::Text(value))).collect();
    pairs.push((Param::Limit.name(), Value::Number(limit)));
    pairs.push((Param::Offset.name(), Value::Number(offset)));
    pairs.sort_unstable_by_key(|(name, _)| *name);
    out.push(b'<');
    out.extend_from_slice(path.as_bytes());
    let mut separator = b'?';
    for (name, value) in pairs {
        out.push(separator);
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        match value {
            Value::Text(text) => percent::encode(out, text, Place::Value),
            Value::Number(number) => write::number(out, number),
        }
        separator = b'&';
    }
    out.push(b'>');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Params, Set};

    fn header(raw: &str, more: bool) -> String {
        let params = Params::parse(Some(raw), Set::ALL).unwrap();
        let page = params.paging().unwrap();
        let neighbours = Neighbours::of(page, more);
        let header = neighbours.link(None, "/ngsi-ld/v1/entities", &params.iter(), page.limit, Media::Json);
        header.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    }

    #[test]
    fn neighbours_keep_the_query_and_move_the_offset() {
        let query = "type=Building&limit=1&idPattern=urn%3Aa%3A.%2A&count=true";
        let link = |offset, rel| {
            format!(
                "</ngsi-ld/v1/entities?count=true&idPattern=urn:a:.*&limit=1&offset={offset}&type=Building>; \
                 rel=\"{rel}\";type=\"application/json\""
            )
        };
        assert_eq!(header(query, true), link(1, "next"));
        assert_eq!(
            header(&format!("{query}&offset=1"), true),
            format!("{}, {}", link(0, "prev"), link(2, "next"))
        );
        assert_eq!(header(&format!("{query}&offset=2"), false), link(1, "prev"));
        assert_eq!(header(query, false), "");
        assert_eq!(header("limit=0&count=true", true), "");
    }

    #[test]
    fn a_page_before_the_start_begins_at_the_start() {
        assert!(header("limit=5&offset=3", false).contains("offset=0"));
    }

    #[test]
    fn what_would_break_the_link_is_encoded() {
        let link = header("q=a%3D%3D%22x%3E%2C%3By%22%26b&limit=1", true);
        assert!(
            link.starts_with("</ngsi-ld/v1/entities?limit=1&offset=1&q=a==%22x%3E%2C%3By%22%26b>"),
            "{link}"
        );
    }
}
