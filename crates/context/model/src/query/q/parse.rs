//! The grammar of 4.9 by recursive descent. Depth and counts are checked before anything is read deeper.

use super::{Hop, Operand, Order, Path, Query, Term, Test};
use crate::query::error::{Error, Reason};
use crate::query::limits::{MAX_DEPTH, MAX_HOPS, MAX_LIST, MAX_PATH, MAX_TERMS};
use crate::query::literal::Literal;
use crate::query::pattern::Pattern;
use crate::query::scan::{Colon, Scanner};

/// What ends an unquoted value.
const VALUE_END: &[char] = &[';', '|', ')', '(', ',', '"', ' '];
/// What ends a member name within square brackets; JSON names are otherwise free.
const MEMBER_END: &[char] =
    &['.', '[', ']', ';', '|', '(', ')', '=', '!', '<', '>', '~', '{', '}', ',', '"', '\\', ' '];

pub(super) fn query(parameter: &'static str, text: &str) -> Result<Query, Error> {
    let mut parser = Parser { scan: Scanner::new(parameter, text)?, terms: 0 };
    let query = parser.any(0)?;
    if !parser.scan.at_end() {
        return Err(parser.scan.expected("\";\", \"|\" or the end"));
    }
    Ok(query)
}

pub(super) fn names(parameter: &'static str, text: &str) -> Result<Vec<String>, Error> {
    let mut scan = Scanner::new(parameter, text)?;
    let mut names = Vec::new();
    loop {
        if names.len() == MAX_LIST {
            return Err(scan.fail(Reason::TooMany("names", MAX_LIST)));
        }
        scan.skip_spaces();
        names.push(scan.name("an attribute name", Colon::Name)?.to_owned());
        scan.skip_spaces();
        if scan.at_end() {
            return Ok(names);
        }
        scan.expect(",", "\",\" or the end")?;
    }
}

/// DottedPath with an optional bracket: a path that follows no relationship (4.9, 4.23.3).
pub(crate) fn attribute_path(scan: &mut Scanner<'_>) -> Result<Path, Error> {
    let first = scan.name("an attribute name", Colon::Name)?.to_owned();
    let mut path = Path::default();
    value_path(scan, &mut path, first)?;
    Ok(path)
}

struct Parser<'a> {
    scan: Scanner<'a>,
    terms: usize,
}

