//! Operands: columns, literals, calls, CASE, CAST and what stands in parentheses, subqueries too (ADQL 2.1 2.2.1).

use super::{Parsed, Parser};
use crate::ast::{
    Arguments, Call, Case, Expr, ExprKind, Ident, Literal, Query, TableName, Target, TargetType,
};
use crate::error::{Error, Problem};
use crate::span::{Aside, Span};
use crate::suggest::nearest;
use crate::token::{Keyword, Kind};
use crate::tree::Value;

const OPERAND: &str = "a value";

/// What a name with dots turns out to be.
pub(super) enum Dotted {
    /// `table.*`
    All(TableName),
    /// A column or a call.
    Expr(Expr),
}

/// What stands in parentheses.
pub(super) enum Content {
    Query(Query),
    Expr(Expr),
}

impl Parser<'_> {
    /// What has no operator before it.
    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        self.height = self.height.max(1);
        match self.token.kind {
            Kind::Word => self.operand_word(),
            Kind::Quoted => self.name(),
            Kind::LeftParen => self.parens(),
            kind if kind.is_literal() => {
                let literal = self.literal()?;
                Ok(Expr { at: literal.at, kind: ExprKind::Literal(literal) })
            }
            _ => Err(self.unexpected(OPERAND)),
        }
    }

    fn operand_word(&mut self) -> Parsed<Expr> {
        let Some(keyword) = self.keyword else { return self.name() };
        let start = self.token.span;
        let kind = match (keyword, self.peek_kind()) {
            (Keyword::Null, _) => self.constant(Value::Null)?,
            (Keyword::True, _) => self.constant(Value::Boolean(true))?,
            (Keyword::False, _) => self.constant(Value::Boolean(false))?,
            (Keyword::Case, _) => self.case()?,
            (Keyword::Cast, Some(Kind::LeftParen)) => self.cast()?,
            (Keyword::Exists, Some(Kind::LeftParen)) => self.exists()?,
            (Keyword::Timestamp | Keyword::Date, Some(Kind::Text)) => self.timestamp()?,
            (Keyword::Interval | Keyword::Time, Some(Kind::Text)) => {
                return Err(Box::new(self.unsupported("a literal of this type", start)));
            }
            _ if self.is_reserved() => return Err(self.unexpected_name(OPERAND)),
            _ => return self.name(),
        };
        Ok(Expr { kind, at: self.since(start) })
    }

    /// A literal that is a word.
    fn constant(&mut self, value: Value) -> Parsed<ExprKind> {
        let literal = Literal { value, slot: Aside(None), at: Aside(self.token.span) };
        self.advance()?;
        Ok(ExprKind::Literal(literal))
    }

    // ---- names

    /// A column or a call.
    fn name(&mut self) -> Parsed<Expr> {
        match self.dotted()? {
            Dotted::Expr(expr) => Ok(expr),
            Dotted::All(table) => Err(self.unexpected_star(&table)),
        }
    }

    fn unexpected_star(&self, table: &TableName) -> Box<Error> {
        let problem = Problem::Unexpected {
            expected: "the name of a column after the dot".into(),
            found: "`*`".into(),
        };
        let error = Error::new(problem, table.span().to(self.previous.span));
        Box::new(
            error.hint("all columns of a table stand in a select list only; rows are counted by COUNT(*)"),
        )
    }

    /// A column, a call, or all columns of a table (`name.*`).
    pub(super) fn dotted(&mut self) -> Parsed<Dotted> {
        let start = self.token.span;
        self.height = self.height.max(1);
        let mut name = self.take_ident()?;
        let mut qualifier: Option<TableName> = None;
        while self.accept(Kind::Dot)? {
            match &mut qualifier {
                None => qualifier = Some(TableName { catalog: None, schema: None, table: name }),
                Some(table) if table.catalog.is_none() => table.push(name),
                Some(_) => {
                    let hint = "catalog.schema.table.column is the most";
                    return Err(Box::new(self.unexpected("no fifth part").hint(hint)));
                }
            }
            if self.token.kind == Kind::Star {
                self.advance()?;
                return Ok(Dotted::All(qualifier.expect("a dot was read, and what stands before it")));
            }
            name = self.any_ident("a name after the dot")?;
        }
        let kind = match qualifier {
            _ if self.token.kind == Kind::LeftParen && !name.name.quoted => self.call(qualifier, name)?,
            Some(table) => ExprKind::Column { qualifier: Some(Box::new(table)), name },
            None => ExprKind::Column { qualifier: None, name },
        };
        Ok(Dotted::Expr(Expr { kind, at: self.since(start) }))
    }

    // ---- calls

    fn call(&mut self, qualifier: Option<TableName>, name: Ident) -> Parsed<ExprKind> {
        let schema = match qualifier {
            None => None,
            Some(TableName { catalog: None, schema: None, table }) => Some(table),
            Some(table) => {
                let span = table.span().to(name.span());
                return Err(Box::new(
                    self.unsupported("a function with more than one dot in its name", span),
                ));
            }
        };
        self.advance()?;
        let distinct = self.accept_word(Keyword::Distinct)?;
        if !distinct {
            self.accept_word(Keyword::All)?;
        }
        let arguments = self.arguments(distinct)?;
        self.raise()?;
        Ok(ExprKind::Call(Box::new(Call { schema, name, distinct, arguments })))
    }

    fn arguments(&mut self, distinct: bool) -> Parsed<Arguments> {
        if !distinct && self.token.kind == Kind::Star {
            self.advance()?;
            self.expect(Kind::RightParen, "`)`")?;
            return Ok(Arguments::Star);
        }
        if !distinct && self.accept(Kind::RightParen)? {
            return Ok(Arguments::List(Vec::new()));
        }
        let list = self.list(Self::expr)?;
        self.close()?;
        Ok(Arguments::List(list))
    }

    fn exists(&mut self) -> Parsed<ExprKind> {
        self.advance()?;
        self.advance()?;
        match self.group_content()? {
            Content::Query(query) => {
                self.close_query()?;
                self.raise()?;
                Ok(ExprKind::Exists(Box::new(query)))
            }
            Content::Expr(_) => Err(self.unexpected("a query after EXISTS (")),
        }
    }

    // ---- CASE and CAST

    fn case(&mut self) -> Parsed<ExprKind> {
        self.advance()?;
        let operand = if self.keyword == Some(Keyword::When) { None } else { Some(self.expr()?) };
        let mut branches = Vec::new();
        while self.accept_word(Keyword::When)? {
            let when = self.expr()?;
            self.expect_word(Keyword::Then)?;
            branches.push((when, self.expr()?));
        }
        if branches.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        let otherwise = if self.accept_word(Keyword::Else)? { Some(self.expr()?) } else { None };
        let expected = if otherwise.is_some() { "END" } else { "WHEN, ELSE or END" };
        if !self.accept_word(Keyword::End)? {
            return Err(self.unexpected(expected));
        }
        self.raise()?;
        Ok(ExprKind::Case(Box::new(Case { operand, branches, otherwise })))
    }

    fn cast(&mut self) -> Parsed<ExprKind> {
        self.advance()?;
        self.advance()?;
        let value = self.expr()?;
        self.expect_word(Keyword::As)?;
        let target = self.target()?;
        self.expect(Kind::RightParen, "`)`")?;
        self.raise()?;
        Ok(ExprKind::Cast(Box::new(value), target))
    }

    /// `TIMESTAMP 'x'` is `CAST('x' AS TIMESTAMP)`; so is `DATE 'x'`, which is that day's first instant.
    fn timestamp(&mut self) -> Parsed<ExprKind> {
        let at = Aside(self.token.span);
        self.advance()?;
        let literal = self.literal()?;
        let value = Expr { at: literal.at, kind: ExprKind::Literal(literal) };
        self.raise()?;
        Ok(ExprKind::Cast(Box::new(value), Target { kind: TargetType::Timestamp, length: None, at }))
    }

    /// The type after AS in a CAST.
    fn target(&mut self) -> Parsed<Target> {
        let start = self.token.span;
        let kind = self.target_type()?;
        self.advance()?;
        if kind == TargetType::DoublePrecision {
            self.accept_text("PRECISION")?;
        }
        let kind = match kind {
            TargetType::Char if self.accept_text("VARYING")? => TargetType::VarChar,
            kind => kind,
        };
        let sized = matches!(kind, TargetType::Char | TargetType::VarChar);
        let length = if sized && self.accept(Kind::LeftParen)? {
            let length = self.count("a whole number")?;
            self.expect(Kind::RightParen, "`)`")?;
            Some(Box::new(length))
        } else {
            None
        };
        Ok(Target { kind, length, at: self.since(start) })
    }

    fn target_type(&self) -> Parsed<TargetType> {
        let word = self.lexer.slice(self.token.span);
        let (_, kind) = match TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
            Some(found) if self.token.kind == Kind::Word => found,
            _ => return Err(self.unexpected_type(word)),
        };
        Ok(*kind)
    }

    fn unexpected_type(&self, word: &str) -> Box<Error> {
        const EXPECTED: &str = "a type: SMALLINT, INTEGER, BIGINT, REAL, DOUBLE PRECISION, CHAR, VARCHAR, TIMESTAMP, \
                                BOOLEAN, POINT, CIRCLE, POLYGON or REGION";
        let error = Error::new(
            Problem::Unexpected { expected: EXPECTED.into(), found: self.found() },
            self.token.span,
        );
        let hint = match word.to_ascii_uppercase().as_str() {
            "DATE" | "TIME" => Some("instants are of type TIMESTAMP".to_owned()),
            "DECIMAL" | "NUMERIC" | "NUMBER" => Some("write DOUBLE PRECISION or BIGINT".to_owned()),
            upper => nearest(upper, TYPES.iter().map(|(name, _)| *name))
                .map(|near| format!("did you mean {near}?")),
        };
        Box::new(match hint {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }

    /// Takes a word that is none of the keywords.
    fn accept_text(&mut self, word: &str) -> Parsed<bool> {
        let there =
            self.token.kind == Kind::Word && self.lexer.slice(self.token.span).eq_ignore_ascii_case(word);
        if there {
            self.advance()?;
        }
        Ok(there)
    }

    // ---- parentheses

    fn parens(&mut self) -> Parsed<Expr> {
        let start = self.token.span;
        self.advance()?;
        match self.group_content()? {
            Content::Query(query) => {
                self.close_query()?;
                self.scalar(start, query)
            }
            Content::Expr(expr) => {
                self.expect(Kind::RightParen, "an operator or `)`")?;
                Ok(self.in_parens(start, expr))
            }
        }
    }

    fn scalar(&mut self, start: Span, query: Query) -> Parsed<Expr> {
        self.raise()?;
        Ok(Expr { kind: ExprKind::Scalar(Box::new(query)), at: self.since(start) })
    }

    /// What stands after an opening parenthesis: a query, or an expression. Does not take the closing one.
    pub(super) fn group_content(&mut self) -> Parsed<Content> {
        if self.begins_query() {
            return Ok(Content::Query(self.query()?));
        }
        if self.token.kind != Kind::LeftParen {
            return Ok(Content::Expr(self.expr()?));
        }
        self.enter(1)?;
        let content = self.apart(Self::inner_group)?;
        self.leave(1);
        Ok(content)
    }

    /// Parentheses at the beginning of parentheses, and what follows them up to the end of the outer ones.
    fn inner_group(&mut self) -> Parsed<Content> {
        let start = self.token.span;
        self.advance()?;
        let first = match self.group_content()? {
            Content::Query(query) => {
                self.close_query()?;
                if self.token.kind == Kind::RightParen {
                    return Ok(Content::Query(query));
                }
                if self.goes_on_as_query() {
                    return Ok(Content::Query(self.query_from(start, query)?));
                }
                self.scalar(start, query)?
            }
            Content::Expr(expr) => {
                self.expect(Kind::RightParen, "an operator or `)`")?;
                self.in_parens(start, expr)
            }
        };
        Ok(Content::Expr(self.expr_from(first)?))
    }
}

/// The types of CAST with their synonyms.
const TYPES: &[(&str, TargetType)] = &[
    ("SMALLINT", TargetType::SmallInt),
    ("INTEGER", TargetType::Integer),
    ("INT", TargetType::Integer),
    ("BIGINT", TargetType::BigInt),
    ("LONG", TargetType::BigInt),
    ("REAL", TargetType::Real),
    ("DOUBLE", TargetType::DoublePrecision),
    ("FLOAT", TargetType::DoublePrecision),
    ("CHAR", TargetType::Char),
    ("CHARACTER", TargetType::Char),
    ("VARCHAR", TargetType::VarChar),
    ("TEXT", TargetType::VarChar),
    ("STRING", TargetType::VarChar),
    ("TIMESTAMP", TargetType::Timestamp),
    ("BOOLEAN", TargetType::Boolean),
    ("POINT", TargetType::Point),
    ("CIRCLE", TargetType::Circle),
    ("POLYGON", TargetType::Polygon),
    ("REGION", TargetType::Region),
];
