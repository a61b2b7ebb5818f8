//! Some of the rows of an input, as an input of their own.

use std::cell::RefCell;

use arrow_array::{Array as _, ArrayRef, BooleanArray, UInt32Array, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_select::filter::{FilterBuilder, FilterPredicate};
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::lift::any;
use trifid_archive_adql::tree::{ColumnRef, Expr, Kind};
use trifid_archive_adql::types::Type;
use trifid_archive_model::batch::physical;

use super::cells::{Cells, repeated};
use super::{Input, Subquery};
use crate::error::QueryError;

/// Chosen rows.
pub(super) struct Rows {
    mask: BooleanBuffer,
    places: Vec<u32>,
    predicate: FilterPredicate,
}

impl Rows {
    /// Those whose bit is set.
    pub(super) fn new(mask: BooleanBuffer) -> Self {
        let places = mask.set_indices_u32().collect();
        let predicate = FilterBuilder::new(&BooleanArray::new(mask.clone(), None)).optimize().build();
        Self { mask, places, predicate }
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Their numbers among all rows.
    pub(super) fn places(&self) -> &[u32] {
        &self.places
    }

    /// The values of these rows.
    pub(super) fn pick(&self, cells: Cells) -> Result<Cells, QueryError> {
        match cells {
            Cells::Constant(array, _) => Ok(Cells::Constant(array, self.len())),
            Cells::Array(array) => {
                Ok(Cells::Array(self.predicate.filter(&array).map_err(QueryError::internal)?))
            }
        }
    }

    /// Values of these rows put back among all `len`; NULL in the others.
    pub(super) fn scatter(&self, cells: &Cells, ty: Type, len: usize) -> Result<Cells, QueryError> {
        if self.places.is_empty() || cells.is_null() {
            return Ok(Cells::Array(new_null_array(&physical(ty), len)));
        }
        if cells.is_constant() {
            repeated(cells.values(), self.places.len())?;
        }
        let mut sources = vec![0u32; len];
        for (source, place) in self.places.iter().enumerate() {
            sources[*place as usize] = cells.place(source) as u32;
        }
        let nulls = NullBuffer::new(self.mask.clone());
        let sources = UInt32Array::new(ScalarBuffer::from(sources), Some(nulls));
        let spread = arrow_select::take::take(cells.values(), &sources, None);
        Ok(Cells::Array(spread.map_err(QueryError::internal)?))
    }
}

/// An input that has only the chosen rows of another. A column is picked when it is first asked for.
pub(super) struct Part<'a> {
    inner: &'a dyn Input,
    rows: &'a Rows,
    columns: RefCell<Vec<(ColumnRef, Cells)>>,
}

impl<'a> Part<'a> {
    pub(super) fn new(inner: &'a dyn Input, rows: &'a Rows) -> Self {
        Self { inner, rows, columns: RefCell::default() }
    }

    fn picked(&self, cells: Cells) -> Result<Cells, QueryError> {
        self.rows.pick(cells)
    }
}

impl Input for Part<'_> {
    fn rows(&self) -> usize {
        self.rows.len()
    }

    fn column(&self, at: ColumnRef) -> Result<Cells, QueryError> {
        if let Some((_, cells)) = self.columns.borrow().iter().find(|(known, _)| *known == at) {
            return Ok(cells.clone());
        }
        let cells = self.picked(self.inner.column(at)?)?;
        self.columns.borrow_mut().push((at, cells.clone()));
        Ok(cells)
    }

    fn key(&self, index: usize) -> Result<Cells, QueryError> {
        self.picked(self.inner.key(index)?)
    }

    fn aggregate(&self, index: usize) -> Result<Cells, QueryError> {
        self.picked(self.inner.aggregate(index)?)
    }

    fn subquery(&self, ask: &Subquery<'_>, rows: Option<&[u32]>) -> Result<Cells, QueryError> {
        let places = self.rows.places();
        match rows {
            None => self.inner.subquery(ask, Some(places)),
            Some(rows) => {
                let rows: Vec<u32> = rows.iter().map(|row| places[*row as usize]).collect();
                self.inner.subquery(ask, Some(&rows))
            }
        }
    }

    fn row(&self, place: usize) -> u64 {
        self.inner.row(self.rows.places()[place] as usize)
    }
}

