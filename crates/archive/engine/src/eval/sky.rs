//! The user-defined functions (IVOA catalogue of user-defined functions, and Gaia's) that are about the sky.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array as _, Float64Array, Int64Array, ListArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use trifid_archive_adql::types::Type;
use trifid_archive_model::astro::{self, Astrometry};
use trifid_archive_model::batch::item;
use trifid_archive_model::healpix;
use trifid_archive_model::sphere::Point;

use super::cells::{Cells, Shape, Side, any_null, nulls, primitive, sides};
use super::geometry::point_array;
use crate::error::QueryError;

/// The order up to which a Gaia source identifier says its cell.
const GAIA_ORDER: i64 = 12;

/// The bits of a Gaia source identifier below the cell.
const GAIA_SHIFT: u32 = 35;

/// `ivo_healpix_index(order, lon, lat)`.
pub(super) fn healpix_index(arguments: &[Cells]) -> Result<Cells, QueryError> {
    let [order, lon, lat] = arguments else { return Err(super::call::count(arguments.len())) };
    let operands = [order, lon, lat];
    if any_null(&operands) {
        return Ok(Cells::null(Type::Long, order.rows()));
    }
    let shape = Shape::of(&operands, order.rows());
    let (lon, lat) = (sides::<Float64Type>(lon, shape)?, sides::<Float64Type>(lat, shape)?);
    let orders = orders(order, i64::from(healpix::ORDER_MAX))?;
    let given = nulls(&operands, shape);
    let cell = |row: usize| {
        let valid = given.as_ref().is_none_or(|given| given.is_valid(row));
        let order = u8::try_from(orders.value(order.place(row))).ok().filter(|_| valid)?;
        healpix::hash(order, lon.get(row), lat.get(row)).map(|cell| cell as i64)
    };
    Ok(shape.cells(Arc::new((0..shape.len).map(cell).collect::<Int64Array>())))
}

/// An order, which as a constant must be from 0 to `most`.
fn orders(cells: &Cells, most: i64) -> Result<&Int64Array, QueryError> {
    let orders = primitive::<Int64Type>(cells)?;
    if cells.is_constant() && !(0..=most).contains(&orders.value(0)) {
        let message = format!("a HEALPix order is from 0 to {most}; {} was asked for", orders.value(0));
        return Err(QueryError::invalid(message));
    }
    Ok(orders)
}

/// `ivo_healpix_center(order, index)`.
pub(super) fn healpix_center(arguments: &[Cells]) -> Result<Cells, QueryError> {
    let [order, index] = arguments else { return Err(super::call::count(arguments.len())) };
    let operands = [order, index];
    if any_null(&operands) {
        return Ok(Cells::null(Type::Point, order.rows()));
    }
    let shape = Shape::of(&operands, order.rows());
    let orders = orders(order, i64::from(healpix::ORDER_MAX))?;
    let cells = primitive::<Int64Type>(index)?;
    let given = nulls(&operands, shape);
    let center = |row: usize| {
        let valid = given.as_ref().is_none_or(|given| given.is_valid(row));
        let order = u8::try_from(orders.value(order.place(row))).ok().filter(|_| valid)?;
        let cell = u64::try_from(cells.value(index.place(row))).ok()?;
        (order <= healpix::ORDER_MAX).then(|| healpix::center(order, cell)).flatten()
    };
    let at: Vec<_> = (0..shape.len).map(center).collect();
    if order.is_constant() && index.is_constant() && at == [None] {
        let (order, index) = (orders.value(0), cells.value(0));
        return Err(QueryError::invalid(format!("HEALPix order {order} has no cell {index}")));
    }
    Ok(shape.cells(point_array(&at)))
}

