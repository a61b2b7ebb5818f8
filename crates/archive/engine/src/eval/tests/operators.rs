use trifid_archive_adql::functions::Function;
use trifid_archive_adql::tree::{Comparison, Expr, Kind, Operator};
use trifid_archive_adql::types::Type;

use super::*;

const NAN: f64 = f64::NAN;

fn x(ty: Type) -> Expr {
    column(0, ty)
}

fn y(ty: Type) -> Expr {
    column(1, ty)
}

#[test]
fn whole_arithmetic() {
    let columns = [ints(&[Some(7), Some(-7), None, Some(0)]), ints(&[Some(2), Some(2), Some(2), None])];
    let of = |operator| arithmetic(operator, x(Type::Int), y(Type::Int));
    check(&of(Operator::Add), &columns, &ints(&[Some(9), Some(-5), None, None]));
    check(&of(Operator::Subtract), &columns, &ints(&[Some(5), Some(-9), None, None]));
    check(&of(Operator::Multiply), &columns, &ints(&[Some(14), Some(-14), None, None]));
    // Towards zero, as in PostgreSQL.
    check(&of(Operator::Divide), &columns, &ints(&[Some(3), Some(-3), None, None]));
    let modulo = call(Function::Mod, vec![x(Type::Int), y(Type::Int)], Type::Int);
    check(&modulo, &columns, &ints(&[Some(1), Some(-1), None, None]));
    let constant = arithmetic(Operator::Subtract, whole(10, Type::Int), x(Type::Int));
    check(&constant, &columns[..1], &ints(&[Some(3), Some(17), None, Some(10)]));
    let constant = arithmetic(Operator::Divide, x(Type::Int), whole(-2, Type::Int));
    check(&constant, &columns[..1], &ints(&[Some(-3), Some(3), None, Some(0)]));
}

#[test]
fn overflow_names_what_failed() {
    let add = |ty| arithmetic(Operator::Add, x(ty), y(ty));
    let largest = [ints(&[Some(1), Some(i32::MAX)]), ints(&[Some(1), Some(1)])];
    assert_eq!(refused(&add(Type::Int), &largest), "integer overflow in 2147483647 + 1");
    let largest = [longs(&[Some(i64::MIN)]), longs(&[Some(-1)])];
    assert_eq!(refused(&add(Type::Long), &largest), "integer overflow in -9223372036854775808 + -1");
    let divide = arithmetic(Operator::Divide, x(Type::Long), y(Type::Long));
    assert_eq!(refused(&divide, &largest), "integer overflow in -9223372036854775808 / -1");
    let modulo = call(Function::Mod, vec![x(Type::Long), y(Type::Long)], Type::Long);
    check(&modulo, &largest, &longs(&[Some(0)]));
    let zero = [longs(&[Some(5)]), longs(&[Some(0)])];
    assert_eq!(refused(&divide, &zero), "division by zero in 5 / 0");
    assert_eq!(refused(&modulo, &zero), "division by zero in 5 MOD 0");
    let negate = |ty| Expr { kind: Kind::Negate(Box::new(x(ty))), ty };
    assert_eq!(refused(&negate(Type::Short), &[shorts(&[Some(i16::MIN)])]), "integer overflow in -(-32768)");
    assert_eq!(refused(&negate(Type::UnsignedByte), &[bytes(&[Some(1)])]), "integer overflow in -(1)");
    let absolute = call(Function::Abs, vec![x(Type::Int)], Type::Int);
    assert_eq!(refused(&absolute, &[ints(&[Some(i32::MIN)])]), "integer overflow in ABS (-2147483648)");
}