/// Whether an expression cannot fail and is so cheap that computing it for all rows beats picking some of them.
pub(super) fn is_plain(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Column(_) | Kind::Literal(_) | Kind::Key(_) | Kind::Aggregate(_) => true,
        Kind::Arithmetic(_, left, right) => {
            matches!(expr.ty, Type::Float | Type::Double) && is_plain(left) && is_plain(right)
        }
        Kind::Compare(_, left, right) => is_plain(left) && is_plain(right),
        Kind::Between(value, low, high) => is_plain(value) && is_plain(low) && is_plain(high),
        Kind::InList(value, list) => is_plain(value) && list.iter().all(is_plain),
        Kind::And(operands) | Kind::Or(operands) => operands.iter().all(is_plain),
        Kind::Not(operand) | Kind::IsNull(operand) => is_plain(operand),
        Kind::Cast(operand) => is_widening(operand.ty, expr.ty) && is_plain(operand),
        Kind::Negate(operand) => matches!(expr.ty, Type::Float | Type::Double) && is_plain(operand),
        Kind::Concat(_)
        | Kind::InQuery(..)
        | Kind::Exists(_)
        | Kind::Scalar(_)
        | Kind::Like { .. }
        | Kind::Case { .. }
        | Kind::Call(..) => false,
    }
}

/// Whether an expression cannot fail because of what is in a row.
pub(super) fn is_safe(expr: &Expr) -> bool {
    !any(expr, &mut |node| match &node.kind {
        Kind::Arithmetic(..) | Kind::Negate(_) => !matches!(node.ty, Type::Float | Type::Double),
        Kind::Cast(operand) => !is_widening(operand.ty, node.ty),
        Kind::InQuery(..) | Kind::Exists(_) | Kind::Scalar(_) | Kind::Concat(_) => true,
        Kind::Call(function, _) => !is_total(*function),
        Kind::Column(_)
        | Kind::Literal(_)
        | Kind::Key(_)
        | Kind::Aggregate(_)
        | Kind::Compare(..)
        | Kind::And(_)
        | Kind::Or(_)
        | Kind::Not(_)
        | Kind::IsNull(_)
        | Kind::Between(..)
        | Kind::InList(..)
        | Kind::Like { .. }
        | Kind::Case { .. } => false,
    })
}

/// Whether a function has a value, or NULL, whatever its arguments; what it refuses as constants aside.
const fn is_total(function: Function) -> bool {
    matches!(
        function,
        Function::Contains
            | Function::Intersects
            | Function::Distance
            | Function::Point
            | Function::Circle
            | Function::Coord1
            | Function::Coord2
            | Function::HealpixIndex
            | Function::Ceiling
            | Function::Floor
            | Function::Round
            | Function::Truncate
            | Function::Log
            | Function::Log10
            | Function::Sqrt
            | Function::Power
            | Function::Coalesce
            | Function::NullIf
            | Function::Greatest
            | Function::Least
    )
}

/// Whether a conversion between numbers always succeeds.
fn is_widening(from: Type, to: Type) -> bool {
    let rank = |ty| match ty {
        Type::UnsignedByte => Some(0),
        Type::Short => Some(1),
        Type::Int => Some(2),
        Type::Long => Some(3),
        Type::Float => Some(4),
        Type::Double => Some(5),
        _ => None,
    };
    matches!((rank(from), rank(to)), (Some(from), Some(to)) if from <= to || to >= 4)
}

/// NULL arrays and arrays of one value, for results that nothing has to be computed for.
pub(super) fn null_array(ty: Type) -> ArrayRef {
    let array = new_null_array(&physical(ty), 1);
    debug_assert_eq!(array.len(), 1);
    array
}
