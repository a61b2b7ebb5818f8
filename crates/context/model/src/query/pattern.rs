//! Regular expressions from clients: `~=` and `!~=` of 4.9, `idPattern` of 6.4.3.2.
//!
//! The engine runs in time linear in the text, and the size of a pattern and of its program are bounded, so
//! no pattern is dangerous. What IEEE 1003.2 writes is understood; look-around and back-references, which
//! it does not know either, are refused. A pattern matches anywhere unless it has anchors.

use super::error::{Error, Reason};
use super::limits::{MAX_PATTERN, MAX_PATTERN_PROGRAM};

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: regex::Regex,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source() == other.source()
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// Compiles the pattern that is the whole value of `parameter`.
    pub fn parse(parameter: &'static str, source: &str) -> Result<Self, Error> {
        Self::compile(source).map_err(|reason| Error::whole(parameter, reason))
    }

    pub(crate) fn compile(source: &str) -> Result<Self, Reason> {
        if source.len() > MAX_PATTERN {
            return Err(Reason::TooLong(MAX_PATTERN));
        }
        if repeats_repetition(source) {
            return Err(Reason::Pattern("a repetition follows a repetition".into()));
        }
        // In IEEE 1003.2 a period matches every character, line ends included.
        let regex = regex::RegexBuilder::new(source)
            .dot_matches_new_line(true)
            .size_limit(MAX_PATTERN_PROGRAM)
            .dfa_size_limit(MAX_PATTERN_PROGRAM)
            .nest_limit(50)
            .build()
            .map_err(|error| refusal(&error))?;
        Ok(Pattern { regex })
    }

    /// The pattern as it was written.
    pub fn source(&self) -> &str {
        self.regex.as_str()
    }

    /// True when the pattern matches somewhere in `text`.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

/// `**`, `+*` and the like outside brackets: IEEE 1003.2 gives them no meaning. A `?` behind a repetition, which means
/// something to most engines, is let through.
fn repeats_repetition(source: &str) -> bool {
    let (mut before, mut in_class, mut escaped) = (false, false, false);
    for c in source.chars() {
        let repetition = !escaped && !in_class && matches!(c, '*' | '+');
        if repetition && before {
            return true;
        }
        before = repetition || (!escaped && !in_class && matches!(c, '?' | '}'));
        in_class = if escaped { in_class } else { (in_class && c != ']') || c == '[' };
        escaped = !escaped && c == '\\';
    }
    false
}

fn refusal(error: &regex::Error) -> Reason {
    match error {
        regex::Error::CompiledTooBig(_) => Reason::Pattern("it is too large when compiled".into()),
        other => {
            // The library draws the pattern with a caret under it; its last line says what is wrong.
            let text = other.to_string();
            let last = text.lines().last().unwrap_or_default();
            Reason::Pattern(last.trim_start_matches("error: ").to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_4_9_patterns_are_searched_and_bounded() {
        for (source, text, matches) in [
            ("^Eiffel", "Eiffel Tower", true),
            ("^Eiffel", "Pisa Tower", false),
            ("[[:digit:]]{2}", "a42", true),
            ("a.b", "a\nb", true),
            ("coll4233", "urn:x:coll4233b", true),
            ("a+?[*+]\\+*", "aa*", true),
        ] {
            assert_eq!(Pattern::compile(source).unwrap().matches(text), matches, "{source} {text}");
        }
        for (source, why) in [
            ("(?=a)", "look-around"),
            ("(a)\\1", "backreferences"),
            ("(", "unclosed group"),
            ("a**", "a repetition follows a repetition"),
            ("a{2}+", "a repetition follows a repetition"),
            ("(\\w{100}){100}", "too large"),
        ] {
            let error = Pattern::parse("idPattern", source).unwrap_err().to_string();
            assert!(error.starts_with("idPattern: regular expression"), "{error}");
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(Pattern::compile(&"a".repeat(2000)), Err(Reason::TooLong(MAX_PATTERN)));
    }
}
