//! FROM: tables, derived tables and joins (ADQL 2.1 2.2.2).

use super::{Clause, Parsed, Parser};
use crate::ast::{Alias, Body, Constraint, Ident, Item, Join, Query, Select, TableExpr, TableName};
use crate::span::{Aside, Span};
use crate::token::{Keyword, Kind};
use crate::tree::JoinKind;

/// What parentheses in FROM held.
enum Group {
    Query(Query),
    Tables(TableExpr),
}

/// The words of a join.
struct JoinWords {
    kind: JoinKind,
    natural: bool,
    cross: bool,
    at: Aside<Span>,
}

impl Parser<'_> {
    /// FROM and its tables; none without the word.
    pub(super) fn from(&mut self) -> Parsed<Vec<TableExpr>> {
        if !self.accept_word(Keyword::From)? {
            return Ok(Vec::new());
        }
        self.clause = Clause::From;
        let tables = self.list(|parser| parser.apart(Self::joined_tables))?;
        self.clause = Clause::From;
        Ok(tables)
    }

    /// A table and what is joined to it.
    fn joined_tables(&mut self) -> Parsed<TableExpr> {
        let first = self.table()?;
        self.joins_from(first)
    }

    fn joins_from(&mut self, first: TableExpr) -> Parsed<TableExpr> {
        let mut left = first;
        while let Some(words) = self.join_words()? {
            let right = self.table()?;
            let constraint = self.constraint(&words)?;
            self.raise()?;
            let JoinWords { kind, at, .. } = words;
            left = TableExpr::Join(Box::new(Join { kind, left, right, constraint, at }));
        }
        Ok(left)
    }

    /// `[NATURAL] [INNER | LEFT [OUTER] | RIGHT [OUTER] | FULL [OUTER] | CROSS] JOIN`
    fn join_words(&mut self) -> Parsed<Option<JoinWords>> {
        let start = self.token.span;
        let natural = self.accept_word(Keyword::Natural)?;
        let (kind, word) = match self.keyword {
            Some(Keyword::Left) => (JoinKind::Left, true),
            Some(Keyword::Right) => (JoinKind::Right, true),
            Some(Keyword::Full) => (JoinKind::Full, true),
            Some(Keyword::Inner | Keyword::Cross) => (JoinKind::Inner, true),
            _ => (JoinKind::Inner, false),
        };
        let cross = self.keyword == Some(Keyword::Cross);
        if word {
            self.advance()?;
        }
        if kind != JoinKind::Inner {
            self.accept_word(Keyword::Outer)?;
        }
        if !(natural || word) && self.keyword != Some(Keyword::Join) {
            return Ok(None);
        }
        self.expect_word(Keyword::Join)?;
        Ok(Some(JoinWords { kind, natural, cross, at: self.since(start) }))
    }

    fn constraint(&mut self, words: &JoinWords) -> Parsed<Constraint> {
        let conditional = matches!(self.keyword, Some(Keyword::On | Keyword::Using));
        if conditional && (words.natural || words.cross) {
            let kind = if words.natural { "NATURAL" } else { "CROSS" };
            return Err(Box::new(self.unexpected("no condition").hint(format!("{kind} JOIN has none"))));
        }
        if words.natural {
            return Ok(Constraint::Natural);
        }
        if self.accept_word(Keyword::Using)? {
            return Ok(Constraint::Using(self.idents()?));
        }
        if self.accept_word(Keyword::On)? {
            return Ok(Constraint::On(self.expr()?));
        }
        match words.kind {
            JoinKind::Inner => Ok(Constraint::None),
            _ => Err(self.unexpected("ON or USING")),
        }
    }

    /// A table, a derived table, or joins in parentheses.
    fn table(&mut self) -> Parsed<TableExpr> {
        if self.token.kind == Kind::LeftParen {
            let start = self.token.span;
            return match self.table_group()? {
                Group::Query(query) => self.derived(query),
                Group::Tables(tables) => self.maybe_named(start, tables),
            };
        }
        let name = self.table_name()?;
        if self.token.kind == Kind::LeftParen {
            return Err(Box::new(self.unsupported("a function that gives a table", name.span())));
        }
        let alias = self.alias()?;
        Ok(TableExpr::Table { name, alias })
    }

    fn derived(&mut self, query: Query) -> Parsed<TableExpr> {
        let alias = self.alias()?;
        Ok(TableExpr::Derived { query: Box::new(query), alias })
    }

    /// Joined tables in parentheses; with a name they are a derived table (ADQL 2.1, `<derived_table>`).
    fn maybe_named(&mut self, start: Span, tables: TableExpr) -> Parsed<TableExpr> {
        let at = self.since(start);
        let Some(alias) = self.alias()? else { return Ok(tables) };
        let select = Select {
            distinct: false,
            top: None,
            items: vec![Item::All(at)],
            from: vec![tables],
            filter: None,
            group: Vec::new(),
            having: None,
            at,
        };
        let body = Body::Select(Box::new(select));
        let query = Query { with: Vec::new(), body, order: Vec::new(), offset: None, at };
        self.raise()?;
        Ok(TableExpr::Derived { query: Box::new(query), alias: Some(alias) })
    }

    /// Parentheses: what they hold may show only after parentheses within them.
    fn table_group(&mut self) -> Parsed<Group> {
        self.enter(1)?;
        self.advance()?;
        let group = if self.begins_query() {
            Group::Query(self.query()?)
        } else if self.token.kind == Kind::LeftParen {
            let inner = self.token.span;
            match self.table_group()? {
                Group::Query(query) if self.token.kind == Kind::RightParen => Group::Query(query),
                Group::Query(query) if self.goes_on_as_query() => {
                    Group::Query(self.query_from(inner, query)?)
                }
                Group::Query(query) => {
                    let first = self.derived(query)?;
                    Group::Tables(self.joins_from(first)?)
                }
                Group::Tables(tables) => {
                    let first = self.maybe_named(inner, tables)?;
                    Group::Tables(self.joins_from(first)?)
                }
            }
        } else {
            Group::Tables(self.joined_tables()?)
        };
        self.close_tables(&group)?;
        self.leave(1);
        Ok(group)
    }

    fn close_tables(&mut self, group: &Group) -> Parsed<()> {
        match group {
            Group::Query(_) => self.close_query(),
            Group::Tables(_) if self.token.kind == Kind::Comma => Err(Box::new(
                self.unexpected("JOIN or `)`").hint("within parentheses tables are joined by CROSS JOIN"),
            )),
            Group::Tables(_) => self.expect(Kind::RightParen, "JOIN or `)`"),
        }
    }

    /// Up to three names parted by dots.
    fn table_name(&mut self) -> Parsed<TableName> {
        const EXPECTED: &str = "the name of a table or `(`";
        let mut name = TableName { catalog: None, schema: None, table: self.ident(EXPECTED)? };
        while self.accept(Kind::Dot)? {
            if name.catalog.is_some() {
                return Err(Box::new(
                    self.unexpected("no fourth part").hint("catalog.schema.table is the most"),
                ));
            }
            let next = self.any_ident("a name after the dot")?;
            name.push(next);
        }
        Ok(name)
    }

    /// `[AS] name [(columns)]`
    fn alias(&mut self) -> Parsed<Option<Alias>> {
        let name = if self.accept_word(Keyword::As)? {
            self.any_ident("a name after AS")?
        } else if self.is_alias() {
            self.take_ident()?
        } else {
            return Ok(None);
        };
        let columns = if self.token.kind == Kind::LeftParen { self.idents()? } else { Vec::new() };
        Ok(Some(Alias { name, columns }))
    }
}

impl TableName {
    /// Appends a part: what was the table becomes the schema. The caller sees to it that there were two at most.
    pub(super) fn push(&mut self, part: Ident) {
        let table = std::mem::replace(&mut self.table, part);
        self.catalog = self.schema.replace(table);
    }
}
