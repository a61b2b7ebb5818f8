//! Queries made of bytes: every operator and every function, over columns of every type.
//!
//! Each byte is one choice. When they run out every choice is the first, which is the smallest.

use trifid_archive_adql::functions::table::{Callee, DEFINITIONS, Form, Wants, Yields};
use trifid_archive_adql::types::Type;

/// How deep expressions are.
const DEPTH: u32 = 4;

/// What an expression is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Number,
    Whole,
    Text,
    Truth,
    Instant,
    Point,
    Geometry,
}

const SORTS: [Sort; 7] =
    [Sort::Number, Sort::Whole, Sort::Text, Sort::Truth, Sort::Instant, Sort::Point, Sort::Geometry];

/// A query.
pub(super) fn query(bytes: &[u8]) -> String {
    let mut choices = Choices { bytes };
    let first = choices.select();
    match choices.below(6) {
        0..=3 => first,
        4 => format!("WITH c AS ({first}) SELECT * FROM c"),
        _ => {
            let operator = choices.among(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT ALL"]);
            format!("{first} {operator} {first}")
        }
    }
}

struct Choices<'a> {
    bytes: &'a [u8],
}

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(*first) % count.max(1)
    }

    fn among<'s>(&mut self, choices: &[&'s str]) -> &'s str {
        choices[self.below(choices.len())]
    }

    fn maybe(&mut self) -> bool {
        self.below(3) == 2
    }

    fn select(&mut self) -> String {
        match self.below(4) {
            0 | 1 => self.plain(),
            2 => self.grouped(),
            _ => self.asking(),
        }
    }

    fn plain(&mut self) -> String {
        let distinct = if self.maybe() { "DISTINCT " } else { "" };
        let sort = SORTS[self.below(SORTS.len())];
        let (one, other) = (self.expr(sort, DEPTH), self.expr(Sort::Number, DEPTH));
        let from = self.from();
        let condition = self.condition();
        let order = if self.maybe() { " ORDER BY 2 DESC" } else { "" };
        format!("SELECT {distinct}{one} AS a, {other} AS b FROM {from}{condition}{order}")
    }

    fn grouped(&mut self) -> String {
        let key = self.expr(Sort::Number, 2);
        let aggregate = self.aggregate();
        let having = if self.maybe() { " HAVING COUNT(*) > 0" } else { "" };
        let condition = self.condition();
        format!("SELECT {key} AS k, {aggregate} AS v FROM t.types{condition} GROUP BY {key}{having}")
    }

    /// A query with another in its condition.
    fn asking(&mut self) -> String {
        let value = self.expr(Sort::Whole, 2);
        let condition = match self.below(5) {
            0 => format!("{value} IN (SELECT whole FROM t.few)"),
            1 => format!("{value} NOT IN (SELECT f.whole FROM t.few AS f WHERE f.txt = types.txt)"),
            2 => "EXISTS (SELECT * FROM t.few AS f WHERE f.whole > types.short)".to_owned(),
            3 => format!("{value} = (SELECT MAX(f.whole) FROM t.few AS f WHERE f.whole < types.small)"),
            _ => format!("{value} = (SELECT whole FROM t.few)"),
        };
        format!("SELECT txt FROM t.types WHERE {condition}")
    }

    fn from(&mut self) -> String {
        let joins = ["", " LEFT JOIN t.few USING (whole)", " FULL JOIN t.few AS f ON f.txt = types.txt"];
        format!("t.types{}", self.among(&joins))
    }

    fn condition(&mut self) -> String {
        match self.below(2) {
            0 => String::new(),
            _ => format!(" WHERE {}", self.expr(Sort::Truth, DEPTH)),
        }
    }

    fn aggregate(&mut self) -> String {
        let sort = SORTS[self.below(4)];
        let value = self.expr(sort, 2);
        let distinct = if self.maybe() { "DISTINCT " } else { "" };
        match self.below(8) {
            0 => format!("COUNT({distinct}{value})"),
            1 => format!("MIN({distinct}{value})"),
            2 => format!("MAX({value})"),
            3 => format!("SUM({distinct}{value})"),
            4 => format!("AVG({value})"),
            5 => format!("STDDEV({value})"),
            6 => format!("MEDIAN({distinct}{value})"),
            _ => format!("ivo_string_agg({value}, ',')"),
        }
    }

    /// An expression of a sort.
    fn expr(&mut self, sort: Sort, depth: u32) -> String {
        if depth == 0 || self.below(4) == 0 {
            return self.leaf(sort);
        }
        let depth = depth - 1;
        match self.below(8) {
            0 => self.cast(sort, depth),
            1 => self.case(sort, depth),
            2 => format!("COALESCE({}, {})", self.expr(sort, depth), self.expr(sort, depth)),
            3 | 4 => self.call(sort, depth),
            _ => self.operator(sort, depth),
        }
    }

    fn leaf(&mut self, sort: Sort) -> String {
        let columns: &[&str] = match sort {
            Sort::Number => &["real_", "single", "whole", "long", "small"],
            Sort::Whole => &["whole", "short", "long", "small"],
            Sort::Text => &["txt", "reg"],
            Sort::Truth => &["truth", "bits"],
            Sort::Instant => &["instant"],
            Sort::Point => &["pt"],
            Sort::Geometry => &["circ", "poly", "reg", "pt"],
        };
        let literals: &[&str] = match sort {
            Sort::Number => &["0", "1.5", "-7", "1e300", "NULL"],
            Sort::Whole => &["0", "3", "-1", "9223372036854775807", "NULL"],
            Sort::Text => &["''", "'M 31'", "'%a_'", "'12:30:00'", "NULL"],
            Sort::Truth => &["TRUE", "FALSE", "NULL"],
            Sort::Instant => &["CAST('2024-05-06' AS TIMESTAMP)"],
            Sort::Point => &["POINT(10, 20)", "POINT(real_, 5)", "NULL"],
            Sort::Geometry => {
                &["CIRCLE(1, 2, 3)", "BOX(0, 0, 4, 4)", "POLYGON(0, 0, 3, 0, 3, 3)", "REGION('circle 0 0 1')"]
            }
        };
        let place = self.below(columns.len() + literals.len());
        let column = columns.get(place).map(|column| format!("types.{column}"));
        column.unwrap_or_else(|| literals[place - columns.len()].to_owned())
    }

    fn cast(&mut self, sort: Sort, depth: u32) -> String {
        let (from, targets): (Sort, &[&str]) = match sort {
            Sort::Number => (SORTS[self.below(4)], &["DOUBLE PRECISION", "REAL", "BIGINT"]),
            Sort::Whole => (SORTS[self.below(4)], &["SMALLINT", "INTEGER", "BIGINT"]),
            Sort::Text => (SORTS[self.below(SORTS.len())], &["VARCHAR", "CHAR(3)"]),
            Sort::Instant => (Sort::Text, &["TIMESTAMP"]),
            Sort::Point => (Sort::Text, &["POINT"]),
            Sort::Geometry => (Sort::Text, &["CIRCLE", "POLYGON"]),
            Sort::Truth => return format!("NOT {}", self.expr(sort, depth)),
        };
        let target = self.among(targets);
        format!("CAST({} AS {target})", self.expr(from, depth))
    }

    fn case(&mut self, sort: Sort, depth: u32) -> String {
        let condition = self.expr(Sort::Truth, depth);
        let (value, otherwise) = (self.expr(sort, depth), self.expr(sort, depth));
        format!("CASE WHEN {condition} THEN {value} ELSE {otherwise} END")
    }

    fn operator(&mut self, sort: Sort, depth: u32) -> String {
        match sort {
            Sort::Number | Sort::Whole => {
                let operator = self.among(&["+", "-", "*", "/"]);
                format!("({} {operator} {})", self.expr(sort, depth), self.expr(sort, depth))
            }
            Sort::Text => format!("({} || {})", self.expr(sort, depth), self.expr(sort, depth)),
            Sort::Truth => self.predicate(depth),
            Sort::Instant | Sort::Point | Sort::Geometry => self.leaf(sort),
        }
    }

    fn predicate(&mut self, depth: u32) -> String {
        let sort = SORTS[self.below(5)];
        let (one, other) = (self.expr(sort, depth), self.expr(sort, depth));
        match self.below(9) {
            0 => format!("({one} = {other})"),
            1 => format!("({one} <= {other})"),
            2 => format!("({one} > {other})"),
            3 => format!("{one} BETWEEN {other} AND {one}"),
            4 => format!("{one} NOT IN ({other}, {one}, NULL)"),
            5 => format!("{one} IS NOT NULL"),
            6 => format!("({} AND {})", self.expr(Sort::Truth, depth), self.expr(Sort::Truth, depth)),
            7 => format!("({} OR {})", self.expr(Sort::Truth, depth), self.expr(Sort::Truth, depth)),
            _ => {
                let operator = self.among(&["LIKE", "ILIKE", "NOT LIKE"]);
                format!("{} {operator} {}", self.expr(Sort::Text, depth), self.expr(Sort::Text, depth))
            }
        }
    }

    /// A call of any function whose result is of the sort.
    fn call(&mut self, sort: Sort, depth: u32) -> String {
        let yields = |form: &Form| match form.result {
            Yields::Truth => sort == Sort::Truth,
            Yields::Arguments => true,
            Yields::Type(ty) => sort_of(ty) == Some(sort),
        };
        let forms = DEFINITIONS
            .iter()
            .filter(|it| matches!(it.callee, Callee::Function(_)))
            .flat_map(|it| it.forms.iter().filter(|form| yields(form)).map(|form| (it.names[0], form)));
        let forms: Vec<_> = forms.collect();
        if forms.is_empty() {
            return self.leaf(sort);
        }
        let (name, form) = forms[(self.below(256) * 256 + self.below(256)) % forms.len()];
        let parameters: Vec<String> =
            form.parameters.iter().map(|parameter| self.argument(parameter.wants, sort, depth)).collect();
        format!("{name}({})", parameters.join(", "))
    }

    fn argument(&mut self, wants: Wants, sort: Sort, depth: u32) -> String {
        match wants {
            Wants::Double => self.expr(Sort::Number, depth),
            Wants::Number => self.expr(if sort == Sort::Whole { Sort::Whole } else { Sort::Number }, depth),
            Wants::Long => self.expr(Sort::Whole, depth),
            Wants::Text => self.expr(Sort::Text, depth),
            Wants::TextLiteral => self.among(&["'ICRS'", "'GALACTIC'", "'FK4'", "'m'", "'Hz'"]).to_owned(),
            Wants::Timestamp => self.expr(Sort::Instant, depth),
            Wants::Point => self.expr(Sort::Point, depth),
            Wants::Geometry => self.expr(Sort::Geometry, depth),
            Wants::Any => self.expr(sort, depth),
        }
    }
}

/// The sort of a type, for those that have one.
fn sort_of(ty: Type) -> Option<Sort> {
    Some(match ty {
        Type::Boolean | Type::Bit => Sort::Truth,
        Type::UnsignedByte | Type::Short | Type::Int | Type::Long => Sort::Whole,
        Type::Float | Type::Double => Sort::Number,
        Type::Text => Sort::Text,
        Type::Timestamp => Sort::Instant,
        Type::Point => Sort::Point,
        Type::Circle | Type::Polygon | Type::Region => Sort::Geometry,
        Type::Null | Type::FloatComplex | Type::DoubleComplex | Type::Array(_) => return None,
    })
}