#[test]
fn in_a_condition_of_rows_null_is_as_good_as_false() {
    let columns = [ints(&[None, Some(0), Some(1), Some(5)]), ints(&[Some(0), Some(0), Some(1), Some(0)])];
    let above = compare(Comparison::Greater, x(Type::Int), whole(0, Type::Int));
    let quotient = arithmetic(Operator::Divide, whole(1, Type::Int), y(Type::Int));
    let divided = compare(Comparison::Equal, quotient, whole(1, Type::Int));
    let rows = |columns: &[ArrayRef], parts: [Expr; 2]| {
        let both = boolean(Kind::And(parts.to_vec()));
        super::super::filter(&both, &Columns(columns.to_vec()), &Context::default())
            .map(|mask| mask.iter().collect::<Vec<_>>())
    };
    let harmless: Vec<ArrayRef> = columns.iter().map(|column| column.slice(0, 3)).collect();
    for parts in [[above.clone(), divided.clone()], [divided, above]] {
        assert_eq!(rows(&harmless, parts.clone()).unwrap(), [Some(false), Some(false), Some(true)]);
        let nested = [truth(true), boolean(Kind::And(parts.to_vec()))];
        assert_eq!(rows(&harmless, nested).unwrap(), [Some(false), Some(false), Some(true)]);
        assert!(rows(&columns, parts.clone()).is_err(), "where the other is true it does matter");
        // As a value, NULL AND an error is an error.
        assert!(
            evaluate(&boolean(Kind::And(parts.to_vec())), &Columns(harmless.clone()), &Context::default())
                .is_err()
        );
    }
}

#[test]
fn what_stands_under_a_null_is_no_error() {
    use arrow_array::Int32Array;
    use arrow_buffer::NullBuffer;
    let hidden: ArrayRef =
        Arc::new(Int32Array::new(vec![i32::MAX, 0].into(), Some(NullBuffer::from(vec![false, false]))));
    for operator in [Operator::Add, Operator::Divide, Operator::Multiply] {
        let expr = arithmetic(operator, x(Type::Int), y(Type::Int));
        check(&expr, &[hidden.clone(), hidden.clone()], &ints(&[None, None]));
    }
}

#[test]
fn real_arithmetic_is_ieee() {
    let columns = [doubles(&[Some(1.0), Some(-1.0), Some(0.0), None]), doubles(&[Some(0.0); 4])];
    let divide = arithmetic(Operator::Divide, x(Type::Double), y(Type::Double));
    check(&divide, &columns, &doubles(&[Some(f64::INFINITY), Some(f64::NEG_INFINITY), Some(NAN), None]));
    let single = arithmetic(Operator::Multiply, x(Type::Float), x(Type::Float));
    check(&single, &[floats(&[Some(1e30), Some(0.5)])], &floats(&[Some(f32::INFINITY), Some(0.25)]));
    let minus = Expr { kind: Kind::Negate(Box::new(x(Type::Double))), ty: Type::Double };
    check(&minus, &[doubles(&[Some(1.5), None])], &doubles(&[Some(-1.5), None]));
}

#[test]
fn small_whole_types() {
    let columns = [bytes(&[Some(200), Some(3)]), bytes(&[Some(55), Some(4)])];
    let add = arithmetic(Operator::Add, x(Type::UnsignedByte), y(Type::UnsignedByte));
    check(&add, &columns, &bytes(&[Some(255), Some(7)]));
    let subtract = arithmetic(Operator::Subtract, x(Type::UnsignedByte), y(Type::UnsignedByte));
    assert_eq!(refused(&subtract, &columns), "integer overflow in 3 - 4");
    let columns = [shorts(&[Some(200)]), shorts(&[Some(200)])];
    let multiply = arithmetic(Operator::Multiply, x(Type::Short), y(Type::Short));
    assert_eq!(refused(&multiply, &columns), "integer overflow in 200 * 200");
}

const ALL: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

