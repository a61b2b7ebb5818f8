use trifid_archive_adql::functions::Function;
use trifid_archive_adql::types::Type;

use super::*;

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

/// Checks a function of Doubles at single values, as a constant and as a column.
#[track_caller]
fn at(function: Function, arguments: &[f64], expected: f64) {
    let constant = call(function, arguments.iter().map(|x| real(*x)).collect(), Type::Double);
    let columns: Vec<ArrayRef> = arguments.iter().map(|x| doubles(&[Some(*x), None])).collect();
    let places = (0..arguments.len() as u32).map(|place| column(place, Type::Double)).collect();
    let varying = call(function, places, Type::Double);
    for found in [run(&constant, &[]).unwrap(), run(&varying, &columns).unwrap()] {
        use arrow_array::cast::AsArray as _;
        let array = found.as_primitive::<arrow_array::types::Float64Type>();
        let value = array.value(0);
        let near = (value - expected).abs() <= 4.0 * f64::EPSILON * expected.abs();
        assert!(near || value == expected || (value.is_nan() && expected.is_nan()), "{function:?}: {value}");
        assert!(array.len() == 1 || array.is_null(1));
    }
}

#[test]
fn mathematics() {
    at(Function::Abs, &[-1.5], 1.5);
    at(Function::Ceiling, &[-1.5], -1.0);
    at(Function::Ceiling, &[1.2], 2.0);
    at(Function::Floor, &[-1.5], -2.0);
    at(Function::Degrees, &[std::f64::consts::PI], 180.0);
    at(Function::Radians, &[180.0], std::f64::consts::PI);
    at(Function::Exp, &[1.0], std::f64::consts::E);
    at(Function::Exp, &[1000.0], INFINITY);
    at(Function::Log, &[std::f64::consts::E], 1.0);
    at(Function::Log, &[0.0], -INFINITY);
    at(Function::Log, &[-1.0], NAN);
    at(Function::Log10, &[1000.0], 3.0);
    at(Function::Mod, &[5.5, 2.0], 1.5);
    at(Function::Mod, &[-5.5, 2.0], -1.5);
    at(Function::Mod, &[5.5, 0.0], NAN);
    at(Function::Power, &[2.0, 10.0], 1024.0);
    at(Function::Power, &[-8.0, 1.0 / 3.0], NAN);
    at(Function::Power, &[0.0, -1.0], INFINITY);
    at(Function::Sqrt, &[2.25], 1.5);
    at(Function::Sqrt, &[-1.0], NAN);
    at(Function::Sin, &[1.0], 0.841_470_984_807_896_5);
    at(Function::Cos, &[1.0], 0.540_302_305_868_139_7);
    at(Function::Tan, &[1.0], 1.557_407_724_654_902_2);
    at(Function::Cot, &[1.0], 0.642_092_615_934_330_7);
    at(Function::Cot, &[0.0], INFINITY);
    at(Function::Asin, &[1.0], std::f64::consts::FRAC_PI_2);
    at(Function::Asin, &[2.0], NAN);
    at(Function::Acos, &[1.0], 0.0);
    at(Function::Atan, &[1.0], std::f64::consts::FRAC_PI_4);
    at(Function::Atan2, &[1.0, -1.0], 3.0 * std::f64::consts::FRAC_PI_4);
    check_one(&call(Function::Pi, vec![], Type::Double), &doubles(&[Some(std::f64::consts::PI)]));
}

#[test]
fn rounding() {
    at(Function::Round, &[2.5], 3.0);
    at(Function::Round, &[-2.5], -3.0);
    at(Function::Round, &[0.499_999_999_999_999_94], 0.0);
    at(Function::Round, &[NAN], NAN);
    at(Function::Round, &[INFINITY], INFINITY);
    at(Function::Truncate, &[-2.7], -2.0);
    let with = |function, x: f64, digits: i64, expected: f64| {
        let constant = call(function, vec![real(x), whole(digits, Type::Long)], Type::Double);
        check_one(&constant, &doubles(&[Some(expected)]));
        let varying = call(function, vec![column(0, Type::Double), column(1, Type::Long)], Type::Double);
        check(&varying, &[doubles(&[Some(x)]), longs(&[Some(digits)])], &doubles(&[Some(expected)]));
    };
    with(Function::Round, 1.25, 1, 1.3);
    with(Function::Round, -1.25, 1, -1.3);
    with(Function::Round, 1234.5, -2, 1200.0);
    with(Function::Round, 1250.0, -2, 1300.0);
    with(Function::Round, 1e300, 10, 1e300);
    with(Function::Round, 1.5, 400, 1.5);
    with(Function::Round, 1.5, -400, 0.0);
    with(Function::Round, 1.5, i64::MIN, 0.0);
    with(Function::Truncate, 7.129, 2, 7.12);
    with(Function::Truncate, -7.129, 2, -7.12);
    with(Function::Truncate, 199.0, -2, 100.0);
}

