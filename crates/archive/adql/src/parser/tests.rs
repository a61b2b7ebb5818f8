use super::*;
use crate::ast::{Body, ExprKind, Item, Select};

/// `text` is a query, printed as `canonical`, and what was printed is the same query.
fn check(text: &str, canonical: &str) {
    let query = read(text);
    assert_eq!(query.to_string(), canonical, "{text}");
    assert_eq!(read(canonical), query, "{text}");
}

/// `text` is canonical already.
fn same(text: &str) {
    check(text, text);
}

fn read(text: &str) -> Query {
    parse(text, Language::V2_1).unwrap_or_else(|error| panic!("{}", error.report(text)))
}

/// `text` is refused at `line` and `column`; the message and its hint contain `words`.
fn refused(text: &str, line: usize, column: usize, words: &[&str]) {
    let error = parse(text, Language::V2_1).expect_err(text);
    let report = error.report(text).to_string();
    assert!(report.starts_with(&format!("line {line}, column {column}: ")), "{text}\n{report}");
    for word in words {
        assert!(report.contains(word), "{text}: {word} is missed in\n{report}");
    }
}

/// A condition, printed again.
fn condition(text: &str, canonical: &str) {
    check(&format!("SELECT a FROM t WHERE {text}"), &format!("SELECT a FROM t WHERE {canonical}"));
}

/// An expression of a select list, printed again.
fn value(text: &str, canonical: &str) {
    check(&format!("SELECT {text} FROM t"), &format!("SELECT {canonical} FROM t"));
}

fn select(query: &Query) -> &Select {
    match &query.body {
        Body::Select(select) => select,
        other => panic!("not one SELECT: {other:?}"),
    }
}

#[test]
fn select_has_its_clauses() {
    same("SELECT 1");
    same("SELECT * FROM t");
    same("SELECT t.*, s.t.*, c.s.t.* FROM c.s.t");
    check("select all ra r, dec as d from s.t as x", "SELECT ra AS r, dec AS d FROM s.t AS x");
    same(
        "SELECT DISTINCT TOP 5 a AS b FROM t WHERE a > 1 GROUP BY a, b + 1 HAVING COUNT(*) > 2 ORDER BY 1 DESC, b \
         OFFSET 10",
    );
    check("SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY a");
}

#[test]
fn what_people_paste_is_understood() {
    check("SELECT TOP 5 DISTINCT a FROM t;", "SELECT DISTINCT TOP 5 a FROM t");
    check("SELECT TOP 5 ALL a FROM t ; ;", "SELECT TOP 5 a FROM t");
    check("SELECT a /* why */ FROM t -- here\n WHERE c!=0;\n", "SELECT a FROM t WHERE c <> 0");
    check("SELECT\u{a0}a\u{a0}FROM t", "SELECT a FROM t");
    same("SELECT \"I/355/gaiadr3\".\"e_Plx\" FROM \"I/355/gaiadr3\" WHERE _RAJ2000 < 5");
    same("SELECT a FROM t WHERE CONTAINS(POINT('ICRS', ra, dec), CIRCLE('ICRS', 1, 2, 3))");
    same("SELECT a FROM t WHERE 1 = CONTAINS(POINT(ra, dec), BOX(1, 2, 3, 4)) AND INTERSECTS(s_region, r)");
    value("TIMESTAMP '2020-01-01T00:00:00'", "CAST('2020-01-01T00:00:00' AS TIMESTAMP)");
    value("DATE'2020-01-01'", "CAST('2020-01-01' AS TIMESTAMP)");
}

