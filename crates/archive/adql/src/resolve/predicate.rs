//! Conditions: what is true, false or unknown.
//!
//! The geometric predicates are numbers in the standard (1 or 0) and truth values here. Every way to ask for one is
//! the same in the tree: bare, `= 1`, `1 =`, `<> 0`, `> 0`, `= 'TRUE'`, `IS TRUE`, and for the opposite NOT.

use std::sync::Arc;

use super::Resolver;
use super::coerce::{Operand, cast, to_text};
use super::error::{Error, Problem, Result};
use crate::ast::{self, ExprKind};
use crate::functions::Function;
use crate::span::Span;
use crate::tree::{Comparison, Expr, Kind, Query, Value};
use crate::types::Type;

impl Resolver<'_> {
    /// An expression that decides something.
    pub(super) fn condition(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let span = expr.span();
        let resolved = self.expr(expr)?;
        match resolved.ty {
            Type::Boolean | Type::Bit | Type::Null => Ok(cast(resolved, Type::Boolean)),
            found => {
                let problem = Problem::Type { wanted: "a condition".into(), found };
                let hint = found.is_numeric().then_some("compare it with something: ... = 1");
                Err(Error::at(problem, span).hint_if(hint))
            }
        }
    }

    pub(super) fn conditions(&mut self, list: &[ast::Expr]) -> Result<Vec<Expr>> {
        list.iter().map(|one| self.condition(one)).collect()
    }

    fn operand(&mut self, expr: &ast::Expr) -> Result<Operand> {
        Ok(Operand::new(self.expr(expr)?, expr.span()))
    }

    pub(super) fn compare(
        &mut self,
        comparison: Comparison,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Expr> {
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let mut operands = [left, right];
        if let Some(truth) = self.compare_truth(comparison, &mut operands) {
            return Ok(truth);
        }
        self.unify_ordered(&mut operands, "compared")?;
        let [left, right] = operands.map(|operand| Box::new(operand.expr));
        Ok(boolean(Kind::Compare(comparison, left, right)))
    }

    /// A comparison of a truth value with a literal that asks whether it is true, or whether it is false.
    fn compare_truth(&mut self, comparison: Comparison, operands: &mut [Operand; 2]) -> Option<Expr> {
        let (place, comparison) = match (operands[0].expr.ty, operands[1].expr.ty) {
            (Type::Boolean, _) if operands[1].expr.as_literal().is_some() => (0, comparison),
            (_, Type::Boolean) if operands[0].expr.as_literal().is_some() => (1, mirrored(comparison)),
            _ => return None,
        };
        let literal = operands[1 - place].expr.as_literal()?.clone();
        // Either way: another literal may find the other form.
        self.require_slot(literal.slot, &literal.value);
        let constant = as_count(&literal.value)?;
        let asked = |truth: i64| holds(comparison, truth, constant);
        let negated = match (asked(1), asked(0)) {
            (true, false) => false,
            (false, true) => true,
            _ => return None,
        };
        let taken = std::mem::replace(&mut operands[place].expr, Expr::computed(Value::Null, Type::Null));
        Some(if negated { boolean(Kind::Not(Box::new(taken))) } else { taken })
    }

    pub(super) fn between(&mut self, value: &ast::Expr, low: &ast::Expr, high: &ast::Expr) -> Result<Expr> {
        let mut operands = [self.operand(value)?, self.operand(low)?, self.operand(high)?];
        self.unify_ordered(&mut operands, "compared")?;
        let [value, low, high] = operands.map(|operand| Box::new(operand.expr));
        Ok(boolean(Kind::Between(value, low, high)))
    }

    pub(super) fn in_list(&mut self, value: &ast::Expr, list: &[ast::Expr]) -> Result<Expr> {
        let mut operands = Vec::with_capacity(list.len() + 1);
        operands.push(self.operand(value)?);
        for one in list {
            operands.push(self.operand(one)?);
        }
        self.unify_ordered(&mut operands, "compared")?;
        let mut all = operands.into_iter().map(|operand| operand.expr);
        let value = all.next().expect("the value came first");
        Ok(boolean(Kind::InList(Box::new(value), all.collect())))
    }

    pub(super) fn in_query(&mut self, value: &ast::Expr, query: &ast::Query) -> Result<Expr> {
        let span = query.span();
        let value = self.operand(value)?;
        let mut query = self.one_column(query)?;
        let column = Operand::of_type(query.fields[0].ty, span);
        let mut operands = [value, column];
        let ty = self.unify_ordered(&mut operands, "compared")?;
        if query.fields[0].ty != ty {
            super::query::cast_columns(&mut query, &[ty]);
        }
        let [value, _] = operands;
        Ok(boolean(Kind::InQuery(Box::new(value.expr), Arc::new(query))))
    }

    pub(super) fn scalar(&mut self, query: &ast::Query) -> Result<Expr> {
        let query = self.one_column(query)?;
        let ty = query.fields[0].ty;
        Ok(Expr::new(Kind::Scalar(Arc::new(query)), ty))
    }

    fn one_column(&mut self, query: &ast::Query) -> Result<Query> {
        let span = query.span();
        let query = self.query(query)?;
        match query.fields.len() {
            1 => Ok(query),
            columns => Err(Error::at(Problem::NotOneColumn(columns), span)),
        }
    }

    pub(super) fn exists(&mut self, query: &ast::Query) -> Result<Expr> {
        let query = self.query(query)?;
        Ok(boolean(Kind::Exists(Arc::new(query))))
    }

    pub(super) fn like(&mut self, value: &ast::Expr, pattern: &ast::Expr, ignore_case: bool) -> Result<Expr> {
        let (value, pattern) = (self.operand(value)?, self.operand(pattern)?);
        let (value, pattern) = (to_text(value)?, to_text(pattern)?);
        Ok(like(value, pattern, ignore_case))
    }

    /// IS [NOT] TRUE, IS [NOT] FALSE: never unknown.
    pub(super) fn is_truth(&mut self, value: &ast::Expr, truth: bool) -> Result<Expr> {
        let condition = self.condition(value)?;
        let asked = if truth { condition } else { boolean(Kind::Not(Box::new(condition))) };
        let otherwise = Expr::computed(Value::Boolean(false), Type::Boolean);
        Ok(boolean(Kind::Call(Function::Coalesce, vec![asked, otherwise])))
    }

    pub(super) fn case(&mut self, case: &ast::Case, span: Span) -> Result<Expr> {
        let mut conditions = Vec::with_capacity(case.branches.len());
        let mut values = Vec::with_capacity(case.branches.len() + 1);
        let operand = case.operand.as_ref().map(|operand| self.operand(operand)).transpose()?;
        for (when, then) in &case.branches {
            conditions.push(match &operand {
                None => self.condition(when)?,
                Some(operand) => self.equals(operand, when)?,
            });
            values.push(Operand::new(self.value(then)?, then.span()));
        }
        values.push(match &case.otherwise {
            Some(otherwise) => Operand::new(self.value(otherwise)?, otherwise.span()),
            None => Operand::new(Expr::computed(Value::Null, Type::Null), span),
        });
        let ty = self.unify(&mut values, "results of one CASE")?;
        let otherwise = values.pop().expect("the ELSE came last").expr;
        let values = values.into_iter().map(|operand| operand.expr);
        let branches = conditions.into_iter().zip(values).collect();
        Ok(Expr::new(Kind::Case { branches, otherwise: Box::new(otherwise) }, ty))
    }

    /// The operand of a simple CASE compared with one of its WHENs.
    fn equals(&mut self, operand: &Operand, when: &ast::Expr) -> Result<Expr> {
        let copy = self.copy(&operand.expr, operand.span)?;
        let mut operands = [Operand::new(copy, operand.span), self.operand(when)?];
        self.unify_ordered(&mut operands, "compared")?;
        let [left, right] = operands.map(|operand| Box::new(operand.expr));
        Ok(boolean(Kind::Compare(Comparison::Equal, left, right)))
    }

    /// An expression where a value is wanted: the predicates of the standard are numbers there.
    pub(super) fn value(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let resolved = self.expr(expr)?;
        let number = resolved.ty == Type::Boolean && matches!(expr.kind, ExprKind::Call(_));
        // COALESCE and its like, of truth values, are such.
        let truth = number && !matches!(resolved.kind, Kind::Call(function, _) if function.chooses());
        Ok(if truth { cast(resolved, Type::Int) } else { resolved })
    }
}