/// Checks all comparisons of a column whose values ascend strictly with each of its values as a constant, and
/// with itself.
fn check_order(ty: Type, ascending: &ArrayRef, constant: impl Fn(usize) -> Expr) {
    let len = ascending.len();
    for comparison in ALL {
        for place in 0..len {
            let expected: Vec<Option<bool>> = (0..len)
                .map(|row| Some(super::super::compare::satisfies(comparison, row.cmp(&place))))
                .collect();
            let left = compare(comparison, column(0, ty), constant(place));
            check(&left, std::slice::from_ref(ascending), &truths(&expected));
            let mirrored: Vec<Option<bool>> = (0..len)
                .map(|row| Some(super::super::compare::satisfies(comparison, place.cmp(&row))))
                .collect();
            let right = compare(comparison, constant(place), column(0, ty));
            check(&right, std::slice::from_ref(ascending), &truths(&mirrored));
        }
        let itself = compare(comparison, column(0, ty), column(1, ty));
        let holds = super::super::compare::satisfies(comparison, std::cmp::Ordering::Equal);
        check(&itself, &[ascending.clone(), ascending.clone()], &truths(&vec![Some(holds); len]));
    }
}

#[test]
fn orders() {
    let values = [f64::NEG_INFINITY, -1.5, 0.0, 1e-300, 1.0, f64::INFINITY, NAN];
    check_order(Type::Double, &doubles(&values.map(Some)), |place| real(values[place]));
    let values = [i64::MIN, -1, 0, i64::MAX];
    check_order(Type::Long, &longs(&values.map(Some)), |place| whole(values[place], Type::Long));
    let values = ["", "A", "B", "a", "ab", "a\u{301}", "b", "é", "\u{ffff}", "\u{1f600}"];
    check_order(Type::Text, &texts(&values.map(Some)), |place| text(values[place]));
    check_order(Type::Boolean, &truths(&[Some(false), Some(true)]), |place| truth(place == 1));
}

#[test]
fn zeros_and_nans_are_one() {
    let columns = [
        doubles(&[Some(-0.0), Some(NAN), Some(NAN), None]),
        doubles(&[Some(0.0), Some(-NAN), Some(1.0), None]),
    ];
    let of = |comparison| compare(comparison, x(Type::Double), y(Type::Double));
    check(&of(Comparison::Equal), &columns, &truths(&[Some(true), Some(true), Some(false), None]));
    check(&of(Comparison::Less), &columns, &truths(&[Some(false), Some(false), Some(false), None]));
    check(&of(Comparison::Greater), &columns, &truths(&[Some(false), Some(false), Some(true), None]));
    let instants = [instants(&[Some(5), Some(-5)]), instants(&[Some(5), Some(5)])];
    let later = compare(Comparison::GreaterOrEqual, x(Type::Timestamp), y(Type::Timestamp));
    check(&later, &instants, &truths(&[Some(true), Some(false)]));
}

#[test]
fn comparing_with_null_is_null() {
    let columns = [longs(&[Some(1), None])];
    for comparison in ALL {
        check(&compare(comparison, x(Type::Long), null(Type::Long)), &columns, &truths(&[None, None]));
        check(&compare(comparison, null(Type::Null), null(Type::Null)), &columns, &truths(&[None, None]));
    }
    let is_null = boolean(Kind::IsNull(Box::new(x(Type::Long))));
    check(&is_null, &columns, &truths(&[Some(false), Some(true)]));
    check_one(&boolean(Kind::IsNull(Box::new(null(Type::Null)))), &truths(&[Some(true)]));
    check_one(&boolean(Kind::IsNull(Box::new(real(NAN)))), &truths(&[Some(false)]));
}

fn between(value: Expr, low: Expr, high: Expr) -> Expr {
    boolean(Kind::Between(Box::new(value), Box::new(low), Box::new(high)))
}

#[test]
fn betweens() {
    let column = [doubles(&[Some(1.0), Some(2.0), Some(2.5), None, Some(NAN)])];
    let inside = between(x(Type::Double), real(1.0), real(2.0));
    check(&inside, &column, &truths(&[Some(true), Some(true), Some(false), None, Some(false)]));
    let open = between(x(Type::Double), real(2.0), null(Type::Double));
    check(&open, &column, &truths(&[Some(false), None, None, None, None]));
    let nan = between(x(Type::Double), real(2.0), real(NAN));
    check(&nan, &column, &truths(&[Some(false), Some(true), Some(true), None, Some(true)]));
    let words = [texts(&[Some("a"), Some("m"), Some("z")])];
    let of_text = between(x(Type::Text), text("b"), text("y"));
    check(&of_text, &words, &truths(&[Some(false), Some(true), Some(false)]));
}

