//! Queries as wholes: WITH, set operations, ORDER BY, and the parts of a select put together.

use std::sync::Arc;

use super::coerce::{Operand, cast};
use super::error::{Error, Problem, Result};
use super::from::renamed;
use super::group::single_name;
use super::output::as_position;
use super::scope::{Clause, Output, Scope, column_ref};
use super::{Cte, Resolver};
use crate::ast;
use crate::lift;
use crate::limits;
use crate::span::Span;
use crate::tree::{Body, Expr, Join, Literal, OrderKey, Query, Relation, Select};
use crate::types::{Field, Size, Type};

impl Resolver<'_> {
    /// A query with all that belongs to it.
    pub(super) fn query(&mut self, query: &ast::Query) -> Result<Query> {
        self.depth += 1;
        self.reach(self.depth, query.span())?;
        let outer = self.ctes.len();
        self.with(&query.with)?;
        let mut resolved = match &query.body {
            ast::Body::Select(select) => self.select(select, &query.order)?,
            ast::Body::Set(set) => {
                let combined = self.set(set)?;
                let order = self.order_by_columns(&combined.fields, &query.order, "a set operation")?;
                Query { order, ..combined }
            }
            ast::Body::Nested(inner) => self.nested(inner, query)?,
        };
        if let Some(offset) = &query.offset {
            resolved.offset = Some(count(offset));
        }
        self.ctes.truncate(outer);
        self.depth -= 1;
        Ok(resolved)
    }

    /// WITH: each query sees those before it, and nothing around it (ADQL 2.1 4.5.1).
    fn with(&mut self, list: &[ast::Cte]) -> Result<()> {
        let outer = self.ctes.len();
        for cte in list {
            let name = &cte.name;
            self.bound(self.ctes.len() + 1, limits::CTES, "queries in WITH", name.span())?;
            if self.ctes[outer..].iter().any(|other| other.name.text.eq_ignore_ascii_case(&name.name.text)) {
                let problem = Problem::Duplicate { what: "queries in WITH", name: name.to_string() };
                return Err(Error::at(problem, name.span()));
            }
            let hidden = std::mem::replace(&mut self.hidden, self.scopes.len());
            let relations = std::mem::take(&mut self.relations);
            let depth = std::mem::take(&mut self.depth);
            let deepest = std::mem::take(&mut self.deepest);
            let query = Arc::new(self.query(&cte.query)?);
            let fields = renamed(Arc::clone(&query.fields), &cte.columns, name.span())?;
            self.ctes.push(Cte {
                name: name.name.clone(),
                query,
                fields,
                relations: std::mem::replace(&mut self.relations, relations),
                depth: std::mem::replace(&mut self.deepest, deepest),
            });
            self.depth = depth;
            self.hidden = hidden;
        }
        Ok(())
    }

    /// A query in parentheses with an ORDER BY or OFFSET of its own, and perhaps others around them.
    fn nested(&mut self, inner: &ast::Query, outer: &ast::Query) -> Result<Query> {
        let resolved = self.query(inner)?;
        if outer.order.is_empty() && outer.offset.is_none() {
            return Ok(resolved);
        }
        if lift::is_correlated(&resolved) {
            let problem = "a query that refers to one around it cannot be ordered twice";
            return Err(Error::at(Problem::Unsupported(problem.into()), inner.span()));
        }
        let order = self.order_by_columns(&resolved.fields, &outer.order, "a query in parentheses")?;
        Ok(Query { order, ..all_of(resolved) })
    }

    // ---- set operations (ADQL 2.1 4.6)

    fn set(&mut self, set: &ast::Set) -> Result<Query> {
        let mut left = self.set_operand(&set.left)?;
        let mut right = self.set_operand(&set.right)?;
        let (columns, others) = (left.fields.len(), right.fields.len());
        if columns != others {
            let what = "the queries to be combined have different numbers of columns";
            return Err(Error::at(Problem::Columns { what, left: columns, right: others }, set.at.0));
        }
        let types = self.common_types(&left.fields, &right.fields, set.at.0)?;
        cast_columns(&mut left, &types);
        cast_columns(&mut right, &types);
        let both = left.fields.iter().zip(&*right.fields);
        let fields = both.map(|(one, other)| combined(one, other)).collect();
        let (left, right) = (Arc::new(left), Arc::new(right));
        let body = Body::Set { operator: set.operator, all: set.all, left, right };
        Ok(Query { body, order: Vec::new(), offset: None, top: None, fields })
    }

    fn set_operand(&mut self, body: &ast::Body) -> Result<Query> {
        match body {
            ast::Body::Select(select) => self.select(select, &[]),
            ast::Body::Set(set) => self.set(set),
            ast::Body::Nested(query) => self.query(query),
        }
    }

    fn common_types(&mut self, left: &[Field], right: &[Field], span: Span) -> Result<Vec<Type>> {
        let mut types = Vec::with_capacity(left.len());
        for (one, other) in left.iter().zip(right) {
            let mut both = [Operand::of_type(one.ty, span), Operand::of_type(other.ty, span)];
            let ty = self.unify(&mut both, "one column of the result");
            types.push(
                ty.map_err(|error| error.hint(format!("the columns are {} and {}", one.name, other.name)))?,
            );
        }
        Ok(types)
    }

    /// ORDER BY of what has no rows but its result's: columns by name or position.
    fn order_by_columns(
        &mut self,
        fields: &[Field],
        order: &[ast::OrderItem],
        what: &'static str,
    ) -> Result<Vec<OrderKey>> {
        let mut keys = Vec::with_capacity(order.len());
        for item in order {
            self.bound(keys.len() + 1, limits::KEYS, "keys in ORDER BY", item.expr.span())?;
            let place = match (as_position(&item.expr), single_name(&item.expr)) {
                (Some(position), _) => self.position(position, fields.len())?,
                (None, Some(name)) => match super::scope::position(fields, &name.name) {
                    Ok(Some(place)) => place,
                    _ => {
                        let names = fields.iter().map(|field| &*field.name);
                        let near = crate::suggest::nearest(&name.name.text, names);
                        let error = Error::at(Problem::OrderOfSet(what), name.span());
                        return Err(error.hint_if(near.map(|near| format!("did you mean {near}?"))));
                    }
                },
                (None, None) => return Err(Error::at(Problem::OrderOfSet(what), item.expr.span())),
            };
            check_order(fields[place].ty, item.expr.span())?;
            keys.push(OrderKey { item: place, descending: item.descending });
        }
        Ok(keys)
    }

    // ---- one select

    fn select(&mut self, select: &ast::Select, order: &[ast::OrderItem]) -> Result<Query> {
        self.scopes.push(Scope::default());
        let from = self.from(&select.from)?;
        let filter = self.clause(Clause::Where, select.filter.as_ref());
        let filter = filter.map_err(|error| alias_hint(error, &select.items))?;
        self.scope().clause = Clause::Items;
        self.items(&select.items)?;
        let fields = self.fields(&select.items);
        let keys = self.keys(&select.group)?;
        let mut having = self.clause(Clause::Having, select.having.as_ref())?;
        let order = self.order(order, select.distinct)?;
        let outputs = std::mem::take(&mut self.scope().outputs);
        let aggregates = std::mem::take(&mut self.scope().aggregates);
        let grouped = !keys.is_empty() || !aggregates.is_empty() || having.is_some();
        let mut items = Vec::with_capacity(outputs.len());
        for Output { expr, span, .. } in outputs {
            items.push(if grouped { self.grouped(expr, &keys, span)? } else { expr });
        }
        if let (Some(condition), Some(text)) = (having.take(), &select.having) {
            having = Some(self.grouped(condition, &keys, text.span())?);
        }
        let scope = self.scopes.pop().expect("it was pushed above");
        let distinct = select.distinct;
        let body = Select {
            relations: scope.relations,
            from,
            filter,
            grouped,
            keys,
            aggregates,
            having,
            items,
            distinct,
        };
        let top = select.top.as_ref().map(count);
        Ok(Query { body: Body::Select(Box::new(body)), order, offset: None, top, fields })
    }

    fn clause(&mut self, clause: Clause, condition: Option<&ast::Expr>) -> Result<Option<Expr>> {
        self.scope().clause = clause;
        condition.map(|condition| self.condition(condition)).transpose()
    }

    /// ORDER BY: each key is an item of the select list, or becomes a hidden one.
    fn order(&mut self, order: &[ast::OrderItem], distinct: bool) -> Result<Vec<OrderKey>> {
        self.scope().clause = Clause::Order;
        let shown = self.scope().outputs.len();
        let mut keys = Vec::with_capacity(order.len());
        for item in order {
            self.bound(keys.len() + 1, limits::KEYS, "keys in ORDER BY", item.expr.span())?;
            let place = self.order_place(&item.expr, shown, distinct)?;
            let ty = self.scope().outputs[place].expr.ty;
            check_order(ty, item.expr.span())?;
            keys.push(OrderKey { item: place, descending: item.descending });
        }
        Ok(keys)
    }

    fn order_place(&mut self, expr: &ast::Expr, shown: usize, distinct: bool) -> Result<usize> {
        if let Some(position) = as_position(expr) {
            return self.position(position, shown);
        }
        if let Some(name) = single_name(expr)
            && let Some(place) = self.output_named(name)?
        {
            return Ok(place);
        }
        let key = self.value(expr)?;
        for index in 0..self.scope().outputs.len() {
            let output = std::mem::replace(&mut self.scope().outputs[index].expr, null());
            let same = self.same(&output, &key);
            self.scope().outputs[index].expr = output;
            if same {
                return Ok(index);
            }
        }
        if distinct {
            return Err(Error::at(Problem::OrderOfDistinct, expr.span()));
        }
        let name = Arc::from("");
        let hidden = Output { expr: key, name, aliased: false, field: None, span: expr.span() };
        self.scope().outputs.push(hidden);
        Ok(self.scope().outputs.len() - 1)
    }
}

