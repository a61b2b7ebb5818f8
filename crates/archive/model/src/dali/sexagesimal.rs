//! Hours and degrees in sixties.
//!
//! Read as the IVOA catalogue of user-defined functions has it (`ivo_hms_to_degrees`, `ivo_dms_to_degrees`):
//! `h:m:s`, `hhmmss` and `hHmMsS` (with `d` for degrees), whole hours and minutes, seconds with decimals;
//! within the ranges of DALI 1.2 3.6. A blank may stand for the colon, as catalogues print it. Written with
//! colons.

/// Hours, minutes and seconds as degrees; `None` for any other text.
pub fn hms_to_degrees(text: &str) -> Option<f64> {
    let seconds = parse(text.trim_ascii(), 24, ['h', 'H'])?;
    Some(seconds / 240.0)
}

/// Degrees, minutes and seconds with a sign as degrees; `None` for any other text.
pub fn dms_to_degrees(text: &str) -> Option<f64> {
    let text = text.trim_ascii();
    let (text, negative) = match text.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (text.strip_prefix('+').unwrap_or(text), false),
    };
    let degrees = parse(text, 90, ['d', 'D'])? / 3600.0;
    Some(if negative { -degrees } else { degrees })
}

/// In sixtieths of sixtieths.
fn parse(text: &str, most: u32, unit: [char; 2]) -> Option<f64> {
    let (whole, minutes, seconds) = parts(text, unit)?;
    let number = |digits: &str, count: usize| -> Option<u32> {
        let plain =
            !digits.is_empty() && digits.len() <= count && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    };
    let (whole, minutes) = (number(whole, 3)?, number(minutes, 2)?);
    let decimal = seconds.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = seconds.parse().ok().filter(|_| decimal)?;
    if minutes >= 60 || seconds >= 60.0 {
        return None;
    }
    let sum = f64::from((whole * 60 + minutes) * 60) + seconds;
    (sum <= f64::from(most * 3600)).then_some(sum)
}

/// The three parts, still text.
fn parts(text: &str, unit: [char; 2]) -> Option<(&str, &str, &str)> {
    if let Some((whole, rest)) = text.split_once(unit) {
        let (minutes, rest) = rest.split_once(['m', 'M'])?;
        let seconds = rest.strip_suffix(['s', 'S'])?;
        return Some((whole.trim_ascii(), minutes.trim_ascii(), seconds.trim_ascii()));
    }
    for separator in [':', ' '] {
        if let Some((whole, rest)) = text.split_once(separator) {
            let (minutes, seconds) = rest.trim_ascii_start().split_once(separator)?;
            return Some((whole.trim_ascii(), minutes.trim_ascii(), seconds.trim_ascii()));
        }
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits == 6).then(|| (&text[..2], &text[2..4], &text[4..]))
}

/// Appends degrees as `hh:mm:ss.s` with so many decimals, at most nine. NaN and infinite appends nothing.
pub fn write_hms(degrees: f64, decimals: usize, out: &mut Vec<u8>) {
    write(crate::sphere::wrap_longitude(degrees) * 240.0, decimals, out);
}

/// Appends degrees as `+dd:mm:ss.s` with so many decimals, at most nine. NaN and what is beyond a pole
/// appends nothing.
pub fn write_dms(degrees: f64, decimals: usize, out: &mut Vec<u8>) {
    if degrees.abs() <= 90.0 {
        out.push(if degrees.is_sign_negative() { b'-' } else { b'+' });
        write(degrees.abs() * 3600.0, decimals, out);
    }
}

fn write(seconds: f64, decimals: usize, out: &mut Vec<u8>) {
    if !seconds.is_finite() {
        return;
    }
    let decimals = decimals.min(9);
    let scale = 10_u64.pow(decimals as u32);
    // Rounded once, as a whole number, so that no 60 appears.
    let ticks = (seconds * scale as f64).round() as u64;
    let (whole, part) = (ticks / scale, ticks % scale);
    let text = format!("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
    out.extend_from_slice(text.as_bytes());
    if decimals > 0 {
        out.extend_from_slice(format!(".{part:0decimals$}").as_bytes());
    }
}