fn among(value: Expr, list: Vec<Expr>) -> Expr {
    boolean(Kind::InList(Box::new(value), list))
}

#[test]
fn lists() {
    let column = [longs(&[Some(1), Some(2), None])];
    let few = |with_null: bool| {
        let mut list = vec![whole(2, Type::Long), whole(7, Type::Long)];
        list.extend(with_null.then(|| null(Type::Long)));
        list
    };
    check(&among(x(Type::Long), few(false)), &column, &truths(&[Some(false), Some(true), None]));
    check(&among(x(Type::Long), few(true)), &column, &truths(&[None, Some(true), None]));
    let many = |with_null: bool| {
        let mut list: Vec<Expr> = (2..40).map(|number| whole(number, Type::Long)).collect();
        list.extend(with_null.then(|| null(Type::Long)));
        list
    };
    check(&among(x(Type::Long), many(false)), &column, &truths(&[Some(false), Some(true), None]));
    check(&among(x(Type::Long), many(true)), &column, &truths(&[None, Some(true), None]));
    let reals: Vec<Expr> = (0..10).map(|place| real(f64::from(place))).chain([real(NAN)]).collect();
    let odd = [doubles(&[Some(-0.0), Some(NAN), Some(0.5), None])];
    check(&among(x(Type::Double), reals), &odd, &truths(&[Some(true), Some(true), Some(false), None]));
    let words: Vec<Expr> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(text).to_vec();
    let column = [texts(&[Some("c"), Some("C"), None])];
    check(&among(x(Type::Text), words), &column, &truths(&[Some(true), Some(false), None]));
    let own = [longs(&[Some(1), Some(2)]), longs(&[Some(1), None])];
    check(&among(x(Type::Long), vec![y(Type::Long)]), &own, &truths(&[Some(true), None]));
}

#[test]
fn three_values() {
    let t = [Some(true), Some(false), None];
    let left: Vec<Option<bool>> = t.iter().flat_map(|a| [*a; 3]).collect();
    let right: Vec<Option<bool>> = t.iter().cycle().take(9).copied().collect();
    let columns = [truths(&left), truths(&right)];
    let operands = || vec![x(Type::Boolean), y(Type::Boolean)];
    let (yes, no) = (Some(true), Some(false));
    check(&boolean(Kind::And(operands())), &columns, &truths(&[yes, no, None, no, no, no, None, no, None]));
    check(
        &boolean(Kind::Or(operands())),
        &columns,
        &truths(&[yes, yes, yes, yes, no, None, yes, None, None]),
    );
    check(
        &not(x(Type::Boolean)),
        &columns[..1],
        &truths(&left.iter().map(|one| one.map(|it| !it)).collect::<Vec<_>>()),
    );
    for constant in t {
        let constant = match constant {
            Some(value) => truth(value),
            None => null(Type::Boolean),
        };
        let pair = vec![x(Type::Boolean), constant.clone()];
        let turned = vec![constant, x(Type::Boolean)];
        for kind in [Kind::And as fn(Vec<Expr>) -> Kind, Kind::Or] {
            assert_eq!(
                &run(&boolean(kind(pair.clone())), &columns).unwrap(),
                &run(&boolean(kind(turned.clone())), &columns).unwrap()
            );
        }
    }
}

/// `10 / x > 2`, which fails where x is 0.
fn risky() -> Expr {
    compare(
        Comparison::Greater,
        arithmetic(Operator::Divide, whole(10, Type::Long), x(Type::Long)),
        whole(2, Type::Long),
    )
}

