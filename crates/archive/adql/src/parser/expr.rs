//! Operators, by climbing their precedence (ADQL 2.1 2.2.3).
//!
//! From loose to tight: OR, AND, NOT, IS, the comparisons (with BETWEEN, IN and LIKE), `||`, `+ -`, `* /`, signs.
//! Comparisons do not chain. The printer knows the same levels ([`crate::printer`]).

use super::primary::Content;
use super::{Parsed, Parser};
use crate::ast::{Expr, ExprKind, Sign};
use crate::span::Aside;
use crate::token::{Keyword, Kind};
use crate::tree::{Comparison, Operator};

/// How tightly an operator binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Power {
    /// Any expression.
    Or,
    And,
    Not,
    Is,
    Compare,
    Concat,
    Add,
    Multiply,
    Sign,
    /// What needs no parentheses anywhere.
    Primary,
}

impl Power {
    /// The next tighter.
    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Or => Self::And,
            Self::And => Self::Not,
            Self::Not => Self::Is,
            Self::Is => Self::Compare,
            Self::Compare => Self::Concat,
            Self::Concat => Self::Add,
            Self::Add => Self::Multiply,
            Self::Multiply => Self::Sign,
            Self::Sign | Self::Primary => Self::Primary,
        }
    }
}

/// What stands between operands.
#[derive(Clone, Copy, Debug)]
enum Infix {
    Or,
    And,
    Is,
    Compare(Comparison),
    /// BETWEEN, IN, LIKE or ILIKE; the flag tells whether NOT stands before it.
    Predicate(Keyword, bool),
    Concat,
    Arithmetic(Operator),
}

impl Infix {
    const fn power(self) -> Power {
        match self {
            Self::Or => Power::Or,
            Self::And => Power::And,
            Self::Is => Power::Is,
            Self::Compare(_) | Self::Predicate(..) => Power::Compare,
            Self::Concat => Power::Concat,
            Self::Arithmetic(Operator::Add | Operator::Subtract) => Power::Add,
            Self::Arithmetic(Operator::Multiply | Operator::Divide) => Power::Multiply,
        }
    }
}

