//! A query as it was written: names unresolved, types unknown.
//!
//! Faithful to the text in what can be blamed on somebody: names keep their case and quotes, and every node keeps
//! its place ([`Span`]), so that whoever finds a mistake later can point at it. What has two spellings and one
//! meaning has one form here: parentheses are the shape of the tree, `!=` is `<>`, `TIMESTAMP 'x'` is a CAST,
//! `TOP 5 DISTINCT` is `DISTINCT TOP 5`, and `(a JOIN b) AS c` is `(SELECT * FROM a JOIN b) AS c`.
//!
//! Chains of AND, OR and `||` are flat. Everything else is bounded in height ([`crate::limits::HEIGHT`]), so that
//! whoever walks a tree that the parser made may recurse.
//!
//! Places and slots take no part in comparisons ([`Aside`]).

use crate::catalogue::Name;
use crate::span::{Aside, Span};
use crate::tree::{Comparison, JoinKind, Operator, SetOperator, Slot, Value};

/// A name in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    /// The name as written.
    pub name: Name,
    /// Where; with its quotes.
    pub at: Aside<Span>,
}

impl Ident {
    /// Where it stands.
    pub fn span(&self) -> Span {
        self.at.0
    }
}

/// A table's name, of up to three parts; or what stands before the dot of a column: then it may be an alias.
#[derive(Clone, Debug, PartialEq)]
pub struct TableName {
    /// The first of three parts.
    pub catalog: Option<Ident>,
    /// The last but one.
    pub schema: Option<Ident>,
    /// The last.
    pub table: Ident,
}

impl TableName {
    /// Where it stands, all parts.
    pub fn span(&self) -> Span {
        let first = self.catalog.as_ref().or(self.schema.as_ref()).unwrap_or(&self.table);
        first.span().to(self.table.span())
    }
}

/// A literal token.
#[derive(Clone, Debug, PartialEq)]
pub struct Literal {
    /// Its value. Numbers have no sign; a whole number beyond 64 bits is a [`Value::Double`].
    pub value: Value,
    /// Its ordinal among the literal tokens (numbers and texts) of the query; none for NULL, TRUE and FALSE,
    /// which are words.
    pub slot: Aside<Option<Slot>>,
    /// Where it stands.
    pub at: Aside<Span>,
}

impl Literal {
    /// Where it stands.
    pub fn span(&self) -> Span {
        self.at.0
    }
}

/// A whole query, or one in parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// WITH (ADQL 2.1 4.5): each may name those before it.
    pub with: Vec<Cte>,
    /// One SELECT, or several combined.
    pub body: Body,
    /// ORDER BY; of a single SELECT it comes before its TOP, of a combination after all of it.
    pub order: Vec<OrderItem>,
    /// OFFSET, a [`Value::Integer`].
    pub offset: Option<Literal>,
    /// Where it stands, without parentheses.
    pub at: Aside<Span>,
}

impl Query {
    /// Where it stands, without parentheses.
    pub fn span(&self) -> Span {
        self.at.0
    }
}

/// `name [(columns)] AS (query)` of a WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    /// What it is called.
    pub name: Ident,
    /// What its columns are called; empty when they keep their names.
    pub columns: Vec<Ident>,
    /// What it is.
    pub query: Query,
}

/// What a query takes its rows from.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// SELECT ...
    Select(Box<Select>),
    /// Two combined. INTERSECT binds tighter than the others; otherwise the left pair is combined first.
    Set(Box<Set>),
    /// A query in parentheses with a WITH, ORDER BY or OFFSET of its own. (Parentheses around any other query
    /// are the shape of the tree.)
    Nested(Box<Query>),
}

/// Two queries combined (ADQL 2.1 4.6).
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// How.
    pub operator: SetOperator,
    /// ALL: equal rows stay.
    pub all: bool,
    /// The left operand.
    pub left: Body,
    /// The right operand.
    pub right: Body,
    /// Where the operator stands.
    pub at: Aside<Span>,
}

/// SELECT without its ORDER BY and OFFSET.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// DISTINCT. (ALL says nothing.)
    pub distinct: bool,
    /// TOP, a [`Value::Integer`].
    pub top: Option<Literal>,
    /// The select list; never empty.
    pub items: Vec<Item>,
    /// FROM: what the commas part. Empty when there is none.
    pub from: Vec<TableExpr>,
    /// WHERE.
    pub filter: Option<Expr>,
    /// GROUP BY; empty when there is none.
    pub group: Vec<Expr>,
    /// HAVING.
    pub having: Option<Expr>,
    /// Where it stands.
    pub at: Aside<Span>,
}

impl Select {
    /// Where it stands.
    pub fn span(&self) -> Span {
        self.at.0
    }
}

/// An item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `*`
    All(Aside<Span>),
    /// `table.*`
    AllOf(TableName),
    /// `expression [AS alias]`
    Expr {
        /// What.
        expr: Expr,
        /// As what.
        alias: Option<Ident>,
    },
}

/// What stands between the commas of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum TableExpr {
    /// `name [[AS] alias]`
    Table {
        /// Which.
        name: TableName,
        /// As what.
        alias: Option<Alias>,
    },
    /// `(query) [AS] alias`. The grammar wants the alias; without one the columns have no qualifier.
    Derived {
        /// The query.
        query: Box<Query>,
        /// As what.
        alias: Option<Alias>,
    },
    /// Two joined.
    Join(Box<Join>),
}

/// `[AS] name [(columns)]`
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// The name.
    pub name: Ident,
    /// What the columns are called; empty when they keep their names.
    pub columns: Vec<Ident>,
}