#[test]
fn reserved_words_are_names_where_nothing_else_fits() {
    same(
        "SELECT size, date, time, year, user, public, distance, count, value, point, level, section, min FROM t",
    );
    same("SELECT dec, desc, offset, timestamp + 1, interval, cast, limit, fetch FROM t ORDER BY desc DESC");
    same("SELECT t.order, t.group.select, order.x FROM s.table AS from WHERE t.union = 1");
    same("SELECT MAX(size), MIN(value) AS min, COUNT(*) AS count FROM public.date AS user GROUP BY level");
    same("SELECT top.a, distinct.b FROM t AS top JOIN u AS distinct USING (size)");
    check("SELECT a size, b value FROM t date", "SELECT a AS size, b AS value FROM t AS date");
    check("SELECT a limit FROM t fetch, u over", "SELECT a AS limit FROM t AS fetch, u AS over");
    refused("SELECT group FROM t", 1, 8, &["found the word GROUP", "as a name write \"group\""]);
    refused("SELECT a FROM t WHERE order = 1", 1, 23, &["a value", "write \"order\""]);
    refused("SELECT a FROM table1 JOIN union ON 1=1", 1, 27, &["a table", "write \"union\""]);
    refused("SELECT from, to FROM t", 1, 8, &["write \"from\""]);
    refused("SELECT MAX(a), group FROM t", 1, 16, &["write \"group\""]);
    refused("SELECT a FROM t WHERE a = end", 1, 27, &["write \"end\""]);
}

#[test]
fn offset_is_a_name_in_2_0() {
    let text = "SELECT a offset FROM t offset OFFSET 3";
    let query = parse(text, Language::V2_0).unwrap();
    assert_eq!(query.to_string(), "SELECT a AS offset FROM t AS offset OFFSET 3");
    refused(text, 1, 17, &["a whole number after OFFSET"]);
}

#[test]
fn operators_bind_as_in_sql() {
    value("a - b - c", "a - b - c");
    value("(a - b) - c", "a - b - c");
    value("a - (b - c)", "a - (b - c)");
    value("a / b * c", "a / b * c");
    value("a / (b * c)", "a / (b * c)");
    value("(a + b) * c - d", "(a + b) * c - d");
    value("a + (b * c)", "a + b * c");
    value("-a * b", "-a * b");
    value("-(a * b)", "-(a * b)");
    value("- - a", "-(-a)");
    value("-(-(+a))", "-(-(+a))");
    value("a - -b", "a - -b");
    value("-1 - -2", "-1 - -2");
    value("a || b || 'c'", "a || b || 'c'");
    value("a || (b || c)", "a || (b || c)");
    value("a + b || c", "a + b || c");
    value("(a || b) + c", "(a || b) + c");
    condition("a = 1 OR b = 2 AND NOT c = 3", "a = 1 OR b = 2 AND NOT c = 3");
    condition("(a = 1 OR b = 2) AND (c OR d)", "(a = 1 OR b = 2) AND (c OR d)");
    condition("a AND (b AND c) AND d", "a AND (b AND c) AND d");
    condition("((a AND b)) AND c", "(a AND b) AND c");
    condition("NOT (a AND b)", "NOT (a AND b)");
    condition("NOT NOT a = b", "NOT NOT a = b");
    condition("(NOT a) = b", "(NOT a) = b");
    condition("(a = b) = (c = d)", "(a = b) = (c = d)");
    condition("a = b IS NOT TRUE", "(a = b) IS NOT TRUE");
    condition("NOT a IS NULL", "NOT a IS NULL");
    condition("a + 1 < b * 2", "a + 1 < b * 2");
}

#[test]
fn predicates_have_every_form() {
    condition("a between 1 and 2 and b not between 3 and 4", "a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4");
    condition("a in (1, 2) or a not in (select b from u)", "a IN (1, 2) OR a NOT IN (SELECT b FROM u)");
    condition("a IN ((SELECT b FROM u))", "a IN (SELECT b FROM u)");
    condition("a IN ((SELECT b FROM u), 2)", "a IN ((SELECT b FROM u), 2)");
    condition("a IN ((1), (2) + 3)", "a IN (1, 2 + 3)");
    condition("a LIKE 'x%' AND b NOT ILIKE c || '_'", "a LIKE 'x%' AND b NOT ILIKE c || '_'");
    condition("a IS NULL AND b IS NOT NULL AND c IS TRUE", "a IS NULL AND b IS NOT NULL AND c IS TRUE");
    condition("c IS NOT FALSE", "c IS NOT FALSE");
    condition("EXISTS (SELECT 1) AND NOT EXISTS ((SELECT 2))", "EXISTS (SELECT 1) AND NOT EXISTS (SELECT 2)");
    condition("a > (SELECT MAX(b) FROM u)", "a > (SELECT MAX(b) FROM u)");
}

