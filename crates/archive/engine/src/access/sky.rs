//! Rows around a place.
//!
//! A cone is met with few cells first: the nine around its centre are found in a tenth of the time that close ones
//! take, and the rows that a small cone has in them are looked at sooner than finer cells would spare them. Only where
//! they turn out to be many the cone is covered closely. The rows of few cells are then looked at where they lie,
//! without the evaluator: what a circle in CONTAINS asks is decided by that, and of a distance that is compared
//! hardly a row in vain is left to be measured.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use arrow_array::{Array as _, ArrayRef};
use trifid_archive_model::healpix;
use trifid_archive_model::sphere::{Cap, Circle, Geometry, Vec3};

use super::condition::{Bound, COVER_CELLS, Cone};
use super::selection::{Run, Selected, Selection, count, runs};
use crate::error::QueryError;
use crate::limits::SMALL_RUN_ROWS;
use crate::table::{Row, Table};

/// Rows in the cells around a cone that cost less to be looked at than closer cells to be found.
const COARSE_ROWS: usize = 256;

/// Degrees that are more than what any test of a position is off by: rows so far beyond a distance are left to the
/// evaluator.
const SLACK: f64 = 1e-9;

/// The runs of rows that may be in a circle; `None` if a column would have to be read for it and may not be.
pub(super) fn around(
    table: &Table,
    bounds: &[Option<Bound>],
    circle: Circle,
    may_read: bool,
) -> Result<Option<Vec<Run>>, QueryError> {
    if let Some(cells) = healpix::cover_around(&circle) {
        match runs(table, bounds, Some(&cells), may_read)? {
            Some(many) if count(&many) > COARSE_ROWS => {}
            few => return Ok(few),
        }
    }
    let cells = healpix::cover_geometry(&Geometry::Circle(circle), COVER_CELLS);
    runs(table, bounds, Some(&cells), may_read)
}

/// The selection without the rows that are not in the cone that is asked for, if there is one and looking at them is
/// a small effort.
pub(super) fn sifted(
    selected: Selected,
    table: &Table,
    bounds: &[Option<Bound>],
    may_read: bool,
) -> Result<Selected, QueryError> {
    let cone = bounds.iter().enumerate().find_map(|(at, bound)| match bound {
        Some(Bound::Cone(cone)) => Some((at, cone)),
        _ => None,
    });
    match (cone, &selected.selection) {
        (Some((at, cone)), Selection::Runs(runs)) if count(runs) <= SMALL_RUN_ROWS => {
            let Some(rows) = within(table, runs, cone, may_read)? else { return Ok(selected) };
            Ok(Selected { selection: Selection::Rows(rows), decided: cone.exact.then_some(at) })
        }
        _ => Ok(selected),
    }
}

/// The rows of some runs that are in a cone, or perhaps, if it is a distance; `None` if their positions are not at hand
/// as they are stored.
fn within(table: &Table, runs: &[Run], cone: &Cone, may_read: bool) -> Result<Option<Vec<Row>>, QueryError> {
    let (Some(position), Some(near)) = (table.head.position, Near::new(cone)) else { return Ok(None) };
    let column = |chunk: usize, column: usize| -> Result<Option<ArrayRef>, QueryError> {
        if may_read { table.column(chunk, column).map(Some) } else { Ok(table.resident(chunk, column)) }
    };
    let mut rows = Vec::new();
    for runs in runs.chunk_by(|one, next| one.chunk == next.chunk) {
        let chunk = runs[0].chunk;
        let (Some(lon), Some(lat)) = (column(chunk, position.lon)?, column(chunk, position.lat)?) else {
            return Ok(None);
        };
        let reals = (lon.as_primitive_opt::<Float64Type>(), lat.as_primitive_opt::<Float64Type>());
        let (Some(lon), Some(lat)) = reals else { return Ok(None) };
        let is_in = |row: &u32| {
            let at = *row as usize;
            near.has(lon.value(at), lat.value(at)) && lon.is_valid(at) && lat.is_valid(at)
        };
        let first = table.chunks[chunk].first;
        rows.extend(runs.iter().flat_map(|run| run.rows.clone()).filter(is_in).map(|row| first + row));
    }
    Ok(Some(rows))
}

/// What positions are tested with: first their latitude, which spares most of them their sines.
struct Near {
    cap: Cap,
    latitude: f64,
    /// How far from that latitude positions of the cap can be.
    aside: f64,
}

impl Near {
    fn new(cone: &Cone) -> Option<Self> {
        let (center, radius) = (cone.circle.center(), cone.circle.radius());
        let aside = radius + SLACK;
        let circle = match cone.exact {
            true => cone.circle,
            false => Circle::new(center.lon(), center.lat(), aside).ok()?,
        };
        Some(Self { cap: circle.cap(), latitude: center.lat(), aside: aside + SLACK })
    }

    /// NaN is nowhere.
    #[inline]
    fn has(&self, lon: f64, lat: f64) -> bool {
        (lat - self.latitude).abs() <= self.aside && self.cap.contains(Vec3::from_degrees(lon, lat))
    }
}
