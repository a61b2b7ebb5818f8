//! Random numbers without a state: each is a hash of what it belongs to.
//!
//! The number of a call is a function of the query's seed, of the call's place in the query and of the row, so
//! batches may come in any order and size, and a query that is run again with the same seed gives the same.

use arrow_array::types::{Float64Type, Int64Type};
use trifid_archive_adql::types::Type;

use super::cells::{Cells, primitive, primitive_array};
use super::node::Evaluator;
use crate::error::QueryError;

/// SplitMix64's output function: every bit of the result depends on every bit of the input.
const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// From 0, included, to 1, excluded.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// RAND() or RAND(seed), whose numbers are the same wherever in the query it stands.
pub(super) fn rand(evaluator: &Evaluator<'_>, arguments: &[Cells], path: u64) -> Result<Cells, QueryError> {
    let stream = match arguments {
        [] => mix(evaluator.context.seed ^ mix(path)),
        [seed] if seed.is_null() => return Ok(Cells::null(Type::Double, evaluator.rows())),
        [seed] if seed.is_constant() => mix(primitive::<Int64Type>(seed)?.value(0) as u64),
        [seed] => return seeded(evaluator, seed),
        more => return Err(super::call::count(more.len())),
    };
    let rows = 0..evaluator.rows();
    let values = rows.map(|row| unit(mix(stream ^ mix(evaluator.input.row(row))))).collect();
    Ok(Cells::Array(primitive_array::<Float64Type>(values, None)))
}

/// RAND with a seed of each row's own.
fn seeded(evaluator: &Evaluator<'_>, seed: &Cells) -> Result<Cells, QueryError> {
    let seeds = primitive::<Int64Type>(seed)?;
    let each = seeds.values().iter().enumerate();
    let values = each.map(|(row, seed)| unit(mix(mix(*seed as u64) ^ mix(evaluator.input.row(row)))));
    Ok(Cells::Array(primitive_array::<Float64Type>(
        values.collect(),
        arrow_array::Array::nulls(seeds).cloned(),
    )))
}

/// `ivo_normal_random(mean, sigma)`, by the method of Box and Muller.
pub(super) fn normal(evaluator: &Evaluator<'_>, arguments: &[Cells], path: u64) -> Result<Cells, QueryError> {
    let [mean, sigma] = arguments else { return Err(super::call::count(arguments.len())) };
    let stream = mix(evaluator.context.seed ^ mix(path));
    let draw = |row| {
        let bits = mix(stream ^ mix(evaluator.input.row(row)));
        // 1 - u is never 0, whose logarithm is infinite.
        let radius = (-2.0 * (1.0 - unit(bits)).ln()).sqrt();
        radius * (std::f64::consts::TAU * unit(mix(bits))).cos()
    };
    let values = (0..evaluator.rows()).map(draw).collect();
    let standard = Cells::Array(primitive_array::<Float64Type>(values, None));
    let spread = super::math::two(|sigma, z| sigma * z, &[sigma.clone(), standard])?;
    super::math::two(|mean, offset| mean + offset, &[mean.clone(), spread])
}
