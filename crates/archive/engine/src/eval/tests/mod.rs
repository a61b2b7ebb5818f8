//! What expressions come to. Values of operators and functions were compared by hand with PostgreSQL 15 where
//! both define them.

mod constants;
mod functions;
mod operators;
mod properties;
mod sky;

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    StringArray, TimestampMicrosecondArray, UInt8Array,
};
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{ColumnRef, Comparison, Expr, Kind, Literal, Operator, Value};
use trifid_archive_adql::types::Type;
use trifid_archive_model::batch::physical;

use super::{Cells, Context, Input, evaluate};
use crate::error::QueryError;

/// Columns of one relation.
pub(super) struct Columns(pub(super) Vec<ArrayRef>);

impl Input for Columns {
    fn rows(&self) -> usize {
        self.0.first().map_or(1, |column| column.len())
    }

    fn column(&self, at: ColumnRef) -> Result<Cells, QueryError> {
        Ok(Cells::Array(self.0[at.column as usize].clone()))
    }
}

pub(super) fn column(place: u32, ty: Type) -> Expr {
    Expr::column(ColumnRef { depth: 0, relation: 0, column: place }, ty)
}

pub(super) fn literal(value: Value, ty: Type) -> Expr {
    Expr { kind: Kind::Literal(Literal { value, slot: None }), ty }
}

pub(super) fn whole(number: i64, ty: Type) -> Expr {
    literal(Value::Integer(number), ty)
}

pub(super) fn real(number: f64) -> Expr {
    literal(Value::Double(number), Type::Double)
}

pub(super) fn text(text: &str) -> Expr {
    literal(Value::Text(text.into()), Type::Text)
}

pub(super) fn null(ty: Type) -> Expr {
    literal(Value::Null, ty)
}

pub(super) fn truth(truth: bool) -> Expr {
    literal(Value::Boolean(truth), Type::Boolean)
}

pub(super) fn boolean(kind: Kind) -> Expr {
    Expr { kind, ty: Type::Boolean }
}

pub(super) fn arithmetic(operator: Operator, left: Expr, right: Expr) -> Expr {
    let ty = left.ty;
    Expr { kind: Kind::Arithmetic(operator, Box::new(left), Box::new(right)), ty }
}

pub(super) fn compare(comparison: Comparison, left: Expr, right: Expr) -> Expr {
    boolean(Kind::Compare(comparison, Box::new(left), Box::new(right)))
}

pub(super) fn not(operand: Expr) -> Expr {
    boolean(Kind::Not(Box::new(operand)))
}

pub(super) fn cast(operand: Expr, ty: Type) -> Expr {
    Expr { kind: Kind::Cast(Box::new(operand)), ty }
}

pub(super) fn call(function: Function, arguments: Vec<Expr>, ty: Type) -> Expr {
    Expr { kind: Kind::Call(function, arguments), ty }
}

pub(super) fn bytes(values: &[Option<u8>]) -> ArrayRef {
    Arc::new(UInt8Array::from(values.to_vec()))
}

pub(super) fn shorts(values: &[Option<i16>]) -> ArrayRef {
    Arc::new(Int16Array::from(values.to_vec()))
}

pub(super) fn ints(values: &[Option<i32>]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

pub(super) fn longs(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

pub(super) fn floats(values: &[Option<f32>]) -> ArrayRef {
    Arc::new(Float32Array::from(values.to_vec()))
}

pub(super) fn doubles(values: &[Option<f64>]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

pub(super) fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

pub(super) fn truths(values: &[Option<bool>]) -> ArrayRef {
    Arc::new(BooleanArray::from(values.to_vec()))
}

pub(super) fn instants(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(values.to_vec()))
}

/// The value of an expression over columns.
pub(super) fn run(expr: &Expr, columns: &[ArrayRef]) -> Result<ArrayRef, QueryError> {
    let found = evaluate(expr, &Columns(columns.to_vec()), &Context::default())?;
    assert_eq!(found.data_type(), &physical(expr.ty), "{expr:?}");
    Ok(found)
}

/// The same with one NaN: its sign means nothing and differs between machines.
pub(super) fn canonical(array: &ArrayRef) -> ArrayRef {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::Float64Type;
    let one = |value: f64| if value.is_nan() { f64::NAN } else { value };
    match array.as_primitive_opt::<Float64Type>() {
        Some(reals) => Arc::new(reals.unary::<_, Float64Type>(one)),
        None => array.clone(),
    }
}

/// Checks an expression over columns; each row alone gives the same.
#[track_caller]
pub(super) fn check(expr: &Expr, columns: &[ArrayRef], expected: &ArrayRef) {
    let found = run(expr, columns).unwrap();
    assert_eq!(&canonical(&found), &canonical(expected));
    for row in 0..found.len() {
        let single: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
        let single = run(expr, &single).unwrap();
        assert_eq!(&canonical(&single), &canonical(&found.slice(row, 1)), "row {row} alone");
    }
}

/// Checks an expression without columns.
#[track_caller]
pub(super) fn check_one(expr: &Expr, expected: &ArrayRef) {
    assert_eq!(&canonical(&run(expr, &[]).unwrap()), &canonical(expected));
}

/// What is wrong with an expression.
#[track_caller]
pub(super) fn refused(expr: &Expr, columns: &[ArrayRef]) -> String {
    match run(expr, columns) {
        Ok(found) => panic!("{found:?}"),
        Err(error @ QueryError::Invalid(_)) => error.to_string(),
        Err(error) => panic!("{error:?}"),
    }
}
