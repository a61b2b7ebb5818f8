use proptest::prelude::*;
use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{Expr, Kind, Operator};
use trifid_archive_adql::types::Type;

use super::*;
use crate::eval::{Constant, constant, is_constant, one};

fn value(expr: &Expr) -> Result<Option<Constant>, String> {
    constant(expr).map_err(|error| error.to_string())
}

#[test]
fn shapes() {
    let point = call(Function::Point, vec![real(10.0), real(-20.0)], Type::Point);
    assert_eq!(value(&point), Ok(Some(Constant::Point([10.0, -20.0]))));
    let circle = call(Function::Circle, vec![real(1.0), real(2.0), real(0.5)], Type::Circle);
    assert_eq!(value(&circle), Ok(Some(Constant::Circle([1.0, 2.0, 0.5]))));
    let beyond = call(Function::Point, vec![real(0.0), real(90.5)], Type::Point);
    assert_eq!(value(&beyond), Err("the latitude 90.5 is not between -90 and 90 degrees".to_owned()));
    let negative = call(Function::Circle, vec![real(1.0), real(2.0), real(-1.0)], Type::Circle);
    assert_eq!(value(&negative), Err("the radius -1 is negative".to_owned()));
    let nowhere = call(Function::Point, vec![null(Type::Double), real(0.0)], Type::Point);
    assert_eq!(value(&nowhere), Ok(Some(Constant::Null)));
    let numbers = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
    let polygon = call(Function::Polygon, numbers.iter().map(|n| real(*n)).collect(), Type::Polygon);
    assert_eq!(value(&polygon), Ok(Some(Constant::Polygon(Arc::from(numbers)))));
}

#[test]
fn others() {
    assert_eq!(value(&column(0, Type::Int)), Ok(None));
    assert_eq!(value(&call(Function::Rand, vec![], Type::Double)), Ok(None));
    assert!(!is_constant(&call(Function::Abs, vec![column(0, Type::Int)], Type::Int)));
    assert_eq!(value(&text("a")), Ok(Some(Constant::Text("a".into()))));
    let joined = Expr { kind: Kind::Concat(vec![text("a"), text("b")]), ty: Type::Text };
    assert_eq!(value(&joined), Ok(Some(Constant::Text("ab".into()))));
    assert_eq!(value(&cast(text("7"), Type::Int)), Ok(Some(Constant::Integer(7))));
    assert_eq!(value(&null(Type::Text)), Ok(Some(Constant::Null)));
    assert_eq!(value(&call(Function::Sqrt, vec![real(4.0)], Type::Double)), Ok(Some(Constant::Double(2.0))));
    let zero = arithmetic(Operator::Divide, whole(1, Type::Int), whole(0, Type::Int));
    assert_eq!(value(&zero), Err("division by zero in 1 / 0".to_owned()));
}

/// Expressions of numbers and their operators.
fn numeric() -> impl Strategy<Value = Expr> {
    let types = prop::sample::select(vec![Type::Short, Type::Int, Type::Long, Type::Float, Type::Double]);
    types.prop_flat_map(|ty| {
        let leaf = any::<i16>().prop_map(move |number| match ty {
            Type::Double => real(f64::from(number) / 16.0),
            Type::Float => literal(Value::Double(f64::from(number) / 16.0), ty),
            _ => whole(i64::from(number), ty),
        });
        let null = Just(null(ty));
        prop_oneof![9 => leaf, 1 => null].prop_recursive(4, 16, 2, move |inner| {
            let operators = [Operator::Add, Operator::Subtract, Operator::Multiply, Operator::Divide];
            let binary = (prop::sample::select(operators.to_vec()), inner.clone(), inner.clone())
                .prop_map(|(operator, left, right)| arithmetic(operator, left, right));
            let minus = inner.clone().prop_map(move |one| Expr { kind: Kind::Negate(Box::new(one)), ty });
            let back = inner.prop_map(move |one| cast(cast(one, Type::Double), ty));
            prop_oneof![4 => binary, 1 => minus, 1 => back]
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The short way and the long way come to the same, errors included.
    #[test]
    fn both_ways_agree(expr in numeric()) {
        let short = value(&expr);
        let long = run(&expr, &[]).map_err(|error| error.to_string());
        match (short, long) {
            (Ok(Some(short)), Ok(long)) => prop_assert_eq!(&one(&short, expr.ty).unwrap(), &long),
            // Of several things that are wrong each may name another.
            (Err(_), Err(_)) => {}
            (short, long) => prop_assert!(false, "{:?} but {:?}", short, long),
        }
    }
}
