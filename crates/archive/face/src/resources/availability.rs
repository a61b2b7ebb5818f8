//! Whether the service is there (VOSI 1.1 3.2, TAP 1.1 2.3). Never behind anything that can be busy: it reads one
//! number.

use trifid_archive_model::time::Timestamp;

/// The document of a service that is up since `since_micros` after 1970.
pub(crate) fn document(since_micros: i64) -> String {
    let mut since = Vec::with_capacity(32);
    Timestamp(since_micros / 1_000_000 * 1_000_000).write(&mut since);
    let since = String::from_utf8(since).unwrap_or_default();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <vosi:availability xmlns:vosi=\"http://www.ivoa.net/xml/VOSIAvailability/v1.0\">\
         <vosi:available>true</vosi:available><vosi:upSince>{since}Z</vosi:upSince></vosi:availability>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_an_instant_in_utc() {
        let document = document(1_767_225_600_123_456);
        assert!(document.contains("<vosi:upSince>2026-01-01T00:00:00Z</vosi:upSince>"), "{document}");
    }
}
