//! The functions of ADQL 2.1 4.2 over [`trifid_archive_model::sphere`].
//!
//! What is asked most (is this position in that circle) never builds a point: `POINT(ra, dec)` as an argument is its
//! two columns, and a constant region is made ready once for a scan over them.
//!
//! A value that is no shape (a latitude beyond a pole, a negative radius, a text that is no region) is NULL
//! where it comes from a column: one bad row of a catalogue must not fail everybody's queries. As a constant
//! it is an error.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, ArrayRef, FixedSizeListArray, Float64Array, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{Expr, Kind};
use trifid_archive_adql::types::Type;
use trifid_archive_model::batch::item;
use trifid_archive_model::sphere::{self, Geometry, Prepared};

use super::cells::{Cells, Shape, Side, any_null, boolean_array, mismatch, nulls, primitive_array, sides};
use super::compare::each;
use super::constant::refused;
use super::node::{Evaluator, child};
use super::shapes::Shapes;
use crate::error::QueryError;

/// Positions by their coordinates, before anybody built points of them.
pub(super) struct Positions {
    lon: Cells,
    lat: Cells,
}

impl Positions {
    pub(super) fn new(lon: Cells, lat: Cells) -> Self {
        Self { lon, lat }
    }

    fn operands(&self) -> [&Cells; 2] {
        [&self.lon, &self.lat]
    }
}

/// An argument of a geometric predicate.
enum Argument {
    /// `POINT(lon, lat)`.
    Positions(Positions),
    /// Anything else of a geometric type.
    Shapes(Cells, Type),
}

impl Argument {
    fn of(evaluator: &Evaluator<'_>, expr: &Expr, path: u64) -> Result<Self, QueryError> {
        match &expr.kind {
            Kind::Call(Function::Point, arguments) if arguments.len() == 2 => {
                let lon = evaluator.cells(&arguments[0], child(path, 0))?;
                Ok(Self::Positions(Positions { lon, lat: evaluator.cells(&arguments[1], child(path, 1))? }))
            }
            _ => Ok(Self::Shapes(evaluator.cells(expr, path)?, expr.ty)),
        }
    }

    fn is_constant(&self) -> bool {
        match self {
            Self::Positions(at) => at.lon.is_constant() && at.lat.is_constant(),
            Self::Shapes(cells, _) => cells.is_constant(),
        }
    }

    fn is_null(&self) -> bool {
        match self {
            Self::Positions(at) => any_null(&at.operands()),
            Self::Shapes(cells, _) => cells.is_null(),
        }
    }

    fn is_point(&self) -> bool {
        matches!(self, Self::Positions(_) | Self::Shapes(_, Type::Point))
    }

    /// Points as values.
    fn built(self) -> Result<(Cells, Type), QueryError> {
        match self {
            Self::Positions(at) => Ok((points(&at)?, Type::Point)),
            Self::Shapes(cells, ty) => Ok((cells, ty)),
        }
    }

    /// The geometry that it is in all rows.
    fn geometry(&self) -> Result<Geometry, QueryError> {
        match self {
            Self::Positions(at) => {
                let value =
                    |cells| Ok::<_, QueryError>(super::cells::primitive::<Float64Type>(cells)?.value(0));
                Ok(sphere::Point::new(value(&at.lon)?, value(&at.lat)?).map_err(refused)?.into())
            }
            Self::Shapes(cells, ty) => Shapes::new(cells, *ty)?.constant(),
        }
    }
}

/// CONTAINS or INTERSECTS.
pub(super) fn predicate(
    evaluator: &Evaluator<'_>,
    function: Function,
    arguments: &[Expr],
    path: u64,
) -> Result<Cells, QueryError> {
    let [left, right] = arguments else { return Err(super::call::count(arguments.len())) };
    let left = Argument::of(evaluator, left, child(path, 0))?;
    let right = Argument::of(evaluator, right, child(path, 1))?;
    let rows = evaluator.rows();
    if left.is_null() || right.is_null() {
        return Ok(Cells::null(Type::Boolean, rows));
    }
    // A position meets what it is in.
    let (left, right) = match function {
        Function::Intersects if right.is_point() && !left.is_point() => (right, left),
        _ => (left, right),
    };
    if right.is_constant() && left.is_point() && !left.is_constant() {
        let region = Prepared::new(&right.geometry()?);
        return match left {
            Argument::Positions(at) => positions_in(&at, &region, rows),
            Argument::Shapes(cells, _) => points_in(&cells, &region),
        };
    }
    let test = match function {
        Function::Intersects => sphere::intersects,
        _ => sphere::contains,
    };
    each_pair(left, right, rows, test)
}

/// Which positions are in a region.
fn positions_in(at: &Positions, region: &Prepared, rows: usize) -> Result<Cells, QueryError> {
    let shape = Shape::of(&at.operands(), rows);
    let (lon, lat) = (sides::<Float64Type>(&at.lon, shape)?, sides::<Float64Type>(&at.lat, shape)?);
    let values = match (lon, lat) {
        (Side::Many(lon), Side::Many(lat)) => region.contains_many(lon, lat),
        (lon, lat) => each(shape.len, |row| region.contains_degrees(lon.get(row), lat.get(row))),
    };
    let given = nulls(&at.operands(), shape);
    Ok(shape.cells(boolean_array(values, somewhere(lon, lat, shape.len, given))))
}

