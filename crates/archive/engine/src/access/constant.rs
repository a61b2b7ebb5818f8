//! Constants without arrays: what a bound needs of a literal in nanoseconds.
//!
//! Only the shapes that conditions are written with: literals, signs, conversions and arithmetic of reals. What is
//! not among them is no constant here, and its conjunct is left to the evaluator.

use std::sync::Arc;

use trifid_archive_adql::lift;
use trifid_archive_adql::tree::{Expr, Kind, Literal, Operator, Value};
use trifid_archive_adql::types::Type;
use trifid_archive_model::time::Timestamp;

/// The value of a constant expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// NULL, with which no comparison is true.
    Null,
    /// A whole number, or microseconds of a timestamp.
    Integer(i64),
    /// A real number.
    Double(f64),
    /// A text.
    Text(Arc<str>),
}

impl Scalar {
    /// The value as a real number.
    pub fn double(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Double(value) => Some(*value),
            Self::Null | Self::Text(_) => None,
        }
    }
}

/// Whether [`scalar`] can have a value for this expression, whatever its literals are.
pub fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(_) => true,
        Kind::Negate(inner) => is_constant(inner),
        Kind::Cast(inner) => convertible(inner.ty, expr.ty) && is_constant(inner),
        Kind::Arithmetic(_, left, right) => {
            expr.ty == Type::Double && is_constant(left) && is_constant(right)
        }
        _ => false,
    }
}

fn convertible(from: Type, to: Type) -> bool {
    let number = from.is_numeric() && matches!(to, Type::Int | Type::Long | Type::Short | Type::Double);
    from == to
        || number && !(from == Type::Double && to != Type::Double)
        || from == Type::Null
        || from == Type::Text && to == Type::Timestamp
}

/// The value of a constant expression, its literals replaced by those of this run; `None` where the evaluator must
/// decide (an overflow, a text that is no timestamp).
pub fn scalar(expr: &Expr, literals: &[Value]) -> Option<Scalar> {
    match &expr.kind {
        Kind::Literal(literal) => of_value(&lift::fit(bound(literal, literals), expr.ty)?),
        Kind::Negate(inner) => match scalar(inner, literals)? {
            Scalar::Integer(value) => value.checked_neg().map(Scalar::Integer),
            Scalar::Double(value) => Some(Scalar::Double(-value)),
            Scalar::Null => Some(Scalar::Null),
            Scalar::Text(_) => None,
        },
        Kind::Cast(inner) => cast(scalar(inner, literals)?, expr.ty),
        Kind::Arithmetic(operator, left, right) => {
            let (left, right) = (scalar(left, literals)?, scalar(right, literals)?);
            if left == Scalar::Null || right == Scalar::Null {
                return Some(Scalar::Null);
            }
            Some(Scalar::Double(arithmetic(*operator, left.double()?, right.double()?)))
        }
        _ => None,
    }
}

/// The value that a literal has in this run.
pub fn bound<'a>(literal: &'a Literal, literals: &'a [Value]) -> &'a Value {
    let slot = literal.slot.and_then(|slot| literals.get(slot as usize));
    slot.unwrap_or(&literal.value)
}

fn of_value(value: &Value) -> Option<Scalar> {
    Some(match value {
        Value::Null => Scalar::Null,
        Value::Integer(value) => Scalar::Integer(*value),
        Value::Double(value) => Scalar::Double(*value),
        Value::Text(value) => Scalar::Text(Arc::clone(value)),
        Value::Boolean(_) => return None,
    })
}

fn cast(value: Scalar, to: Type) -> Option<Scalar> {
    match (value, to) {
        (Scalar::Null, _) => Some(Scalar::Null),
        (Scalar::Integer(value), Type::Double) => Some(Scalar::Double(value as f64)),
        (Scalar::Integer(value), Type::Int) => i32::try_from(value).ok().map(|v| Scalar::Integer(v.into())),
        (Scalar::Integer(value), Type::Short) => i16::try_from(value).ok().map(|v| Scalar::Integer(v.into())),
        (Scalar::Integer(value), Type::Long) => Some(Scalar::Integer(value)),
        (Scalar::Double(value), Type::Double) => Some(Scalar::Double(value)),
        (Scalar::Text(text), Type::Timestamp) => Timestamp::parse(&text).map(|t| Scalar::Integer(t.0)),
        (Scalar::Text(text), Type::Text) => Some(Scalar::Text(text)),
        _ => None,
    }
}

fn arithmetic(operator: Operator, left: f64, right: f64) -> f64 {
    match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide => left / right,
    }
}
