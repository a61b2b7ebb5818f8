//! LIKE and ILIKE: `%` stands for any characters, `_` for one, and nothing escapes them (ADQL 2.1 4.4).
//!
//! A pattern is taken apart once; most are a text, a beginning, an end or a piece, and compare as bytes. The others
//! are matched piece by piece between the `%`s, each at its first fit, which is right because a later fit leaves
//! less for the rest: no pattern takes more than the product of the two lengths. ILIKE compares characters after
//! Unicode's simple case folding.

use std::borrow::Cow;

use arrow_array::{Array as _, StringArray};
use memchr::memmem::Finder;
use trifid_archive_adql::types::Type;

use super::cells::{Cells, Shape, any_null, boolean_array, nulls, searched_for, texts};
use super::compare::each;
use crate::error::QueryError;

/// A pattern, ready to match.
#[derive(Clone, Debug)]
pub struct Pattern {
    form: Form,
    ignore_case: bool,
}

/// The forms that patterns have. With [`Pattern::ignore_case`] it is always the last, whose pieces are folded.
#[derive(Clone, Debug)]
enum Form {
    /// No `%`, no `_`.
    Exact(Box<str>),
    /// `text%`.
    Prefix(Box<str>),
    /// `%text`.
    Suffix(Box<str>),
    /// `%text%`.
    Infix(Box<Finder<'static>>),
    /// Anything else: what stands between the `%`s. Without a last piece there is none.
    Pieces { first: Box<[char]>, middle: Vec<Box<[char]>>, last: Option<Box<[char]>> },
}

impl Pattern {
    /// Takes a pattern apart.
    pub fn new(pattern: &str, ignore_case: bool) -> Self {
        let bare = pattern.trim_matches('%');
        let plain = !ignore_case && !bare.contains(['%', '_']);
        let form = match (plain, pattern.starts_with('%'), pattern.ends_with('%')) {
            (true, false, false) => Form::Exact(bare.into()),
            (true, false, true) => Form::Prefix(bare.into()),
            (true, true, false) => Form::Suffix(bare.into()),
            (true, true, true) => Form::Infix(Box::new(Finder::new(bare).into_owned())),
            (false, ..) => pieces(pattern, ignore_case),
        };
        Self { form, ignore_case }
    }

    /// Whether a text fits.
    pub fn matches(&self, text: &str) -> bool {
        match &self.form {
            Form::Exact(whole) => *text == **whole,
            Form::Prefix(front) => text.starts_with(&**front),
            Form::Suffix(back) => text.ends_with(&**back),
            Form::Infix(piece) => piece.find(text.as_bytes()).is_some(),
            Form::Pieces { first, middle, last } => match self.ignore_case {
                true => fits(text, first, middle, last.as_deref(), fold),
                false => fits(text, first, middle, last.as_deref(), |c| c),
            },
        }
    }

    /// What every text that fits begins with. For an index.
    pub fn prefix(&self) -> Option<Cow<'_, str>> {
        match &self.form {
            _ if self.ignore_case => None,
            Form::Exact(front) | Form::Prefix(front) => Some(Cow::Borrowed(front)),
            Form::Suffix(_) | Form::Infix(_) => None,
            Form::Pieces { first, .. } => Some(Cow::Owned(first.iter().take_while(|c| **c != '_').collect())),
        }
    }

    /// Whether exactly the texts that begin with [`Self::prefix`] fit.
    pub fn is_prefix(&self) -> bool {
        matches!(self.form, Form::Prefix(_))
    }

    /// Whether only the text [`Self::prefix`] fits.
    pub fn is_exact(&self) -> bool {
        matches!(self.form, Form::Exact(_))
    }
}

fn pieces(pattern: &str, ignore_case: bool) -> Form {
    let letter = |c| if ignore_case { fold(c) } else { c };
    let mut pieces = pattern.split('%').map(|piece| piece.chars().map(letter).collect::<Box<[char]>>());
    let first = pieces.next().unwrap_or_default();
    let mut middle: Vec<_> = pieces.collect();
    let last = middle.pop();
    middle.retain(|piece| !piece.is_empty());
    Form::Pieces { first, middle, last }
}

/// Whether a text is the first piece, then the middle ones in their order with anything between, then the
/// last; without a last the first is all.
fn fits(
    text: &str,
    first: &[char],
    middle: &[Box<[char]>],
    last: Option<&[char]>,
    letter: impl Fn(char) -> char + Copy,
) -> bool {
    let Some(mut rest) = after(text, first, letter) else { return false };
    let Some(last) = last else { return rest.is_empty() };
    for piece in middle {
        match find(rest, piece, letter) {
            Some(left) => rest = left,
            None => return false,
        }
    }
    last.is_empty() || ends(rest, last, letter)
}

/// Whether a text ends with a piece.
fn ends(text: &str, piece: &[char], letter: impl Fn(char) -> char) -> bool {
    let mut chars = text.chars().rev();
    piece.iter().rev().all(|wanted| chars.next().is_some_and(|c| *wanted == '_' || *wanted == letter(c)))
}

/// What follows a piece that a text begins with.
fn after<'a>(text: &'a str, piece: &[char], letter: impl Fn(char) -> char) -> Option<&'a str> {
    let mut chars = text.chars();
    for wanted in piece {
        let c = chars.next()?;
        if *wanted != '_' && *wanted != letter(c) {
            return None;
        }
    }
    Some(chars.as_str())
}

/// What follows the first place where a piece fits.
fn find<'a>(text: &'a str, piece: &[char], letter: impl Fn(char) -> char + Copy) -> Option<&'a str> {
    let mut rest = text;
    loop {
        if let Some(left) = after(rest, piece, letter) {
            return Some(left);
        }
        let mut chars = rest.chars();
        chars.next()?;
        rest = chars.as_str();
    }
}

/// Unicode's simple case folding: one character for one.
pub(super) fn fold(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_lowercase();
    }
    // By way of the upper case, so that the two lower cases of sigma meet.
    let upper = single(c, c.to_uppercase());
    single(upper, upper.to_lowercase())
}

/// The only character of a mapping, or the one that was mapped.
fn single(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// value LIKE pattern.
pub(super) fn like(value: &Cells, pattern: &Cells, ignore_case: bool) -> Result<Cells, QueryError> {
    if any_null(&[value, pattern]) {
        return Ok(Cells::null(Type::Boolean, value.rows()));
    }
    let shape = Shape::of(&[value, pattern], value.rows());
    let (array, patterns) = (texts(value)?, searched_for(pattern)?);
    let values = if pattern.is_constant() {
        let pattern = Pattern::new(patterns.value(0), ignore_case);
        each(shape.len, |row| pattern.matches(array.value(row)))
    } else {
        each(shape.len, |row| matches_at(array, value.place(row), patterns, row, ignore_case))
    };
    Ok(shape.cells(boolean_array(values, nulls(&[value, pattern], shape))))
}

fn matches_at(
    texts: &StringArray,
    text: usize,
    patterns: &StringArray,
    row: usize,
    ignore_case: bool,
) -> bool {
    patterns.is_valid(row) && Pattern::new(patterns.value(row), ignore_case).matches(texts.value(text))
}
