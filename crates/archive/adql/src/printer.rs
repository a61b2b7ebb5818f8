//! From the syntax tree to canonical text: one line, keywords in capitals, the fewest parentheses, names as they were
//! written.
//!
//! Parsing what was printed gives an equal tree. Parentheses stand where the tree's shape is not what the parser
//! would make without them ([`Power`]), so that `a - (b - c)` keeps its own and `a - b - c` gets none; `-(-x)` keeps
//! them because `--` begins a comment. An unquoted name that the parser would not take for one is printed in quotes;
//! the parser makes none such.
//!
//! `Display` is the printer, here for every part of the tree that is worth a message.

use std::fmt::{Display, Formatter, Result};

use crate::ast::{
    Alias, Arguments, Body, Call, Case, Constraint, Cte, Expr, ExprKind, Ident, Item, Join, Literal,
    OrderItem, Query, Select, Set, Sign, TableExpr, TableName, Target, TargetType,
};
use crate::parser::Power;
use crate::token::Keyword;
use crate::tree::{Comparison, JoinKind, Operator, SetOperator, Value};

#[cfg(test)]
mod tests;

/// Items with something between them.
struct Separated<'a, T>(&'a [T], &'static str);

impl<T: Display> Display for Separated<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (index, item) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(self.1)?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

fn commas<T>(items: &[T]) -> Separated<'_, T> {
    Separated(items, ", ")
}

// ---- names

impl Display for Ident {
    /// After AS and beside a dot, where any word is a name.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.name.quoted || !is_word(&self.name.text) {
            write!(f, "\"{}\"", self.name.text.replace('"', "\"\""))
        } else {
            f.write_str(&self.name.text)
        }
    }
}

/// A name where a reserved word would be taken for itself.
struct Bare<'a>(&'a Ident);

impl Display for Bare<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let name = &self.0.name;
        if !name.quoted && Keyword::of(&name.text).is_some_and(Keyword::is_reserved) {
            write!(f, "\"{}\"", name.text)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

/// Whether the lexer takes the text for one word.
fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && text.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

impl TableName {
    /// The name where a dot follows.
    fn write_dotted(&self, f: &mut Formatter<'_>) -> Result {
        for part in self.catalog.iter().chain(&self.schema) {
            write!(f, "{part}.")?;
        }
        write!(f, "{}.", self.table)
    }
}

impl Display for TableName {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for part in self.catalog.iter().chain(&self.schema) {
            write!(f, "{part}.")?;
        }
        match self.schema {
            Some(_) => write!(f, "{}", self.table),
            None => write!(f, "{}", Bare(&self.table)),
        }
    }
}

impl Display for Alias {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, " AS {}", self.name)?;
        if self.columns.is_empty() { Ok(()) } else { write_columns(f, &self.columns) }
    }
}

fn write_columns(f: &mut Formatter<'_>, columns: &[Ident]) -> Result {
    let bare: Vec<_> = columns.iter().map(Bare).collect();
    write!(f, " ({})", commas(&bare))
}

// ---- queries

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if !self.with.is_empty() {
            write!(f, "WITH {} ", commas(&self.with))?;
        }
        write!(f, "{}", self.body)?;
        if !self.order.is_empty() {
            write!(f, " ORDER BY {}", commas(&self.order))?;
        }
        match &self.offset {
            Some(offset) => write!(f, " OFFSET {offset}"),
            None => Ok(()),
        }
    }
}

impl Display for Cte {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", Bare(&self.name))?;
        if !self.columns.is_empty() {
            write_columns(f, &self.columns)?;
        }
        write!(f, " AS ({})", self.query)
    }
}

impl Display for OrderItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}{}", self.expr, if self.descending { " DESC" } else { "" })
    }
}

impl Display for Body {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Select(select) => write!(f, "{select}"),
            Self::Set(set) => write!(f, "{set}"),
            Self::Nested(query) => write!(f, "({query})"),
        }
    }
}

impl Body {
    /// Whether the combination binds as INTERSECT does; `None` for what is no combination.
    fn is_tight(&self) -> Option<bool> {
        match self {
            Self::Set(set) => Some(set.operator == SetOperator::Intersect),
            Self::Select(_) | Self::Nested(_) => None,
        }
    }

