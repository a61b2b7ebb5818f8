//! Whether the literals of a syntax tree are those of its fingerprint, slot by slot.

use crate::ast::{Arguments, Body, Constraint, Expr, ExprKind, Item, Literal, Query, Select, TableExpr};
use crate::fingerprint::Fingerprint;
use crate::tree::Value;

/// # Panics
/// When they are not, which is a defect.
pub(super) fn check(query: &Query, fingerprint: &Fingerprint) {
    let mut slots = Slots::default();
    slots.query(query);
    let mut found = slots.0;
    found.sort_by_key(|(slot, _)| *slot);
    let values: Vec<_> = found.iter().map(|(_, value)| value.clone()).collect();
    assert!(found.iter().enumerate().all(|(index, (slot, _))| index == *slot as usize), "slots have no gap");
    assert_eq!(values, fingerprint.literals(), "literals are those of the tokens");
}

/// The literals with a slot, as they are met.
#[derive(Default)]
struct Slots(Vec<(u32, Value)>);

impl Slots {
    fn literal<'a>(&mut self, literal: impl IntoIterator<Item = &'a Literal>) {
        for literal in literal {
            self.0.extend(literal.slot.map(|slot| (slot, literal.value.clone())));
        }
    }

    fn query(&mut self, query: &Query) {
        query.with.iter().for_each(|cte| self.query(&cte.query));
        self.body(&query.body);
        self.exprs(query.order.iter().map(|item| &item.expr));
        self.literal(&query.offset);
    }

    fn body(&mut self, body: &Body) {
        match body {
            Body::Select(select) => self.select(select),
            Body::Nested(query) => self.query(query),
            Body::Set(set) => {
                self.body(&set.left);
                self.body(&set.right);
            }
        }
    }

    fn select(&mut self, select: &Select) {
        self.literal(&select.top);
        for item in &select.items {
            match item {
                Item::All(_) | Item::AllOf(_) => {}
                Item::Expr { expr, .. } => self.expr(expr),
            }
        }
        select.from.iter().for_each(|table| self.table(table));
        self.exprs(select.filter.iter().chain(&select.group).chain(&select.having));
    }

    fn table(&mut self, table: &TableExpr) {
        match table {
            TableExpr::Table { .. } => {}
            TableExpr::Derived { query, .. } => self.query(query),
            TableExpr::Join(join) => {
                self.table(&join.left);
                self.table(&join.right);
                match &join.constraint {
                    Constraint::On(condition) => self.expr(condition),
                    Constraint::None | Constraint::Natural | Constraint::Using(_) => {}
                }
            }
        }
    }

    fn exprs<'a>(&mut self, exprs: impl IntoIterator<Item = &'a Expr>) {
        exprs.into_iter().for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Column { .. } => {}
            ExprKind::Literal(literal) => self.literal([literal]),
            ExprKind::Sign(_, value)
            | ExprKind::Not(value)
            | ExprKind::IsNull { value, .. }
            | ExprKind::IsTruth { value, .. } => self.expr(value),
            ExprKind::Arithmetic(_, left, right) | ExprKind::Compare(_, left, right) => {
                self.exprs([&**left, right]);
            }
            ExprKind::Concat(operands) | ExprKind::And(operands) | ExprKind::Or(operands) => {
                self.exprs(operands);
            }
            ExprKind::Between { value, low, high, .. } => self.exprs([&**value, low, high]),
            ExprKind::Like { value, pattern, .. } => self.exprs([&**value, pattern]),
            ExprKind::InList { value, list, .. } => {
                self.expr(value);
                self.exprs(list);
            }
            ExprKind::InQuery { value, query, .. } => {
                self.expr(value);
                self.query(query);
            }
            ExprKind::Exists(query) | ExprKind::Scalar(query) => self.query(query),
            ExprKind::Case(case) => {
                self.exprs(&case.operand);
                self.exprs(case.branches.iter().flat_map(|(when, then)| [when, then]));
                self.exprs(&case.otherwise);
            }
            ExprKind::Cast(value, target) => {
                self.expr(value);
                self.literal(target.length.as_deref());
            }
            ExprKind::Call(call) => match &call.arguments {
                Arguments::Star => {}
                Arguments::List(list) => self.exprs(list),
            },
        }
    }
}
