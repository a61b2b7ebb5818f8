//! What may be a name, an identifier or a scope (4.5.1, 4.6.2, 4.18).

/// The value that deletes: the NGSI-LD Null (4.5.0).
pub const NULL: &str = "urn:ngsi-ld:null";

/// The datasetId that stands for the default instance (4.5.5).
pub const DEFAULT_DATASET: &str = "@none";

/// The longest identifier or name, in bytes.
pub const MAX_LEN: usize = 2048;

/// Characters that no identifier may hold: delimiters of markup and JSON-LD, and all that a reader cannot
/// see (4.5.1, RFC 3987 section 2.2).
fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\u{20}' | '<' | '>' | '"' | '{' | '}' | '|' | '\\' | '^' | '`' | '\u{7F}'..='\u{A0}')
        || is_invisible(c)
        || (c as u32) & 0xFFFE == 0xFFFE
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{1680}' | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{2000}'..='\u{200F}' | '\u{2028}'..='\u{202F}' | '\u{205F}'..='\u{206F}'
        | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{FDD0}'..='\u{FDEF}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
        | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}')
}

/// As much of a client's text as a message repeats: its beginning, with characters that nobody could see escaped.
pub fn shown(text: &str) -> String {
    const CHARACTERS: usize = 120;
    let mut shown: String = text.chars().take(CHARACTERS).flat_map(char::escape_debug).collect();
    if text.chars().nth(CHARACTERS).is_some() {
        shown.push_str("...");
    }
    shown
}

/// True for a URI (or IRI): a scheme, a colon, something, and no forbidden character (4.5.1).
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.bytes();
    letters.next().is_some_and(|b| b.is_ascii_alphabetic())
        && letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && !rest.is_empty()
        && text.len() <= MAX_LEN
        && (text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b':' | b'-' | b'_' | b'.' | b'/'))
            || !text.chars().any(is_forbidden))
}

/// True for the name of a type or an attribute: a term of clause 4.6.2 (a letter, then letters, digits and
/// underscores), a compact IRI or an IRI.
pub fn is_name(text: &str) -> bool {
    if text.contains(':') {
        return text.len() <= MAX_LEN && !text.starts_with(':') && !text.chars().any(is_forbidden);
    }
    text.len() <= MAX_LEN && is_word(text)
}

/// A letter, then letters, digits and underscores.
fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(char::is_alphabetic) && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// True for a scope: levels, each a letter and then letters, digits and underscores, separated by `/`, with or
/// without a leading one (4.18).
pub fn is_scope(text: &str) -> bool {
    text.len() <= MAX_LEN && text.strip_prefix('/').unwrap_or(text).split('/').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn uris() {
        for text in ["urn:ngsi-ld:Vehicle:1", "http://a.b/c?d=e#f", "urn:ngsi-ld:Ciudad:París", "a:b"] {
            assert!(is_uri(text), "{text}");
        }
        let bad = [
            "",
            "x",
            "invalidUri",
            "urn:",
            ":a",
            "1a:b",
            "urn:a b",
            "urn:a<b",
            "urn:a\u{200b}b",
            "urn:a\u{fffe}",
        ];
        for text in bad.into_iter().chain(["urn:a\u{e0100}b", "urn:\u{2800}"]) {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn names_and_scopes() {
        for text in ["speed", "výška_1", "Škola", "ex:speed", "https://a.b/c#speed"] {
            assert!(is_name(text), "{text}");
        }
        for text in ["", "my attr", "9Vehicle", "a-b", "a.b", ":a", "ex:a b"] {
            assert!(!is_name(text), "{text}");
        }
        for text in ["/Madrid/Gardens/ParqueNorte", "Madrid"] {
            assert!(is_scope(text), "{text}");
        }
        for text in ["", "/", "9bad", "/a//b", "a-b", "/a/", NULL] {
            assert!(!is_scope(text), "{text}");
        }
    }

    #[test]
    fn a_message_repeats_the_beginning_of_a_long_text() {
        assert_eq!(shown("speed\n"), "speed\\n");
        assert_eq!(shown(&"é".repeat(120)), "é".repeat(120));
        assert_eq!(shown(&"é".repeat(5000)), format!("{}...", "é".repeat(120)));
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC*") {
            let _ = (is_uri(&text), is_name(&text), is_scope(&text));
        }
    }
}
