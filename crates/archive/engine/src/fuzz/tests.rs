use proptest::prelude::*;
use trifid_archive_adql::functions::table::{DEFINITIONS, Definition, Form, Wants};

use super::answered;
use super::tables::TYPES;

/// Values that fit an argument.
fn candidates(wants: Wants) -> &'static [&'static str] {
    match wants {
        Wants::Double | Wants::Number => &["real_", "single", "long", "whole", "small", "0.5", "NULL"],
        Wants::Long => &["whole", "small", "3", "NULL"],
        Wants::Text => &["txt", "'M 31'", "NULL"],
        Wants::TextLiteral => &["'ICRS'", "'GALACTIC'", "'m'", "'Hz'"],
        Wants::Timestamp => &["instant", "txt", "'2024-05-06T07:08:09'"],
        Wants::Point => &["pt", "POINT(real_, real_)", "POINT(10, 20)"],
        Wants::Geometry => &["pt", "circ", "poly", "reg", "CIRCLE(1, 2, 3)", "NULL"],
        Wants::Any => &["real_", "long", "txt", "truth", "instant", "pt", "arr"],
    }
}

/// Runs a function with the same candidate in every place, and one place after the other with each.
fn calls(definition: &Definition, form: &Form) -> usize {
    let mut understood = 0;
    let firsts: Vec<&str> = form.parameters.iter().map(|parameter| candidates(parameter.wants)[0]).collect();
    let mut run = |arguments: &[&str]| {
        for name in definition.names {
            let text = format!("SELECT {name}({}) AS x FROM t.types", arguments.join(", "));
            understood += usize::from(answered(&text).is_some());
        }
    };
    run(&firsts);
    for (place, parameter) in form.parameters.iter().enumerate() {
        for candidate in candidates(parameter.wants) {
            let mut arguments = firsts.clone();
            arguments[place] = candidate;
            run(&arguments);
            if form.variadic {
                arguments.push(candidate);
                run(&arguments);
            }
        }
    }
    understood
}

/// What is declared is supported: everything that can be called has values, or a message about its arguments.
#[test]
fn every_function_runs() {
    let mut silent = Vec::new();
    for definition in DEFINITIONS {
        let understood: usize = definition.forms.iter().map(|form| calls(definition, form)).sum();
        if understood == 0 && !definition.forms.is_empty() {
            silent.push(definition.names[0]);
        }
    }
    // These refuse a NULL position, or other words than units.
    assert_eq!(silent, ["IN_UNIT", "ivo_epoch_prop", "ivo_epoch_prop_pos", "gavo_specconv"]);
    for call in [
        "ivo_epoch_prop(10, 20, real_, single, small, NULL, 2000, 2016)",
        "ivo_epoch_prop_pos(10, 20, real_, single, small, NULL, 2000, 2016)",
        "gavo_specconv(real_, 'nm', 'Hz')",
    ] {
        assert_eq!(answered(&format!("SELECT {call} AS x FROM t.types")), Some(5), "{call}");
    }
}

#[test]
fn every_column_is_shown_counted_and_cast() {
    for (column, _) in TYPES {
        for text in [
            format!("SELECT {column} FROM t.types"),
            format!("SELECT DISTINCT {column} FROM t.types"),
            format!("SELECT COUNT({column}) AS n FROM t.types"),
            format!("SELECT a.{column} FROM t.types AS a LEFT JOIN t.few AS f ON f.whole = a.whole"),
            format!("SELECT {column} FROM t.types UNION ALL SELECT {column} FROM t.types"),
            format!("SELECT CASE WHEN whole > 0 THEN {column} END AS x FROM t.types"),
        ] {
            assert!(answered(&text).is_some(), "{text}");
        }
        for ty in
            ["SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE PRECISION", "VARCHAR", "CHAR(2)", "TIMESTAMP"]
        {
            let _ = answered(&format!("SELECT CAST({column} AS {ty}) AS x FROM t.types"));
        }
        for (other, _) in TYPES {
            let _ = answered(&format!(
                "SELECT {column} FROM t.types WHERE {column} = {other} OR {column} < {other}"
            ));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn made_queries_are_answered(data in prop::collection::vec(any::<u8>(), 0..200)) {
        super::made(&data);
    }
}

/// Enough of what is made means something and has rows.
#[test]
fn made_queries_have_meaning() {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let answered = (0..400).filter(|_| {
        let data: Vec<u8> = (0..120).map(|_| next()).collect();
        answered(&super::generate::query(&data)).is_some_and(|rows| rows > 0)
    });
    assert!(answered.count() > 60);
}
