use super::{answer_with, check, check_set, refused, sky};
use crate::error::QueryError;
use crate::reference::Limits;

#[test]
fn rows_and_conditions() {
    check("SELECT id FROM t.star", "1 2 3 4 5");
    check("SELECT id, name FROM t.star WHERE mag < 1", "1|Sirius 2|Vega");
    check("SELECT id FROM t.star WHERE mag > 1", "3 4");
    check("SELECT id FROM t.star WHERE NOT mag > 1", "1 2");
    check("SELECT id FROM t.star WHERE name LIKE '%e%' AND class IN ('A', 'B')", "2 3");
    check("SELECT id + 1 AS next, mag * 2 AS two FROM t.star WHERE id BETWEEN 2 AND 3", "3|0.0 4|2.5");
    check("SELECT id FROM t.star WHERE id <> 2 AND 10 / (id - 2) > 3", "3 4");
    check("SELECT * FROM t.empty", "");
    check("SELECT 1 + 1 AS two, 'x' AS x", "2|x");
}

#[test]
fn order_top_and_offset() {
    check("SELECT id FROM t.star ORDER BY mag", "1 2 3 4 5");
    check("SELECT id FROM t.star ORDER BY mag DESC", "5 4 3 2 1");
    check("SELECT id FROM t.star ORDER BY class DESC, id DESC", "4 5 3 2 1");
    check("SELECT TOP 2 id FROM t.star ORDER BY mag DESC", "5 4");
    check("SELECT TOP 2 id FROM t.star ORDER BY id OFFSET 3", "4 5");
    check("SELECT id FROM t.star ORDER BY id OFFSET 4", "5");
    check("SELECT id FROM t.star ORDER BY id OFFSET 9", "");
    check("SELECT TOP 0 id FROM t.star", "");
    check("SELECT TOP 3 id FROM t.star", "1 2 3");
    check("SELECT name FROM t.star ORDER BY name", "Algol Deneb Sirius Vega -");
    check("SELECT name FROM t.star ORDER BY -id", "Algol - Deneb Vega Sirius");
}

#[test]
fn inner_joins() {
    let expected = "1|V 1|B 2|V 4|I";
    check("SELECT s.id, o.band FROM t.star AS s JOIN t.obs AS o ON s.id = o.id", expected);
    check("SELECT s.id, o.band FROM t.star AS s, t.obs AS o WHERE s.id = o.id", expected);
    check("SELECT id, band FROM t.star JOIN t.obs USING (id)", expected);
    check("SELECT id, band FROM t.star NATURAL JOIN t.obs", expected);
    check(
        "SELECT s.id, o.band FROM t.star AS s JOIN t.obs AS o ON s.id = o.id AND o.flux > 5 WHERE s.mag < 1",
        "1|V 1|B",
    );
    check_set(
        "SELECT a.id, b.id FROM t.star AS a JOIN t.star AS b ON a.id < b.id AND a.class = b.class",
        "1|2 1|3 2|3",
    );
    check_set("SELECT a.id, b.id FROM t.star AS a JOIN t.star AS b ON a.mag = b.mag", "1|1 2|2 3|3 4|4");
    check("SELECT COUNT(*) AS n FROM t.star, t.obs", "30");
    check("SELECT COUNT(*) AS n FROM t.star, t.empty", "0");
    check_set(
        "SELECT a.id, o.band, b.id FROM t.star AS a JOIN t.obs AS o ON a.id = o.id \
         JOIN t.star AS b ON b.id = o.flux - 4",
        "2|V|1 4|I|3",
    );
}

#[test]
fn outer_joins() {
    check_set(
        "SELECT s.id, o.band FROM t.star AS s LEFT JOIN t.obs AS o ON s.id = o.id",
        "1|B 1|V 2|V 3|- 4|I 5|-",
    );
    check_set(
        "SELECT s.id, o.band FROM t.star AS s RIGHT JOIN t.obs AS o ON s.id = o.id",
        "-|B -|V 1|B 1|V 2|V 4|I",
    );
    check_set(
        "SELECT s.id, o.band FROM t.star AS s FULL OUTER JOIN t.obs AS o ON s.id = o.id",
        "-|B -|V 1|B 1|V 2|V 3|- 4|I 5|-",
    );
    check_set("SELECT id, band FROM t.star FULL JOIN t.obs USING (id)", "-|B 1|B 1|V 2|V 3|- 4|I 5|- 9|V");
    // A condition in ON makes partners, in WHERE it makes rows.
    check_set(
        "SELECT s.id, o.band FROM t.star AS s LEFT JOIN t.obs AS o ON s.id = o.id AND o.band = 'V'",
        "1|V 2|V 3|- 4|- 5|-",
    );
    check_set(
        "SELECT s.id, o.band FROM t.star AS s LEFT JOIN t.obs AS o ON s.id = o.id WHERE o.band = 'V'",
        "1|V 2|V",
    );
    check_set("SELECT s.id FROM t.star AS s LEFT JOIN t.obs AS o ON s.id = o.id WHERE o.id IS NULL", "3 5");
    check_set("SELECT s.id, e.x FROM t.star AS s LEFT JOIN t.empty AS e ON 1 = 1", "1|- 2|- 3|- 4|- 5|-");
    check_set(
        "SELECT e.x, s.id FROM t.empty AS e FULL JOIN t.star AS s ON e.x > s.mag",
        "-|1 -|2 -|3 -|4 -|5",
    );
    check_set(
        "SELECT s.id, o.flux FROM t.star AS s FULL JOIN t.obs AS o ON s.id > o.flux",
        "-|- -|10 -|20 -|5 -|7 1|- 2|1 3|1 4|1 5|1",
    );
}

