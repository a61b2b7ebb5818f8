//! How a mistake is shown: line, column, the line of the query with a caret under the place, and a hint.

use std::fmt;

use crate::limits;
use crate::span::Span;

/// A place as people count: both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

impl Place {
    /// The place of the byte `offset` of `text`; its end, if the offset lies beyond.
    pub fn of(text: &str, offset: u32) -> Self {
        let before = &text[..boundary(text, offset as usize)];
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before[line_start(before)..].chars().count() + 1;
        Self { line, column }
    }
}

/// A message about a place of a query, to be displayed over several lines.
///
/// ```text
/// line 2, column 7: expected FROM or `,`, found the number 5
///   FROM  5 AS x
///         ^
/// hint: ...
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Report<'a, M> {
    /// The query.
    pub text: &'a str,
    /// The place.
    pub span: Span,
    /// What is wrong.
    pub message: M,
    /// What to do.
    pub hint: Option<&'a str>,
}

impl<M: fmt::Display> fmt::Display for Report<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = Place::of(self.text, self.span.start);
        let (line, carets) = excerpt(self.text, self.span);
        write!(f, "line {}, column {}: {}\n  {line}\n  {carets}", place.line, place.column, self.message)?;
        match self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The line around the place, clipped to a bounded width, and the carets under the place. Blanks and control
/// characters are shown as one plain blank each, so that both lines agree; an overlong remainder is cut off.
fn excerpt(text: &str, span: Span) -> (String, String) {
    let start = boundary(text, span.start as usize);
    let end = boundary(text, (span.end as usize).max(start));
    let line_start = line_start(&text[..start]);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let before = text[line_start..start].chars().count();
    let skipped = before.saturating_sub(limits::EXCERPT_BEFORE);
    let shown = text[line_start..line_end].chars().skip(skipped).take(limits::EXCERPT);
    let mut line: String = shown.map(|c| if c.is_whitespace() || c.is_control() { ' ' } else { c }).collect();
    let indent = before - skipped;
    let wide = text[start..end.min(line_end).max(start)].chars().count();
    let wide = wide.clamp(1, limits::EXCERPT - indent);
    if skipped > 0 {
        line.replace_range(..line.chars().next().map_or(0, char::len_utf8), "…");
    }
    (line.trim_end().to_owned(), " ".repeat(indent) + &"^".repeat(wide))
}

fn line_start(before: &str) -> usize {
    before.rfind('\n').map_or(0, |at| at + 1)
}

/// The last character boundary up to `offset`.
fn boundary(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, start: u32, end: u32, expected: &str) {
        let report = Report { text, span: Span::new(start, end), message: "no", hint: None };
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        check("abc def", 4, 7, "line 1, column 5: no\n  abc def\n      ^^^");
        check("a\nb c\nd", 4, 5, "line 2, column 3: no\n  b c\n    ^");
        check("a\r\n\tb", 4, 5, "line 2, column 2: no\n   b\n   ^");
    }

    #[test]
    fn columns_are_characters() {
        check("naïve ‘x’", 7, 10, "line 1, column 7: no\n  naïve ‘x’\n        ^");
    }

    #[test]
    fn a_place_beyond_the_end_is_the_end() {
        check("ab", 2, 2, "line 1, column 3: no\n  ab\n    ^");
        check("ab", 90, 99, "line 1, column 3: no\n  ab\n    ^");
        check("", 0, 0, "line 1, column 1: no\n  \n  ^");
        check("ï", 1, 2, "line 1, column 1: no\n  ï\n  ^");
    }

    #[test]
    fn a_place_over_several_lines_is_marked_on_the_first() {
        check("a 'b\nc' d", 2, 7, "line 1, column 3: no\n  a 'b\n    ^^");
    }

    #[test]
    fn long_lines_are_clipped_around_the_place() {
        let text = format!("{} here {}", "x".repeat(500), "y".repeat(500));
        let report =
            Report { text: &text, span: Span::new(501, 505), message: "no", hint: Some("try again") };
        let shown = report.to_string();
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines[0], "line 1, column 502: no");
        let column = lines[2].find('^').unwrap();
        let under: String = lines[1].chars().skip(column).take(4).collect();
        assert_eq!((under.as_str(), lines[2].trim_start()), ("here", "^^^^"));
        assert!(lines[1].starts_with("  …x") && lines[1].chars().count() <= limits::EXCERPT + 2);
        assert_eq!(lines[3], "hint: try again");
        let wide = Report { text: &text, span: Span::new(0, 900), message: "no", hint: None }.to_string();
        assert!(wide.lines().all(|line| line.chars().count() <= limits::EXCERPT + 2));
    }
}