/// A null mask with the positions that are nowhere added to it.
pub(super) fn somewhere(
    lon: Side<'_, f64>,
    lat: Side<'_, f64>,
    len: usize,
    given: Option<NullBuffer>,
) -> Option<NullBuffer> {
    let valid = super::cells::pairs_bits(lon, lat, len, |lon, lat| lon.is_finite() & (lat.abs() <= 90.0));
    if valid.count_set_bits() == len {
        return given;
    }
    NullBuffer::union(given.as_ref(), Some(&NullBuffer::new(valid)))
}

/// Which points of a column are in a region.
fn points_in(cells: &Cells, region: &Prepared) -> Result<Cells, QueryError> {
    let shapes = Shapes::new(cells, Type::Point)?;
    let at = shapes.tuples::<2>();
    let values = each(at.len(), |row| region.contains_degrees(at[row][0], at[row][1]));
    let valid = each(at.len(), |row| at[row][0].is_finite() & (at[row][1].abs() <= 90.0));
    let nulls = NullBuffer::union(cells.values().nulls(), Some(&NullBuffer::new(valid)));
    Ok(Cells::Array(boolean_array(values, nulls)))
}

/// A test of two geometries, row by row.
fn each_pair(
    left: Argument,
    right: Argument,
    rows: usize,
    test: impl Fn(&Geometry, &Geometry) -> bool,
) -> Result<Cells, QueryError> {
    let ((left, left_type), (right, right_type)) = (left.built()?, right.built()?);
    let shape = Shape::of(&[&left, &right], rows);
    let (mut a, mut b) = (Shapes::new(&left, left_type)?, Shapes::new(&right, right_type)?);
    if left.is_constant() {
        a.constant()?;
    }
    if right.is_constant() {
        b.constant()?;
    }
    let mut truths = Vec::with_capacity(shape.len);
    for row in 0..shape.len {
        let truth = a.with(left.place(row), |a| b.with(right.place(row), |b| test(a, b)));
        truths.push(truth.flatten());
    }
    Ok(shape.cells(Arc::new(arrow_array::BooleanArray::from(truths))))
}

/// `POINT(lon, lat)` as a value.
pub(super) fn points(at: &Positions) -> Result<Cells, QueryError> {
    let rows = at.lon.rows();
    if any_null(&at.operands()) {
        return Ok(Cells::null(Type::Point, rows));
    }
    let shape = Shape::of(&at.operands(), rows);
    let (lon, lat) = (sides::<Float64Type>(&at.lon, shape)?, sides::<Float64Type>(&at.lat, shape)?);
    let nulls = somewhere(lon, lat, shape.len, nulls(&at.operands(), shape));
    if at.lon.is_constant() && at.lat.is_constant() {
        sphere::Point::new(lon.get(0), lat.get(0)).map_err(refused)?;
    }
    let values: Vec<f64> = (0..shape.len).flat_map(|row| [lon.get(row), lat.get(row)]).collect();
    Ok(shape.cells(tuples(values, 2, nulls)))
}

/// `CIRCLE(lon, lat, radius)` as a value.
pub(super) fn circles(arguments: &[Cells]) -> Result<Cells, QueryError> {
    let [lon, lat, radius] = arguments else { return Err(super::call::count(arguments.len())) };
    let operands = [lon, lat, radius];
    if any_null(&operands) {
        return Ok(Cells::null(Type::Circle, lon.rows()));
    }
    let shape = Shape::of(&operands, lon.rows());
    let [lon, lat, radius] = [
        sides::<Float64Type>(lon, shape)?,
        sides::<Float64Type>(lat, shape)?,
        sides::<Float64Type>(radius, shape)?,
    ];
    if let Side::One(radius) = radius {
        sphere::Circle::new(0.0, 0.0, radius).map_err(refused)?;
    }
    if shape.len == 1 && operands.iter().all(|one| one.is_constant()) {
        sphere::Circle::new(lon.get(0), lat.get(0), radius.get(0)).map_err(refused)?;
    }
    let given = somewhere(lon, lat, shape.len, nulls(&operands, shape));
    let fits =
        super::cells::pairs_bits(radius, radius, shape.len, |radius, _| radius.is_finite() & (radius >= 0.0));
    let nulls = NullBuffer::union(given.as_ref(), Some(&NullBuffer::new(fits)));
    let values = (0..shape.len).flat_map(|row| [lon.get(row), lat.get(row), radius.get(row)]).collect();
    Ok(shape.cells(tuples(values, 3, nulls)))
}

/// A column of points or circles.
fn tuples(values: Vec<f64>, size: i32, nulls: Option<NullBuffer>) -> ArrayRef {
    let values = Arc::new(Float64Array::from(values));
    Arc::new(FixedSizeListArray::new(item(DataType::Float64), size, values, nulls))
}

