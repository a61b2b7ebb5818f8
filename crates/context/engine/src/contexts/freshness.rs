//! How long a downloaded document may be used: the caching rules of HTTP (6.3.16; RFC 9111).
//!
//! The broker is a shared cache, so `s-maxage` counts before `max-age`, and what is `private` or `no-store` is used
//! for the request that fetched it and not kept. A stale document may be used while a new one is fetched
//! (RFC 5861), unless its server forbids it with `no-cache` or `must-revalidate`.

use trifid_context_model::time::Instant;

use super::fetch::CacheHeaders;
use super::limits::{FRESHNESS_MAX, HEURISTIC_DEFAULT, HEURISTIC_MAX, HEURISTIC_MIN, STALE_WHILE_REVALIDATE};

/// What a response says about its reuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Freshness {
    /// May be kept at all.
    pub(super) store: bool,
    /// Usable without asking until then.
    pub(super) fresh_until: Instant,
    /// Usable while asking until then; never before `fresh_until`.
    pub(super) stale_until: Instant,
    /// Not usable when asking fails.
    pub(super) strict: bool,
}

impl Freshness {
    /// Of something that never changes.
    pub(super) const FOREVER: Freshness = Freshness {
        store: true,
        fresh_until: Instant(i64::MAX),
        stale_until: Instant(i64::MAX),
        strict: false,
    };

    /// Judges a response received at `now`.
    pub(super) fn of(headers: &CacheHeaders, now: Instant) -> Freshness {
        let control = Control::parse(headers.cache_control.as_deref().unwrap_or_default());
        let lifetime = if control.no_cache { 0 } else { lifetime(&control, headers, now) };
        let age = headers.age.as_deref().and_then(seconds).unwrap_or(0);
        let fresh_until =
            Instant(now.0.saturating_add(lifetime.min(FRESHNESS_MAX).saturating_sub(age).max(0)));
        let strict = control.no_cache || control.must_revalidate;
        let grace = match control.stale_while_revalidate {
            _ if strict => 0,
            Some(grace) => grace,
            None => STALE_WHILE_REVALIDATE,
        };
        let stale_until = Instant(fresh_until.0.saturating_add(grace.min(FRESHNESS_MAX)));
        Freshness { store: !control.no_store, fresh_until, stale_until, strict }
    }
}

/// Freshness lifetime in microseconds (RFC 9111 4.2.1 and 4.2.2).
fn lifetime(control: &Control, headers: &CacheHeaders, now: Instant) -> i64 {
    if let Some(age) = control.max_age {
        return age;
    }
    let date = headers.date.as_deref().and_then(http_date).unwrap_or(now);
    if let Some(expires) = &headers.expires {
        // A date that cannot be read is in the past (RFC 9111 5.3).
        return http_date(expires).map_or(0, |expires| expires.0.saturating_sub(date.0).max(0));
    }
    match headers.last_modified.as_deref().and_then(http_date) {
        Some(modified) => (date.0.saturating_sub(modified.0) / 10).clamp(HEURISTIC_MIN, HEURISTIC_MAX),
        None => HEURISTIC_DEFAULT,
    }
}

/// The directives that concern us (RFC 9111 5.2.2).
#[derive(Debug, Default)]
struct Control {
    no_store: bool,
    no_cache: bool,
    must_revalidate: bool,
    max_age: Option<i64>,
    stale_while_revalidate: Option<i64>,
}

impl Control {
    fn parse(header: &str) -> Control {
        let mut control = Control::default();
        let mut shared = None;
        for directive in header.split(',') {
            let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
            // A value that is no number counts as zero: stale, the safe side (RFC 9111 4.2.1).
            let value = || Some(seconds(value.trim().trim_matches('"')).unwrap_or(0));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" | "private" => control.no_store = true,
                "no-cache" => control.no_cache = true,
                "must-revalidate" | "proxy-revalidate" => control.must_revalidate = true,
                "max-age" => control.max_age = value(),
                "s-maxage" => shared = value(),
                "stale-while-revalidate" => control.stale_while_revalidate = value(),
                _ => {}
            }
        }
        control.max_age = shared.or(control.max_age);
        control
    }
}