#[test]
fn operands_have_every_form() {
    value("CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END", "CASE WHEN a THEN 1 WHEN b THEN 2 ELSE 3 END");
    value("case a when 1 then 'x' end", "CASE a WHEN 1 THEN 'x' END");
    value("CAST(a AS varchar(10))", "CAST(a AS VARCHAR(10))");
    value("CAST(a AS double)", "CAST(a AS DOUBLE PRECISION)");
    value("CAST(a AS double precision)", "CAST(a AS DOUBLE PRECISION)");
    value("CAST(a AS character varying(3))", "CAST(a AS VARCHAR(3))");
    value("CAST(a AS int)", "CAST(a AS INTEGER)");
    value("CAST('1 2' AS POINT)", "CAST('1 2' AS POINT)");
    value("COUNT(*), COUNT(DISTINCT a), SUM(ALL b), PI()", "COUNT(*), COUNT(DISTINCT a), SUM(b), PI()");
    value("gavo.f(1)", "gavo.f(1)");
    value("NULL, TRUE, false", "NULL, TRUE, FALSE");
    value("0x10, 1.e3, .5, 1e-7, 9223372036854775808", "16, 1000.0, 0.5, 1e-7, 9.223372036854776e18");
    value("'it''s' 'two'", "'it''stwo'");
    value("c.s.t.a, \"a\"\"b\"", "c.s.t.a, \"a\"\"b\"");
    value("t . a", "t.a");
}

#[test]
fn tables_join() {
    same("SELECT a FROM t, u AS v, s.w");
    same("SELECT a FROM t JOIN u ON t.a = u.a LEFT JOIN v USING (a, b) NATURAL JOIN w");
    check("SELECT a FROM t INNER JOIN u USING (a)", "SELECT a FROM t JOIN u USING (a)");
    check("SELECT a FROM t FULL OUTER JOIN u ON b", "SELECT a FROM t FULL JOIN u ON b");
    check("SELECT a FROM t NATURAL RIGHT OUTER JOIN u", "SELECT a FROM t NATURAL RIGHT JOIN u");
    check("SELECT a FROM t JOIN u, v", "SELECT a FROM t CROSS JOIN u, v");
    same("SELECT a FROM t JOIN (u JOIN v ON b) ON c");
    check("SELECT a FROM (t JOIN u ON b) JOIN v ON c", "SELECT a FROM t JOIN u ON b JOIN v ON c");
    check("SELECT a FROM ((t))", "SELECT a FROM t");
    check("SELECT a FROM (t JOIN u ON b) AS x (c)", "SELECT a FROM (SELECT * FROM t JOIN u ON b) AS x (c)");
    check("SELECT a FROM ((t) x NATURAL JOIN u)", "SELECT a FROM (SELECT * FROM t) AS x NATURAL JOIN u");
    same("SELECT a FROM (SELECT b FROM u) AS v (a) JOIN w AS x (c) ON d");
    check("SELECT a FROM (((SELECT 1) UNION SELECT 2)) x", "SELECT a FROM (SELECT 1 UNION SELECT 2) AS x");
    check("SELECT a FROM ((SELECT 1) AS x JOIN t ON b)", "SELECT a FROM (SELECT 1) AS x JOIN t ON b");
    check("SELECT a FROM ((SELECT 1) x)", "SELECT a FROM (SELECT 1) AS x");
    same("SELECT a FROM TAP_UPLOAD.mine AS m, c.s.t");
}

