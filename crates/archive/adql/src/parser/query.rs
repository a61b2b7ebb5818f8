//! Queries: WITH, set operations, SELECT and its clauses (ADQL 2.1 2.2).

use super::primary::Dotted;
use super::{Clause, Parsed, Parser};
use crate::ast::{Body, Cte, Expr, Ident, Item, Literal, OrderItem, Query, Select, Set};
use crate::language::Language;
use crate::limits;
use crate::span::{Aside, Span};
use crate::token::{Keyword, Kind};
use crate::tree::SetOperator;

/// What SELECT says of itself before its list.
#[derive(Default)]
struct Quantifiers {
    all: bool,
    distinct: bool,
    top: Option<Literal>,
}

impl Parser<'_> {
    /// A query, up to what cannot belong to it.
    pub(super) fn query(&mut self) -> Parsed<Query> {
        let start = self.token.span;
        self.enter(limits::SUBQUERY_DEPTH)?;
        let above = std::mem::take(&mut self.height);
        let with = self.with()?;
        let in_parens = self.token.kind == Kind::LeftParen;
        let left = self.set_operand()?;
        let query = self.finish_query(start, with, left, in_parens)?;
        self.raise()?;
        self.height = self.height.max(above);
        self.leave(limits::SUBQUERY_DEPTH);
        Ok(query)
    }

    /// Goes on after a query in parentheses that turned out to be the first part of another.
    pub(super) fn query_from(&mut self, start: Span, first: Query) -> Parsed<Query> {
        self.enter(limits::SUBQUERY_DEPTH)?;
        let query = self.finish_query(start, Vec::new(), unwrap_parens(first), true)?;
        self.raise()?;
        self.leave(limits::SUBQUERY_DEPTH);
        Ok(query)
    }

    /// Whether the token after a query in parentheses makes it the first part of another.
    pub(super) fn goes_on_as_query(&self) -> bool {
        use Keyword::{Except, Intersect, Offset, Order, Union};
        matches!(self.keyword, Some(Except | Intersect | Offset | Order | Union))
    }

    pub(super) fn begins_query(&self) -> bool {
        matches!(self.keyword, Some(Keyword::Select | Keyword::With))
    }

    /// The rest after the first operand.
    fn finish_query(&mut self, start: Span, with: Vec<Cte>, first: Body, in_parens: bool) -> Parsed<Query> {
        let mut body = self.set_from(first)?;
        let order = self.order()?;
        let offset = self.offset()?;
        // In `(SELECT TOP 5 ...) ORDER BY x` the five are taken before the order, which is not what
        // `SELECT TOP 5 ... ORDER BY x` means.
        let topped = matches!(&body, Body::Select(select) if select.top.is_some());
        if in_parens && topped && (!order.is_empty() || offset.is_some()) {
            let at = Aside(Span::default());
            let inner = Query { with: Vec::new(), body, order: Vec::new(), offset: None, at };
            body = Body::Nested(Box::new(inner));
        }
        let bare = with.is_empty() && order.is_empty() && offset.is_none();
        match body {
            // Parentheses around the whole say nothing.
            Body::Nested(inner) if bare => Ok(*inner),
            body => Ok(Query { with, body, order, offset, at: self.since(start) }),
        }
    }

    fn with(&mut self) -> Parsed<Vec<Cte>> {
        if self.accept_word(Keyword::With)? { self.list(Self::cte) } else { Ok(Vec::new()) }
    }

    fn cte(&mut self) -> Parsed<Cte> {
        let name = self.ident("a name for a query")?;
        let columns = if self.token.kind == Kind::LeftParen { self.idents()? } else { Vec::new() };
        self.expect_word(Keyword::As)?;
        self.expect(Kind::LeftParen, "`(` and a query")?;
        let query = self.query()?;
        self.close_query()?;
        Ok(Cte { name, columns, query })
    }

    // ---- set operations: INTERSECT binds tighter (ADQL 2.1 4.6)

    /// UNION and EXCEPT after a first operand.
    fn set_from(&mut self, first: Body) -> Parsed<Body> {
        let mut left = self.intersect_from(first)?;
        loop {
            let operator = match self.keyword {
                Some(Keyword::Union) => SetOperator::Union,
                Some(Keyword::Except) => SetOperator::Except,
                _ => return Ok(left),
            };
            let (all, at) = self.set_operator()?;
            let right = self.set_operand()?;
            let right = self.intersect_from(right)?;
            left = self.set(Set { operator, all, left, right, at })?;
        }
    }

    fn intersect_from(&mut self, first: Body) -> Parsed<Body> {
        let mut left = first;
        while self.keyword == Some(Keyword::Intersect) {
            let (all, at) = self.set_operator()?;
            let right = self.set_operand()?;
            left = self.set(Set { operator: SetOperator::Intersect, all, left, right, at })?;
        }
        Ok(left)
    }

    /// The operator's word, and whether ALL follows.
    fn set_operator(&mut self) -> Parsed<(bool, Aside<Span>)> {
        let at = Aside(self.token.span);
        self.advance()?;
        let all = self.accept_word(Keyword::All)?;
        if !all {
            self.accept_word(Keyword::Distinct)?;
        }
        Ok((all, at))
    }

    fn set(&mut self, set: Set) -> Parsed<Body> {
        self.raise()?;
        Ok(Body::Set(Box::new(set)))
    }

    /// SELECT, or a query in parentheses.
    fn set_operand(&mut self) -> Parsed<Body> {
        match self.token.kind {
            Kind::LeftParen => {
                self.advance()?;
                let query = self.query()?;
                self.close_query()?;
                Ok(unwrap_parens(query))
            }
            _ if self.keyword == Some(Keyword::Select) => Ok(Body::Select(Box::new(self.select()?))),
            _ => Err(self.unexpected("SELECT")),
        }
    }

    // ---- SELECT

    fn select(&mut self) -> Parsed<Select> {
        let start = self.token.span;
        self.clause = Clause::Items;
        self.advance()?;
        let Quantifiers { distinct, top, .. } = self.quantifiers()?;
        let items = self.list(|parser| parser.apart(Self::item))?;
        self.clause = match items.last() {
            Some(Item::Expr { alias: None, .. }) => Clause::Items,
            _ => Clause::Aliased,
        };
        let from = self.from()?;
        let filter = self.condition(Keyword::Where, Clause::Where)?;
        let group = self.group()?;
        let having = self.condition(Keyword::Having, Clause::Having)?;
        Ok(Select { distinct, top, items, from, filter, group, having, at: self.since(start) })
    }

    /// ALL or DISTINCT, and TOP: in this order by the grammar, in any by habit.
    fn quantifiers(&mut self) -> Parsed<Quantifiers> {
        let mut found = Quantifiers::default();
        loop {
            let set = found.all || found.distinct;
            match self.keyword {
                Some(Keyword::All) if !set => found.all = true,
                Some(Keyword::Distinct) if !set => found.distinct = true,
                Some(Keyword::Top) if found.top.is_none() => {
                    self.advance()?;
                    found.top = Some(self.count("a whole number after TOP")?);
                    continue;
                }
                _ => return Ok(found),
            }
            self.advance()?;
        }
    }

    fn item(&mut self) -> Parsed<Item> {
        let expr = match (self.token.kind, self.keyword) {
            (Kind::Star, _) => {
                let at = Aside(self.token.span);
                self.advance()?;
                return Ok(Item::All(at));
            }
            (Kind::Quoted, _) | (Kind::Word, None) => match self.dotted()? {
                Dotted::All(table) => return Ok(Item::AllOf(table)),
                Dotted::Expr(first) => self.expr_from(first)?,
            },
            (_, Some(Keyword::From)) => return Err(self.unexpected_name("a column, an expression or *")),
            _ => self.expr()?,
        };
        let alias = self.item_alias()?;
        Ok(Item::Expr { expr, alias })
    }

    fn item_alias(&mut self) -> Parsed<Option<Ident>> {
        if self.accept_word(Keyword::As)? {
            return Ok(Some(self.any_ident("a name after AS")?));
        }
        if self.is_alias() { Ok(Some(self.take_ident()?)) } else { Ok(None) }
    }

    /// Whether the token is a name given without AS.
    pub(super) fn is_alias(&self) -> bool {
        match (self.token.kind, self.keyword) {
            (Kind::Quoted, _) => true,
            (Kind::Word, None) => true,
            // `LIMIT 10` and `FETCH FIRST` are no aliases but habits from elsewhere.
            (Kind::Word, Some(Keyword::Limit)) => !self.peek_kind().is_some_and(Kind::is_number),
            (Kind::Word, Some(Keyword::Fetch)) => self.peek_kind() != Some(Kind::Word),
            (Kind::Word, Some(Keyword::Offset)) if self.language == Language::V2_0 => {
                !self.peek_kind().is_some_and(Kind::is_number)
            }
            (Kind::Word, Some(Keyword::Over)) => self.peek_kind() != Some(Kind::LeftParen),
            (Kind::Word, Some(keyword)) => !keyword.ends_alias(),
            _ => false,
        }
    }

    fn condition(&mut self, word: Keyword, clause: Clause) -> Parsed<Option<Expr>> {
        if !self.accept_word(word)? {
            return Ok(None);
        }
        let condition = self.expr()?;
        self.clause = clause;
        Ok(Some(condition))
    }

    fn group(&mut self) -> Parsed<Vec<Expr>> {
        if !self.accept_word(Keyword::Group)? {
            return Ok(Vec::new());
        }
        self.expect_word(Keyword::By)?;
        let keys = self.list(Self::expr)?;
        self.clause = Clause::Group;
        Ok(keys)
    }

    fn order(&mut self) -> Parsed<Vec<OrderItem>> {
        if !self.accept_word(Keyword::Order)? {
            return Ok(Vec::new());
        }
        self.expect_word(Keyword::By)?;
        let items = self.list(Self::order_item)?;
        self.clause = Clause::Order;
        Ok(items)
    }

    fn order_item(&mut self) -> Parsed<OrderItem> {
        let expr = self.expr()?;
        let descending = self.accept_word(Keyword::Desc)?;
        if !descending {
            self.accept_word(Keyword::Asc)?;
        }
        Ok(OrderItem { expr, descending })
    }

    fn offset(&mut self) -> Parsed<Option<Literal>> {
        if !self.accept_word(Keyword::Offset)? {
            return Ok(None);
        }
        let count = self.count("a whole number after OFFSET")?;
        self.clause = Clause::Offset;
        Ok(Some(count))
    }
}

/// What a query in parentheses is as an operand: its parentheses count only if it has clauses of its own.
fn unwrap_parens(query: Query) -> Body {
    if query.with.is_empty() && query.order.is_empty() && query.offset.is_none() {
        query.body
    } else {
        Body::Nested(Box::new(query))
    }
}
