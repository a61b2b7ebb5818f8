//! The resolved, typed tree: what a query means, names gone.
//!
//! Every column is a place ([`ColumnRef`]), every expression has a [`Type`], every conversion is explicit
//! ([`Kind::Cast`]), and operands of an operator have one type. Whoever executes a tree needs no catalogue of
//! names and takes no decision about types. What the resolver normalises, so that nobody below has to:
//!
//! - `CONTAINS(...) = 1`, `1 = CONTAINS(...)`, `<> 0`, `= 'TRUE'` and the bare form are one
//!   [`Function::Contains`] of type Boolean; used as a number it is cast to Int (1 or 0). INTERSECTS alike.
//! - `USING` and `NATURAL` columns are references or COALESCE calls; `*` is spelled out; positions and aliases in
//!   ORDER BY and GROUP BY are replaced by what they stand for.
//! - `ivo_nocasematch` is [`Kind::Like`]; IN_UNIT and the spectral conversions are arithmetic with computed factors.
//! - A CTE stands where it is used, shared by its [`Arc`].
//! - ORDER BY keys are items of the select list; a key that is not shown is a hidden item after the shown ones.
//!
//! A literal remembers which literal of the text it was ([`Slot`]), so that a tree can be kept and used again
//! with other values: see the crate's `lift` module.

mod display;

use std::sync::Arc;

use crate::functions::{Aggregator, Function};
use crate::types::{Field, Type};

/// A whole query, or one in parentheses, with its result columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Where rows come from.
    pub body: Body,
    /// The order of the rows; empty when there is none.
    pub order: Vec<OrderKey>,
    /// Rows left out at the front (before [`Self::top`] counts).
    pub offset: Option<Literal>,
    /// The most rows.
    pub top: Option<Literal>,
    /// The columns of the result, in order; their names are unique.
    pub fields: Arc<[Field]>,
}

/// One SELECT or a set operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// SELECT ... FROM ...
    Select(Box<Select>),
    /// Two queries of the same column types (casts were put in), combined.
    Set {
        /// Which operation.
        operator: SetOperator,
        /// Whether duplicates stay (ALL).
        all: bool,
        /// The left operand.
        left: Arc<Query>,
        /// The right operand.
        right: Arc<Query>,
    },
}

/// A set operation (ADQL 2.1 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SetOperator {
    /// Rows of either.
    Union,
    /// Rows of the left that are not in the right.
    Except,
    /// Rows of both.
    Intersect,
}

/// SELECT without its ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// The leaves of FROM, left to right; a [`ColumnRef`] names one by its index.
    pub relations: Vec<Relation>,
    /// How the leaves are joined; `None` only for a SELECT without FROM.
    pub from: Option<Join>,
    /// WHERE, Boolean.
    pub filter: Option<Expr>,
    /// Whether rows are grouped: GROUP BY, or an aggregate without one (a single group).
    pub grouped: bool,
    /// The keys of GROUP BY, over input rows.
    pub keys: Vec<Expr>,
    /// The aggregates that items, HAVING and ORDER BY use, over input rows.
    pub aggregates: Vec<Aggregate>,
    /// HAVING, over keys and aggregates.
    pub having: Option<Expr>,
    /// The select list: first the shown items (as many as the query has fields), then those only ordered by.
    /// In a grouped select they are over keys and aggregates, otherwise over input rows.
    pub items: Vec<Expr>,
    /// Whether equal rows count once. There are then no hidden items.
    pub distinct: bool,
}

/// A leaf of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// A table of the catalogue or an uploaded one.
    Table(TableRef),
    /// A derived table or a CTE.
    Query(Arc<Query>),
}

impl Relation {
    /// Its columns; a reference counts among them.
    pub fn fields(&self) -> &Arc<[Field]> {
        match self {
            Self::Table(table) => &table.fields,
            Self::Query(query) => &query.fields,
        }
    }
}

/// A table, by what the catalogue knows it as.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRef {
    /// The schema as declared; uploads are in `TAP_UPLOAD`.
    pub schema: Arc<str>,
    /// The name as declared, without its schema.
    pub table: Arc<str>,
    /// All columns of the table; a reference counts among them.
    pub fields: Arc<[Field]>,
}

/// A tree of joins over the leaves.
#[derive(Clone, Debug, PartialEq)]
pub enum Join {
    /// The leaf with this index in [`Select::relations`].
    Leaf(usize),
    /// Two sides joined.
    Pair {
        /// Which rows stay without a partner.
        kind: JoinKind,
        /// The left side.
        left: Box<Join>,
        /// The right side.
        right: Box<Join>,
        /// ON, USING or NATURAL as one condition, Boolean; `None` is the whole product.
        on: Option<Expr>,
    },
}

/// Which rows of a join stay without a partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// None.
    Inner,
    /// Those of the left.
    Left,
    /// Those of the right.
    Right,
    /// Those of both.
    Full,
}

