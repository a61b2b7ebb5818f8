//! Writing XML: text that is escaped, attributes, and nothing that builds a tree.
//!
//! Characters that XML 1.0 cannot hold (most controls, the two last code points of the plane) become U+FFFD, so that
//! no document of ours is ill-formed whatever a client or a catalogue put into it.

/// Appends character data.
pub(crate) fn text(out: &mut String, text: &str) {
    escaped(out, text, false);
}

/// Appends ` name="value"`.
pub(crate) fn attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    escaped(out, value, true);
    out.push('"');
}

/// Appends `<name>text</name>`.
pub(crate) fn element(out: &mut String, name: &str, content: &str) {
    out.push('<');
    out.push_str(name);
    out.push('>');
    text(out, content);
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// [`element`], where there is something to say.
pub(crate) fn optional(out: &mut String, name: &str, content: Option<&str>) {
    if let Some(content) = content.filter(|content| !content.is_empty()) {
        element(out, name, content);
    }
}

fn escaped(out: &mut String, text: &str, is_attribute: bool) {
    let mut rest = text;
    while let Some(at) = rest.find(|character| is_special(character, is_attribute)) {
        let (plain, after) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = after.chars();
        if let Some(character) = characters.next() {
            replace(out, character);
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
}

fn is_special(character: char, is_attribute: bool) -> bool {
    match character {
        '<' | '>' | '&' | '"' => true,
        '\n' | '\t' => is_attribute,
        '\r' | '\u{fffe}' | '\u{ffff}' => true,
        other => other < ' ',
    }
}

fn replace(out: &mut String, character: char) {
    match character {
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '&' => out.push_str("&amp;"),
        '"' => out.push_str("&quot;"),
        '\n' => out.push_str("&#10;"),
        '\t' => out.push_str("&#9;"),
        '\r' => out.push_str("&#13;"),
        _ => out.push('\u{fffd}'),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quick_xml::events::Event;
    use quick_xml::{Reader, XmlVersion};

    use super::*;

    #[test]
    fn everything_special_is_escaped() {
        let mut out = String::new();
        attribute(&mut out, "a", "<\"&'>\n\u{1}é");
        text(&mut out, "a\nb\u{0}");
        assert_eq!(out, " a=\"&lt;&quot;&amp;'&gt;&#10;\u{fffd}é\"a\nb\u{fffd}");
    }

    proptest! {
        #[test]
        fn a_parser_reads_what_was_meant(value in "\\PC{0,30}", body in "\\PC{0,30}") {
            let mut out = "<x".to_owned();
            attribute(&mut out, "a", &value);
            out.push('>');
            text(&mut out, &body);
            out.push_str("</x>");
            let mut reader = Reader::from_str(&out);
            let Ok(Event::Start(start)) = reader.read_event() else { panic!("{out}") };
            let found = start.attributes().next().unwrap().unwrap();
            prop_assert_eq!(found.normalized_value(XmlVersion::Explicit1_0).unwrap(), value.as_str());
            let inner = reader.read_text(start.name()).unwrap().xml_content(XmlVersion::Explicit1_0);
            prop_assert_eq!(quick_xml::escape::unescape(&inner).unwrap(), body.as_str());
        }
    }
}
