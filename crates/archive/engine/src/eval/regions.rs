//! Geometries as text and from text, and in other frames.
//!
//! The text of a geometry is DALI's (DALI 1.2 3.8 to 3.13); STC-S is read too. A text that is no geometry is an
//! error where somebody casts it: unlike in a stored column, it was meant to be one.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array as _, ArrayRef, StringArray};
use trifid_archive_adql::tree::Expr;
use trifid_archive_adql::types::Type;
use trifid_archive_model::astro::{Frame, Transform};
use trifid_archive_model::dali;
use trifid_archive_model::sphere::{Circle, Geometry, Region, Shape as Figure};

use super::cells::{Cells, Shape, bounded, texts};
use super::constant::refused;
use super::geometry::{circle_array, point_array};
use super::node::{Evaluator, child};
use super::shapes::{PolygonBuilder, Shapes};
use crate::error::QueryError;

/// Texts as geometries.
pub(super) fn from_text(operand: &Cells, to: Type) -> Result<Cells, QueryError> {
    let array = texts(operand)?;
    let read = |text: &str| -> Result<Geometry, QueryError> {
        match to {
            Type::Point => dali::point(text).map(Geometry::Point),
            Type::Circle => dali::circle(text).map(Geometry::Circle),
            Type::Polygon => dali::polygon(text).map(Geometry::Polygon),
            _ => dali::region(text).map(Geometry::Region),
        }
        .map_err(|error| QueryError::invalid(format!("{}: {error}", super::cast::unreadable(text, to))))
    };
    let shapes = array.iter().map(|text| text.map(read).transpose()).collect::<Result<Vec<_>, _>>()?;
    let shape = Shape::of(&[operand], operand.rows());
    if to == Type::Region {
        // Read, to be sure; kept as it was written.
        return Ok(shape.cells(operand.values().clone()));
    }
    Ok(shape.cells(column(&shapes, to)?))
}

/// Geometries as texts.
pub(super) fn to_text(operand: &Cells, from: Type) -> Result<Cells, QueryError> {
    if from == Type::Region {
        return Ok(operand.clone());
    }
    written(operand, from, |geometry, out| match geometry {
        Geometry::Point(point) => dali::write_point(point, out),
        Geometry::Circle(circle) => dali::write_circle(circle, out),
        Geometry::Polygon(polygon) => dali::write_polygon(polygon, out),
        Geometry::Region(region) => dali::write_region(region, out),
    })
}

/// Circles, polygons and points (circles of radius 0) as regions.
pub(super) fn to_region(operand: &Cells, from: Type) -> Result<Cells, QueryError> {
    written(operand, from, |geometry, out| {
        if let Some(region) = region_of(geometry) {
            dali::write_region(&region, out);
        }
    })
}

fn region_of(geometry: &Geometry) -> Option<Region> {
    Some(match geometry {
        Geometry::Point(point) => {
            let circle = Circle::new(point.lon(), point.lat(), 0.0).ok()?;
            Figure::Circle(circle).into()
        }
        Geometry::Circle(circle) => Figure::Circle(*circle).into(),
        Geometry::Polygon(polygon) => Figure::Polygon(polygon.clone()).into(),
        Geometry::Region(region) => region.clone(),
    })
}

fn written(
    operand: &Cells,
    from: Type,
    write: impl Fn(&Geometry, &mut Vec<u8>),
) -> Result<Cells, QueryError> {
    let shape = Shape::of(&[operand], operand.rows());
    let mut shapes = Shapes::new(operand, from)?;
    let mut text = Vec::new();
    let mut texts = StringBuilder::new();
    for row in 0..shape.len {
        text.clear();
        let valid = shapes.with(row, |geometry| write(geometry, &mut text)).is_some();
        // Words and numbers: always a text.
        texts.append_option(valid.then(|| std::str::from_utf8(&text).unwrap_or_default()));
        bounded(texts.values_slice().len())?;
    }
    Ok(shape.cells(Arc::new(texts.finish())))
}

/// `ivo_geom_transform(from, to, geometry)`.
pub(super) fn transformed(
    evaluator: &Evaluator<'_>,
    arguments: &[Expr],
    path: u64,
) -> Result<Cells, QueryError> {
    let [from, to, geometry] = arguments else { return Err(super::call::count(arguments.len())) };
    let rows = evaluator.rows();
    let (from, to) = (frame(evaluator, from, child(path, 0))?, frame(evaluator, to, child(path, 1))?);
    let cells = evaluator.cells(geometry, child(path, 2))?;
    let (Some(from), Some(to)) = (from, to) else { return Ok(Cells::null(geometry.ty, rows)) };
    if cells.is_null() || from == to {
        return Ok(cells);
    }
    let shape = Shape::of(&[&cells], rows);
    let transform = Transform::new(from, to);
    let mut shapes = Shapes::new(&cells, geometry.ty)?;
    if cells.is_constant() {
        transform.geometry(&shapes.constant()?).map_err(refused)?;
    }
    let turn = |row| shapes.with(row, |one| transform.geometry(one).ok()).flatten();
    let turned: Vec<Option<Geometry>> = (0..shape.len).map(turn).collect();
    Ok(shape.cells(column(&turned, geometry.ty)?))
}

/// A frame, by its name; `None` for NULL.
fn frame(evaluator: &Evaluator<'_>, name: &Expr, path: u64) -> Result<Option<Frame>, QueryError> {
    let cells = evaluator.cells(name, path)?;
    if cells.is_null() || cells.rows() == 0 {
        return Ok(None);
    }
    let name = texts(&cells)?;
    let name = name.is_valid(0).then(|| name.value(0));
    name.map(|name| {
        Frame::parse(name).ok_or_else(|| QueryError::invalid(format!("no frame is called '{name}'")))
    })
    .transpose()
}

/// A column of geometries of one type.
fn column(shapes: &[Option<Geometry>], ty: Type) -> Result<ArrayRef, QueryError> {
    Ok(match ty {
        Type::Point => {
            let points = shapes.iter().map(|one| match one {
                Some(Geometry::Point(point)) => Some(*point),
                _ => None,
            });
            point_array(&points.collect::<Vec<_>>())
        }
        Type::Circle => {
            let circles = shapes.iter().map(|one| match one {
                Some(Geometry::Circle(circle)) => Some(*circle),
                _ => None,
            });
            circle_array(&circles.collect::<Vec<_>>())
        }
        Type::Polygon => {
            let mut polygons = PolygonBuilder::new(shapes.len());
            for one in shapes {
                polygons.push(match one {
                    Some(Geometry::Polygon(polygon)) => Some(polygon.coordinates()),
                    _ => None,
                })?;
            }
            polygons.finish()
        }
        _ => {
            let mut text = Vec::new();
            let texts = shapes.iter().map(|one| {
                let region = one.as_ref().and_then(region_of)?;
                text.clear();
                dali::write_region(&region, &mut text);
                String::from_utf8(text.clone()).ok()
            });
            Arc::new(texts.collect::<StringArray>())
        }
    })
}