    fn write_operand(&self, f: &mut Formatter<'_>, parens: bool) -> Result {
        if parens { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

impl Display for Set {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let tight = self.operator == SetOperator::Intersect;
        self.left.write_operand(f, self.left.is_tight().is_some_and(|left| tight && !left))?;
        f.write_str(match self.operator {
            SetOperator::Union => " UNION ",
            SetOperator::Except => " EXCEPT ",
            SetOperator::Intersect => " INTERSECT ",
        })?;
        f.write_str(if self.all { "ALL " } else { "" })?;
        self.right.write_operand(f, self.right.is_tight().is_some_and(|right| tight || !right))
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(if self.distinct { "SELECT DISTINCT " } else { "SELECT " })?;
        if let Some(top) = &self.top {
            write!(f, "TOP {top} ")?;
        }
        write!(f, "{}", commas(&self.items))?;
        if !self.from.is_empty() {
            write!(f, " FROM {}", commas(&self.from))?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " WHERE {filter}")?;
        }
        if !self.group.is_empty() {
            write!(f, " GROUP BY {}", commas(&self.group))?;
        }
        match &self.having {
            Some(having) => write!(f, " HAVING {having}"),
            None => Ok(()),
        }
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::All(_) => f.write_str("*"),
            Self::AllOf(table) => {
                table.write_dotted(f)?;
                f.write_str("*")
            }
            Self::Expr { expr, alias: None } => write!(f, "{expr}"),
            Self::Expr { expr, alias: Some(alias) } => write!(f, "{expr} AS {alias}"),
        }
    }
}

// ---- tables

impl Display for TableExpr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let alias = match self {
            Self::Table { name, alias } => {
                write!(f, "{name}")?;
                alias
            }
            Self::Derived { query, alias } => {
                write!(f, "({query})")?;
                alias
            }
            Self::Join(join) => return write!(f, "{join}"),
        };
        alias.as_ref().map_or(Ok(()), |alias| write!(f, "{alias}"))
    }
}

impl Display for Join {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", self.left)?;
        f.write_str(match self.constraint {
            Constraint::None => " CROSS",
            Constraint::Natural => " NATURAL",
            Constraint::Using(_) | Constraint::On(_) => "",
        })?;
        f.write_str(match self.kind {
            JoinKind::Inner => " JOIN ",
            JoinKind::Left => " LEFT JOIN ",
            JoinKind::Right => " RIGHT JOIN ",
            JoinKind::Full => " FULL JOIN ",
        })?;
        match &self.right {
            TableExpr::Join(right) => write!(f, "({right})")?,
            right => write!(f, "{right}")?,
        }
        match &self.constraint {
            Constraint::None | Constraint::Natural => Ok(()),
            Constraint::Using(columns) => {
                f.write_str(" USING")?;
                write_columns(f, columns)
            }
            Constraint::On(condition) => write!(f, " ON {condition}"),
        }
    }
}

// ---- expressions

/// An expression where operators bind at least so tightly.
struct Operand<'a>(&'a Expr, Power);

impl Display for Operand<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if power(&self.0.kind) < self.1 { write!(f, "({})", self.0) } else { write!(f, "{}", self.0) }
    }
}

/// How tightly the outermost operator of an expression binds.
fn power(kind: &ExprKind) -> Power {
    match kind {
        ExprKind::Or(_) => Power::Or,
        ExprKind::And(_) => Power::And,
        ExprKind::Not(_) => Power::Not,
        ExprKind::IsNull { .. } | ExprKind::IsTruth { .. } => Power::Is,
        ExprKind::Compare(..)
        | ExprKind::Between { .. }
        | ExprKind::InList { .. }
        | ExprKind::InQuery { .. }
        | ExprKind::Like { .. } => Power::Compare,
        ExprKind::Concat(_) => Power::Concat,
        ExprKind::Arithmetic(Operator::Add | Operator::Subtract, ..) => Power::Add,
        ExprKind::Arithmetic(Operator::Multiply | Operator::Divide, ..) => Power::Multiply,
        ExprKind::Sign(..) => Power::Sign,
        ExprKind::Literal(literal) if is_negative(&literal.value) => Power::Sign,
        ExprKind::Column { .. }
        | ExprKind::Literal(_)
        | ExprKind::Exists(_)
        | ExprKind::Scalar(_)
        | ExprKind::Case(_)
        | ExprKind::Cast(..)
        | ExprKind::Call(_) => Power::Primary,
    }
}

/// Numbers of the text have no sign; those of a tree that somebody built may.
fn is_negative(value: &Value) -> bool {
    match value {
        Value::Integer(number) => *number < 0,
        Value::Double(number) => number.is_sign_negative(),
        Value::Null | Value::Boolean(_) | Value::Text(_) => false,
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let own = power(&self.kind);
        match &self.kind {
            ExprKind::Column { qualifier: None, name } => write!(f, "{}", Bare(name)),
            ExprKind::Column { qualifier: Some(table), name } => {
                table.write_dotted(f)?;
                write!(f, "{name}")
            }
            ExprKind::Literal(literal) => write!(f, "{literal}"),
            ExprKind::Sign(sign, operand) => write_sign(f, *sign, operand),
            ExprKind::Arithmetic(operator, left, right) => {
                write!(f, "{} {} {}", Operand(left, own), symbol(*operator), Operand(right, own.next()))
            }
            ExprKind::Concat(operands) => write_chain(f, operands, " || ", own.next()),
            ExprKind::And(operands) => write_chain(f, operands, " AND ", own.next()),
            ExprKind::Or(operands) => write_chain(f, operands, " OR ", own.next()),
            ExprKind::Not(operand) => write!(f, "NOT {}", Operand(operand, own)),
            ExprKind::Exists(query) => write!(f, "EXISTS ({query})"),
            ExprKind::Scalar(query) => write!(f, "({query})"),
            ExprKind::Case(case) => write!(f, "{case}"),
            ExprKind::Cast(value, target) => write!(f, "CAST({value} AS {target})"),
            ExprKind::Call(call) => write!(f, "{call}"),
            predicate => write_predicate(f, predicate),
        }
    }
}