#[test]
fn queries_combine() {
    same("SELECT 1 UNION SELECT 2 UNION ALL SELECT 3");
    same("SELECT 1 UNION (SELECT 2 EXCEPT SELECT 3)");
    check("(SELECT 1 EXCEPT SELECT 2) UNION SELECT 3", "SELECT 1 EXCEPT SELECT 2 UNION SELECT 3");
    check("SELECT 1 UNION (SELECT 2 INTERSECT SELECT 3)", "SELECT 1 UNION SELECT 2 INTERSECT SELECT 3");
    same("(SELECT 1 UNION SELECT 2) INTERSECT SELECT 3");
    same("SELECT 1 INTERSECT (SELECT 2 INTERSECT ALL SELECT 3)");
    same("(SELECT a FROM t ORDER BY a) UNION SELECT b FROM u ORDER BY 1 OFFSET 2");
    check("SELECT 1 UNION DISTINCT SELECT 2", "SELECT 1 UNION SELECT 2");
    same("SELECT TOP 1 a FROM t UNION SELECT TOP 2 b FROM u ORDER BY a");
    same("(SELECT TOP 5 a FROM t) ORDER BY a");
    check("(SELECT TOP 5 a FROM t)", "SELECT TOP 5 a FROM t");
    check("((SELECT a FROM t ORDER BY a))", "SELECT a FROM t ORDER BY a");
    same("WITH a AS (SELECT 1), b (x, y) AS (SELECT 1, 2) SELECT * FROM a, b");
    value("((SELECT 1) UNION SELECT 2)", "(SELECT 1 UNION SELECT 2)");
    value("((SELECT 1) + 2)", "(SELECT 1) + 2");
    value("(((SELECT 1)))", "(SELECT 1)");
    value("((a) + b) * c", "(a + b) * c");
    condition(
        "(SELECT 1) > 0 AND ((SELECT 2) ORDER BY 1) > 0",
        "(SELECT 1) > 0 AND (SELECT 2 ORDER BY 1) > 0",
    );
}

#[test]
fn slots_count_literal_tokens() {
    let query = read("SELECT TOP 7 'a' || 'b' 'c', NULL, CAST(x AS CHAR(3)) FROM t WHERE y = -4 OFFSET 5");
    let select = select(&query);
    assert_eq!(*select.top.as_ref().unwrap().slot, Some(0));
    let Item::Expr { expr, .. } = &select.items[0] else { panic!("an expression") };
    let ExprKind::Concat(operands) = &expr.kind else { panic!("a concatenation") };
    let slots: Vec<_> = operands
        .iter()
        .map(|operand| match &operand.kind {
            ExprKind::Literal(literal) => *literal.slot,
            other => panic!("a literal, not {other:?}"),
        })
        .collect();
    assert_eq!(slots, [Some(1), Some(2)]);
    let Item::Expr { expr, .. } = &select.items[2] else { panic!("an expression") };
    let ExprKind::Cast(_, target) = &expr.kind else { panic!("a cast") };
    assert_eq!(*target.length.as_ref().unwrap().slot, Some(3));
    assert_eq!(*query.offset.unwrap().slot, Some(5));
}

#[test]
fn nodes_know_their_places() {
    let text = "SELECT (a + b) * 2 AS \"x y\" FROM s . t AS u WHERE f(1, 2) > 3";
    let query = read(text);
    let select = select(&query);
    let at = |span: Span| &text[span.range()];
    let Item::Expr { expr, alias } = &select.items[0] else { panic!("an expression") };
    assert_eq!(at(expr.span()), "(a + b) * 2");
    assert_eq!(at(alias.as_ref().unwrap().span()), "\"x y\"");
    let crate::ast::TableExpr::Table { name, .. } = &select.from[0] else { panic!("a table") };
    assert_eq!(at(name.span()), "s . t");
    assert_eq!(at(select.filter.as_ref().unwrap().span()), "f(1, 2) > 3");
    assert_eq!(at(query.span()), text);
}

