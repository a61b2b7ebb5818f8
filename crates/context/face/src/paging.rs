//! Links to the neighbouring pages (6.3.10): the query as it was asked, with another `offset`.
//!
//! Parameters are written in alphabetical order, so that the same page has the same link however it was asked
//! for. The context's link is not among these: it has a header line of its own.

use http::HeaderValue;

use crate::media::Media;
use crate::params::{Paging, Param};
use crate::percent::{self, Place};

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

    /// The value of the `Link` header, if there is a neighbour.
    pub(crate) fn header<'p>(
        self,
        path: &str,
        params: &(impl Iterator<Item = (Param, &'p str)> + Clone),
        limit: usize,
        media: Media,
    ) -> Option<HeaderValue> {
        let links = [(self.previous, "prev"), (self.next, "next")];
        let mut value = Vec::new();
        for (offset, rel) in links.into_iter().filter_map(|(offset, rel)| Some((offset?, rel))) {
            if !value.is_empty() {
                value.extend_from_slice(b", ");
            }
            write_link(&mut value, path, params.clone(), limit, offset);
            for part in ["; rel=\"", rel, "\";type=\"", media.name(), "\""] {
                value.extend_from_slice(part.as_bytes());
            }
        }
        if value.is_empty() {
            return None;
        }
        Some(HeaderValue::try_from(value).expect("encoding leaves visible ASCII alone"))
    }
}

fn write_link<'p>(
    out: &mut Vec<u8>,
    path: &str,
    params: impl Iterator<Item = (Param, &'p str)>,
    limit: usize,
    offset: usize,
) {
    let (limit, offset) = (limit.to_string(), offset.to_string());
    let mut pairs: Vec<(&str, &str)> = params
        .filter(|(param, _)| !matches!(param, Param::Limit | Param::Offset))
        .map(|(param, value)| (param.name(), value))
        .chain([("limit", limit.as_str()), ("offset", offset.as_str())])
        .collect();
    pairs.sort_unstable();
    out.push(b'<');
    out.extend_from_slice(path.as_bytes());
    let mut separator = b'?';
    for (name, value) in pairs {
        out.push(separator);
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        percent::encode(out, value, Place::Value);
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
        let header = neighbours.header("/ngsi-ld/v1/entities", &params.iter(), page.limit, Media::Json);
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