fn null() -> Expr {
    Expr::computed(crate::tree::Value::Null, Type::Null)
}

/// An alias is not there yet when WHERE chooses rows.
fn alias_hint(error: Box<Error>, items: &[ast::Item]) -> Box<Error> {
    let Problem::UnknownColumn(name) = &error.problem else { return error };
    let is_alias = items.iter().any(|item| match item {
        ast::Item::Expr { alias: Some(alias), .. } => alias.name.text.eq_ignore_ascii_case(name),
        _ => false,
    });
    if is_alias {
        return error
            .hint("WHERE comes before the select list: repeat the expression, or select from a query");
    }
    error
}

/// TOP or OFFSET.
fn count(literal: &ast::Literal) -> Literal {
    Literal { value: literal.value.clone(), slot: literal.slot.0 }
}

fn check_order(ty: Type, span: Span) -> Result<()> {
    if ty.is_ordered() {
        return Ok(());
    }
    Err(Error::at(Problem::Type { wanted: "something that has an order".into(), found: ty }, span))
}

/// All columns of a query, as a select from it.
fn all_of(query: Query) -> Query {
    let fields = Arc::clone(&query.fields);
    let column = |(index, field): (usize, &Field)| Expr::column(column_ref(0, 0, index), field.ty);
    let select = Select {
        relations: vec![Relation::Query(Arc::new(query))],
        from: Some(Join::Leaf(0)),
        filter: None,
        grouped: false,
        keys: Vec::new(),
        aggregates: Vec::new(),
        having: None,
        items: fields.iter().enumerate().map(column).collect(),
        distinct: false,
    };
    Query { body: Body::Select(Box::new(select)), order: Vec::new(), offset: None, top: None, fields }
}

