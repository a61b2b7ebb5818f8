//! Instants of NGSI-LD (4.6.3): UTC, at most microseconds, compared as numbers and never as text.

use jiff::civil;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub i64);

/// Why a text is not a dateTime of clause 4.6.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a UTC dateTime such as 2026-01-31T12:00:00.5Z")]
pub struct Invalid;

impl Instant {
    /// Parses `YYYY-MM-DDThh:mm:ss[.|,f{1,6}]Z`; offsets and impossible dates are refused (4.6.3).
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let body = text.strip_suffix('Z').ok_or(Invalid)?;
        let (date, time) = body.split_once('T').ok_or(Invalid)?;
        let days = days(date).ok_or(Invalid)?;
        let micros = micros_of_day(time).ok_or(Invalid)?;
        Ok(Instant(days * 86_400_000_000 + micros))
    }

    /// Appends the shortest ISO 8601 form: no fraction when it is zero, else three or six digits.
    pub fn write(self, out: &mut Vec<u8>) {
        let (days, micros) = (self.0.div_euclid(86_400_000_000), self.0.rem_euclid(86_400_000_000));
        let (year, month, day) = civil_of(days);
        write_digits(out, year, 4);
        out.push(b'-');
        write_digits(out, month, 2);
        out.push(b'-');
        write_digits(out, day, 2);
        out.push(b'T');
        let seconds = micros / 1_000_000;
        write_digits(out, seconds / 3600, 2);
        out.push(b':');
        write_digits(out, seconds / 60 % 60, 2);
        out.push(b':');
        write_digits(out, seconds % 60, 2);
        write_fraction(out, micros % 1_000_000);
        out.push(b'Z');
    }
}

impl std::fmt::Display for Instant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::with_capacity(27);
        self.write(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}

fn write_fraction(out: &mut Vec<u8>, micros: i64) {
    if micros == 0 {
        return;
    }
    out.push(b'.');
    if micros % 1000 == 0 { write_digits(out, micros / 1000, 3) } else { write_digits(out, micros, 6) }
}

fn write_digits(out: &mut Vec<u8>, value: i64, width: usize) {
    let at = out.len();
    out.resize(at + width, b'0');
    let mut rest = value.unsigned_abs();
    for place in out[at..].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

fn number(text: &str, width: usize) -> Option<i64> {
    (text.len() == width && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Days since 1970-01-01 of `YYYY-MM-DD`.
pub(crate) fn days(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day, 2)?);
    // The calendar library decides what exists; the count of days is the usual proleptic Gregorian formula.
    civil::Date::new(year as i16, month as i8, day as i8).ok()?;
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

fn civil_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Microseconds since midnight of `hh:mm:ss[.f]`.
pub(crate) fn micros_of_day(time: &str) -> Option<i64> {
    let (clock, fraction) = match time.find(['.', ',']) {
        Some(at) => (&time[..at], Some(&time[at + 1..])),
        None => (time, None),
    };
    let mut parts = clock.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute, second) = (number(hour, 2)?, number(minute, 2)?, number(second, 2)?);
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let micros = match fraction {
        None => 0,
        Some(digits) if (1..=6).contains(&digits.len()) => {
            number(digits, digits.len())? * 10_i64.pow(6 - digits.len() as u32)
        }
        Some(_) => return None,
    };
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000 + micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepts_and_refuses_what_the_clause_says() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01T00:00:00.5Z", 500_000),
            ("1970-01-01T00:00:00,000001Z", 1),
            ("2000-02-29T00:00:00Z", 951_782_400_000_000),
        ] {
            assert_eq!(Instant::parse(text), Ok(Instant(micros)), "{text}");
        }
        for text in [
            "2026-02-29T00:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00+01:00",
            "2026-01-01",
            "2026-1-1T0:0:0Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.1234567Z",
            "2026-01-01T00:00:00.Z",
            "",
        ] {
            assert_eq!(Instant::parse(text), Err(Invalid), "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_instants_read_back(micros in -62_135_596_800_000_000_i64..253_402_300_799_999_999) {
            let instant = Instant(micros);
            prop_assert_eq!(Instant::parse(&instant.to_string()), Ok(instant));
        }

        #[test]
        fn any_text_is_answered(text in "\\PC*") {
            let _ = Instant::parse(&text);
        }
    }
}