/// A column by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnRef {
    /// How many selects further out: 0 is the select that the expression stands in.
    pub depth: u16,
    /// The leaf in that select's [`Select::relations`].
    pub relation: u16,
    /// The column in the leaf's fields.
    pub column: u32,
}

/// An aggregate call.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// Which one.
    pub aggregator: Aggregator,
    /// Its arguments over input rows; none for COUNT(*). SUM's argument is Long or Double, AVG's Double.
    pub arguments: Vec<Expr>,
    /// Whether equal arguments count once.
    pub distinct: bool,
    /// The type of the result.
    pub ty: Type,
}

/// One key of ORDER BY. NULL comes last when ascending and first when descending; NaN is above all numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderKey {
    /// The item of the select list (hidden ones included); for a set operation, the column of the result.
    pub item: usize,
    /// DESC.
    pub descending: bool,
}

/// An expression and what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What to compute.
    pub kind: Kind,
    /// What comes out.
    pub ty: Type,
}

impl Expr {
    /// An expression of this kind and type.
    pub const fn new(kind: Kind, ty: Type) -> Self {
        Self { kind, ty }
    }

    /// A column.
    pub const fn column(column: ColumnRef, ty: Type) -> Self {
        Self::new(Kind::Column(column), ty)
    }

    /// A constant that does not stand in the text.
    pub const fn computed(value: Value, ty: Type) -> Self {
        Self::new(Kind::Literal(Literal { value, slot: None }), ty)
    }

    /// The constant that it is, if it is a literal.
    pub const fn as_literal(&self) -> Option<&Literal> {
        match &self.kind {
            Kind::Literal(literal) => Some(literal),
            _ => None,
        }
    }
}

/// What an expression computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A column of an input row.
    Column(ColumnRef),
    /// A constant.
    Literal(Literal),
    /// In a grouped select: the key of GROUP BY with this index.
    Key(usize),
    /// In a grouped select: the aggregate with this index.
    Aggregate(usize),
    /// `+ - * /` on two numbers of the expression's own type. Whole numbers that overflow are an error;
    /// dividing them by zero is too, and truncates towards zero otherwise.
    Arithmetic(Operator, Box<Expr>, Box<Expr>),
    /// Unary minus.
    Negate(Box<Expr>),
    /// `||` of texts, NULL if one is.
    Concat(Vec<Expr>),
    /// A comparison of two operands of one ordered type. NaN equals NaN and is above all numbers; -0 is 0; text
    /// compares by code point.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// All of them, three-valued.
    And(Vec<Expr>),
    /// Any of them, three-valued.
    Or(Vec<Expr>),
    /// Not, three-valued.
    Not(Box<Expr>),
    /// IS NULL.
    IsNull(Box<Expr>),
    /// value BETWEEN low AND high, three of one type.
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    /// value IN (list), all of one type.
    InList(Box<Expr>, Vec<Expr>),
    /// value IN (one-column query).
    InQuery(Box<Expr>, Arc<Query>),
    /// EXISTS (query).
    Exists(Arc<Query>),
    /// A query of one column used as a value: NULL without rows, an error with more than one.
    Scalar(Arc<Query>),
    /// LIKE with `%` and `_`, no escape.
    Like {
        /// What is matched.
        value: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// ILIKE: upper and lower case are the same.
        ignore_case: bool,
    },
    /// CASE WHEN condition THEN value ... ELSE value END; a simple CASE was turned into comparisons.
    Case {
        /// Conditions and values.
        branches: Vec<(Expr, Expr)>,
        /// The ELSE; NULL where there was none.
        otherwise: Box<Expr>,
    },
    /// A conversion to the expression's type.
    Cast(Box<Expr>),
    /// A function of the standard, or a user-defined one that we have.
    Call(Function, Vec<Expr>),
}

/// `+ - * /`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// +
    Add,
    /// -
    Subtract,
    /// *
    Multiply,
    /// /
    Divide,
}

/// `= <> < <= > >=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// =
    Equal,
    /// <>
    NotEqual,
    /// <
    Less,
    /// <=
    LessOrEqual,
    /// >
    Greater,
    /// >=
    GreaterOrEqual,
}

/// The ordinal of a literal token in the text of the query, from 0.
pub type Slot = u32;

/// A constant, and where in the text it came from. As an expression its value always fits the expression's type: an
/// Integer where that is whole (and within its range), a Double where it is Float (and then exactly one) or Double, a
/// Text where it is Text, a Boolean where it is Boolean, and Null anywhere. So a `5` that is compared with a Double
/// stands here as `5.0`, without a cast.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// Its value.
    pub value: Value,
    /// Its slot, if it is one literal of the text as it stood there; `None` for what the resolver computed.
    pub slot: Option<Slot>,
}

/// The value of a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// TRUE or FALSE.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Double(f64),
    /// A text.
    Text(Arc<str>),
}
