//! Instants: microseconds since 1970, their text and their Julian dates.
//!
//! The calendar is the proleptic Gregorian one, every day has 86,400 seconds, and an instant has whatever
//! time scale its table says (DALI 1.2 3.3: UTC where nothing else is said): there are no leap seconds, and a
//! second 60 is refused. Years are 0000 to 9999, four digits, as the standard's form has them.

use std::fmt;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The Julian date of 1970-01-01T00:00:00.
const EPOCH_JD: f64 = 2_440_587.5;

/// The modified Julian date of 1970-01-01T00:00:00.
const EPOCH_MJD: i64 = 40_587;

/// An instant: microseconds since 1970-01-01T00:00:00 in the table's time scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// 0000-01-01T00:00:00.
    pub const MIN: Self = Self(days(0, 1, 1) * DAY);
    /// 9999-12-31T23:59:59.999999.
    pub const MAX: Self = Self((days(9999, 12, 31) + 1) * DAY - 1);

    /// Reads `YYYY-MM-DD['T'hh:mm:ss[.SSS]['Z']]` (DALI 1.2 3.3). White space around it is passed over; a
    /// space is taken for the `T`, minutes may stand without seconds; digits beyond the microsecond are cut
    /// off.
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim_ascii().as_bytes();
        let year = digits(&mut rest, 4)?;
        literal(&mut rest, b'-')?;
        let month = digits(&mut rest, 2)?;
        literal(&mut rest, b'-')?;
        let day = digits(&mut rest, 2)?;
        if !(1..=12).contains(&month) || day < 1 || day > month_days(year, month) {
            return None;
        }
        let time = if rest.is_empty() { 0 } else { time_of_day(&mut rest)? };
        rest.is_empty().then_some(Self(days(year, month, day) * DAY + time))
    }

    /// Appends `YYYY-MM-DDThh:mm:ss[.SSS[SSS]]`, with as many digits of the second as are needed, none, three
    /// or six. Outside of the years 0000 to 9999 the nearest of them stands.
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(Text::new(self).as_bytes());
    }

    /// The Julian date (IVOA UDF catalogue, `ivo_to_jd`), rounded once: to 20 microseconds or better for our
    /// times.
    pub fn to_jd(self) -> f64 {
        let (day, rest) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        // Both halves are exact; their sum is rounded once.
        (day as f64 + EPOCH_JD) + rest as f64 / DAY as f64
    }

    /// The modified Julian date (IVOA UDF catalogue, `ivo_to_mjd`): to half a microsecond or better until
    /// 2132.
    pub fn to_mjd(self) -> f64 {
        let (day, rest) = (self.0.div_euclid(DAY), self.0.rem_euclid(DAY));
        (day + EPOCH_MJD) as f64 + rest as f64 / DAY as f64
    }

    /// The instant of a Julian date, to the nearest microsecond; `None` outside of the years 0000 to 9999.
    pub fn from_jd(jd: f64) -> Option<Self> {
        let day = jd.floor();
        Self::from_parts(day - (EPOCH_JD - 0.5), jd - day - 0.5)
    }

    /// The instant of a modified Julian date, to the nearest microsecond; `None` outside of the years 0000 to
    /// 9999.
    pub fn from_mjd(mjd: f64) -> Option<Self> {
        let day = mjd.floor();
        Self::from_parts(day - EPOCH_MJD as f64, mjd - day)
    }

    /// A whole number of days since 1970 and a part of a day.
    fn from_parts(day: f64, part: f64) -> Option<Self> {
        if day.is_nan() || day.abs() > 4e6 {
            return None;
        }
        let instant = Self(day as i64 * DAY + (part * DAY as f64).round() as i64);
        (Self::MIN..=Self::MAX).contains(&instant).then_some(instant)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(Text::new(*self).as_bytes()))
    }
}

/// `hh:mm[:ss[.S...]]['Z']` after a `T` or a space, in microseconds.
fn time_of_day(rest: &mut &[u8]) -> Option<i64> {
    if literal(rest, b'T').is_none() {
        literal(rest, b' ')?;
    }
    let hour = digits(rest, 2)?;
    literal(rest, b':')?;
    let minute = digits(rest, 2)?;
    let mut second = 0;
    let mut part = 0;
    if literal(rest, b':').is_some() {
        second = digits(rest, 2)?;
        if literal(rest, b'.').is_some() {
            part = fraction(rest);
        }
    }
    let _ = literal(rest, b'Z');
    let whole = (hour * 60 + minute) * 60 + second;
    (minute < 60 && second < 60 && hour < 24).then_some(whole * 1_000_000 + part)
}

/// Exactly so many digits.
fn digits(rest: &mut &[u8], count: usize) -> Option<i64> {
    let (digits, after) = rest.split_at_checked(count)?;
    *rest = after;
    digits
        .iter()
        .try_fold(0, |value, digit| digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')))
}

/// Any number of digits as microseconds.
fn fraction(rest: &mut &[u8]) -> i64 {
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, after) = rest.split_at(count);
    *rest = after;
    (0..6).fold(0, |value, place| value * 10 + digits.get(place).map_or(0, |digit| i64::from(digit - b'0')))
}

fn literal(rest: &mut &[u8], byte: u8) -> Option<()> {
    *rest = rest.strip_prefix(&[byte])?;
    Some(())
}

fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last one, in eras of 400 years or 146,097 days.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day of a count of days since 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = (shifted + 2) % 12 + 1;
    (year_of_era + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// The text of an instant, on the stack.
struct Text {
    bytes: [u8; 26],
    length: usize,
}

impl Text {
    fn new(instant: Timestamp) -> Self {
        let micros = instant.clamp(Timestamp::MIN, Timestamp::MAX).0;
        let (year, month, day) = date(micros.div_euclid(DAY));
        let of_day = micros.rem_euclid(DAY);
        let (second, part) = (of_day / 1_000_000, of_day % 1_000_000);
        let mut bytes = *b"0000-00-00T00:00:00.000000";
        pair(&mut bytes, 0, year / 100);
        pair(&mut bytes, 2, year % 100);
        pair(&mut bytes, 5, month);
        pair(&mut bytes, 8, day);
        pair(&mut bytes, 11, second / 3600);
        pair(&mut bytes, 14, second / 60 % 60);
        pair(&mut bytes, 17, second % 60);
        pair(&mut bytes, 20, part / 10_000);
        pair(&mut bytes, 22, part / 100 % 100);
        pair(&mut bytes, 24, part % 100);
        let length = match (part, part % 1000) {
            (0, _) => 19,
            (_, 0) => 23,
            _ => 26,
        };
        Self { bytes, length }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Two digits at a place.
fn pair(bytes: &mut [u8; 26], place: usize, value: i64) {
    bytes[place] = b'0' + (value / 10) as u8;
    bytes[place + 1] = b'0' + (value % 10) as u8;
}

#[cfg(test)]
mod tests;
