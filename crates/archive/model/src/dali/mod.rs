//! Values of the xtypes of DALI as text: points, circles, polygons, shapes, intervals, sexagesimal
//! coordinates.
//!
//! Reading accepts what standards and archives write: numbers alone (DALI 1.2 3.7 to 3.10), labelled shapes
//! one after another (3.12, 3.13), and the STC-S that `s_region` columns hold (TAP 1.0 section 6): see
//! [`region()`]. Writing produces DALI's form, each number in the fewest digits that read back to the same
//! value. Timestamps are in [`crate::time`].

pub(crate) mod fuzz;
mod region;
mod sexagesimal;
mod write;

pub use region::{circle, point, polygon, region};
pub use sexagesimal::{dms_to_degrees, hms_to_degrees, write_dms, write_hms};
pub use write::{
    write_circle, write_interval, write_numbers, write_point, write_polygon, write_region, write_stc,
};

/// Reads an interval: two numbers, where `-Inf` and `+Inf` stand for no bound (DALI 1.2 3.4).
pub fn interval(text: &str) -> Option<(f64, f64)> {
    let mut words = text.split_ascii_whitespace();
    let mut next = || {
        let word = words.next()?;
        let number = match word.strip_prefix(['+', '-']).unwrap_or(word) {
            infinite if infinite.eq_ignore_ascii_case("inf") || infinite.eq_ignore_ascii_case("infinity") => {
                f64::INFINITY.copysign(if word.starts_with('-') { -1.0 } else { 1.0 })
            }
            _ => word.parse().ok().filter(|number: &f64| number.is_finite())?,
        };
        Some(number)
    };
    let bounds = (next()?, next()?);
    words.next().is_none().then_some(bounds)
}

#[cfg(test)]
mod tests;