#[test]
fn a_decided_row_cannot_fail() {
    let column = [longs(&[Some(0), Some(4), Some(5), None])];
    let guard = || compare(Comparison::NotEqual, x(Type::Long), whole(0, Type::Long));
    let expected = truths(&[Some(false), Some(false), Some(false), None]);
    check(&boolean(Kind::And(vec![guard(), risky()])), &column, &expected);
    check(&boolean(Kind::And(vec![risky(), guard()])), &column, &expected);
    let either = truths(&[Some(true), Some(false), Some(false), None]);
    check(&boolean(Kind::Or(vec![not(guard()), risky()])), &column, &either);
    check(&boolean(Kind::Or(vec![risky(), not(guard())])), &column, &either);
    assert_eq!(
        refused(&boolean(Kind::And(vec![truth(true), risky()])), &column),
        "division by zero in 10 / 0"
    );
    let never = boolean(Kind::And(vec![risky(), truth(false)]));
    check(&never, &column, &truths(&[Some(false); 4]));
}

#[test]
fn help_may_come_from_an_operand_that_failed_first() {
    // The second fails at x = 4 until the third has excluded it; then it excludes x = 0 for the first.
    let fails_at = |bad: i64, excludes: i64| {
        let divisor = arithmetic(Operator::Subtract, x(Type::Long), whole(bad, Type::Long));
        let quotient = arithmetic(Operator::Divide, whole(0, Type::Long), divisor);
        let sum = arithmetic(Operator::Add, quotient, x(Type::Long));
        compare(Comparison::NotEqual, sum, whole(excludes, Type::Long))
    };
    let third = compare(Comparison::NotEqual, x(Type::Long), whole(4, Type::Long));
    let all = boolean(Kind::And(vec![fails_at(0, 9), fails_at(4, 0), third]));
    let column = [longs(&[Some(0), Some(4), Some(5)])];
    let found = run(&all, &column).unwrap();
    assert_eq!(&found, &truths(&[Some(false), Some(false), Some(true)]));
}

#[test]
fn cases() {
    let column = [longs(&[Some(0), Some(4), Some(5), None])];
    let ratio = || arithmetic(Operator::Divide, whole(20, Type::Long), x(Type::Long));
    let nonzero = compare(Comparison::NotEqual, x(Type::Long), whole(0, Type::Long));
    let guarded = Expr {
        kind: Kind::Case { branches: vec![(nonzero, ratio())], otherwise: Box::new(whole(-1, Type::Long)) },
        ty: Type::Long,
    };
    check(&guarded, &column, &longs(&[Some(-1), Some(5), Some(4), Some(-1)]));
    let small = |bound| compare(Comparison::Less, x(Type::Long), whole(bound, Type::Long));
    let named = Expr {
        kind: Kind::Case {
            branches: vec![(small(1), text("none")), (small(5), text("few"))],
            otherwise: Box::new(null(Type::Text)),
        },
        ty: Type::Text,
    };
    check(&named, &column, &texts(&[Some("none"), Some("few"), None, None]));
    let never = Expr {
        kind: Kind::Case {
            branches: vec![(null(Type::Boolean), ratio())],
            otherwise: Box::new(null(Type::Null)),
        },
        ty: Type::Long,
    };
    check(&never, &column, &longs(&[None; 4]));
}

#[test]
fn first_that_is_there() {
    let columns = [longs(&[Some(1), None, None, None]), longs(&[Some(0), Some(2), None, Some(3)])];
    let first =
        call(Function::Coalesce, vec![x(Type::Long), y(Type::Long), whole(9, Type::Long)], Type::Long);
    check(&first, &columns, &longs(&[Some(1), Some(2), Some(9), Some(3)]));
    let bare = call(Function::Coalesce, vec![null(Type::Null), y(Type::Long)], Type::Long);
    check(&bare, &columns, &columns[1]);
    // The division is not reached by the first row.
    let risky = arithmetic(Operator::Divide, whole(6, Type::Long), y(Type::Long));
    let guarded = call(Function::Coalesce, vec![x(Type::Long), risky], Type::Long);
    check(&guarded, &columns, &longs(&[Some(1), Some(3), None, Some(2)]));
}

