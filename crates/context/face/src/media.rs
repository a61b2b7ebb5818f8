//! Media types: what a client sends, and what it wants back (6.3.4).
//!
//! The order of the representations is the standard's: json, ld+json, geo+json. It decides among those that the
//! client weights equally. A representation takes its weight from the most specific media range that
//! matches it (RFC 9110 12.5.1), so `application/json;q=0, */*` refuses json for good.

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use crate::limits::MEDIA_RANGES_MAX;

/// A representation of NGSI-LD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// `application/json`.
    Json,
    /// `application/ld+json`.
    LdJson,
    /// `application/geo+json`.
    GeoJson,
}

/// What entities are represented in (6.3.15).
pub(crate) const ENTITY_MEDIA: &[Media] = &[Media::Json, Media::LdJson, Media::GeoJson];

/// What everything else is represented in.
pub(crate) const PLAIN_MEDIA: &[Media] = &[Media::Json, Media::LdJson];

impl Media {
    /// The media type's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Media::Json => "application/json",
            Media::LdJson => "application/ld+json",
            Media::GeoJson => "application/geo+json",
        }
    }

    /// The name as a header value.
    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_static(self.name())
    }

    fn subtype(self) -> &'static str {
        &self.name()["application/".len()..]
    }
}

/// The representation that the client wants most among those `offered`, in the standard's order; none when it
/// accepts none of them.
pub(crate) fn negotiate(headers: &HeaderMap, offered: &'static [Media]) -> Option<Media> {
    let mut values = headers.get_all(ACCEPT).iter();
    let Some(first) = values.next() else { return offered.first().copied() };
    if values.next().is_none()
        && let Some(media) = whole(first.as_bytes(), offered)
    {
        return Some(media);
    }
    let mut best = None;
    for &media in offered {
        let weight = weight(headers, media);
        if weight > best.map_or(0, |(_, weight)| weight) {
            best = Some((media, weight));
        }
    }
    best.map(|(media, _)| media)
}

/// The answer to the headers that nearly all clients send: one media type and nothing else.
fn whole(value: &[u8], offered: &'static [Media]) -> Option<Media> {
    match value {
        b"*/*" => offered.first().copied(),
        _ => offered.iter().copied().find(|media| media.name().as_bytes() == value),
    }
}

/// The weight of `media` in thousandths; zero when it is not acceptable.
fn weight(headers: &HeaderMap, media: Media) -> u16 {
    let ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = ranges.flat_map(|value| value.split(',')).take(MEDIA_RANGES_MAX);
    let mut best = (0, 0);
    for range in ranges {
        let (name, parameters) = range.split_once(';').unwrap_or((range, ""));
        let found = (specificity(name.trim(), media), quality(parameters));
        if found.0 > best.0 || (found.0 == best.0 && found.0 > 0 && found.1 > best.1) {
            best = found;
        }
    }
    best.1
}

/// How closely a media range matches: 3 by name, 2 by type, 1 by `*/*`, 0 not at all.
fn specificity(range: &str, media: Media) -> u8 {
    if range == "*/*" {
        return 1;
    }
    let Some((kind, subtype)) = range.split_once('/') else { return 0 };
    if !kind.eq_ignore_ascii_case("application") {
        return 0;
    }
    match subtype {
        "*" => 2,
        _ if subtype.eq_ignore_ascii_case(media.subtype()) => 3,
        _ => 0,
    }
}

/// The parameter `q` in thousandths. A malformed weight is none at all, so the range keeps its full weight.
fn quality(parameters: &str) -> u16 {
    let weight = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    weight.and_then(thousandths).unwrap_or(1000)
}

/// `0`, `1`, `0.5`, `0.123`, `1.000` (RFC 9110 12.4.2).
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !matches!(whole, "0" | "1") || fraction.len() > 3 || !digits(fraction) {
        return None;
    }
    let scale = 10_u16.pow(3 - fraction.len() as u32);
    let fraction: u16 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    Some((u16::from(whole == "1") * 1000 + fraction * scale).min(1000))
}

/// How a body is written: what decides where its `@context` is (6.3.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyMedia {
    /// `application/json`, and `application/merge-patch+json` where it may be used.
    Json,
    /// `application/ld+json`.
    LdJson,
}