#[test]
fn groups() {
    check("SELECT COUNT(*) AS n, COUNT(flux) AS f, SUM(flux) AS s, AVG(flux) AS a FROM t.obs", "6|5|43|8.6");
    check("SELECT COUNT(*) AS n, SUM(x) AS s, MIN(id) AS m FROM t.empty", "0|-|-");
    check("SELECT id, COUNT(*) AS n FROM t.empty GROUP BY id", "");
    check_set(
        "SELECT class, COUNT(*) AS n, MAX(mag) AS m FROM t.star GROUP BY class",
        "A|3|1.25 B|1|- K|1|NaN",
    );
    check_set("SELECT id, COUNT(*) AS n FROM t.obs GROUP BY id", "-|1 1|2 2|1 4|1 9|1");
    check("SELECT band, SUM(flux) AS s FROM t.obs GROUP BY band HAVING COUNT(*) > 1 ORDER BY s", "V|15 B|21");
    check(
        "SELECT FLOOR(mag) AS f, COUNT(*) AS n FROM t.star GROUP BY FLOOR(mag) ORDER BY f",
        "-2.0|1 0.0|1 1.0|1 NaN|1 -|1",
    );
    check("SELECT COUNT(DISTINCT class) AS n FROM t.star", "3");
    check("SELECT COUNT(DISTINCT band) + 1 AS n, MAX(band) AS m FROM t.obs WHERE id > 0", "4|V");
    check("SELECT COUNT(*) AS n FROM t.star HAVING COUNT(*) > 9", "");
    check("SELECT band FROM t.obs GROUP BY band ORDER BY COUNT(*) DESC, band", "V B I");
}

#[test]
fn distinct_rows() {
    check("SELECT DISTINCT class FROM t.star", "A K B");
    check("SELECT DISTINCT TOP 2 class FROM t.star ORDER BY class DESC", "K B");
    check("SELECT DISTINCT id FROM t.obs ORDER BY id", "1 2 4 9 -");
    check("SELECT COUNT(*) AS n FROM (SELECT DISTINCT band, flux > 6 AS big FROM t.obs) AS d", "6");
}

#[test]
fn sets() {
    check("SELECT id FROM t.star UNION ALL SELECT id FROM t.obs", "1 2 3 4 5 1 1 2 4 9 -");
    check("SELECT id FROM t.star UNION SELECT id FROM t.obs", "1 2 3 4 5 9 -");
    check("SELECT id FROM t.obs INTERSECT SELECT id FROM t.star", "1 2 4");
    check("SELECT id FROM t.obs INTERSECT ALL SELECT id FROM t.star", "1 2 4");
    check("SELECT id FROM t.obs INTERSECT ALL SELECT id FROM t.obs", "1 1 2 4 9 -");
    check("SELECT id FROM t.obs EXCEPT SELECT id FROM t.star", "9 -");
    check("SELECT id FROM t.obs EXCEPT ALL SELECT id FROM t.star", "1 9 -");
    check("SELECT band FROM t.obs EXCEPT SELECT 'V' AS v FROM t.obs", "B I");
    check("SELECT id FROM t.star EXCEPT SELECT id FROM t.empty", "1 2 3 4 5");
    check(
        "SELECT id FROM t.star WHERE id < 3 UNION SELECT id FROM t.obs INTERSECT SELECT id FROM t.star WHERE id > 3",
        "1 2 4",
    );
    check("SELECT TOP 3 id FROM t.star", "1 2 3");
    check("SELECT id FROM t.star UNION SELECT id FROM t.obs ORDER BY id DESC", "- 9 5 4 3 2 1");
}

#[test]
fn queries_in_conditions() {
    check("SELECT id FROM t.star AS s WHERE EXISTS (SELECT * FROM t.obs AS o WHERE o.id = s.id)", "1 2 4");
    check("SELECT id FROM t.star AS s WHERE NOT EXISTS (SELECT * FROM t.obs AS o WHERE o.id = s.id)", "3 5");
    check("SELECT id FROM t.star WHERE EXISTS (SELECT * FROM t.empty)", "");
    check("SELECT id FROM t.star WHERE id IN (SELECT id FROM t.obs)", "1 2 4");
    // One NULL among the values: nothing is known not to be there.
    check("SELECT id FROM t.star WHERE id NOT IN (SELECT id FROM t.obs)", "");
    check("SELECT id FROM t.star WHERE id NOT IN (SELECT id FROM t.obs WHERE id > 0)", "3 5");
    check("SELECT id FROM t.star WHERE name NOT IN (SELECT name FROM t.star WHERE id < 3)", "3 5");
    check("SELECT id FROM t.star WHERE name NOT IN (SELECT band FROM t.obs WHERE id > 99)", "1 2 3 4 5");
    check("SELECT id FROM t.star AS s WHERE 'V' IN (SELECT band FROM t.obs AS o WHERE o.id = s.id)", "1 2");
    check(
        "SELECT id FROM t.star AS s WHERE 20 NOT IN (SELECT flux FROM t.obs AS o WHERE o.id = s.id)",
        "2 3 4 5",
    );
}