#[test]
fn whole_functions() {
    let column = [longs(&[Some(-5), None])];
    let absolute = call(Function::Abs, vec![super::column(0, Type::Long)], Type::Long);
    check(&absolute, &column, &longs(&[Some(5), None]));
    let modulo = call(Function::Mod, vec![super::column(0, Type::Long), whole(3, Type::Long)], Type::Long);
    check(&modulo, &column, &longs(&[Some(-2), None]));
}

#[test]
fn letters() {
    let column = [texts(&[Some("Sirius A"), None, Some("")])];
    let of = |function| call(function, vec![super::column(0, Type::Text)], Type::Text);
    check(&of(Function::Lower), &column, &texts(&[Some("sirius a"), None, Some("")]));
    check(&of(Function::Upper), &column, &texts(&[Some("SIRIUS A"), None, Some("")]));
    let other = [texts(&[Some("Straße"), Some("ΟΔΟΣ"), Some("İ")])];
    check(&of(Function::Upper), &other, &texts(&[Some("STRASSE"), Some("ΟΔΟΣ"), Some("İ")]));
    check(&of(Function::Lower), &other, &texts(&[Some("straße"), Some("οδος"), Some("i̇")]));
    let sliced = [column[0].slice(1, 2)];
    check(&of(Function::Upper), &sliced, &texts(&[None, Some("")]));
    let cut = |count| {
        call(Function::Left, vec![super::column(0, Type::Text), whole(count, Type::Long)], Type::Text)
    };
    check(&cut(3), &other, &texts(&[Some("Str"), Some("ΟΔΟ"), Some("İ")]));
    check(&cut(0), &other, &texts(&[Some(""), Some(""), Some("")]));
    check(&cut(-1), &other, &texts(&[Some(""), Some(""), Some("")]));
    check(&cut(5), &other, &texts(&[Some("Straß"), Some("ΟΔΟΣ"), Some("İ")]));
}

#[test]
fn words() {
    let of = |function, a: &str, b: &str| call(function, vec![text(a), text(b)], Type::Boolean);
    let check = |function, a: &str, b: &str, expected: bool| {
        check_one(&of(function, a, b), &truths(&[Some(expected)]));
    };
    check(Function::HasWord, "The Hubble Space Telescope", "space", true);
    check(Function::HasWord, "The Hubble Space Telescope", "TELESCOPE hubble", true);
    check(Function::HasWord, "Spacecraft", "space", false);
    check(Function::HasWord, "X-ray, gamma", "ray", true);
    check(Function::HasWord, "X-ray, gamma", "", true);
    check(Function::HashListHas, "optical#X-Ray#radio", "x-ray", true);
    check(Function::HashListHas, "optical#X-Ray#radio", "x", false);
    check(Function::HashListHas, "optical#radio", "optical#radio", false);
    check(Function::HashListHas, "", "a", false);
}

