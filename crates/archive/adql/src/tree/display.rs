//! A tree as one line of text, for tests and for people who ask how a query was understood.
//!
//! It looks like ADQL and is not: relations are `t0`, `t1`, ... in the order of FROM, a column of the select further
//! out has a `^` for each step, conversions and hidden items are shown. `{:#}` adds the slots of literals: `5@2`.

use std::fmt::{self, Write as _};

use super::{
    Aggregate, Body, ColumnRef, Comparison, Expr, Join, JoinKind, Kind, Literal, Operator, Query, Relation,
    Select, SetOperator, Value,
};
use crate::types::Type;

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Printer { slots: f.alternate(), out: f, selects: Vec::new() }.query(self)
    }
}

struct Printer<'a, 'f> {
    out: &'a mut fmt::Formatter<'f>,
    slots: bool,
    /// The selects that the place stands in, outermost first.
    selects: Vec<&'a Select>,
}

impl<'a> Printer<'a, '_> {
    fn query(&mut self, query: &'a Query) -> fmt::Result {
        match &query.body {
            Body::Select(select) => self.select(select, query)?,
            Body::Set { operator, all, left, right } => {
                self.operand(left)?;
                write!(self.out, " {operator}{} ", if *all { " ALL" } else { "" })?;
                self.operand(right)?;
            }
        }
        for (index, key) in query.order.iter().enumerate() {
            self.out.write_str(if index == 0 { " ORDER BY " } else { ", " })?;
            write!(self.out, "#{}{}", key.item + 1, if key.descending { " DESC" } else { "" })?;
        }
        self.count(" OFFSET ", query.offset.as_ref())?;
        self.count(" TOP ", query.top.as_ref())
    }

    fn operand(&mut self, query: &'a Query) -> fmt::Result {
        self.out.write_str("(")?;
        self.query(query)?;
        self.out.write_str(")")
    }

    fn count(&mut self, word: &str, count: Option<&Literal>) -> fmt::Result {
        let Some(count) = count else { return Ok(()) };
        self.out.write_str(word)?;
        self.literal(count)
    }

    fn select(&mut self, select: &'a Select, query: &'a Query) -> fmt::Result {
        self.selects.push(select);
        self.out.write_str(if select.distinct { "SELECT DISTINCT " } else { "SELECT " })?;
        for (index, item) in select.items.iter().enumerate() {
            self.comma(index)?;
            self.expr(item)?;
            match query.fields.get(index) {
                Some(field) => write!(self.out, " AS {}", field.name)?,
                None => self.out.write_str(" HIDDEN")?,
            }
        }
        if let Some(from) = &select.from {
            self.out.write_str(" FROM ")?;
            self.join(from)?;
        }
        self.clause(" WHERE ", select.filter.as_ref())?;
        if select.grouped {
            self.groups(select)?;
        }
        self.clause(" HAVING ", select.having.as_ref())?;
        self.selects.pop();
        Ok(())
    }

    fn groups(&mut self, select: &'a Select) -> fmt::Result {
        self.out.write_str(" GROUP BY (")?;
        self.list(&select.keys)?;
        self.out.write_str(")")?;
        for (index, aggregate) in select.aggregates.iter().enumerate() {
            self.out.write_str(if index == 0 { " OF " } else { ", " })?;
            self.aggregate(aggregate)?;
        }
        Ok(())
    }

    fn aggregate(&mut self, aggregate: &'a Aggregate) -> fmt::Result {
        write!(self.out, "{:?}(", aggregate.aggregator)?;
        if aggregate.distinct {
            self.out.write_str("DISTINCT ")?;
        }
        self.list(&aggregate.arguments)?;
        write!(self.out, ")")
    }

    fn clause(&mut self, word: &str, condition: Option<&'a Expr>) -> fmt::Result {
        let Some(condition) = condition else { return Ok(()) };
        self.out.write_str(word)?;
        self.expr(condition)
    }

    fn join(&mut self, join: &'a Join) -> fmt::Result {
        match join {
            Join::Leaf(index) => self.relation(*index),
            Join::Pair { kind, left, right, on } => {
                self.out.write_str("(")?;
                self.join(left)?;
                let word = match (kind, on) {
                    (JoinKind::Inner, None) => " CROSS JOIN ",
                    (JoinKind::Inner, Some(_)) => " JOIN ",
                    (JoinKind::Left, _) => " LEFT JOIN ",
                    (JoinKind::Right, _) => " RIGHT JOIN ",
                    (JoinKind::Full, _) => " FULL JOIN ",
                };
                self.out.write_str(word)?;
                self.join(right)?;
                self.clause(" ON ", on.as_ref())?;
                self.out.write_str(")")
            }
        }
    }

    fn relation(&mut self, index: usize) -> fmt::Result {
        let select = self.selects.last().expect("a join stands in a select");
        match select.relations.get(index) {
            Some(Relation::Table(table)) => write!(self.out, "{}.{}", table.schema, table.table)?,
            Some(Relation::Query(query)) => {
                let selects = std::mem::take(&mut self.selects);
                self.operand(query)?;
                self.selects = selects;
            }
            None => self.out.write_str("?")?,
        }
        write!(self.out, " t{index}")
    }

    fn comma(&mut self, index: usize) -> fmt::Result {
        if index > 0 { self.out.write_str(", ") } else { Ok(()) }
    }

    fn list(&mut self, list: &'a [Expr]) -> fmt::Result {
        for (index, expr) in list.iter().enumerate() {
            self.comma(index)?;
            self.expr(expr)?;
        }
        Ok(())
    }

    /// Operands with a word between each two, in parentheses.
    fn infix(&mut self, word: &str, operands: &[&'a Expr]) -> fmt::Result {
        for (index, operand) in operands.iter().enumerate() {
            self.out.write_str(if index == 0 { "(" } else { word })?;
            self.expr(operand)?;
        }
        self.out.write_str(")")
    }

    fn expr(&mut self, expr: &'a Expr) -> fmt::Result {
        match &expr.kind {
            Kind::Column(column) => self.column(*column),
            Kind::Literal(literal) => self.literal(literal),
            Kind::Key(index) => write!(self.out, "key{index}"),
            Kind::Aggregate(index) => write!(self.out, "agg{index}"),
            Kind::Negate(one) => self.call("-", one, ""),
            Kind::Not(one) => self.call("NOT ", one, ""),
            Kind::IsNull(one) => self.call("", one, " IS NULL"),
            Kind::Cast(one) => self.cast(one, expr.ty),
            Kind::Exists(query) => {
                self.out.write_str("EXISTS ")?;
                self.operand(query)
            }
            Kind::Scalar(query) => self.operand(query),
            Kind::InQuery(value, query) => {
                self.expr(value)?;
                self.out.write_str(" IN ")?;
                self.operand(query)
            }
            _ => self.operation(expr),
        }
    }

    fn operation(&mut self, expr: &'a Expr) -> fmt::Result {
        match &expr.kind {
            Kind::Arithmetic(operator, left, right) => self.infix(&format!(" {operator} "), &[left, right]),
            Kind::Compare(comparison, left, right) => self.infix(&format!(" {comparison} "), &[left, right]),
            Kind::Concat(list) => self.infix(" || ", &list.iter().collect::<Vec<_>>()),
            Kind::And(list) => self.infix(" AND ", &list.iter().collect::<Vec<_>>()),
            Kind::Or(list) => self.infix(" OR ", &list.iter().collect::<Vec<_>>()),
            Kind::Like { value, pattern, ignore_case } => {
                self.infix(if *ignore_case { " ILIKE " } else { " LIKE " }, &[value, pattern])
            }
            Kind::Between(value, low, high) => {
                self.expr(value)?;
                self.out.write_str(" BETWEEN ")?;
                self.expr(low)?;
                self.out.write_str(" AND ")?;
                self.expr(high)
            }
            Kind::InList(value, list) => {
                self.expr(value)?;
                self.out.write_str(" IN (")?;
                self.list(list)?;
                self.out.write_str(")")
            }
            Kind::Case { branches, otherwise } => self.case(branches, otherwise),
            Kind::Call(function, list) => {
                write!(self.out, "{function:?}(")?;
                self.list(list)?;
                self.out.write_str(")")
            }
            _ => unreachable!("the caller printed it"),
        }
    }

    fn case(&mut self, branches: &'a [(Expr, Expr)], otherwise: &'a Expr) -> fmt::Result {
        self.out.write_str("CASE")?;
        for (when, then) in branches {
            self.out.write_str(" WHEN ")?;
            self.expr(when)?;
            self.out.write_str(" THEN ")?;
            self.expr(then)?;
        }
        self.out.write_str(" ELSE ")?;
        self.expr(otherwise)?;
        self.out.write_str(" END")
    }

    fn call(&mut self, before: &str, one: &'a Expr, after: &str) -> fmt::Result {
        self.out.write_str(before)?;
        self.expr(one)?;
        self.out.write_str(after)
    }

    fn cast(&mut self, one: &'a Expr, ty: Type) -> fmt::Result {
        self.out.write_str("CAST(")?;
        self.expr(one)?;
        write!(self.out, " AS {ty})")
    }

    fn column(&mut self, column: ColumnRef) -> fmt::Result {
        for _ in 0..column.depth {
            self.out.write_char('^')?;
        }
        let index = self.selects.len().checked_sub(1 + usize::from(column.depth));
        let select = index.and_then(|index| self.selects.get(index));
        let relation = select.and_then(|select| select.relations.get(usize::from(column.relation)));
        let field = relation.and_then(|relation| relation.fields().get(column.column as usize));
        match field {
            Some(field) => write!(self.out, "t{}.{}", column.relation, field.name),
            None => write!(self.out, "t{}.{}", column.relation, column.column),
        }
    }

    fn literal(&mut self, literal: &Literal) -> fmt::Result {
        match &literal.value {
            Value::Null => self.out.write_str("NULL")?,
            Value::Boolean(truth) => self.out.write_str(if *truth { "TRUE" } else { "FALSE" })?,
            Value::Integer(whole) => write!(self.out, "{whole}")?,
            Value::Double(number) => write!(self.out, "{number:?}")?,
            Value::Text(text) => write!(self.out, "'{text}'")?,
        }
        match literal.slot {
            Some(slot) if self.slots => write!(self.out, "@{slot}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "<>",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl fmt::Display for SetOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Union => "UNION",
            Self::Except => "EXCEPT",
            Self::Intersect => "INTERSECT",
        })
    }
}