/// The media type of a request's body; none when it is not one of ours, or is not in UTF-8 (4.6.1), or is compressed
/// (RFC 9110 8.4.1).
/// `application/merge-patch+json` is json for PATCH alone (6.3.4).
pub(crate) fn of_body(headers: &HeaderMap, is_patch: bool) -> Option<BodyMedia> {
    if headers
        .get(CONTENT_ENCODING)
        .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return None;
    }
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    match value {
        "application/json" => return Some(BodyMedia::Json),
        "application/ld+json" => return Some(BodyMedia::LdJson),
        _ => {}
    }
    let (name, parameters) = value.split_once(';').unwrap_or((value, ""));
    let media = match name.trim().to_ascii_lowercase().as_str() {
        "application/json" => BodyMedia::Json,
        "application/merge-patch+json" if is_patch => BodyMedia::Json,
        "application/ld+json" => BodyMedia::LdJson,
        _ => return None,
    };
    is_utf8(parameters).then_some(media)
}

fn is_utf8(parameters: &str) -> bool {
    parameters.split(';').filter_map(|parameter| parameter.split_once('=')).all(|(name, value)| {
        let value = value.trim().trim_matches('"');
        !name.trim().eq_ignore_ascii_case("charset") || value.eq_ignore_ascii_case("utf-8")
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(name: &http::HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn the_list_order_decides_unless_weights_do() {
        use Media::{GeoJson, Json, LdJson};
        for (accept, expected) in [
            (&[][..], Some(Json)),
            (&["*/*"], Some(Json)),
            (&["application/geo+json"], Some(GeoJson)),
            (&["application/ld+json, application/json"], Some(Json)),
            (&["application/geo+json, application/json"], Some(Json)),
            (&["application/json;q=0.1, application/ld+json;q=0.9"], Some(LdJson)),
            (&["application/json;q=0.1", "application/ld+json;q=0.9"], Some(LdJson)),
            (&["application/json;q=0, */*"], Some(LdJson)),
            (&["*/*;q=0.9, application/ld+json;q=0.8"], Some(Json)),
            (&["application/ld+json;q=notanumber"], Some(LdJson)),
            (&["application/*;q=0.5, application/geo+json"], Some(GeoJson)),
            (&["Application/JSON"], Some(Json)),
            (&["application/ld+json; profile=\"x\""], Some(LdJson)),
            (&["application/xml"], None),
            (&["application/json;q=0"], None),
            (&["text/*"], None),
            (&[""], None),
        ] {
            assert_eq!(negotiate(&headers(&ACCEPT, accept), ENTITY_MEDIA), expected, "{accept:?}");
        }
    }

    #[test]
    fn only_what_is_offered_is_chosen() {
        let plain = |accept| negotiate(&headers(&ACCEPT, &[accept]), PLAIN_MEDIA);
        assert_eq!(plain("application/geo+json"), None);
        assert_eq!(plain("application/geo+json, application/json"), Some(Media::Json));
        assert_eq!(plain("application/geo+json;q=0.9, application/ld+json;q=0.1"), Some(Media::LdJson));
    }

    #[test]
    fn bodies_are_json_in_utf8() {
        let body = |value: &str, is_patch| of_body(&headers(&CONTENT_TYPE, &[value]), is_patch);
        for (value, is_patch, expected) in [
            ("application/json", false, Some(BodyMedia::Json)),
            ("application/json; charset=UTF-8", false, Some(BodyMedia::Json)),
            ("Application/LD+JSON;profile=x", false, Some(BodyMedia::LdJson)),
            ("application/merge-patch+json", true, Some(BodyMedia::Json)),
            ("application/merge-patch+json", false, None),
            ("application/json; charset=latin1", false, None),
            ("application/geo+json", false, None),
            ("text/plain", false, None),
            ("", false, None),
        ] {
            assert_eq!(body(value, is_patch), expected, "{value}");
        }
        assert_eq!(of_body(&HeaderMap::new(), false), None);
        for (coding, expected) in [("identity", Some(BodyMedia::Json)), ("gzip", None), ("br, gzip", None)] {
            let mut headers = headers(&CONTENT_TYPE, &["application/json"]);
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
            assert_eq!(of_body(&headers, false), expected, "{coding}");
        }
    }

    proptest! {
        #[test]
        fn any_accept_is_answered(accept in "[ -~]{0,80}") {
            let _ = negotiate(&headers(&ACCEPT, &[&accept]), ENTITY_MEDIA);
        }
    }
}
