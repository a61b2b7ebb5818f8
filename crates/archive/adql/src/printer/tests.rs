//! What the parser never makes and somebody may; what it makes is tested with it and by fuzzing.

use std::sync::Arc;

use crate::ast::{Expr, ExprKind, Ident, Literal, Sign};
use crate::catalogue::Name;
use crate::span::{Aside, Span};
use crate::tree::{Operator, Value};

fn expr(kind: ExprKind) -> Expr {
    Expr { kind, at: Aside(Span::default()) }
}

fn literal(value: Value) -> Expr {
    expr(ExprKind::Literal(Literal { value, slot: Aside(None), at: Aside(Span::default()) }))
}

fn column(text: &str, quoted: bool) -> Expr {
    let name = Ident { name: Name { text: Arc::from(text), quoted }, at: Aside(Span::default()) };
    expr(ExprKind::Column { qualifier: None, name })
}

#[test]
fn negative_literals_begin_no_comment() {
    let negative = literal(Value::Integer(-2));
    let minus = expr(ExprKind::Sign(Sign::Minus, Box::new(negative.clone())));
    assert_eq!(minus.to_string(), "-(-2)");
    let one = Box::new(literal(Value::Double(1.0)));
    let difference = expr(ExprKind::Arithmetic(Operator::Subtract, one, Box::new(negative)));
    assert_eq!(difference.to_string(), "1.0 - -2");
}

#[test]
fn names_that_are_no_words_get_quotes() {
    for (text, quoted, printed) in [
        ("ra", false, "ra"),
        ("ra", true, "\"ra\""),
        ("select", false, "\"select\""),
        ("size", false, "size"),
        ("2mass", false, "\"2mass\""),
        ("", false, "\"\""),
        ("a b", false, "\"a b\""),
        ("say \"x\"", true, "\"say \"\"x\"\"\""),
    ] {
        assert_eq!(column(text, quoted).to_string(), printed);
    }
}

#[test]
fn numbers_read_back_the_same() {
    for (number, printed) in [(0.1, "0.1"), (1e21, "1e21"), (5e-324, "5e-324"), (1e15, "1000000000000000.0")]
    {
        assert_eq!(literal(Value::Double(number)).to_string(), printed);
        assert_eq!(printed.parse(), Ok(number));
    }
}