/// The comparisons, and IS.
fn write_predicate(f: &mut Formatter<'_>, predicate: &ExprKind) -> Result {
    let operand = |expr| Operand(expr, Power::Concat);
    let not = |negated| if negated { " NOT" } else { "" };
    match predicate {
        ExprKind::Compare(comparison, left, right) => {
            write!(f, "{} {} {}", operand(left), sign(*comparison), operand(right))
        }
        ExprKind::Between { value, low, high, negated } => {
            let not = not(*negated);
            write!(f, "{}{not} BETWEEN {} AND {}", operand(value), operand(low), operand(high))
        }
        ExprKind::InList { value, list, negated } => {
            write!(f, "{}{} IN ({})", operand(value), not(*negated), commas(list))
        }
        ExprKind::InQuery { value, query, negated } => {
            write!(f, "{}{} IN ({query})", operand(value), not(*negated))
        }
        ExprKind::Like { value, pattern, ignore_case, negated } => {
            let like = if *ignore_case { "ILIKE" } else { "LIKE" };
            write!(f, "{}{} {like} {}", operand(value), not(*negated), operand(pattern))
        }
        ExprKind::IsNull { value, negated } => write!(f, "{} IS{} NULL", operand(value), not(*negated)),
        ExprKind::IsTruth { value, truth, negated } => {
            let truth = if *truth { "TRUE" } else { "FALSE" };
            write!(f, "{} IS{} {truth}", operand(value), not(*negated))
        }
        _ => unreachable!("the caller has printed every other kind"),
    }
}

fn write_sign(f: &mut Formatter<'_>, sign: Sign, operand: &Expr) -> Result {
    let sign = match sign {
        Sign::Plus => '+',
        Sign::Minus => '-',
    };
    write!(f, "{sign}{}", Operand(operand, Power::Primary))
}

fn write_chain(f: &mut Formatter<'_>, operands: &[Expr], between: &'static str, least: Power) -> Result {
    for (index, operand) in operands.iter().enumerate() {
        f.write_str(if index > 0 { between } else { "" })?;
        write!(f, "{}", Operand(operand, least))?;
    }
    Ok(())
}

const fn symbol(operator: Operator) -> char {
    match operator {
        Operator::Add => '+',
        Operator::Subtract => '-',
        Operator::Multiply => '*',
        Operator::Divide => '/',
    }
}

const fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.value {
            Value::Null => f.write_str("NULL"),
            Value::Boolean(true) => f.write_str("TRUE"),
            Value::Boolean(false) => f.write_str("FALSE"),
            Value::Integer(number) => write!(f, "{number}"),
            // The shortest form that reads back the same, always with a point or an exponent.
            Value::Double(number) => write!(f, "{number:?}"),
            Value::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str("CASE")?;
        if let Some(operand) = &self.operand {
            write!(f, " {operand}")?;
        }
        for (when, then) in &self.branches {
            write!(f, " WHEN {when} THEN {then}")?;
        }
        match &self.otherwise {
            Some(otherwise) => write!(f, " ELSE {otherwise} END"),
            None => f.write_str(" END"),
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", self.kind)?;
        match &self.length {
            Some(length) => write!(f, "({length})"),
            None => Ok(()),
        }
    }
}

impl Display for TargetType {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Self::SmallInt => "SMALLINT",
            Self::Integer => "INTEGER",
            Self::BigInt => "BIGINT",
            Self::Real => "REAL",
            Self::DoublePrecision => "DOUBLE PRECISION",
            Self::Char => "CHAR",
            Self::VarChar => "VARCHAR",
            Self::Timestamp => "TIMESTAMP",
            Self::Boolean => "BOOLEAN",
            Self::Point => "POINT",
            Self::Circle => "CIRCLE",
            Self::Polygon => "POLYGON",
            Self::Region => "REGION",
        })
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        write!(f, "{}(", self.name)?;
        match &self.arguments {
            Arguments::Star => f.write_str("*)"),
            Arguments::List(list) => {
                f.write_str(if self.distinct { "DISTINCT " } else { "" })?;
                write!(f, "{})", commas(list))
            }
        }
    }
}