impl Parser<'_> {
    fn any(&mut self, depth: usize) -> Result<Query, Error> {
        let mut parts = vec![self.all(depth)?];
        while self.scan.eat("|") {
            parts.push(self.all(depth)?);
        }
        Ok(Query::any(parts))
    }

    fn all(&mut self, depth: usize) -> Result<Query, Error> {
        let mut parts = vec![self.primary(depth)?];
        while self.scan.eat(";") {
            parts.push(self.primary(depth)?);
        }
        Ok(Query::all(parts))
    }

    fn primary(&mut self, depth: usize) -> Result<Query, Error> {
        self.scan.skip_spaces();
        let query = if self.scan.rest().starts_with('(') { self.group(depth)? } else { self.counted_term()? };
        self.scan.skip_spaces();
        Ok(query)
    }

    fn group(&mut self, depth: usize) -> Result<Query, Error> {
        if depth == MAX_DEPTH {
            return Err(self.scan.fail(Reason::TooDeep(MAX_DEPTH)));
        }
        self.scan.expect("(", "\"(\"")?;
        let query = self.any(depth + 1)?;
        self.scan.expect(")", "\";\", \"|\" or \")\"")?;
        Ok(query)
    }

    fn counted_term(&mut self) -> Result<Query, Error> {
        if self.terms == MAX_TERMS {
            return Err(self.scan.fail(Reason::TooMany("terms", MAX_TERMS)));
        }
        self.terms += 1;
        self.term().map(Query::Term)
    }

    fn term(&mut self) -> Result<Term, Error> {
        if self.scan.eat("!") {
            let path = self.path()?;
            return Ok(Term { path, test: Test::Absent });
        }
        let path = self.path()?;
        let mark = self.scan.clone();
        self.scan.skip_spaces();
        let test = self.test()?;
        if test == Test::Exists {
            self.scan = mark;
        }
        Ok(Term { path, test })
    }

    fn path(&mut self) -> Result<Path, Error> {
        let mut path = Path::default();
        let mut name = self.scan.name("an attribute name or \"(\"", Colon::Name)?.to_owned();
        while self.scan.eat("{") {
            if path.hops.len() == MAX_HOPS {
                return Err(self.scan.fail(Reason::TooManyHops(MAX_HOPS)));
            }
            let (types, inner) = self.linked_name()?;
            path.hops.push(Hop { relationship: std::mem::replace(&mut name, inner), types });
        }
        value_path(&mut self.scan, &mut path, name)?;
        for _ in &path.hops {
            self.scan.expect("}", "\".\", \"[\" or \"}\"")?;
        }
        Ok(path)
    }

    /// `[Type{,Type}:]AttrName` after an opening brace.
    fn linked_name(&mut self) -> Result<(Vec<String>, String), Error> {
        let mut types = vec![self.linked_part()?];
        while self.scan.eat(",") {
            if types.len() == MAX_PATH {
                return Err(self.scan.fail(Reason::TooMany("types", MAX_PATH)));
            }
            types.push(self.linked_part()?);
        }
        if self.scan.eat(":") {
            return Ok((types, self.linked_part()?));
        }
        match types.pop() {
            Some(name) if types.is_empty() => Ok((types, name)),
            _ => Err(self.scan.expected("\":\" after the types")),
        }
    }

    fn linked_part(&mut self) -> Result<String, Error> {
        self.scan.skip_spaces();
        self.scan.name("an entity type or attribute name", Colon::End).map(str::to_owned)
    }

    fn test(&mut self) -> Result<Test, Error> {
        for (token, negated) in [("!~=", true), ("~=", false)] {
            if self.scan.eat(token) {
                return Ok(Test::Pattern { negated, pattern: self.pattern()? });
            }
        }
        for (token, negated) in [("!=", true), ("==", false)] {
            if self.scan.eat(token) {
                return Ok(Test::Equal { negated, operand: self.operand()? });
            }
        }
        for operator in [Order::GreaterEq, Order::Greater, Order::LessEq, Order::Less] {
            if self.scan.eat(operator.token()) {
                return Ok(Test::Order { operator, value: self.bound()? });
            }
        }
        match self.scan.peek() {
            None | Some(';' | '|' | ')') => Ok(Test::Exists),
            Some(_) => Err(self.scan.expected("an operator")),
        }
    }

    /// The value of an ordering operator: one ComparableValue.
    fn bound(&mut self) -> Result<Literal, Error> {
        self.scan.skip_spaces();
        let mark = self.scan.mark();
        let operand = self.operand()?;
        match operand {
            Operand::One(value) if value.is_comparable() => Ok(value),
            Operand::One(_) => Err(self.not_comparable(mark, "a number, a quoted string, a date or a time")),
            Operand::List(_) => Err(self.not_comparable(mark, "one value; lists go with == and != only")),
            Operand::Range(..) => Err(self.not_comparable(mark, "one value; ranges go with == and != only")),
        }
    }

    fn not_comparable(&self, mark: usize, what: &'static str) -> Error {
        self.scan.fail_at(mark, Reason::Expected(what.into()))
    }

    fn operand(&mut self) -> Result<Operand, Error> {
        let first = match self.one_or_range()? {
            Operand::One(value) => value,
            range => return Ok(range),
        };
        let mut values = vec![first];
        while self.scan.eat(",") {
            if values.len() == MAX_LIST {
                return Err(self.scan.fail(Reason::TooMany("values", MAX_LIST)));
            }
            let mark = self.scan.mark();
            match self.one_or_range()? {
                Operand::One(value) => values.push(value),
                _ => return Err(self.not_comparable(mark, "a value; a list holds no ranges")),
            }
        }
        match values.pop() {
            Some(only) if values.is_empty() => Ok(Operand::One(only)),
            last => Ok(Operand::List(values.into_iter().chain(last).collect())),
        }
    }

    fn one_or_range(&mut self) -> Result<Operand, Error> {
        self.scan.skip_spaces();
        let mark = self.scan.mark();
        let (low, high) = if self.scan.rest().starts_with('"') {
            let low = Literal::text(&self.scan.quoted()?);
            (low, self.scan.eat("..").then(|| self.upper()).transpose()?)
        } else {
            self.token_or_range()?
        };
        match high {
            None => Ok(Operand::One(low)),
            Some(high) if low.same_type(&high) => Ok(Operand::Range(low, high)),
            Some(_) => {
                let why = "both ends of a range must have one data type";
                Err(self.scan.fail_at(mark, Reason::Invalid(why.into())))
            }
        }
    }

    fn upper(&mut self) -> Result<Literal, Error> {
        let mark = self.scan.mark();
        let value = if self.scan.rest().starts_with('"') {
            Some(Literal::text(&self.scan.quoted()?))
        } else {
            Literal::comparable_from_token(self.scan.take_while(|c| !VALUE_END.contains(&c)))
        };
        value.ok_or_else(|| self.scan.fail_at(mark, Reason::Expected("the upper end of the range".into())))
    }

    /// An unquoted value. `..` makes a range when a value that can be compared stands before it; in a URI it
    /// is a part of the path.
    fn token_or_range(&mut self) -> Result<(Literal, Option<Literal>), Error> {
        let mark = self.scan.mark();
        let token = self.scan.take_while(|c| !VALUE_END.contains(&c));
        let bad = |scan: &Scanner<'_>| scan.fail_at(mark, Reason::Expected("a value".into()));
        if let Some((low, _)) = token.split_once("..")
            && let Some(low_value) = Literal::comparable_from_token(low)
        {
            self.scan.rewind(mark + low.len() + "..".len());
            return Ok((low_value, Some(self.upper()?)));
        }
        Literal::from_token(token).map(|value| (value, None)).ok_or_else(|| bad(&self.scan))
    }

    fn pattern(&mut self) -> Result<Pattern, Error> {
        self.scan.skip_spaces();
        let mark = self.scan.mark();
        let quoted = self.scan.rest().starts_with('"');
        let source = if quoted { self.quoted_pattern()? } else { self.bare_pattern() };
        if source.is_empty() {
            return Err(self.scan.fail_at(mark, Reason::Expected("a regular expression".into())));
        }
        Pattern::compile(&source).map_err(|reason| self.scan.fail_at(mark, reason))
    }

    /// A JSON string; but since `"\d"` is what people write, an escape that JSON does not know belongs to
    /// the expression, and then so do all others.
    fn quoted_pattern(&mut self) -> Result<String, Error> {
        let mut ahead = self.scan.clone();
        if let Ok(text) = ahead.quoted() {
            self.scan = ahead;
            return Ok(text.into_owned());
        }
        let raw = self.scan.quoted_raw()?;
        Ok(raw[1..raw.len() - 1].replace("\\\"", "\""))
    }

    /// Up to a logical operator or parenthesis that is not within the expression's own brackets.
    fn bare_pattern(&mut self) -> String {
        let (mut depth, mut class, mut escaped) = (0_usize, false, false);
        let rest = self.scan.rest();
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                ']' => class = false,
                _ if class => {}
                '[' => class = true,
                '(' => depth += 1,
                ')' if depth > 0 => depth -= 1,
                ')' | ';' | '|' if depth == 0 => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        self.scan.advance(end);
        rest[..end].to_owned()
    }
}

/// The rest of a ValuePath whose first name has been read.
fn value_path(scan: &mut Scanner<'_>, path: &mut Path, first: String) -> Result<(), Error> {
    path.names.push(first);
    while scan.rest().starts_with('.') && !scan.rest().starts_with("..") {
        if path.names.len() == MAX_PATH {
            return Err(scan.fail(Reason::TooMany("names in a path", MAX_PATH)));
        }
        scan.advance(1);
        let colon = if path.hops.is_empty() { Colon::Name } else { Colon::End };
        path.names.push(scan.name("a sub-attribute name", colon)?.to_owned());
    }
    if !scan.eat("[") {
        return Ok(());
    }
    loop {
        if path.member.len() == MAX_PATH {
            return Err(scan.fail(Reason::TooMany("members in a path", MAX_PATH)));
        }
        let member = scan.take_while(|c| !MEMBER_END.contains(&c) && !c.is_control());
        if member.is_empty() {
            return Err(scan.expected("a member name, a language or \"*\""));
        }
        path.member.push(member.to_owned());
        if scan.eat("]") {
            return Ok(());
        }
        scan.expect(".", "\".\" or \"]\"")?;
    }
}