#[test]
fn mistakes_name_what_was_expected() {
    refused("", 1, 1, &["the query is empty"]);
    refused(" -- nothing\n", 2, 1, &["the query is empty"]);
    refused("SELECT", 1, 7, &["a value", "found the end of the query"]);
    refused("SELCT ra FROM t", 1, 1, &["expected SELECT", "did you mean SELECT?"]);
    refused("DELETE FROM t", 1, 1, &["expected SELECT", "nothing else is answered"]);
    refused("SELECT ra FORM t", 1, 16, &["FROM", "did you mean FROM instead of FORM?"]);
    refused("SELECT ra FROM t WEHRE ra > 1", 1, 24, &["did you mean WHERE instead of WEHRE?"]);
    refused(
        "SELECT ra FROM t WHERE a = 1 ADN b = 2",
        1,
        30,
        &["AND, OR", "did you mean AND instead of ADN?"],
    );
    refused("SELECT ra FROM t ORDER ra", 1, 24, &["expected BY, found the word ra"]);
    refused("SELECT ra, FROM t", 1, 12, &["found the word FROM", "a comma too many"]);
    refused("SELECT ra FROM t GROUP BY a, ORDER BY a", 1, 30, &["a comma too many"]);
    refused("SELECT f(a, ) FROM t", 1, 13, &["a comma too many"]);
    refused("SELECT a FROM t WHERE name = O'Brien", 1, 31, &["doubled"]);
    refused("SELECT a FROM t WHERE name = \"O", 1, 30, &["texts in single ones"]);
    refused("SELECT ra,\n  dec dec2 x\nFROM t", 2, 12, &["found the word x", "             ^"]);
    refused("SELECT TOP ra FROM t", 1, 12, &["a whole number after TOP"]);
    refused("SELECT TOP 1.5 ra FROM t", 1, 12, &["a whole number", "the number 1.5"]);
    refused("SELECT ra FROM t LIMIT 10", 1, 18, &["found the word LIMIT", "SELECT TOP n"]);
    refused("SELECT ra FROM t WHERE a = 1 LIMIT 10", 1, 30, &["SELECT TOP n"]);
    refused("SELECT ra FROM t FETCH FIRST 5 ROWS ONLY", 1, 18, &["SELECT TOP n"]);
    refused("SELECT RANK() OVER (ORDER BY a) FROM t", 1, 15, &["window functions"]);
    refused("SELECT ra INTO x FROM t", 1, 16, &["cannot write into a table"]);
    refused("SELECT a FROM t WHERE a = b = c", 1, 29, &["comparisons do not chain"]);
    refused("SELECT a FROM t WHERE a < b BETWEEN 1 AND 2", 1, 29, &["comparisons do not chain"]);
    refused("SELECT a FROM t WHERE a = NOT b", 1, 27, &["a value, found the word NOT"]);
    refused("SELECT a FROM t WHERE a IN ()", 1, 29, &["at least one value"]);
    refused("SELECT a FROM t WHERE a IS b", 1, 28, &["NOT, NULL, TRUE or FALSE"]);
    refused("SELECT a FROM t WHERE EXISTS (a)", 1, 32, &["a query after EXISTS"]);
    refused("SELECT a FROM t WHERE f(SELECT 1)", 1, 25, &["stands in parentheses"]);
    refused("SELECT CAST(a AS FLAOT) FROM t", 1, 18, &["a type", "did you mean FLOAT?"]);
    refused("SELECT CAST(a AS DATE) FROM t", 1, 18, &["TIMESTAMP"]);
    refused("SELECT INTERVAL '1' DAY FROM t", 1, 8, &["not supported"]);
    refused("SELECT CASE a END FROM t", 1, 15, &["expected WHEN"]);
    refused("SELECT CASE WHEN a THEN b FROM t", 1, 27, &["WHEN, ELSE or END"]);
    refused("SELECT MAX(t.*) FROM t", 1, 12, &["the name of a column"]);
    refused("SELECT a.b.c.d.e FROM t", 1, 16, &["catalog.schema.table.column"]);
    refused("SELECT a FROM a.b.c.d", 1, 21, &["catalog.schema.table"]);
    refused("SELECT a.b.f(1) FROM t", 1, 8, &["not supported"]);
    refused("SELECT a 'x' FROM t", 1, 10, &["names in double quotes"]);
    refused("SELECT a FROM 't'", 1, 15, &["the name of a table", "names in double quotes"]);
    refused("SELECT a FROM t JOIN u LEFT JOIN v", 1, 35, &["ON or USING"]);
    refused("SELECT a FROM t CROSS JOIN u ON b", 1, 30, &["CROSS JOIN has none"]);
    refused("SELECT a FROM t NATURAL JOIN u USING (b)", 1, 32, &["NATURAL JOIN has none"]);
    refused("SELECT a FROM t LEFT u", 1, 22, &["expected JOIN"]);
    refused("SELECT a FROM (t, u)", 1, 17, &["CROSS JOIN"]);
    refused("SELECT a FROM f(1)", 1, 15, &["a function that gives a table"]);
    refused("SELECT a FROM (SELECT b FROM u", 1, 31, &["WHERE", "or `)`"]);
    refused("SELECT (a + b FROM t", 1, 15, &["an operator or `)`"]);
    refused("SELECT f(a b) FROM t", 1, 12, &["`,`, an operator or `)`"]);
    refused("SELECT a FROM t; SELECT b FROM t", 1, 18, &["one at a time"]);
    refused("SELECT a FROM t WHERE a LIKE 'x' ESCAPE '\\'", 1, 34, &["no ESCAPE"]);
    refused("SELECT a FROM t ORDER BY a NULLS LAST", 1, 28, &["fixed"]);
    refused("SELECT a FROM t MINUS SELECT a FROM u", 1, 23, &["EXCEPT"]);
    refused("WITH x AS SELECT 1", 1, 11, &["`(` and a query"]);
    refused("WITH RECURSIVE x AS (SELECT 1) SELECT 1", 1, 16, &["WITH RECURSIVE is not supported"]);
    refused("SELECT 1 UNION", 1, 15, &["expected SELECT"]);
    refused("SELECT a FROM t WHERE ra = ‘x’", 1, 28, &["typographic quote"]);
    refused("SELECT 2mass FROM t", 1, 8, &["\"2mass\""]);
    refused("SELECT TOP 9223372036854775808 a FROM t", 1, 12, &["too large"]);
}