#[test]
fn regular_expressions() {
    let column = [texts(&[Some("NGC 224"), Some("M 31"), None])];
    let of = |pattern: &str| {
        call(Function::Match, vec![text(pattern), super::column(0, Type::Text)], Type::Boolean)
    };
    check(&of("^NGC [0-9]+$"), &column, &truths(&[Some(true), Some(false), None]));
    check(&of("(?i)ngc|m"), &column, &truths(&[Some(true), Some(true), None]));
    assert!(refused(&of("("), &column).starts_with("the regular expression cannot be read"));
    let bomb = run(&of("((a{1000}){1000}){1000}"), &column).unwrap_err();
    assert!(matches!(bomb, QueryError::TooLarge(_)), "{bomb}");
    let long = || text(&"a".repeat(5000));
    let value = || Box::new(super::column(0, Type::Text));
    for expr in [
        call(Function::Match, vec![long(), super::column(0, Type::Text)], Type::Boolean),
        call(Function::HasWord, vec![super::column(0, Type::Text), long()], Type::Boolean),
        boolean(Kind::Like { value: value(), pattern: Box::new(long()), ignore_case: false }),
    ] {
        let error = run(&expr, &column).unwrap_err();
        assert_eq!(error.to_string(), "texts are searched for patterns of at most 4096 bytes");
    }
    let varying = call(
        Function::Match,
        vec![super::column(1, Type::Text), super::column(0, Type::Text)],
        Type::Boolean,
    );
    let patterns = texts(&[Some("NGC"), None, Some("(")]);
    let found = run(&varying, &[column[0].clone(), patterns]).unwrap();
    assert_eq!(&found, &truths(&[Some(true), None, None]));
    let many: Vec<String> = (0..300).map(|number| format!("a{number}")).collect();
    let many: Vec<Option<&str>> = many.iter().map(|text| Some(text.as_str())).collect();
    let error = run(&varying, &[texts(&vec![Some("x"); 300]), texts(&many)]).unwrap_err();
    assert!(matches!(error, QueryError::TooLarge(_)));
}

#[test]
fn casts_between_numbers() {
    let to = |ty| cast(column(0, Type::Double), ty);
    let reals = [doubles(&[Some(2.9), Some(-2.9), None])];
    check(&to(Type::Int), &reals, &ints(&[Some(2), Some(-2), None]));
    check(&to(Type::Float), &reals, &floats(&[Some(2.9), Some(-2.9), None]));
    assert_eq!(refused(&to(Type::Int), &[doubles(&[Some(1.0), Some(NAN)])]), "NaN does not fit into INTEGER");
    assert_eq!(refused(&to(Type::Short), &[doubles(&[Some(4e4)])]), "40000 does not fit into SMALLINT");
    assert_eq!(
        refused(&to(Type::Long), &[doubles(&[Some(9.3e18)])]),
        "9300000000000000000 does not fit into BIGINT"
    );
    check(&to(Type::Long), &[doubles(&[Some(-9_223_372_036_854_775_808.0)])], &longs(&[Some(i64::MIN)]));
    check(&to(Type::Float), &[doubles(&[Some(1e300)])], &floats(&[Some(f32::INFINITY)]));
    let wide = |from, ty| cast(column(0, from), ty);
    check(
        &wide(Type::Long, Type::Double),
        &[longs(&[Some(i64::MAX)])],
        &doubles(&[Some(9_223_372_036_854_775_807.0)]),
    );
    // Not by way of a Double, which would round twice.
    let odd = (1i64 << 60) + (1 << 36) + 1;
    check(&wide(Type::Long, Type::Float), &[longs(&[Some(odd)])], &floats(&[Some(odd as f32)]));
    check(&wide(Type::UnsignedByte, Type::Int), &[bytes(&[Some(255)])], &ints(&[Some(255)]));
    assert_eq!(
        refused(&wide(Type::Int, Type::UnsignedByte), &[ints(&[Some(256)])]),
        "256 does not fit into UNSIGNEDBYTE"
    );
    check(
        &wide(Type::Boolean, Type::Int),
        &[truths(&[Some(true), Some(false), None])],
        &ints(&[Some(1), Some(0), None]),
    );
    check(&wide(Type::Boolean, Type::Double), &[truths(&[Some(true)])], &doubles(&[Some(1.0)]));
    check(&wide(Type::Int, Type::Boolean), &[ints(&[Some(2), Some(0)])], &truths(&[Some(true), Some(false)]));
    check(&wide(Type::Bit, Type::Boolean), &[truths(&[Some(true)])], &truths(&[Some(true)]));
    check_one(&cast(null(Type::Null), Type::Int), &ints(&[None]));
}