#[test]
fn queries_as_values() {
    check("SELECT id FROM t.star WHERE mag = (SELECT MIN(mag) FROM t.star)", "1");
    check(
        "SELECT id, (SELECT MAX(flux) FROM t.obs AS o WHERE o.id = s.id) AS f FROM t.star AS s",
        "1|20 2|5 3|- 4|7 5|-",
    );
    check("SELECT id FROM t.star WHERE id = (SELECT id FROM t.empty)", "");
    assert_eq!(
        refused("SELECT id FROM t.star WHERE id = (SELECT id FROM t.obs)"),
        "a query that is used as a value gave more than one row"
    );
    check(
        "SELECT id FROM t.star AS s WHERE EXISTS (SELECT * FROM t.obs AS o WHERE o.id = s.id AND o.flux = \
         (SELECT MAX(p.flux) FROM t.obs AS p WHERE p.id = o.id AND p.id < s.id + 1 AND p.band = o.band) \
         AND o.band = 'B')",
        "1",
    );
    // Only the rows that reach it ask.
    check(
        "SELECT id FROM t.star AS s WHERE id > 1 AND 1 = (SELECT COUNT(*) FROM t.obs AS o WHERE o.id = s.id)",
        "2 4",
    );
    check(
        "SELECT CASE WHEN id > 1 THEN (SELECT MAX(flux) FROM t.obs AS o WHERE o.id = s.id) ELSE 0 END AS f \
         FROM t.star AS s",
        "0 5 - 7 -",
    );
}

#[test]
fn derived_tables() {
    check(
        "SELECT d.n FROM (SELECT class, COUNT(*) AS n FROM t.star GROUP BY class) AS d WHERE d.class = 'A'",
        "3",
    );
    check(
        "WITH a AS (SELECT id FROM t.star WHERE class = 'A') SELECT x.id FROM a AS x JOIN a AS y ON x.id = y.id - 1",
        "1 2",
    );
    check(
        "WITH a AS (SELECT id FROM t.star WHERE class = 'A') SELECT s.id FROM t.star AS s WHERE \
         (SELECT COUNT(*) FROM a JOIN a AS b ON a.id <= b.id WHERE a.id = s.id) > 1",
        "1 2",
    );
    check(
        "SELECT s.id, d.m FROM t.star AS s LEFT JOIN \
         (SELECT TOP 1 id, flux AS m FROM t.obs ORDER BY flux DESC) AS d ON d.id = s.id",
        "1|- 2|- 3|- 4|- 5|-",
    );
    check("SELECT TOP 1 flux FROM (SELECT TOP 3 flux FROM t.obs ORDER BY flux) AS d ORDER BY flux DESC", "7");
}

#[test]
fn conditions_fail_only_where_they_are_reached() {
    check(
        "SELECT s.id FROM t.star AS s JOIN t.obs AS o ON s.id = o.id WHERE 10 / (o.flux - 1) > 2 AND o.id = 2",
        "",
    );
    assert_eq!(refused("SELECT 1 / (id - 3) AS x FROM t.star"), "division by zero in 1 / 0");
    // The row that fails has no partner.
    check("SELECT s.id FROM t.star AS s JOIN t.obs AS o ON s.id = o.id WHERE 1 / (s.id - 3) = 1", "4");
}

#[test]
fn what_is_held_is_bounded() {
    let few = Limits { rows: 3, bytes: 1 << 20 };
    let too_large = |text: &str| match answer_with(text, &sky(), few) {
        Err(QueryError::TooLarge(message)) => {
            assert_eq!(&*message, "the query needs more than 3 rows in memory at once");
        }
        other => panic!("{other:?}"),
    };
    too_large("SELECT id FROM t.star ORDER BY mag");
    too_large("SELECT s.id FROM t.star AS s JOIN t.obs AS o ON s.id = o.id");
    too_large("SELECT DISTINCT id FROM t.star");
    too_large("SELECT id, COUNT(*) AS n FROM t.star GROUP BY id");
    too_large("SELECT id FROM t.star WHERE id NOT IN (SELECT flux FROM t.obs WHERE flux > 0)");
    too_large("SELECT id FROM t.empty EXCEPT SELECT id FROM t.star");
    let bytes = Limits { rows: 100, bytes: 10 };
    let error = answer_with("SELECT id FROM t.star ORDER BY mag", &sky(), bytes).unwrap_err();
    assert!(matches!(error, QueryError::TooLarge(_)));
    // What only passes through is not.
    assert_eq!(answer_with("SELECT id FROM t.star WHERE id > 1", &sky(), few).unwrap().len(), 4);
}