impl Function {
    /// Whether the value is that of one of the arguments.
    const fn chooses(self) -> bool {
        matches!(self, Self::Coalesce | Self::NullIf | Self::Greatest | Self::Least)
    }
}

/// A literal as the number that a truth value is compared with.
fn as_count(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(whole) => Some(*whole),
        Value::Boolean(truth) => Some(i64::from(*truth)),
        Value::Text(text) => truth_of(text).map(i64::from),
        Value::Double(_) | Value::Null => None,
    }
}

/// The truth value that a text spells, as some write it: `'TRUE'`.
pub(super) fn truth_of(text: &str) -> Option<bool> {
    match () {
        () if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("t") => Some(true),
        () if text.eq_ignore_ascii_case("false") || text.eq_ignore_ascii_case("f") => Some(false),
        () => None,
    }
}

pub(super) fn boolean(kind: Kind) -> Expr {
    Expr::new(kind, Type::Boolean)
}

pub(super) fn negated_if(negated: bool, condition: Expr) -> Expr {
    if negated { boolean(Kind::Not(Box::new(condition))) } else { condition }
}

pub(super) fn like(value: Expr, pattern: Expr, ignore_case: bool) -> Expr {
    boolean(Kind::Like { value: Box::new(value), pattern: Box::new(pattern), ignore_case })
}

/// The comparison with its sides exchanged.
const fn mirrored(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        Comparison::Equal | Comparison::NotEqual => comparison,
    }
}

fn holds(comparison: Comparison, left: i64, right: i64) -> bool {
    match comparison {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Less => left < right,
        Comparison::LessOrEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterOrEqual => left >= right,
    }
}
