//! Columns of geometries, row by row.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, ArrayRef, Float64Array, ListArray, StringArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;
use std::sync::Arc;
use trifid_archive_adql::types::Type;
use trifid_archive_model::batch::item;
use trifid_archive_model::dali;
use trifid_archive_model::sphere::{self, Geometry};

use super::cells::{Cells, bounded, mismatch};
use super::constant::refused;
use crate::error::QueryError;

/// The geometries of a column. What is costly to read from its stored form stays until the next row has another.
pub(super) struct Shapes<'a> {
    array: &'a ArrayRef,
    stored: Stored<'a>,
    /// The place that was read last, and what stood there.
    last: Option<(usize, Result<Geometry, sphere::Error>)>,
}

enum Stored<'a> {
    Points(&'a [f64]),
    Circles(&'a [f64]),
    Polygons(&'a [i32], &'a [f64]),
    Regions(&'a StringArray),
}

impl<'a> Shapes<'a> {
    /// Those of a column of a geometric type.
    pub(super) fn new(cells: &'a Cells, ty: Type) -> Result<Self, QueryError> {
        let array = cells.values();
        let stored = Stored::of(array, ty).ok_or_else(|| mismatch(array))?;
        Ok(Self { array, stored, last: None })
    }

    /// The numbers of a column of tuples.
    pub(super) fn tuples<const N: usize>(&self) -> &'a [[f64; N]] {
        match self.stored {
            Stored::Points(values) | Stored::Circles(values) => values.as_chunks::<N>().0,
            Stored::Polygons(..) | Stored::Regions(_) => &[],
        }
    }

    /// The geometry at the only place.
    pub(super) fn constant(&self) -> Result<Geometry, QueryError> {
        self.stored.read(0).map_err(refused)
    }

    /// `f` of the geometry at a place, unless it is NULL or none.
    pub(super) fn with<R>(&mut self, place: usize, f: impl FnOnce(&Geometry) -> R) -> Option<R> {
        if self.array.is_null(place) {
            return None;
        }
        let known = self.last.as_ref().is_some_and(|(last, _)| self.stored.same(*last, place));
        if !known {
            self.last = Some((place, self.stored.read(place)));
        }
        let (_, geometry) = self.last.as_ref()?;
        geometry.as_ref().ok().map(f)
    }
}

impl<'a> Stored<'a> {
    fn of(array: &'a ArrayRef, ty: Type) -> Option<Self> {
        let tuples = |size| {
            let list = array.as_fixed_size_list_opt()?;
            let values = list.values().as_primitive_opt::<Float64Type>()?.values();
            (list.value_length() == size).then_some(&values[..])
        };
        match ty {
            Type::Point => tuples(2).map(Self::Points),
            Type::Circle => tuples(3).map(Self::Circles),
            Type::Polygon => {
                let list = array.as_list_opt::<i32>()?;
                let values = list.values().as_primitive_opt::<Float64Type>()?.values();
                Some(Self::Polygons(list.value_offsets(), values))
            }
            Type::Region => array.as_string_opt::<i32>().map(Self::Regions),
            _ => None,
        }
    }

    fn vertices(offsets: &[i32], values: &'a [f64], place: usize) -> &'a [f64] {
        &values[offsets[place] as usize..offsets[place + 1] as usize]
    }

    /// Whether the same is stored at both places.
    fn same(&self, a: usize, b: usize) -> bool {
        a == b
            || match self {
                Self::Points(_) | Self::Circles(_) => false,
                Self::Polygons(offsets, values) => {
                    Self::vertices(offsets, values, a) == Self::vertices(offsets, values, b)
                }
                Self::Regions(texts) => texts.value(a) == texts.value(b),
            }
    }

    fn read(&self, place: usize) -> Result<Geometry, sphere::Error> {
        match self {
            Self::Points(values) => {
                let at = &values[2 * place..];
                sphere::Point::new(at[0], at[1]).map(Geometry::Point)
            }
            Self::Circles(values) => {
                let at = &values[3 * place..];
                sphere::Circle::new(at[0], at[1], at[2]).map(Geometry::Circle)
            }
            Self::Polygons(offsets, values) => {
                sphere::Polygon::new(Self::vertices(offsets, values, place)).map(Geometry::Polygon)
            }
            Self::Regions(texts) => dali::region(texts.value(place)).map(Geometry::Region),
        }
    }
}

/// Makes a column of polygons.
pub(super) struct PolygonBuilder {
    offsets: Vec<i32>,
    values: Vec<f64>,
    valid: BooleanBufferBuilder,
}

impl PolygonBuilder {
    pub(super) fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { offsets, values: Vec::new(), valid: BooleanBufferBuilder::new(rows) }
    }

    /// The next polygon's vertices, or NULL.
    pub(super) fn push(&mut self, coordinates: Option<&[f64]>) -> Result<(), QueryError> {
        self.valid.append(coordinates.is_some());
        self.values.extend_from_slice(coordinates.unwrap_or_default());
        bounded(self.values.len() * size_of::<f64>())?;
        self.offsets.push(self.values.len() as i32);
        Ok(())
    }

    pub(super) fn finish(mut self) -> ArrayRef {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let nulls = NullBuffer::new(self.valid.finish());
        let values = Arc::new(Float64Array::from(self.values));
        Arc::new(ListArray::new(item(DataType::Float64), offsets, values, Some(nulls)))
    }
}