/// `gaia_healpix_index(order, source_id)`: the cell is in the identifier's upper bits.
pub(super) fn gaia_index(arguments: &[Cells]) -> Result<Cells, QueryError> {
    let [order, source] = arguments else { return Err(super::call::count(arguments.len())) };
    if any_null(&[order, source]) {
        return Ok(Cells::null(Type::Long, order.rows()));
    }
    let shape = Shape::of(&[order, source], order.rows());
    let orders = orders(order, GAIA_ORDER)?;
    let sources = primitive::<Int64Type>(source)?;
    let given = nulls(&[order, source], shape);
    let cell = |row: usize| {
        let valid = given.as_ref().is_none_or(|given| given.is_valid(row));
        let order = orders.value(order.place(row));
        let fits = valid && (0..=GAIA_ORDER).contains(&order);
        let source = sources.value(source.place(row));
        (fits && source >= 0).then(|| (source >> GAIA_SHIFT) >> (2 * (GAIA_ORDER - order)))
    };
    Ok(shape.cells(Arc::new((0..shape.len).map(cell).collect::<Int64Array>())))
}

/// The arguments of the propagation of an epoch, row by row.
struct Stars<'a> {
    sides: [Side<'a, f64>; 8],
    nulls: [Option<NullBuffer>; 8],
    shape: Shape,
}

impl<'a> Stars<'a> {
    fn new(arguments: &'a [Cells]) -> Result<Self, QueryError> {
        let arguments: &[Cells; 8] = arguments.try_into().map_err(|_| super::call::count(arguments.len()))?;
        let shape = Shape::of(&arguments.each_ref(), arguments[0].rows());
        let mut sides = [Side::One(0.0); 8];
        let mut nulls = [const { None }; 8];
        for (place, argument) in arguments.iter().enumerate() {
            if argument.is_null() {
                nulls[place] = Some(NullBuffer::new_null(shape.len));
                continue;
            }
            sides[place] = super::cells::sides::<Float64Type>(argument, shape)?;
            // A constant that is not NULL has no mask.
            nulls[place] = argument.values().nulls().filter(|nulls| nulls.len() == shape.len).cloned();
        }
        Ok(Self { sides, nulls, shape })
    }

    /// A star at the epoch asked for. NULL stands for 0 where it may (IVOA UDF catalogue, `ivo_epoch_prop`).
    fn star(&self, row: usize) -> Result<Astrometry, QueryError> {
        let is_null = |place: usize| self.nulls[place].as_ref().is_some_and(|nulls| nulls.is_null(row));
        if [0, 1, 6, 7].into_iter().any(is_null) {
            return Err(QueryError::invalid(
                "a position or an epoch is NULL, from which nothing can be propagated; exclude such rows",
            ));
        }
        let value = |place: usize| if is_null(place) { 0.0 } else { self.sides[place].get(row) };
        let star = Astrometry {
            ra: value(0),
            dec: value(1),
            parallax: value(2),
            pmra: value(3),
            pmdec: value(4),
            radial_velocity: value(5),
        };
        Ok(astro::propagate(&star, value(7) - value(6)))
    }
}

/// `ivo_epoch_prop_pos`.
pub(super) fn propagated_position(arguments: &[Cells]) -> Result<Cells, QueryError> {
    let stars = Stars::new(arguments)?;
    let at = (0..stars.shape.len).map(|row| stars.star(row).map(|star| Point::new(star.ra, star.dec).ok()));
    Ok(stars.shape.cells(point_array(&at.collect::<Result<Vec<_>, _>>()?)))
}

/// `ivo_epoch_prop`: all six parameters.
pub(super) fn propagated(arguments: &[Cells]) -> Result<Cells, QueryError> {
    let stars = Stars::new(arguments)?;
    let mut values = Vec::with_capacity(stars.shape.len * 6);
    for row in 0..stars.shape.len {
        let star = stars.star(row)?;
        let six = [star.ra, star.dec, star.parallax, star.pmra, star.pmdec, star.radial_velocity];
        values.extend(six);
    }
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(6, stars.shape.len));
    let values = Arc::new(Float64Array::from(values));
    Ok(stars.shape.cells(Arc::new(ListArray::new(item(DataType::Float64), offsets, values, None))))
}