#[test]
fn null_if_equal() {
    let columns = [longs(&[Some(1), Some(2), None, Some(4)]), longs(&[Some(1), Some(3), None, None])];
    let two = call(Function::NullIf, vec![x(Type::Long), y(Type::Long)], Type::Long);
    check(&two, &columns, &longs(&[None, Some(2), None, Some(4)]));
    let constant = call(Function::NullIf, vec![x(Type::Long), whole(2, Type::Long)], Type::Long);
    check(&constant, &columns, &longs(&[Some(1), None, None, Some(4)]));
    let turned = call(Function::NullIf, vec![whole(2, Type::Long), x(Type::Long)], Type::Long);
    check(&turned, &columns, &longs(&[Some(2), None, Some(2), Some(2)]));
    let nothing = call(Function::NullIf, vec![x(Type::Long), null(Type::Long)], Type::Long);
    check(&nothing, &columns, &columns[0]);
}

#[test]
fn greatest_and_least() {
    let columns =
        [doubles(&[Some(1.0), None, Some(NAN), None]), doubles(&[Some(2.0), Some(3.0), Some(5.0), None])];
    let of = |function| call(function, vec![x(Type::Double), y(Type::Double)], Type::Double);
    check(&of(Function::Greatest), &columns, &doubles(&[Some(2.0), Some(3.0), Some(NAN), None]));
    check(&of(Function::Least), &columns, &doubles(&[Some(1.0), Some(3.0), Some(5.0), None]));
    let more = call(Function::Least, vec![x(Type::Double), real(0.5), null(Type::Double)], Type::Double);
    check(&more, &columns, &doubles(&[Some(0.5), Some(0.5), Some(0.5), Some(0.5)]));
}

#[test]
fn concatenation() {
    let columns = [texts(&[Some("a"), Some(""), None]), texts(&[Some("é"), Some("z"), Some("q")])];
    let joined = Expr { kind: Kind::Concat(vec![x(Type::Text), text("-"), y(Type::Text)]), ty: Type::Text };
    check(&joined, &columns, &texts(&[Some("a-é"), Some("-z"), None]));
    let null = Expr { kind: Kind::Concat(vec![x(Type::Text), null(Type::Text)]), ty: Type::Text };
    check(&null, &columns, &texts(&[None, None, None]));
    check_one(
        &Expr { kind: Kind::Concat(vec![text("x"), text("y")]), ty: Type::Text },
        &texts(&[Some("xy")]),
    );
    let sliced = columns.map(|column| column.slice(1, 2));
    check(&joined, &sliced, &texts(&[Some("-z"), None]));
}

fn like(value: Expr, pattern: Expr, ignore_case: bool) -> Expr {
    boolean(Kind::Like { value: Box::new(value), pattern: Box::new(pattern), ignore_case })
}

#[test]
fn patterns() {
    let fits = |value: &str, pattern: &str| {
        for ignore_case in [false, true] {
            check_one(&like(text(value), text(pattern), ignore_case), &truths(&[Some(true)]));
        }
        check(
            &like(x(Type::Text), y(Type::Text), false),
            &[texts(&[Some(value)]), texts(&[Some(pattern)])],
            &truths(&[Some(true)]),
        );
    };
    let differs = |value: &str, pattern: &str| {
        check_one(&like(text(value), text(pattern), false), &truths(&[Some(false)]));
    };
    for pattern in [
        "NGC 1234",
        "NGC%",
        "%1234",
        "%C 1%",
        "%",
        "%%",
        "N_C%",
        "____1234",
        "%_",
        "_%",
        "N%1%4",
        "NGC% 1234",
        "%G%2%",
    ] {
        fits("NGC 1234", pattern);
    }
    for pattern in ["", "NGC", "1234", "NGC 1234_", "_NGC%", "%4%1%", "NGC %1234_", "ngc%", "N%G%G%", "%123"]
    {
        differs("NGC 1234", pattern);
    }
    fits("", "");
    fits("", "%");
    differs("", "_");
    fits("é", "_");
    fits("100%", "100%");
    // Nothing escapes: the backslash is a character.
    differs("a_b", "a\\_b");
    fits("a\\xb", "a\\_b");
    fits("aXbXc", "%X_");
    differs("ab", "ab%b");
    fits("abab", "ab%ab");
    differs("aba", "ab%ba");
}

