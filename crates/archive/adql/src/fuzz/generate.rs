//! Syntax trees made of bytes: every kind of node that the parser can make, in every place.
//!
//! Each byte is one choice. When they run out every choice is the first, which is the smallest: fewer bytes, smaller
//! trees.

use std::sync::Arc;

use crate::ast::{
    Alias, Arguments, Body, Call, Case, Constraint, Cte, Expr, ExprKind, Ident, Item, Join, Literal,
    OrderItem, Query, Select, Set, Sign, TableExpr, TableName, Target, TargetType,
};
use crate::catalogue::Name;
use crate::span::{Aside, Span};
use crate::tree::{Comparison, JoinKind, Operator, SetOperator, Value};

/// How deep the trees are, in queries and operators.
const DEPTH: u32 = 5;

/// Names that are names everywhere.
const PLAIN: &[&str] = &[
    "a",
    "ra",
    "_x1",
    "size",
    "date",
    "timestamp",
    "desc",
    "count",
    "value",
    "limit",
    "offset",
    "fetch",
    "over",
    "interval",
    "ilike",
    "Declared_Case",
];

/// Names that are names beside a dot and after AS only, unless they are quoted.
const RESERVED: &[&str] =
    &["select", "From", "order", "union", "NOT", "null", "case", "top", "distinct", "end"];

/// Names that need quotes.
const ODD: &[&str] = &["I/355/gaiadr3", "two words", "say \"x\"", "2mass", "naïve", "--", "''", ".", " "];

const FUNCTIONS: &[&str] = &["COUNT", "f", "POINT", "in_unit", "date", "timestamp", "limit"];

const TEXTS: &[&str] = &["", "x", "it's", "''", "--", "/*", "\"", "two\nlines", "星 naïve", "%_\\", "?"];

/// A query.
pub(crate) fn query(bytes: &[u8]) -> Query {
    Choices { bytes }.query(DEPTH)
}

struct Choices<'a> {
    bytes: &'a [u8],
}

fn nowhere<T: Default>() -> Aside<T> {
    Aside(T::default())
}