/// `POLYGON(...)` and `BOX(...)` as values: `make` gives the vertices of a row's numbers.
pub(super) fn polygons(
    arguments: &[Cells],
    make: impl Fn(&[f64]) -> Result<sphere::Polygon, sphere::Error>,
) -> Result<Cells, QueryError> {
    let operands: Vec<&Cells> = arguments.iter().collect();
    let Some(first) = operands.first() else { return Err(super::call::count(0)) };
    if any_null(&operands) {
        return Ok(Cells::null(Type::Polygon, first.rows()));
    }
    let shape = Shape::of(&operands, first.rows());
    let numbers = arguments.iter().map(|one| sides::<Float64Type>(one, shape));
    let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
    let given = nulls(&operands, shape);
    let constant = operands.iter().all(|one| one.is_constant());
    let mut out = super::shapes::PolygonBuilder::new(shape.len);
    let mut row_numbers = vec![0.0; numbers.len()];
    for row in 0..shape.len {
        if given.as_ref().is_some_and(|given| given.is_null(row)) {
            out.push(None)?;
            continue;
        }
        row_numbers.iter_mut().zip(&numbers).for_each(|(slot, side)| *slot = side.get(row));
        match make(&row_numbers) {
            Ok(polygon) => out.push(Some(polygon.coordinates()))?,
            Err(error) if constant => return Err(refused(error)),
            Err(_) => out.push(None)?,
        }
    }
    Ok(shape.cells(out.finish()))
}

/// A number from each geometry.
pub(super) fn measure(cells: &Cells, ty: Type, f: impl Fn(&Geometry) -> f64) -> Result<Cells, QueryError> {
    if cells.is_null() {
        return Ok(Cells::null(Type::Double, cells.rows()));
    }
    let shape = Shape::of(&[cells], cells.rows());
    let mut shapes = Shapes::new(cells, ty)?;
    let values = (0..shape.len).map(|row| shapes.with(row, &f)).collect::<Float64Array>();
    Ok(shape.cells(Arc::new(values)))
}

/// A position from each geometry.
pub(super) fn position(
    cells: &Cells,
    ty: Type,
    f: impl Fn(&Geometry) -> sphere::Point,
) -> Result<Cells, QueryError> {
    if cells.is_null() {
        return Ok(Cells::null(Type::Point, cells.rows()));
    }
    let shape = Shape::of(&[cells], cells.rows());
    let mut shapes = Shapes::new(cells, ty)?;
    let at: Vec<Option<sphere::Point>> = (0..shape.len).map(|row| shapes.with(row, &f)).collect();
    Ok(shape.cells(point_array(&at)))
}

/// A column of these points.
pub(super) fn point_array(at: &[Option<sphere::Point>]) -> ArrayRef {
    let nulls = NullBuffer::from_iter(at.iter().map(Option::is_some));
    let values = at.iter().flat_map(|at| at.map_or([0.0; 2], |at| [at.lon(), at.lat()])).collect();
    tuples(values, 2, Some(nulls))
}

/// A column of these circles.
pub(super) fn circle_array(circles: &[Option<sphere::Circle>]) -> ArrayRef {
    let nulls = NullBuffer::from_iter(circles.iter().map(Option::is_some));
    let numbers = |circle: &sphere::Circle| [circle.center().lon(), circle.center().lat(), circle.radius()];
    let values = circles.iter().flat_map(|circle| circle.as_ref().map_or([0.0; 3], numbers)).collect();
    tuples(values, 3, Some(nulls))
}

/// COORD1 (`place` 0) or COORD2 of points.
pub(super) fn coordinate(cells: &Cells, place: usize) -> Result<Cells, QueryError> {
    if cells.is_null() {
        return Ok(Cells::null(Type::Double, cells.rows()));
    }
    let at = Shapes::new(cells, Type::Point)?;
    let values = at.tuples::<2>().iter().map(|at| at[place]).collect();
    let nulls = cells.values().nulls().cloned();
    Ok(Shape::of(&[cells], cells.rows()).cells(primitive_array::<Float64Type>(values, nulls)))
}

/// COORDSYS: positions of this service are in one system.
pub(super) fn system(cells: &Cells) -> Result<Cells, QueryError> {
    if cells.is_null() {
        return Ok(Cells::null(Type::Text, cells.rows()));
    }
    let shape = Shape::of(&[cells], cells.rows());
    let names = (0..shape.len).map(|row| cells.values().is_valid(row).then_some("ICRS"));
    Ok(shape.cells(Arc::new(names.collect::<StringArray>())))
}

/// `REGION(text)`: the text is the value; one that is the same in all rows is read here and now.
pub(super) fn regions(cells: &Cells) -> Result<Cells, QueryError> {
    if cells.is_constant() && !cells.is_null() {
        Shapes::new(cells, Type::Region)?.constant()?;
    }
    cells.values().as_string_opt::<i32>().ok_or_else(|| mismatch(cells.values()))?;
    Ok(cells.clone())
}