/// A number of seconds, in microseconds.
fn seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse::<i64>().unwrap_or(i64::MAX).saturating_mul(1_000_000))
}

/// Parses `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 5.6.7). The obsolete forms are not understood: what cannot be
/// read is stale.
fn http_date(text: &str) -> Option<Instant> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.trim().split_once(", ")?;
    let mut parts = rest.split(' ');
    let (day, month, year, time) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if parts.next() != Some("GMT") || parts.next().is_some() {
        return None;
    }
    let month = MONTHS.iter().position(|known| *known == month)? + 1;
    Instant::parse(&format!("{year}-{month:02}-{day}T{time}Z")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;
    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: Instant = Instant(784_111_777 * S);

    /// `name: value` lines, judged at `NOW`: stored, seconds of freshness, seconds of grace after it.
    fn judge(lines: &str) -> (bool, i64, i64) {
        let mut headers = CacheHeaders::default();
        for line in lines.lines() {
            let (name, value) = line.trim().split_once(": ").unwrap();
            let value = Some(value.into());
            match name {
                "cache-control" => headers.cache_control = value,
                "expires" => headers.expires = value,
                "date" => headers.date = value,
                "age" => headers.age = value,
                "last-modified" => headers.last_modified = value,
                other => panic!("{other}"),
            }
        }
        let fresh = Freshness::of(&headers, NOW);
        let after = fresh.stale_until.0 - fresh.fresh_until.0;
        (fresh.store, (fresh.fresh_until.0 - NOW.0) / S, after / S)
    }

    #[test]
    fn dates_of_http_are_read() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(NOW));
        for bad in ["0", "", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 6 Nov"]
        {
            assert_eq!(http_date(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_server_that_says_nothing_gets_an_hour() {
        assert_eq!(judge(""), (true, 3600, 3600));
    }

    #[test]
    fn explicit_lifetimes_are_obeyed() {
        assert_eq!(judge("cache-control: public, max-age=300").1, 300);
        assert_eq!(judge("cache-control: max-age=300, s-maxage=\"10\"").1, 10);
        assert_eq!(judge("cache-control: max-age=300\nage: 100").1, 200);
        assert_eq!(judge("cache-control: max-age=300\nage: 400").1, 0);
        assert_eq!(judge("cache-control: max-age=nonsense").1, 0);
        assert_eq!(judge("cache-control: max-age=99999999999999999999").1, FRESHNESS_MAX / S);
        assert_eq!(judge("expires: Sun, 06 Nov 1994 08:59:37 GMT").1, 600);
        assert_eq!(judge("expires: Sun, 06 Nov 1994 08:59:37 GMT\ncache-control: max-age=5").1, 5);
        assert_eq!(judge("expires: 0").1, 0);
        let own_clock = "expires: Sun, 06 Nov 1994 08:59:37 GMT\ndate: Sun, 06 Nov 1994 08:54:37 GMT";
        assert_eq!(judge(own_clock).1, 300);
    }

    #[test]
    fn an_old_document_is_expected_to_stay() {
        assert_eq!(judge("last-modified: Sun, 06 Nov 1994 00:49:37 GMT").1, 8 * 360);
        assert_eq!(judge("last-modified: Sun, 06 Nov 1994 08:49:30 GMT").1, 60);
        assert_eq!(judge("last-modified: Sun, 06 Nov 1984 08:49:37 GMT").1, 86_400);
    }

    #[test]
    fn what_must_not_be_kept_or_used_stale_is_not() {
        assert!(!judge("cache-control: no-store").0 && !judge("cache-control: Private").0);
        assert_eq!(judge("cache-control: no-cache, max-age=300"), (true, 0, 0));
        assert_eq!(judge("cache-control: max-age=300, must-revalidate"), (true, 300, 0));
        assert_eq!(judge("cache-control: max-age=300, stale-while-revalidate=7"), (true, 300, 7));
    }
}