#[test]
fn casts_to_and_from_text() {
    let to = |from, ty| cast(column(0, from), ty);
    check(
        &to(Type::Long, Type::Text),
        &[longs(&[Some(i64::MIN), None])],
        &texts(&[Some("-9223372036854775808"), None]),
    );
    let reals = doubles(&[Some(0.1), Some(1e20), Some(NAN), Some(-INFINITY), Some(2.0)]);
    check(
        &to(Type::Double, Type::Text),
        &[reals],
        &texts(&[Some("0.1"), Some("1e+20"), Some("NaN"), Some("-Infinity"), Some("2.0")]),
    );
    check(&to(Type::Float, Type::Text), &[floats(&[Some(0.1)])], &texts(&[Some("0.1")]));
    check(&to(Type::Boolean, Type::Text), &[truths(&[Some(true), None])], &texts(&[Some("true"), None]));
    let words = |words: &[&str]| [texts(&words.iter().map(|word| Some(*word)).collect::<Vec<_>>())];
    check(&to(Type::Text, Type::Int), &words(&[" 42 ", "-7"]), &ints(&[Some(42), Some(-7)]));
    check(
        &to(Type::Text, Type::Double),
        &words(&["1e3", "inf", ".5"]),
        &doubles(&[Some(1e3), Some(INFINITY), Some(0.5)]),
    );
    check(
        &to(Type::Text, Type::Boolean),
        &words(&["T", "false", "1"]),
        &truths(&[Some(true), Some(false), Some(true)]),
    );
    assert_eq!(refused(&to(Type::Text, Type::Int), &words(&["1.5"])), "'1.5' cannot be read as INTEGER");
    assert_eq!(
        refused(&to(Type::Text, Type::Short), &words(&["99999"])),
        "'99999' cannot be read as SMALLINT"
    );
    assert_eq!(refused(&to(Type::Text, Type::Boolean), &words(&["yes"])), "'yes' cannot be read as BOOLEAN");
    let long = "x".repeat(100);
    assert_eq!(
        refused(&to(Type::Text, Type::Int), &words(&[&long])),
        format!("'{}...' cannot be read as INTEGER", &long[..60])
    );
    assert_eq!(
        refused(&to(Type::Timestamp, Type::Int), &[instants(&[Some(0)])]),
        "TIMESTAMP cannot be cast to INTEGER"
    );
}

#[test]
fn chance() {
    let rand = call(Function::Rand, vec![], Type::Double);
    let columns = [longs(&[Some(1); 2000])];
    use arrow_array::cast::AsArray as _;
    let values = |expr: &Expr, context: &Context| -> Vec<f64> {
        let found = evaluate(expr, &Columns(columns.to_vec()), context).unwrap();
        found.as_primitive::<arrow_array::types::Float64Type>().values().to_vec()
    };
    let one = Context { seed: 1, place: 0 };
    let first = values(&rand, &one);
    assert!(first.iter().all(|x| (0.0..1.0).contains(x)));
    let mean = first.iter().sum::<f64>() / 2000.0;
    assert!((mean - 0.5).abs() < 0.05, "{mean}");
    assert_eq!(values(&rand, &one), first);
    assert_ne!(values(&rand, &Context { seed: 2, place: 0 }), first);
    assert_ne!(values(&rand, &Context { seed: 1, place: 1 }), first);
    let difference = arithmetic(trifid_archive_adql::tree::Operator::Subtract, rand.clone(), rand.clone());
    assert!(values(&difference, &one).iter().all(|x| *x != 0.0));
    let seeded = call(Function::Rand, vec![whole(7, Type::Long)], Type::Double);
    assert_eq!(values(&seeded, &one), values(&seeded, &Context { seed: 9, place: 3 }));
    let by_row = call(Function::Rand, vec![column(0, Type::Long)], Type::Double);
    assert_eq!(
        values(&by_row, &one),
        values(&call(Function::Rand, vec![whole(1, Type::Long)], Type::Double), &one)
    );
    let normal = values(&call(Function::NormalRandom, vec![real(10.0), real(2.0)], Type::Double), &one);
    let mean = normal.iter().sum::<f64>() / 2000.0;
    let variance = normal.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1999.0;
    assert!((mean - 10.0).abs() < 0.2 && (variance - 4.0).abs() < 0.5, "{mean} {variance}");
}

#[test]
fn a_column_of_another_type_is_our_fault() {
    let expr =
        arithmetic(trifid_archive_adql::tree::Operator::Add, column(0, Type::Int), column(0, Type::Int));
    assert!(matches!(run(&expr, &[longs(&[Some(1)])]), Err(QueryError::Internal(_))));
    let expr = call(Function::Abs, vec![], Type::Int);
    assert!(matches!(run(&expr, &[]), Err(QueryError::Internal(_))));
}
