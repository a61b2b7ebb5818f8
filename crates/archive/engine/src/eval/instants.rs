//! Dates, sexagesimal angles and intervals (IVOA catalogue of user-defined functions).

use std::sync::Arc;

use arrow_array::Float64Array;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use trifid_archive_adql::types::Type;
use trifid_archive_model::time::Timestamp;

use super::cells::{Cells, Shape, any_null, boolean_array, map, nulls, sides, texts};
use super::compare::{Ordered as _, each};
use crate::error::QueryError;

/// `ivo_to_jd` and `ivo_to_mjd`.
pub(super) fn date(instant: &Cells, f: impl Fn(Timestamp) -> f64) -> Result<Cells, QueryError> {
    map::<TimestampMicrosecondType, Float64Type>(instant, Type::Double, |instant| f(Timestamp(instant)))
}

/// `ivo_hms_to_degrees` and `ivo_dms_to_degrees`: NULL for a text that is no angle.
pub(super) fn angle(text: &Cells, parse: impl Fn(&str) -> Option<f64>) -> Result<Cells, QueryError> {
    if text.is_null() {
        return Ok(Cells::null(Type::Double, text.rows()));
    }
    let degrees: Float64Array = texts(text)?.iter().map(|text| text.and_then(&parse)).collect();
    Ok(Shape::of(&[text], text.rows()).cells(Arc::new(degrees)))
}

/// `ivo_interval_overlaps`: ends that meet overlap, an interval that ends before it begins overlaps with nothing.
pub(super) fn overlap(low1: &Cells, high1: &Cells, low2: &Cells, high2: &Cells) -> Result<Cells, QueryError> {
    let operands = [low1, high1, low2, high2];
    if any_null(&operands) {
        return Ok(Cells::null(Type::Boolean, low1.rows()));
    }
    let shape = Shape::of(&operands, low1.rows());
    let [low1, high1] = [sides::<Float64Type>(low1, shape)?, sides::<Float64Type>(high1, shape)?];
    let [low2, high2] = [sides::<Float64Type>(low2, shape)?, sides::<Float64Type>(high2, shape)?];
    let values = each(shape.len, |row| {
        let (low1, high1, low2, high2) = (low1.get(row), high1.get(row), low2.get(row), high2.get(row));
        let ascends = |low: f64, high: f64| !high.below(low);
        ascends(low1, high1) & ascends(low2, high2) & ascends(low1, high2) & ascends(low2, high1)
    });
    Ok(shape.cells(boolean_array(values, nulls(&operands, shape))))
}