/// The query with its columns in these types. They are wider or the same, so the order of rows is not changed.
pub(super) fn cast_columns(query: &mut Query, types: &[Type]) {
    if query.fields.iter().zip(types).all(|(field, ty)| field.ty == *ty) {
        return;
    }
    query.fields = query.fields.iter().zip(types).map(|(field, ty)| retyped(field, *ty)).collect();
    match &mut query.body {
        Body::Select(select) => {
            for (item, ty) in select.items.iter_mut().zip(types) {
                let taken = std::mem::replace(item, null());
                *item = cast(taken, *ty);
            }
        }
        Body::Set { left, right, .. } => {
            cast_columns(Arc::make_mut(left), types);
            cast_columns(Arc::make_mut(right), types);
        }
    }
}

fn retyped(field: &Field, ty: Type) -> Field {
    if field.ty == ty {
        return field.clone();
    }
    let plain = Field::new(Arc::clone(&field.name), ty);
    Field { ty, size: plain.size, xtype: plain.xtype, ..field.clone() }
}

/// A column of a set operation: the left one, as far as the right one does not contradict (ADQL 2.1 4.6).
fn combined(left: &Field, right: &Field) -> Field {
    let mut field = left.clone();
    if left.size != right.size && matches!(left.ty, Type::Text | Type::Array(_)) {
        field.size = Size::Variable(None);
    }
    if left.unit != right.unit && left.unit.is_some() && right.unit.is_some() {
        field.unit = None;
    }
    field.unicode |= right.unicode;
    field
}