/// A word that structures a query is no name, and no hint says so.
#[test]
fn hints_do_not_mislead() {
    for text in [
        "SELECT TOP 10 FROM t",
        "SELECT * FROM WHERE a = 1",
        "SELECT a FROM t WHERE a > 1 AND AND b < 2",
        "SELECT a FROM t WHERE a > 1 AND",
        "SELECT a FROM t WHERE a <> ALL (SELECT 1)",
        "SELECT a FROM t WHERE a = AND",
        "SELECT a FROM t WHERE ORDER BY a",
        "SELECT a FROM t UNION SELECT",
    ] {
        assert_eq!(parse(text, Language::V2_1).unwrap_err().hint, None, "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    let deep = |open: &str, core: &str, close: &str, count: usize| {
        let text = format!("SELECT {}{core}{} FROM t", open.repeat(count), close.repeat(count));
        parse(&text, Language::V2_1)
    };
    for (open, core, close) in [
        ("(", "1", ")"),
        ("NOT ", "a", ""),
        ("- ", "a", ""),
        ("f(", "a", ")"),
        ("1 + (", "a", ")"),
        ("CASE WHEN a THEN ", "b", " END"),
        ("CASE ", "b", " WHEN a THEN 1 END"),
        ("CAST(", "b", " AS REAL)"),
        ("(SELECT ", "1", ")"),
        ("((SELECT 1) + ", "1", ")"),
        ("EXISTS (SELECT a FROM t WHERE ", "a", ")"),
        ("a IN (", "a", ")"),
        ("a BETWEEN (", "a", ") AND 2"),
        ("(a OR b AND c = d || e + f * -(", "a", "))"),
    ] {
        assert!(deep(open, core, close, 12).is_ok(), "{open}");
        let error = deep(open, core, close, 20_000).unwrap_err();
        assert_eq!(error.problem, Problem::TooDeep, "{open}");
    }
    for (open, core, close) in [("(", "t", ")"), ("(SELECT a FROM ", "t", ") x"), ("(", "(SELECT 1) x", ")")]
    {
        let query = |count| format!("SELECT a FROM {}{core}{}", open.repeat(count), close.repeat(count));
        assert!(parse(&query(20), Language::V2_1).is_ok(), "{open}");
        assert_eq!(parse(&query(20_000), Language::V2_1).unwrap_err().problem, Problem::TooDeep, "{open}");
    }
    let query = format!("{}SELECT 1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(parse(&query, Language::V2_1).unwrap_err().problem, Problem::TooDeep);
}

#[test]
fn flat_chains_may_be_long() {
    for between in [" AND ", " OR ", " AND NOT ", ", "] {
        let text = format!("SELECT a FROM t ORDER BY {}", vec!["a = 1"; 10_000].join(between));
        assert!(parse(&text, Language::V2_1).is_ok(), "{between}");
    }
    let text = format!("SELECT {}", vec!["'x'"; 10_000].join(" || "));
    assert!(parse(&text, Language::V2_1).is_ok());
    let text = format!("SELECT a FROM t WHERE a IN ({})", vec!["123456"; 100_000].join(","));
    assert!(parse(&text, Language::V2_1).is_ok());
}

#[test]
fn high_chains_are_bounded_each_for_itself() {
    let chain = |term: &str, between: &str, count| vec![term; count].join(between);
    let most = limits::HEIGHT as usize;
    for (before, term, between) in [
        ("SELECT ", "1", " + "),
        ("SELECT ", "a", " / "),
        ("", "SELECT 1", " UNION "),
        ("", "SELECT 1", " INTERSECT "),
        ("SELECT 1 FROM ", "t", " NATURAL JOIN "),
    ] {
        let text = |count| format!("{before}{}", chain(term, between, count));
        assert!(read(&text(most - 10)).to_string().len() > most, "{between}");
        assert_eq!(
            parse(&text(most + 1), Language::V2_1).unwrap_err().problem,
            Problem::TooDeep,
            "{between}"
        );
    }
    // Many chains side by side are as high as one.
    for item in ["t.a + 1", "(t.a) * 2", "((t.a) + 1)", "-x", "CASE a WHEN 1 THEN 2 END"] {
        assert!(parse(&format!("SELECT {}", chain(item, ", ", 1000)), Language::V2_1).is_ok(), "{item}");
    }
    // Parentheses around a part of a chain add up.
    let half = chain("1", " + ", most / 2);
    let text = format!("SELECT ({half} + ({half} + ({half})))");
    assert!(
        parse(&text, Language::V2_1).is_ok(),
        "right of its operators a chain adds nothing to another's height"
    );
    let text = format!("SELECT ((({half}) + {half}) + {half})");
    assert_eq!(parse(&text, Language::V2_1).unwrap_err().problem, Problem::TooDeep);
}

#[test]
fn tokens_are_bounded() {
    let text = format!("SELECT 1{}", ",1".repeat(limits::TOKENS as usize / 2));
    assert_eq!(parse(&text, Language::V2_1).unwrap_err().problem, Problem::TooManyTokens);
}

#[test]
fn messages_are_bounded() {
    let text = format!("SELECT {} FROM t t t", vec!["a_long_name"; 10_000].join(","));
    let error = parse(&text, Language::V2_1).unwrap_err();
    assert!(error.report(&text).to_string().len() < 600);
    let text = format!("SELECT a FROM t WHERE '{}' '{}' FROM", "ü".repeat(10_000), "x".repeat(10_000));
    let error = parse(&text, Language::V2_1).unwrap_err();
    assert!(error.report(&text).to_string().len() < 600);
}