impl Parser<'_> {
    /// Any expression or condition.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.operand(Power::Or)
    }

    /// An expression whose operators bind at least as tightly as `least`.
    fn operand(&mut self, least: Power) -> Parsed<Expr> {
        self.enter(1)?;
        let above = std::mem::take(&mut self.height);
        let first = self.prefix(least)?;
        let expr = self.climb(first, least)?;
        self.height = self.height.max(above);
        self.leave(1);
        Ok(expr)
    }

    /// An expression whose first operand has been read.
    pub(super) fn expr_from(&mut self, first: Expr) -> Parsed<Expr> {
        self.climb(first, Power::Or)
    }

    /// NOT, a sign, or what has no operator before it.
    fn prefix(&mut self, least: Power) -> Parsed<Expr> {
        let start = self.token.span;
        let kind = match (self.token.kind, self.keyword) {
            (Kind::Word, Some(Keyword::Not)) if least <= Power::Not => {
                self.advance()?;
                ExprKind::Not(Box::new(self.operand(Power::Not)?))
            }
            (Kind::Minus, _) => self.sign(Sign::Minus)?,
            (Kind::Plus, _) => self.sign(Sign::Plus)?,
            _ => return self.primary(),
        };
        self.raise()?;
        Ok(Expr { kind, at: self.since(start) })
    }

    fn sign(&mut self, sign: Sign) -> Parsed<ExprKind> {
        self.advance()?;
        Ok(ExprKind::Sign(sign, Box::new(self.operand(Power::Sign)?)))
    }

    /// Takes operators as long as they bind tightly enough.
    fn climb(&mut self, first: Expr, least: Power) -> Parsed<Expr> {
        let mut left = first;
        let mut compared = false;
        while let Some(infix) = self.infix() {
            let power = infix.power();
            if power < least {
                break;
            }
            if compared && power == Power::Compare {
                let hint = "comparisons do not chain: join them by AND, or put parentheses around one";
                return Err(Box::new(self.unexpected("AND, OR or the end of the condition").hint(hint)));
            }
            compared = matches!(power, Power::Compare | Power::Is);
            left = self.infix_from(left, infix)?;
        }
        Ok(left)
    }

    /// The operator here.
    fn infix(&self) -> Option<Infix> {
        Some(match (self.token.kind, self.keyword) {
            (Kind::Word, Some(keyword)) => return self.infix_word(keyword),
            (Kind::Equal, _) => Infix::Compare(Comparison::Equal),
            (Kind::NotEqual, _) => Infix::Compare(Comparison::NotEqual),
            (Kind::Less, _) => Infix::Compare(Comparison::Less),
            (Kind::LessOrEqual, _) => Infix::Compare(Comparison::LessOrEqual),
            (Kind::Greater, _) => Infix::Compare(Comparison::Greater),
            (Kind::GreaterOrEqual, _) => Infix::Compare(Comparison::GreaterOrEqual),
            (Kind::Concat, _) => Infix::Concat,
            (Kind::Plus, _) => Infix::Arithmetic(Operator::Add),
            (Kind::Minus, _) => Infix::Arithmetic(Operator::Subtract),
            (Kind::Star, _) => Infix::Arithmetic(Operator::Multiply),
            (Kind::Slash, _) => Infix::Arithmetic(Operator::Divide),
            _ => return None,
        })
    }

    fn infix_word(&self, keyword: Keyword) -> Option<Infix> {
        use Keyword::{And, Between, ILike, In, Is, Like, Not, Or};
        match keyword {
            Or => Some(Infix::Or),
            And => Some(Infix::And),
            Is => Some(Infix::Is),
            Between | In | Like | ILike => Some(Infix::Predicate(keyword, false)),
            Not => match self.peek_keyword() {
                Some(next @ (Between | In | Like | ILike)) => Some(Infix::Predicate(next, true)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The operator, which stands here, and what is right of it.
    fn infix_from(&mut self, left: Expr, infix: Infix) -> Parsed<Expr> {
        let start = left.span();
        let next = infix.power().next();
        let kind = match infix {
            Infix::Or => ExprKind::Or(self.chain(left, next)?),
            Infix::And => ExprKind::And(self.chain(left, next)?),
            Infix::Concat => ExprKind::Concat(self.chain(left, next)?),
            Infix::Is => self.is(left)?,
            Infix::Predicate(keyword, negated) => self.predicate(left, keyword, negated)?,
            Infix::Compare(comparison) => {
                self.advance()?;
                ExprKind::Compare(comparison, Box::new(left), Box::new(self.operand(next)?))
            }
            Infix::Arithmetic(operator) => {
                self.advance()?;
                ExprKind::Arithmetic(operator, Box::new(left), Box::new(self.operand(next)?))
            }
        };
        self.raise()?;
        Ok(Expr { kind, at: self.since(start) })
    }

    /// One operator again and again: the operands side by side.
    fn chain(&mut self, first: Expr, least: Power) -> Parsed<Vec<Expr>> {
        let (kind, keyword) = (self.token.kind, self.keyword);
        let mut all = vec![first];
        while self.token.kind == kind && self.keyword == keyword {
            self.advance()?;
            all.push(self.operand(least)?);
        }
        Ok(all)
    }

    /// `IS [NOT] NULL | TRUE | FALSE`
    fn is(&mut self, left: Expr) -> Parsed<ExprKind> {
        self.advance()?;
        let negated = self.accept_word(Keyword::Not)?;
        let value = Box::new(left);
        let kind = match self.keyword {
            Some(Keyword::Null) => ExprKind::IsNull { value, negated },
            Some(Keyword::True) => ExprKind::IsTruth { value, truth: true, negated },
            Some(Keyword::False) => ExprKind::IsTruth { value, truth: false, negated },
            _ if negated => return Err(self.unexpected("NULL, TRUE or FALSE")),
            _ => return Err(self.unexpected("NOT, NULL, TRUE or FALSE")),
        };
        self.advance()?;
        Ok(kind)
    }

    /// `[NOT] BETWEEN | IN | LIKE | ILIKE`
    fn predicate(&mut self, left: Expr, keyword: Keyword, negated: bool) -> Parsed<ExprKind> {
        if negated {
            self.advance()?;
        }
        self.advance()?;
        let value = Box::new(left);
        match keyword {
            Keyword::In => self.within(value, negated),
            Keyword::Between => {
                let low = Box::new(self.operand(Power::Concat)?);
                self.expect_word(Keyword::And)?;
                let high = Box::new(self.operand(Power::Concat)?);
                Ok(ExprKind::Between { value, low, high, negated })
            }
            _ => {
                let pattern = Box::new(self.operand(Power::Concat)?);
                let ignore_case = keyword == Keyword::ILike;
                Ok(ExprKind::Like { value, pattern, ignore_case, negated })
            }
        }
    }

    /// `(list)` or `(query)` after IN.
    fn within(&mut self, value: Box<Expr>, negated: bool) -> Parsed<ExprKind> {
        self.expect(Kind::LeftParen, "`(` and a list or a query")?;
        if self.token.kind == Kind::RightParen {
            return Err(Box::new(
                self.unexpected("a value or a query").hint("a list has at least one value"),
            ));
        }
        let first = match self.group_content()? {
            Content::Query(query) => {
                self.close_query()?;
                return Ok(ExprKind::InQuery { value, query: Box::new(query), negated });
            }
            Content::Expr(first) => first,
        };
        let mut list = vec![first];
        while self.accept(Kind::Comma)? {
            list.push(self.expr()?);
        }
        self.close()?;
        Ok(ExprKind::InList { value, list, negated })
    }

    /// The span of an expression widened to its parentheses.
    pub(super) fn in_parens(&self, start: crate::span::Span, expr: Expr) -> Expr {
        Expr { at: Aside(start.to(self.previous.span)), ..expr }
    }
}