#[test]
fn patterns_ignoring_case() {
    let fits = |value: &str, pattern: &str, expected: bool| {
        check_one(&like(text(value), text(pattern), true), &truths(&[Some(expected)]));
    };
    fits("Sirius", "SIRI%", true);
    fits("ΣΊΣΥΦΟΣ", "σίσυφος", true);
    fits("STRASSE", "straße", false);
    fits("\u{212a}elvin", "kelvin", true);
    fits("Ångström", "%GSTRÖM", true);
    fits("Ångström", "å_GSTRÖM%", true);
    fits("M31", "m_2", false);
    let column = [texts(&[Some("Alpha"), None])];
    check(&like(x(Type::Text), text("ALPHA"), true), &column, &truths(&[Some(true), None]));
    check(&like(x(Type::Text), null(Type::Text), true), &column, &truths(&[None, None]));
}

#[test]
fn a_prefix_for_an_index() {
    use crate::eval::Pattern;
    let prefix = |pattern: &str| Pattern::new(pattern, false).prefix().map(std::borrow::Cow::into_owned);
    assert_eq!(prefix("NGC%").as_deref(), Some("NGC"));
    assert_eq!(prefix("NGC_1%").as_deref(), Some("NGC"));
    assert_eq!(prefix("A%B").as_deref(), Some("A"));
    assert_eq!(prefix("%B"), None);
    assert!(Pattern::new("NGC%", false).is_prefix());
    assert!(!Pattern::new("NGC_%", false).is_prefix());
    assert!(Pattern::new("NGC", false).is_exact());
    assert_eq!(Pattern::new("NGC%", true).prefix(), None);
}

#[test]
fn a_constant_that_nobody_reaches_cannot_fail() {
    let column = [longs(&[Some(1), Some(1)])];
    let one = || compare(Comparison::Equal, x(Type::Long), whole(1, Type::Long));
    let zero = arithmetic(Operator::Divide, whole(1, Type::Long), whole(0, Type::Long));
    let failing = || compare(Comparison::Equal, zero.clone(), whole(1, Type::Long));
    check(&boolean(Kind::Or(vec![one(), failing()])), &column, &truths(&[Some(true), Some(true)]));
    check(&boolean(Kind::Or(vec![failing(), one()])), &column, &truths(&[Some(true), Some(true)]));
    assert_eq!(refused(&boolean(Kind::And(vec![one(), failing()])), &column), "division by zero in 1 / 0");
}

#[test]
fn a_long_text_is_not_repeated_at_will() {
    let long = text(&"x".repeat(1 << 20));
    let rows = 300;
    let column = [longs(&vec![Some(1); rows])];
    let refused = |expr: &Expr| match run(expr, &column) {
        Err(QueryError::TooLarge(message)) => {
            assert_eq!(&*message, "values of more than 256 MiB for one batch of rows");
        }
        other => panic!("{other:?}"),
    };
    refused(&long);
    let positive = compare(Comparison::Greater, x(Type::Long), whole(0, Type::Long));
    let even = compare(Comparison::Less, x(Type::Long), whole(0, Type::Long));
    let branches = vec![(even, text("")), (positive, long.clone())];
    let case = Expr { kind: Kind::Case { branches, otherwise: Box::new(text("")) }, ty: Type::Text };
    refused(&case);
    let number = cast(x(Type::Long), Type::Text);
    refused(&Expr { kind: Kind::Concat(vec![long.clone(), number.clone()]), ty: Type::Text });
    refused(&call(Function::Greatest, vec![long, number], Type::Text));
}
