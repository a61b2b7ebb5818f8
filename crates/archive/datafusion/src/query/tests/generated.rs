//! Queries from the grammar, at random: DataFusion and the reference give the same rows, or both refuse.

use proptest::prelude::*;

use super::tables::{Dice, all};
use super::{backend, compare, resolved};

const TABLES: [&str; 5] = ["s.a", "s.b", "s.c", "s.nothing", "TAP_UPLOAD.mine"];

/// A query being written.
struct Writer {
    dice: Dice,
    /// Names of the relations that can be seen, those of selects further out first.
    seen: Vec<String>,
    names: usize,
    /// Whether integer division and the like may be written: in a subquery, whether it is computed is up to the engine.
    daring: bool,
}

impl Writer {
    fn new(seed: u64) -> Self {
        Self { dice: Dice(seed), seen: Vec::new(), names: 0, daring: true }
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.dice.roll(sides)
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len() as u64) as usize]
    }

    fn relation(&mut self) -> String {
        let place = self.roll(self.seen.len() as u64) as usize;
        self.seen[place].clone()
    }

    fn column(&mut self, columns: &[&str]) -> String {
        let relation = self.relation();
        format!("{relation}.{}", self.one_of(columns))
    }

    fn whole(&mut self, depth: u64) -> String {
        match self.roll(if depth == 0 { 3 } else { 9 }) {
            0 | 1 => self.column(&["id", "s", "i", "l"]),
            2 => self.roll(5).to_string(),
            3 => format!(
                "({} {} {})",
                self.whole(depth - 1),
                self.one_of(&["+", "-", "*"]),
                self.whole(depth - 1)
            ),
            4 if self.daring => format!("({} / {})", self.whole(depth - 1), self.whole(depth - 1)),
            5 if self.daring => format!("MOD({}, {})", self.whole(depth - 1), self.whole(depth - 1)),
            6 => format!("COALESCE({}, {})", self.whole(depth - 1), self.whole(depth - 1)),
            7 => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.truth(depth - 1),
                self.whole(depth - 1),
                self.whole(0)
            ),
            _ => format!("ABS({})", self.whole(depth - 1)),
        }
    }

    fn real(&mut self, depth: u64) -> String {
        match self.roll(if depth == 0 { 3 } else { 8 }) {
            0 => self.column(&["d", "f"]),
            1 => self.column(&["d"]),
            2 => format!("{}.5", self.roll(4)),
            3 => format!(
                "({} {} {})",
                self.real(depth - 1),
                self.one_of(&["+", "-", "*", "/"]),
                self.real(depth - 1)
            ),
            4 => format!("ROUND({}, 0)", self.real(depth - 1)),
            5 => format!("SQRT({})", self.real(depth - 1)),
            6 => {
                let (one, other) = (self.relation(), self.relation());
                format!("DISTANCE({one}.ra, {one}.dec, {other}.ra, {other}.dec)")
            }
            _ => self.whole(depth - 1),
        }
    }

    fn text(&mut self, depth: u64) -> String {
        match self.roll(if depth == 0 { 3 } else { 5 }) {
            0 | 1 => self.column(&["name"]),
            2 => format!("'{}'", self.one_of(&["vega", "", "Ä", "altair"])),
            3 => format!("({} || {})", self.text(depth - 1), self.text(depth - 1)),
            _ => format!("{}({})", self.one_of(&["UPPER", "LOWER"]), self.text(depth - 1)),
        }
    }

    fn comparison(&mut self) -> &'static str {
        self.one_of(&["=", "=", "<>", "<", "<=", ">", ">="])
    }

    fn truth(&mut self, depth: u64) -> String {
        match self.roll(if depth == 0 { 5 } else { 14 }) {
            0 => format!("{} {} {}", self.real(depth / 2), self.comparison(), self.real(depth / 2)),
            1 => format!("{} {} {}", self.whole(depth / 2), self.comparison(), self.whole(depth / 2)),
            2 => format!("{} {} {}", self.text(depth / 2), self.comparison(), self.text(depth / 2)),
            3 => format!(
                "{} IS {}NULL",
                self.column(&["d", "i", "name", "at", "ra"]),
                self.one_of(&["", "NOT "])
            ),
            4 => format!("{} = {}", self.column(&["i", "s", "id"]), self.column(&["i", "s", "l"])),
            5 => format!("({} AND {})", self.truth(depth - 1), self.truth(depth - 1)),
            6 => format!("({} OR {})", self.truth(depth - 1), self.truth(depth - 1)),
            7 => format!("NOT ({})", self.truth(depth - 1)),
            8 => format!("{} BETWEEN {} AND {}", self.real(0), self.real(0), self.real(0)),
            9 => format!(
                "{} {}IN ({}, {})",
                self.whole(0),
                self.one_of(&["", "NOT "]),
                self.whole(0),
                self.whole(0)
            ),
            10 => format!(
                "{} {}LIKE '{}'",
                self.text(0),
                self.one_of(&["", "NOT "]),
                self.one_of(&["v%", "%a%", "_e%", "%"])
            ),
            11 => self.near(),
            _ => self.asking(depth - 1),
        }
    }

    fn near(&mut self) -> String {
        let (one, other) = (self.relation(), self.relation());
        let radius = self.one_of(&["0.001", "0.5", "3", "60", "170"]);
        let (near, far) = (format!("{one}.ra, {one}.dec"), format!("{other}.ra, {other}.dec"));
        match self.roll(4) {
            0 => format!("DISTANCE({near}, {far}) < {radius}"),
            1 => format!("{radius} >= DISTANCE(POINT({near}), POINT({far}))"),
            2 => format!("DISTANCE({near}, {far}) <= {other}.d"),
            _ => format!("DISTANCE(POINT({far}), POINT({near})) < {radius}"),
        }
    }

    /// A condition with a subquery.
    fn asking(&mut self, depth: u64) -> String {
        let (daring, visible) = (self.daring, self.seen.len());
        self.daring = false;
        let name = self.name();
        let table = self.one_of(&TABLES[..4]);
        self.seen.push(name.clone());
        let tie = if self.roll(3) > 0 && visible > 0 {
            let outer = self.seen[self.dice.roll(visible as u64) as usize].clone();
            let column = self.one_of(&["i", "s", "id", "d"]);
            let comparison = self.one_of(&["=", "=", "=", "<"]);
            format!("{name}.{column} {comparison} {outer}.{column} AND ")
        } else {
            String::new()
        };
        let own = std::mem::take(&mut self.seen);
        self.seen = vec![name.clone()];
        let condition = format!("{tie}{}", self.truth(depth.min(1)));
        let (whole, real) = (self.whole(0), self.real(0));
        self.seen = own;
        self.seen.truncate(visible);
        let from = format!("FROM {table} AS {name} WHERE {condition}");
        let asked = match self.roll(5) {
            0 => format!("{} {}IN (SELECT {whole} {from})", self.whole(0), self.one_of(&["", "NOT "])),
            1 => format!("{} {}IN (SELECT {real} {from})", self.real(0), self.one_of(&["", "NOT "])),
            2 => format!(
                "{} {} (SELECT {}({real}) {from})",
                self.real(0),
                self.comparison(),
                self.one_of(&["MIN", "MAX", "COUNT", "SUM"])
            ),
            _ => format!("{}EXISTS (SELECT * {from})", self.one_of(&["", "NOT "])),
        };
        self.daring = daring;
        asked
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("x{}", self.names)
    }

    /// Relations joined; they can be seen from now on.
    fn from(&mut self) -> String {
        let first = self.leaf();
        let mut text = first;
        for _ in 0..self.roll(3) {
            match self.roll(6) {
                0 => {
                    let leaf = self.leaf();
                    text = format!("{text}, {leaf}");
                }
                kind => {
                    let word = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"][kind as usize - 1];
                    let leaf = self.leaf();
                    let on = if self.roll(4) == 0 { self.near() } else { self.plain_truth() };
                    // A comma binds less than JOIN: what is to its left cannot be seen in ON.
                    if text.contains(", ") {
                        text = format!("{text}, {leaf}");
                    } else {
                        text = format!("{text} {word} {leaf} ON {on}");
                    }
                }
            }
        }
        text
    }

    /// A condition without a subquery.
    fn plain_truth(&mut self) -> String {
        let one = self.truth(0);
        if self.roll(2) == 0 { one } else { format!("{one} AND {}", self.truth(0)) }
    }

    fn leaf(&mut self) -> String {
        let name = self.name();
        let table = self.one_of(&TABLES);
        let text = if self.roll(4) == 0 {
            let inner = self.name();
            let outer = std::mem::replace(&mut self.seen, vec![inner.clone()]);
            let daring = std::mem::replace(&mut self.daring, false);
            let columns = ["id", "s", "i", "l", "d", "f", "name", "flag", "at", "ra", "dec"];
            let mut items: Vec<String> = columns.iter().map(|column| format!("{inner}.{column}")).collect();
            items[2] = format!("{} AS i", self.whole(1));
            items[4] = format!("{} AS d", self.real(1));
            let distinct = self.one_of(&["", "", "DISTINCT "]);
            let condition = self.truth(1);
            self.seen = outer;
            self.daring = daring;
            format!(
                "(SELECT {distinct}{} FROM {table} AS {inner} WHERE {condition}) AS {name}",
                items.join(", ")
            )
        } else {
            format!("{table} AS {name}")
        };
        self.seen.push(name);
        text
    }

    fn item(&mut self) -> String {
        match self.roll(5) {
            0 => self.whole(2),
            1 => self.text(1),
            2 => self.column(&["id", "d", "name", "at", "flag", "f"]),
            3 => format!("CASE WHEN {} THEN 1 ELSE 0 END", self.truth(2)),
            _ => self.real(2),
        }
    }

    fn aggregate(&mut self) -> String {
        let distinct = self.one_of(&["", "", "DISTINCT "]);
        match self.roll(7) {
            0 => "COUNT(*)".into(),
            1 => format!("COUNT({distinct}{})", self.column(&["d", "i", "name"])),
            2 => format!("SUM({distinct}{})", self.column(&["i", "s", "l"])),
            3 => format!("{}({})", self.one_of(&["MIN", "MAX"]), self.column(&["d", "f", "name", "at", "i"])),
            4 => format!("AVG({distinct}{})", self.column(&["i", "s"])),
            5 => format!("{}({})", self.one_of(&["MIN", "MAX"]), self.real(1)),
            _ => format!("SUM({})", self.whole(1)),
        }
    }

    fn select(&mut self, set: bool) -> String {
        let outer = std::mem::take(&mut self.seen);
        let from = self.from();
        let condition = if self.roll(4) > 0 { format!(" WHERE {}", self.truth(3)) } else { String::new() };
        let text = if !set && self.roll(3) == 0 {
            self.grouped(&from, &condition)
        } else {
            self.plain(&from, &condition, set)
        };
        self.seen = outer;
        text
    }

    fn plain(&mut self, from: &str, condition: &str, set: bool) -> String {
        let distinct = self.one_of(&["", "", "DISTINCT "]);
        let items = if set {
            format!("{} AS p, {} AS q", self.whole(1), self.column(&["name"]))
        } else {
            (0..=self.roll(3)).map(|at| format!("{} AS p{at}", self.item())).collect::<Vec<_>>().join(", ")
        };
        format!("SELECT {distinct}{items} FROM {from}{condition}")
    }

    fn grouped(&mut self, from: &str, condition: &str) -> String {
        let keys: Vec<String> = match self.roll(4) {
            0 => Vec::new(),
            1 => vec![self.column(&["d", "f"])],
            2 => vec![self.column(&["i", "name"]), self.column(&["flag", "s"])],
            // A bare number would be the place of an item.
            _ => vec![format!("({} + {})", self.column(&["i", "s", "l"]), self.whole(0))],
        };
        let mut items = keys.clone();
        items.extend((0..=self.roll(2)).map(|_| self.aggregate()));
        let items: Vec<String> =
            items.iter().enumerate().map(|(at, item)| format!("{item} AS p{at}")).collect();
        let by = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
        let having = match self.roll(3) {
            0 => format!(" HAVING COUNT(*) {} {}", self.comparison(), self.roll(4)),
            _ => String::new(),
        };
        format!("SELECT {} FROM {from}{condition}{by}{having}", items.join(", "))
    }

    fn query(&mut self) -> String {
        match self.roll(5) {
            0 => {
                let operator = self.one_of(&[
                    "UNION",
                    "UNION ALL",
                    "INTERSECT",
                    "EXCEPT",
                    "INTERSECT ALL",
                    "EXCEPT ALL",
                ]);
                format!("{} {operator} {} ORDER BY 1, 2", self.select(true), self.select(true))
            }
            1 => format!("{} ORDER BY 1 {}", self.select(false), self.one_of(&["", "DESC"])),
            _ => self.select(false),
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn answers_are_those_of_the_reference(seed in any::<u64>(), rows in 4..40_usize, threads in 1..4_usize) {
        let tables = all(seed, rows);
        let backend = backend(threads);
        for step in 0..QUERIES {
            let text = Writer::new(seed.wrapping_add(step)).query();
            let query = resolved(&text, &tables);
            if let Err(message) = compare(&backend, &query, &tables) {
                prop_assert!(false, "{text}\n{query}\n{message}");
            }
        }
    }
}

/// A smaller seed is no simpler query: there is nothing to shrink.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::with_cases(CASES) }
}

/// Sets of tables.
const CASES: u32 = 24;

/// Queries over each.
const QUERIES: u64 = 12;