/// Two tables joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// Which rows stay without a partner.
    pub kind: JoinKind,
    /// The left side.
    pub left: TableExpr,
    /// The right side.
    pub right: TableExpr,
    /// Which rows are partners.
    pub constraint: Constraint,
    /// Where the words of the join stand (`LEFT OUTER JOIN`).
    pub at: Aside<Span>,
}

/// Which rows of a join are partners.
#[derive(Clone, Debug, PartialEq)]
pub enum Constraint {
    /// All: CROSS JOIN, or an inner join that says nothing. Of [`JoinKind::Inner`] only.
    None,
    /// NATURAL: those that agree in every column of the same name.
    Natural,
    /// USING: those that agree in these columns.
    Using(Vec<Ident>),
    /// ON: those that fit.
    On(Expr),
}

/// A key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    /// An expression, an alias, or a position (an integer literal).
    pub expr: Expr,
    /// DESC.
    pub descending: bool,
}

/// An expression or a condition: the grammar here does not tell them apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub at: Aside<Span>,
}

impl Expr {
    /// Where it stands.
    pub fn span(&self) -> Span {
        self.at.0
    }
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `[qualifier.]name`
    Column {
        /// What stands before the last dot.
        qualifier: Option<Box<TableName>>,
        /// What stands after it.
        name: Ident,
    },
    /// A number, a text, NULL, TRUE or FALSE.
    Literal(Literal),
    /// `+x` or `-x`
    Sign(Sign, Box<Expr>),
    /// `a + b` and so on, the left pair first.
    Arithmetic(Operator, Box<Expr>, Box<Expr>),
    /// `a || b || ...`: two or more.
    Concat(Vec<Expr>),
    /// `a = b` and so on.
    Compare(Comparison, Box<Expr>, Box<Expr>),
    /// `a AND b AND ...`: two or more.
    And(Vec<Expr>),
    /// `a OR b OR ...`: two or more.
    Or(Vec<Expr>),
    /// `NOT a`
    Not(Box<Expr>),
    /// `value [NOT] BETWEEN low AND high`
    Between {
        /// What is tested.
        value: Box<Expr>,
        /// The least that fits.
        low: Box<Expr>,
        /// The greatest that fits.
        high: Box<Expr>,
        /// NOT.
        negated: bool,
    },
    /// `value [NOT] IN (list)`
    InList {
        /// What is sought.
        value: Box<Expr>,
        /// Among what; never empty.
        list: Vec<Expr>,
        /// NOT.
        negated: bool,
    },
    /// `value [NOT] IN (query)`
    InQuery {
        /// What is sought.
        value: Box<Expr>,
        /// Among what.
        query: Box<Query>,
        /// NOT.
        negated: bool,
    },
    /// `value [NOT] LIKE pattern`, `value [NOT] ILIKE pattern`
    Like {
        /// What is matched.
        value: Box<Expr>,
        /// What it should look like.
        pattern: Box<Expr>,
        /// ILIKE.
        ignore_case: bool,
        /// NOT.
        negated: bool,
    },
    /// `value IS [NOT] NULL`
    IsNull {
        /// What is tested.
        value: Box<Expr>,
        /// NOT.
        negated: bool,
    },
    /// `value IS [NOT] TRUE`, `value IS [NOT] FALSE`
    IsTruth {
        /// What is tested.
        value: Box<Expr>,
        /// TRUE.
        truth: bool,
        /// NOT.
        negated: bool,
    },
    /// `EXISTS (query)`
    Exists(Box<Query>),
    /// `(query)` as a value.
    Scalar(Box<Query>),
    /// CASE in both forms.
    Case(Box<Case>),
    /// `CAST(value AS target)`
    Cast(Box<Expr>, Target),
    /// A call of a function or an aggregate, geometries included.
    Call(Box<Call>),
}

/// `+` or `-` before an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `+`
    Plus,
    /// `-`
    Minus,
}

/// `CASE [operand] WHEN a THEN b ... [ELSE c] END`
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What each WHEN is compared with; without it each WHEN is a condition.
    pub operand: Option<Expr>,
    /// WHEN and THEN; never empty.
    pub branches: Vec<(Expr, Expr)>,
    /// ELSE.
    pub otherwise: Option<Expr>,
}

/// What a CAST makes (ADQL 2.1 4.7).
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The type.
    pub kind: TargetType,
    /// `(n)` of CHAR and VARCHAR, a [`Value::Integer`].
    pub length: Option<Box<Literal>>,
    /// Where it stands.
    pub at: Aside<Span>,
}

/// The types that a CAST can make. Synonyms of other dialects were understood: `FLOAT` is DOUBLE PRECISION.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetType {
    /// SMALLINT
    SmallInt,
    /// INTEGER
    Integer,
    /// BIGINT
    BigInt,
    /// REAL
    Real,
    /// DOUBLE PRECISION
    DoublePrecision,
    /// CHAR
    Char,
    /// VARCHAR
    VarChar,
    /// TIMESTAMP
    Timestamp,
    /// BOOLEAN
    Boolean,
    /// POINT
    Point,
    /// CIRCLE
    Circle,
    /// POLYGON
    Polygon,
    /// REGION
    Region,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What stands before the name and its dot: some services keep functions in schemas.
    pub schema: Option<Ident>,
    /// The function.
    pub name: Ident,
    /// DISTINCT before the arguments.
    pub distinct: bool,
    /// What it is given.
    pub arguments: Arguments,
}

/// What a call is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// `(*)`
    Star,
    /// `(a, b, ...)`, or `()`.
    List(Vec<Expr>),
}
