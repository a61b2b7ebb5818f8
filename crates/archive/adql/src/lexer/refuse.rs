//! What begins no token, and what its author may have meant.

use super::{Lexer, is_word};
use crate::error::{Error, Problem};
use crate::limits;

impl Lexer<'_> {
    /// `naïve`: a name with letters that need quotes.
    pub(super) fn refuse_word(&mut self, start: usize) -> Box<Error> {
        self.skip_letters();
        let word = &self.text[start..self.at];
        let hint = format!("a name with such letters stands in double quotes: \"{}\"", clip(word));
        Box::new(self.error(Problem::Character(format!("the word {}", clip(word))), start).hint(hint))
    }

    /// `2mass`, and `.2mass` after a qualifier.
    pub(super) fn refuse_digit_first(&mut self, start: usize) -> Box<Error> {
        self.skip_while(is_word);
        let word = self.text[start..self.at].trim_start_matches('.');
        let hint = format!("such a name stands in double quotes: \"{}\"", clip(word));
        Box::new(self.error(Problem::DigitFirst, start).hint(hint))
    }

    /// Any other character, or two that look like an operator.
    pub(super) fn refuse(&mut self, start: usize) -> Box<Error> {
        let rest = &self.text[start..];
        let (length, problem, hint) = operator(rest).unwrap_or_else(|| character(rest));
        self.at = start + length;
        let error = self.error(problem, start);
        match hint {
            Some(hint) => Box::new(error.hint(hint)),
            None => error,
        }
    }

    fn skip_letters(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    }
}

type Refusal = (usize, Problem, Option<&'static str>);

/// Operators of other dialects.
fn operator(rest: &str) -> Option<Refusal> {
    const BITS: &str = "ADQL has no operators on bits";
    const OPERATORS: &[(&str, Option<&str>)] = &[
        ("==", Some("equality is written =")),
        ("<<", Some(BITS)),
        (">>", Some(BITS)),
        ("&&", Some("write AND")),
        ("&", Some(BITS)),
        ("|", Some("texts are joined by ||; ADQL has no operators on bits")),
        ("~", Some(BITS)),
        ("^", Some("write POWER(x, y); ADQL has no operators on bits")),
        ("!", Some("write NOT, or <> for inequality")),
        ("%", Some("write MOD(x, y)")),
        ("::", Some("write CAST(x AS type)")),
    ];
    let (text, hint) = OPERATORS.iter().find(|(text, _)| rest.starts_with(text))?;
    Some((text.len(), Problem::Unsupported(format!("the operator {text}").into()), *hint))
}

/// Anything else.
fn character(rest: &str) -> Refusal {
    let Some(character) = rest.chars().next() else { return (0, Problem::Empty, None) };
    let hint = match character {
        '`' | '[' | ']' => {
            "names with blanks, signs or capitals that count stand in double quotes: \"a name\""
        }
        '\\' => "write the quote alone, without a backslash; a quote within a text is doubled: 'it''s'",
        '\u{2018}'..='\u{201f}' | '\u{2032}'..='\u{2037}' | '«' | '»' | '‹' | '›' | '´' => {
            "this is a typographic quote: a text stands in plain single quotes ('), a name in double ones (\")"
        }
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "this is a typographic dash: minus is written -",
        '×' | '∗' | '·' => "multiplication is written *",
        '÷' | '∕' => "division is written /",
        '≤' => "write <=",
        '≥' => "write >=",
        '≠' => "write <>",
        ':' | '?' | '@' | '$' | '{' | '}' => "if this is the place of a parameter, put its value there",
        '#' => "a comment begins with --",
        other if other.is_alphabetic() => "a name with such letters stands in double quotes",
        other => return (other.len_utf8(), Problem::Character(shown(other)), None),
    };
    (character.len_utf8(), Problem::Character(shown(character)), Some(hint))
}

/// A character for a message.
fn shown(character: char) -> String {
    if character.is_control() {
        format!("the character U+{:04X}", u32::from(character))
    } else {
        format!("the character {character}")
    }
}

/// A word for a message, bounded.
fn clip(word: &str) -> &str {
    &word[..word.floor_char_boundary(limits::QUOTED_WORD)]
}