impl Choices<'_> {
    /// One of `count` alternatives.
    fn pick(&mut self, count: usize) -> usize {
        match self.bytes.split_first() {
            Some((first, rest)) => {
                self.bytes = rest;
                *first as usize % count
            }
            None => 0,
        }
    }

    fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.pick(all.len())]
    }

    fn flag(&mut self) -> bool {
        self.pick(2) == 1
    }

    /// Sometimes something.
    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| make(self))
    }

    /// At least so many.
    fn some<T>(&mut self, least: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = least + self.pick(3);
        (0..count).map(|_| make(self)).collect()
    }

    fn number(&mut self) -> u64 {
        let bytes = self.pick(9);
        (0..bytes).fold(0, |number, _| number << 8 | self.pick(256) as u64)
    }

    // ---- names and literals

    fn named(text: &str, quoted: bool) -> Ident {
        Ident { name: Name { text: Arc::from(text), quoted }, at: nowhere() }
    }

    /// A name where reserved words are none.
    fn bare(&mut self) -> Ident {
        match self.pick(4) {
            0 | 1 => Self::named(self.one(PLAIN), false),
            2 => Self::named(self.one(RESERVED), true),
            _ => Self::named(self.one(ODD), true),
        }
    }

    /// A name where any word is one.
    fn any(&mut self) -> Ident {
        if self.pick(4) == 3 { Self::named(self.one(RESERVED), false) } else { self.bare() }
    }

    fn literal(&mut self, value: Value) -> Literal {
        Literal { value, slot: nowhere(), at: nowhere() }
    }

    fn count(&mut self) -> Literal {
        let number = (self.number() >> 1) as i64;
        self.literal(Value::Integer(number))
    }

    fn value(&mut self) -> Value {
        match self.pick(6) {
            0 => Value::Integer((self.number() >> 1) as i64),
            1 => Value::Double(self.double()),
            2 => Value::Text(Arc::from(self.one(TEXTS))),
            3 => Value::Null,
            4 => Value::Boolean(false),
            _ => Value::Boolean(true),
        }
    }

    fn double(&mut self) -> f64 {
        let number = f64::from_bits(self.number()).abs();
        if number.is_finite() { number } else { 0.5 }
    }

    /// A table's name where it stands alone.
    fn table_name(&mut self) -> TableName {
        match self.pick(3) {
            0 => TableName { catalog: None, schema: None, table: self.bare() },
            parts => self.dotted(parts),
        }
    }

    /// A table's name before a dot, or one of several parts.
    fn dotted(&mut self, parts: usize) -> TableName {
        let catalog = if parts > 1 { Some(self.any()) } else { None };
        let schema = if parts > 0 { Some(self.any()) } else { None };
        TableName { catalog, schema, table: self.any() }
    }

    fn qualifier(&mut self) -> TableName {
        let parts = self.pick(3);
        self.dotted(parts)
    }

    // ---- queries

    fn query(&mut self, depth: u32) -> Query {
        let with =
            if self.pick(8) == 7 && depth > 0 { self.some(1, |c| c.cte(depth - 1)) } else { Vec::new() };
        let body = self.body(depth);
        let order = if self.flag() { self.some(1, |c| c.order_item(depth)) } else { Vec::new() };
        let offset = self.maybe(Self::count);
        let (body, topped) = match body {
            Body::Nested(query) if with.is_empty() && order.is_empty() && offset.is_none() => return *query,
            Body::Select(select) if select.top.is_some() && self.pick(4) == 3 => (Body::Select(select), true),
            body => (body, false),
        };
        let body = if topped && (!order.is_empty() || offset.is_some()) { Self::nested(body) } else { body };
        Query { with, body, order, offset, at: nowhere() }
    }

    /// `(SELECT TOP 5 ...)` before an ORDER BY that is not its own.
    fn nested(body: Body) -> Body {
        let inner = Query { with: Vec::new(), body, order: Vec::new(), offset: None, at: nowhere() };
        Body::Nested(Box::new(inner))
    }

    fn cte(&mut self, depth: u32) -> Cte {
        let name = self.bare();
        let columns = self.maybe(|c| c.some(1, Self::bare)).unwrap_or_default();
        Cte { name, columns, query: self.query(depth) }
    }

    fn order_item(&mut self, depth: u32) -> OrderItem {
        OrderItem { expr: self.expr(depth), descending: self.flag() }
    }

    fn body(&mut self, depth: u32) -> Body {
        match self.pick(8) {
            6 if depth > 0 => {
                let mut query = self.query(depth - 1);
                if query.with.is_empty() && query.order.is_empty() && query.offset.is_none() {
                    query.offset = Some(self.count());
                }
                Body::Nested(Box::new(query))
            }
            7 if depth > 0 => {
                let operator = self.one(&[SetOperator::Union, SetOperator::Except, SetOperator::Intersect]);
                let all = self.flag();
                let (left, right) = (self.body(depth - 1), self.body(depth - 1));
                Body::Set(Box::new(Set { operator, all, left, right, at: nowhere() }))
            }
            _ => Body::Select(Box::new(self.select(depth))),
        }
    }

    fn select(&mut self, depth: u32) -> Select {
        Select {
            distinct: self.flag(),
            top: self.maybe(Self::count),
            items: self.some(1, |c| c.item(depth)),
            from: self.maybe(|c| c.some(1, |c| c.table(depth))).unwrap_or_default(),
            filter: self.maybe(|c| c.expr(depth)),
            group: self.maybe(|c| c.some(1, |c| c.expr(depth))).unwrap_or_default(),
            having: self.maybe(|c| c.expr(depth)),
            at: nowhere(),
        }
    }

    fn item(&mut self, depth: u32) -> Item {
        match self.pick(4) {
            0 => Item::All(nowhere()),
            1 => Item::AllOf(self.qualifier()),
            _ => Item::Expr { expr: self.expr(depth), alias: self.maybe(Self::any) },
        }
    }

    // ---- tables

    fn table(&mut self, depth: u32) -> TableExpr {
        match self.pick(4) {
            2 if depth > 0 => {
                let query = Box::new(self.query(depth - 1));
                TableExpr::Derived { query, alias: self.maybe(Self::alias) }
            }
            3 if depth > 0 => TableExpr::Join(Box::new(self.join(depth - 1))),
            _ => TableExpr::Table { name: self.table_name(), alias: self.maybe(Self::alias) },
        }
    }

    fn alias(&mut self) -> Alias {
        let name = self.any();
        Alias { name, columns: self.maybe(|c| c.some(1, Self::bare)).unwrap_or_default() }
    }

    fn join(&mut self, depth: u32) -> Join {
        let constraint = match self.pick(4) {
            0 => Constraint::None,
            1 => Constraint::Natural,
            2 => Constraint::Using(self.some(1, Self::bare)),
            _ => Constraint::On(self.expr(depth)),
        };
        let kind = match constraint {
            Constraint::None => JoinKind::Inner,
            _ => self.one(&[JoinKind::Inner, JoinKind::Left, JoinKind::Right, JoinKind::Full]),
        };
        let (left, right) = (self.table(depth), self.table(depth));
        Join { kind, left, right, constraint, at: nowhere() }
    }

    // ---- expressions

    fn expr(&mut self, depth: u32) -> Expr {
        let kind = if depth == 0 { self.leaf() } else { self.node(depth - 1) };
        Expr { kind, at: nowhere::<Span>() }
    }

    fn boxed(&mut self, depth: u32) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    fn leaf(&mut self) -> ExprKind {
        match self.pick(3) {
            0 => ExprKind::Column { qualifier: None, name: self.bare() },
            1 => ExprKind::Column { qualifier: Some(Box::new(self.qualifier())), name: self.any() },
            _ => {
                let value = self.value();
                ExprKind::Literal(self.literal(value))
            }
        }
    }

    fn node(&mut self, depth: u32) -> ExprKind {
        match self.pick(20) {
            0..=2 => self.leaf(),
            3 => ExprKind::Sign(self.one(&[Sign::Minus, Sign::Plus]), self.boxed(depth)),
            4 | 5 => ExprKind::Arithmetic(self.operator(), self.boxed(depth), self.boxed(depth)),
            6 => ExprKind::Concat(self.some(2, |c| c.expr(depth))),
            7 => ExprKind::And(self.some(2, |c| c.expr(depth))),
            8 => ExprKind::Or(self.some(2, |c| c.expr(depth))),
            9 => ExprKind::Not(self.boxed(depth)),
            10 => ExprKind::Exists(Box::new(self.query(depth))),
            11 => ExprKind::Scalar(Box::new(self.query(depth))),
            12 => ExprKind::Case(Box::new(self.case(depth))),
            13 => ExprKind::Cast(self.boxed(depth), self.target()),
            14 | 15 => ExprKind::Call(Box::new(self.call(depth))),
            _ => self.predicate(depth),
        }
    }

    fn operator(&mut self) -> Operator {
        self.one(&[Operator::Subtract, Operator::Add, Operator::Divide, Operator::Multiply])
    }

    fn predicate(&mut self, depth: u32) -> ExprKind {
        let (value, negated) = (self.boxed(depth), self.flag());
        match self.pick(7) {
            0 => ExprKind::Compare(self.comparison(), value, self.boxed(depth)),
            1 => ExprKind::Between { value, low: self.boxed(depth), high: self.boxed(depth), negated },
            2 => ExprKind::InList { value, list: self.in_list(depth), negated },
            3 => ExprKind::InQuery { value, query: Box::new(self.query(depth)), negated },
            4 => ExprKind::Like { value, pattern: self.boxed(depth), ignore_case: self.flag(), negated },
            5 => ExprKind::IsNull { value, negated },
            _ => ExprKind::IsTruth { value, truth: self.flag(), negated },
        }
    }

    /// A list of one query in parentheses is a query in parentheses.
    fn in_list(&mut self, depth: u32) -> Vec<Expr> {
        let mut list = self.some(1, |c| c.expr(depth));
        if let [Expr { kind: ExprKind::Scalar(_), .. }] = &list[..] {
            list.push(self.expr(0));
        }
        list
    }

    fn comparison(&mut self) -> Comparison {
        self.one(&[
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
        ])
    }

    fn case(&mut self, depth: u32) -> Case {
        Case {
            operand: self.maybe(|c| c.expr(depth)),
            branches: self.some(1, |c| (c.expr(depth), c.expr(depth))),
            otherwise: self.maybe(|c| c.expr(depth)),
        }
    }

    fn target(&mut self) -> Target {
        use TargetType::{
            BigInt, Boolean, Char, Circle, DoublePrecision, Integer, Point, Polygon, Real, Region, SmallInt,
            Timestamp, VarChar,
        };
        let kind = self.one(&[
            Real,
            SmallInt,
            Integer,
            BigInt,
            DoublePrecision,
            Char,
            VarChar,
            Timestamp,
            Boolean,
            Point,
            Circle,
            Polygon,
            Region,
        ]);
        let sized = matches!(kind, Char | VarChar);
        let length = if sized { self.maybe(|c| Box::new(c.count())) } else { None };
        Target { kind, length, at: nowhere() }
    }

    fn call(&mut self, depth: u32) -> Call {
        let schema = self.maybe(Self::any);
        let name = Self::named(self.one(FUNCTIONS), false);
        let (distinct, arguments) = match self.pick(4) {
            0 => (false, Arguments::Star),
            1 => (true, Arguments::List(self.some(1, |c| c.expr(depth)))),
            _ => (false, Arguments::List(self.some(0, |c| c.expr(depth)))),
        };
        Call { schema, name, distinct, arguments }
    }
}
