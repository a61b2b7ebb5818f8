//! What the author of a mistake may have meant.

use std::borrow::Cow;

use super::{Clause, Parser};
use crate::limits;
use crate::suggest::nearest;
use crate::token::{Keyword, Kind, Token};

type Hint = Cow<'static, str>;

/// Words of other dialects, and what to write in ADQL.
const FOREIGN: &[(&str, &str)] = &[
    ("LIMIT", "ADQL has no LIMIT: write SELECT TOP n, and OFFSET n at the end to pass rows over"),
    ("FETCH", "ADQL has no FETCH: write SELECT TOP n, and OFFSET n at the end to pass rows over"),
    ("INTO", "a query cannot write into a table: ask for the result in the format you need"),
    ("MINUS", "the difference of two queries is written EXCEPT"),
    ("ESCAPE", "LIKE has no ESCAPE in ADQL"),
    ("NULLS", "the place of NULL in an order is fixed: last ascending, first descending"),
    ("TABLESAMPLE", "tables cannot be sampled; a condition on a random index does the same"),
    ("LATERAL", "LATERAL is not supported"),
    ("RECURSIVE", "WITH RECURSIVE is not supported"),
    ("OVER", "window functions are not supported; MIN or MAX with GROUP BY often does the same"),
    ("FILTER", "write AVG(CASE WHEN condition THEN x END)"),
    ("RLIKE", "regular expressions are matched by ivo_match or gavo_match, if at all"),
    ("REGEXP", "regular expressions are matched by ivo_match or gavo_match, if at all"),
    ("SIMILAR", "SIMILAR TO is not in ADQL: write LIKE"),
    ("GLOB", "write LIKE with % and _"),
    ("COLLATE", "texts have one order, that of their characters' numbers"),
    ("DIV", "whole numbers are divided by /, without a remainder"),
    ("MOD", "write MOD(x, y)"),
    ("XOR", "write (a OR b) AND NOT (a AND b)"),
];

/// Words that begin what is no query.
const STATEMENTS: &[&str] = &[
    "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "TRUNCATE", "EXPLAIN", "SHOW", "DESCRIBE",
    "USE", "SET", "GRANT", "CALL", "EXEC", "VALUES", "MERGE", "REPLACE", "BEGIN", "COMMIT",
];

impl Parser<'_> {
    /// What stands here, in words.
    pub(super) fn found(&self) -> Cow<'static, str> {
        let text = self.lexer.slice(self.token.span);
        let text = match text.len() {
            0..=limits::QUOTED_WORD => Cow::Borrowed(text),
            _ => Cow::Owned(format!("{}...", &text[..text.floor_char_boundary(limits::QUOTED_WORD)])),
        };
        match self.token.kind {
            Kind::End => "the end of the query".into(),
            Kind::Word => match self.keyword {
                Some(keyword) => format!("the word {}", keyword.text()).into(),
                None => format!("the word {text}").into(),
            },
            Kind::Quoted => format!("the name {text}").into(),
            Kind::Text => format!("the text {text}").into(),
            kind if kind.is_number() => format!("the number {text}").into(),
            _ => format!("`{text}`").into(),
        }
    }

    /// What to do about the token that does not fit.
    pub(super) fn hint(&self) -> Option<Hint> {
        if self.at_start() {
            return self.hint_start();
        }
        self.hint_foreign().or_else(|| self.hint_misspelt()).or_else(|| self.hint_kind())
    }

    fn at_start(&self) -> bool {
        self.previous.kind == Kind::End
    }

    fn hint_start(&self) -> Option<Hint> {
        let word = self.word_of(self.token)?;
        if STATEMENTS.iter().any(|statement| statement.eq_ignore_ascii_case(word)) {
            return Some("a query begins with SELECT or WITH; nothing else is answered".into());
        }
        nearest(word, ["SELECT", "WITH"]).map(did_you_mean)
    }

    /// The word here, or the one before it that was taken for an alias, may be of another dialect.
    fn hint_foreign(&self) -> Option<Hint> {
        let words = [self.word_of(self.token), self.word_of(self.previous)];
        words.into_iter().flatten().find_map(|word| {
            let (_, hint) = FOREIGN.iter().find(|(foreign, _)| foreign.eq_ignore_ascii_case(word))?;
            Some(Cow::Borrowed(*hint))
        })
    }

    /// The word here, or the one before it that was taken for an alias, may be a keyword with a mistake.
    fn hint_misspelt(&self) -> Option<Hint> {
        let clauses: &[&str] = match self.clause {
            Clause::Items | Clause::Aliased => &["FROM", "DISTINCT", "WHERE", "END", "WHEN", "THEN", "ELSE"],
            Clause::From => {
                &["WHERE", "JOIN", "NATURAL", "INNER", "LEFT", "RIGHT", "USING", "GROUP", "ORDER"]
            }
            Clause::Where | Clause::Having => &["AND", "GROUP", "ORDER", "HAVING", "BETWEEN", "LIKE", "NOT"],
            Clause::Group | Clause::Order | Clause::Offset => {
                &["HAVING", "ORDER", "DESC", "ASC", "OFFSET", "UNION"]
            }
        };
        let common = ["AND", "BY", "UNION", "EXCEPT", "INTERSECT", "ORDER", "GROUP", "WHERE", "FROM"];
        [self.token, self.previous].into_iter().find_map(|token| {
            let word = self.word_of(token).filter(|word| Keyword::of(word).is_none())?;
            let meant = nearest(word, clauses.iter().copied().chain(common))?;
            Some(format!("did you mean {meant} instead of {word}?").into())
        })
    }

    /// A word that has another meaning, a text for a name, a comma too many.
    fn hint_kind(&self) -> Option<Hint> {
        match (self.token.kind, self.keyword) {
            (Kind::Word, Some(Keyword::Select | Keyword::With)) => {
                Some("a query within a query stands in parentheses".into())
            }
            (Kind::Word, Some(_)) if self.previous.kind == Kind::Comma && !self.is_meant_as_name() => {
                Some("is there a comma too many before it?".into())
            }
            (Kind::RightParen, _) if self.previous.kind == Kind::Comma => {
                Some("is there a comma too many before it?".into())
            }
            (Kind::Text, _) => Some("texts stand in single quotes, names in double quotes".into()),
            _ => None,
        }
    }

    /// Whether a reserved word stands here as if it were a name: nothing that it would structure follows.
    pub(super) fn is_meant_as_name(&self) -> bool {
        let Some(keyword) = self.keyword.filter(|keyword| keyword.is_reserved()) else { return false };
        match (self.peek_kind(), self.peek_keyword()) {
            (Some(Kind::Word), Some(next)) => {
                next != Keyword::By && next.is_reserved() && next != Keyword::Select
            }
            (Some(Kind::End), _) => keyword != Keyword::And && keyword != Keyword::Or,
            (Some(kind), _) => {
                !kind.is_literal()
                    && !matches!(kind, Kind::Word | Kind::Quoted | Kind::LeftParen | Kind::Star)
            }
            (None, _) => false,
        }
    }

    fn word_of(&self, token: Token) -> Option<&str> {
        (token.kind == Kind::Word).then(|| self.lexer.slice(token.span))
    }
}

fn did_you_mean(word: &str) -> Hint {
    format!("did you mean {word}?").into()
}
