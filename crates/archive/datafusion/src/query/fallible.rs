//! Which expressions can fail in a row.
//!
//! An expression that cannot may be computed for rows that do not matter: below a join, before another condition. One
//! that can must wait until everything else has decided ([`trifid_archive_engine::eval`] says what does no harm), or
//! be computed leniently. Saying "can" of what cannot costs time only.

use trifid_archive_adql::functions::Function;
use trifid_archive_adql::lift::{any, is_constant};
use trifid_archive_adql::tree::{Expr, Kind};
use trifid_archive_adql::types::Type;

/// Whether computing the expression may give an error for some row.
pub(crate) fn is_fallible(expr: &Expr) -> bool {
    any(expr, &mut |one| match &one.kind {
        Kind::Arithmetic(..) | Kind::Negate(_) => one.ty.is_integer(),
        Kind::Cast(inner) => !is_total(inner.ty, one.ty),
        Kind::Call(function, arguments) => may_refuse(*function, arguments),
        _ => false,
    })
}

/// Whether every value of the one type is a value of the other.
fn is_total(from: Type, to: Type) -> bool {
    match (from, to) {
        (Type::Null, _) => true,
        (from, to) if from == to => true,
        (from, Type::Float | Type::Double) => from.is_numeric() || from == Type::Boolean,
        (from, Type::Text) => {
            from.is_numeric() || matches!(from, Type::Boolean | Type::Bit | Type::Timestamp)
        }
        (Type::Boolean | Type::Bit, to) => to.is_integer(),
        (Type::UnsignedByte, Type::Short | Type::Int | Type::Long) => true,
        (Type::Short, Type::Int | Type::Long) => true,
        (Type::Int, Type::Long) => true,
        _ => false,
    }
}

fn may_refuse(function: Function, arguments: &[Expr]) -> bool {
    match function {
        Function::Abs | Function::Mod => arguments.iter().any(|one| one.ty.is_integer()),
        // What is wrong with a constant is wrong in every row.
        Function::Circle | Function::Box | Function::Polygon | Function::Region => {
            !arguments.iter().all(is_constant)
        }
        Function::HealpixIndex
        | Function::HealpixCenter
        | Function::GaiaHealpixIndex
        | Function::EpochPropagate
        | Function::EpochPropagatePosition
        | Function::GeometryTransform
        | Function::Match => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use trifid_archive_adql::tree::{ColumnRef, Literal, Operator, Value};

    use super::*;

    fn column(ty: Type) -> Expr {
        Expr { kind: Kind::Column(ColumnRef { depth: 0, relation: 0, column: 0 }), ty }
    }

    fn literal(value: f64) -> Expr {
        let literal = Literal { value: Value::Double(value), slot: None };
        Expr { kind: Kind::Literal(literal), ty: Type::Double }
    }

    fn plus(ty: Type) -> Expr {
        let kind = Kind::Arithmetic(Operator::Add, Box::new(column(ty)), Box::new(column(ty)));
        Expr { kind, ty }
    }

    fn call(function: Function, arguments: Vec<Expr>, ty: Type) -> Expr {
        Expr { kind: Kind::Call(function, arguments), ty }
    }

    #[test]
    fn whole_numbers_overflow_and_reals_do_not() {
        assert!(is_fallible(&plus(Type::Int)));
        assert!(!is_fallible(&plus(Type::Double)));
        let abs = |ty| call(Function::Abs, vec![column(ty)], ty);
        assert!(is_fallible(&abs(Type::Long)));
        assert!(!is_fallible(&abs(Type::Double)));
    }

    #[test]
    fn conversions_fail_where_they_narrow() {
        let cast = |from, to| Expr { kind: Kind::Cast(Box::new(column(from))), ty: to };
        assert!(is_fallible(&cast(Type::Text, Type::Int)));
        assert!(is_fallible(&cast(Type::Double, Type::Int)));
        assert!(!is_fallible(&cast(Type::Int, Type::Double)));
        assert!(!is_fallible(&cast(Type::Short, Type::Long)));
    }

    #[test]
    fn a_constant_circle_is_no_matter_of_rows() {
        let circle = |lon| call(Function::Circle, vec![lon, literal(0.0), literal(1.0)], Type::Circle);
        assert!(!is_fallible(&circle(literal(3.0))));
        assert!(is_fallible(&circle(column(Type::Double))));
    }
}
