//! What comes after grouping: keys, aggregates and constants; a column of a row is none of them.

use super::Resolver;
use super::error::{Error, Problem, Result};
use super::output::as_position;
use super::scope::Clause;
use crate::ast::{self, ExprKind};
use crate::lift;
use crate::limits;
use crate::span::Span;
use crate::tree::{ColumnRef, Expr, Kind};

impl Resolver<'_> {
    /// The keys of GROUP BY: a position, the name of a column or of an item, or an expression.
    pub(super) fn keys(&mut self, list: &[ast::Expr]) -> Result<Vec<Expr>> {
        self.scope().clause = Clause::Group;
        let mut keys: Vec<Expr> = Vec::with_capacity(list.len());
        for expr in list {
            self.bound(keys.len() + 1, limits::KEYS, "keys in GROUP BY", expr.span())?;
            let key = match as_position(expr) {
                Some(position) => {
                    let columns = self.scope().outputs.len();
                    let place = self.position(position, columns)?;
                    let item = self.scope().outputs[place].expr.clone();
                    self.copy(&item, expr.span())?
                }
                None => self.value(expr)?,
            };
            if lift::any(&key, &mut |node| matches!(node.kind, Kind::Aggregate(_))) {
                return Err(Error::at(Problem::MisplacedAggregate("GROUP BY"), expr.span()));
            }
            self.check_key(&key, expr.span())?;
            keys.push(key);
        }
        Ok(keys)
    }

    /// Rows are grouped by what can be compared.
    fn check_key(&self, key: &Expr, span: Span) -> Result<()> {
        if key.ty.is_ordered() {
            return Ok(());
        }
        let problem = Problem::Type { wanted: "something that has an order".into(), found: key.ty };
        Err(Error::at(problem, span))
    }

    /// An expression over rows as one over groups.
    pub(super) fn grouped(&mut self, expr: Expr, keys: &[Expr], span: Span) -> Result<Expr> {
        for (index, key) in keys.iter().enumerate() {
            if self.same(key, &expr) {
                return Ok(Expr::new(Kind::Key(index), expr.ty));
            }
        }
        if let Some(query) = lift::subquery(&expr)
            && lift::refers_to(query, 1)
        {
            let problem = "a query that stands beside aggregates cannot refer to the rows that are grouped";
            return Err(Error::at(Problem::Unsupported(problem.into()), span));
        }
        if let Kind::Column(column) = expr.kind
            && column.depth == 0
        {
            return Err(self.not_grouped(column, keys, span));
        }
        let ty = expr.ty;
        Ok(Expr::new(self.grouped_kind(expr.kind, keys, span)?, ty))
    }

    fn grouped_kind(&mut self, kind: Kind, keys: &[Expr], span: Span) -> Result<Kind> {
        let mut one = |expr: Box<Expr>| self.grouped(*expr, keys, span).map(Box::new);
        Ok(match kind {
            Kind::Column(_)
            | Kind::Literal(_)
            | Kind::Key(_)
            | Kind::Aggregate(_)
            | Kind::Exists(_)
            | Kind::Scalar(_) => kind,
            Kind::Negate(inner) => Kind::Negate(one(inner)?),
            Kind::Not(inner) => Kind::Not(one(inner)?),
            Kind::IsNull(inner) => Kind::IsNull(one(inner)?),
            Kind::Cast(inner) => Kind::Cast(one(inner)?),
            Kind::InQuery(value, query) => Kind::InQuery(one(value)?, query),
            Kind::Arithmetic(operator, left, right) => Kind::Arithmetic(operator, one(left)?, one(right)?),
            Kind::Compare(comparison, left, right) => Kind::Compare(comparison, one(left)?, one(right)?),
            Kind::Like { value, pattern, ignore_case } => {
                Kind::Like { value: one(value)?, pattern: one(pattern)?, ignore_case }
            }
            Kind::Between(value, low, high) => Kind::Between(one(value)?, one(low)?, one(high)?),
            Kind::InList(value, list) => Kind::InList(one(value)?, self.all_grouped(list, keys, span)?),
            Kind::Concat(list) => Kind::Concat(self.all_grouped(list, keys, span)?),
            Kind::And(list) => Kind::And(self.all_grouped(list, keys, span)?),
            Kind::Or(list) => Kind::Or(self.all_grouped(list, keys, span)?),
            Kind::Call(function, list) => Kind::Call(function, self.all_grouped(list, keys, span)?),
            Kind::Case { branches, otherwise } => {
                let otherwise = one(otherwise)?;
                Kind::Case { branches: self.branches_grouped(branches, keys, span)?, otherwise }
            }
        })
    }

    fn all_grouped(&mut self, list: Vec<Expr>, keys: &[Expr], span: Span) -> Result<Vec<Expr>> {
        list.into_iter().map(|one| self.grouped(one, keys, span)).collect()
    }

    fn branches_grouped(
        &mut self,
        branches: Vec<(Expr, Expr)>,
        keys: &[Expr],
        span: Span,
    ) -> Result<Vec<(Expr, Expr)>> {
        let mut grouped = Vec::with_capacity(branches.len());
        for (when, then) in branches {
            grouped.push((self.grouped(when, keys, span)?, self.grouped(then, keys, span)?));
        }
        Ok(grouped)
    }

    fn not_grouped(&self, column: ColumnRef, keys: &[Expr], span: Span) -> Box<Error> {
        let name = self.name_of(column);
        let error = Error::at(Problem::NotGrouped(name.clone()), self.place_of(column, span));
        if keys.is_empty() {
            return error.hint(format!("beside an aggregate: GROUP BY {name}, or MIN({name})"));
        }
        error.hint(format!("add {name} to GROUP BY, or take MIN({name})"))
    }

    /// Where, within an item, a column is named.
    fn place_of(&self, column: ColumnRef, within: Span) -> Span {
        let named = self.scopes.last().map_or(&[][..], |scope| &scope.named);
        let inside = |span: Span| within.start <= span.start && span.end <= within.end;
        let found = named.iter().find(|(other, span)| *other == column && inside(*span));
        found.map_or(within, |(_, span)| *span)
    }
}

/// Whether an expression of ORDER BY is a single name, which may be one of the select list's.
pub(super) fn single_name(expr: &ast::Expr) -> Option<&ast::Ident> {
    match &expr.kind {
        ExprKind::Column { qualifier: None, name } => Some(name),
        _ => None,
    }
}
