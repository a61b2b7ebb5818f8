//! The header `Prefer` (RFC 7240): the version of the standard that a client understands, and the
//! place of `@context` in GeoJSON (6.3.6).

use http::HeaderMap;

use crate::media::Media;

/// A version of NGSI-LD, such as 1.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) major: u16,
    pub(crate) minor: u16,
}

/// The version that this door speaks.
pub(crate) const SPOKEN: Version = Version { major: 1, minor: 9 };

/// What a client prefers; what is not understood is not there, as RFC 7240 section 2 wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Prefer {
    /// `ngsi-ld=<major>.<minor>`, when we can serve it.
    pub(crate) version: Option<Version>,
    /// `body=json` or `body=ld+json`.
    pub(crate) body: Option<Media>,
}

impl Prefer {
    /// Reads all `Prefer` headers; of a preference that comes twice the first counts.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut prefer = Prefer::default();
        for value in headers.get_all("prefer") {
            let preferences = value.to_str().unwrap_or_default().split(',');
            preferences.for_each(|preference| prefer.add(preference));
        }
        prefer
    }

    fn add(&mut self, preference: &str) {
        let token = preference.split(';').next().unwrap_or_default();
        let Some((name, value)) = token.split_once('=') else { return };
        let value = value.trim().trim_matches('"');
        let name = name.trim();
        if name.eq_ignore_ascii_case("ngsi-ld") {
            self.version = self.version.or_else(|| Version::parse(value));
        } else if name.eq_ignore_ascii_case("body") {
            self.body = self.body.or(match value {
                "json" => Some(Media::Json),
                "ld+json" => Some(Media::LdJson),
                _ => None,
            });
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ngsi-ld={}.{}", self.major, self.minor)
    }
}

impl Version {
    /// Parses a version that is not beyond the one spoken here.
    fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        let number =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        let version = Version { major: number(major)?, minor: number(minor)? };
        (version.major == SPOKEN.major && version <= SPOKEN).then_some(version)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn prefer(values: &[&str]) -> Prefer {
        let headers = values
            .iter()
            .map(|value| (http::HeaderName::from_static("prefer"), HeaderValue::from_str(value).unwrap()));
        Prefer::of(&headers.collect())
    }

    #[test]
    fn preferences_are_found_among_others() {
        let version = |minor| Some(Version { major: 1, minor });
        for (values, expected) in [
            (&[][..], Prefer::default()),
            (&["ngsi-ld=1.5"], Prefer { version: version(5), body: None }),
            (&["NGSI-LD = \"1.5\"; foo"], Prefer { version: version(5), body: None }),
            (&["respond-async, body=json"], Prefer { version: None, body: Some(Media::Json) }),
            (&["body=ld+json", "ngsi-ld=1.9"], Prefer { version: version(9), body: Some(Media::LdJson) }),
            (&["body=ld+json, body=json"], Prefer { version: None, body: Some(Media::LdJson) }),
            (&["ngsi-ld=1.10"], Prefer::default()),
            (&["ngsi-ld=2.0"], Prefer::default()),
            (&["ngsi-ld=x"], Prefer::default()),
            (&["ngsi-ld=1.-5"], Prefer::default()),
            (&["body"], Prefer::default()),
        ] {
            assert_eq!(prefer(values), expected, "{values:?}");
        }
    }
}
