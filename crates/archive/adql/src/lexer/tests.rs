use super::*;
use crate::tree::Value;

/// The tokens of `text` as `kind:text`, or the message and hint.
fn tokens(text: &str) -> String {
    let mut lexer = Lexer::new(text).unwrap();
    let mut all = Vec::new();
    loop {
        match lexer.next() {
            Ok(token) if token.kind == Kind::End => return all.join(" "),
            Ok(token) => all.push(format!("{:?}:{}", token.kind, lexer.slice(token.span))),
            Err(error) => {
                let hint = error.hint.as_deref().unwrap_or("no hint");
                all.push(format!("{}..{} {error} ({hint})", error.span.start, error.span.end));
                return all.join(" ");
            }
        }
    }
}

fn value(text: &str) -> Result<Value, String> {
    let mut lexer = Lexer::new(text).unwrap();
    let token = lexer.next().map_err(|error| error.to_string())?;
    assert_eq!(lexer.next().unwrap().kind, Kind::End, "{text} is one token");
    lexer.value(token).map_err(|error| error.to_string())
}

#[test]
fn signs_need_no_blanks() {
    assert_eq!(tokens("c!=0"), "Word:c NotEqual:!= Integer:0");
    assert_eq!(
        tokens("a<=b>=c<>d"),
        "Word:a LessOrEqual:<= Word:b GreaterOrEqual:>= Word:c NotEqual:<> Word:d"
    );
    assert_eq!(tokens("t.*,(a||b);"), {
        "Word:t Dot:. Star:* Comma:, LeftParen:( Word:a Concat:|| Word:b RightParen:) Semicolon:;"
    });
    assert_eq!(tokens("1-2*-3/+4"), {
        "Integer:1 Minus:- Integer:2 Star:* Minus:- Integer:3 Slash:/ Plus:+ Integer:4"
    });
}

#[test]
fn numbers_have_every_form_of_the_grammar() {
    for (text, expected) in [
        ("0", Value::Integer(0)),
        ("007", Value::Integer(7)),
        ("9223372036854775807", Value::Integer(i64::MAX)),
        ("9223372036854775808", Value::Double(9_223_372_036_854_775_808.0)),
        ("0x1F", Value::Integer(31)),
        ("0XfF", Value::Integer(255)),
        (".5", Value::Double(0.5)),
        ("1.", Value::Double(1.0)),
        ("1.e3", Value::Double(1000.0)),
        ("1.5E-3", Value::Double(0.0015)),
        ("2e+2", Value::Double(200.0)),
    ] {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
    for text in ["1e999", "0xFFFFFFFFFFFFFFFF", &"9".repeat(400)] {
        assert_eq!(value(text), Err("this number is too large".to_owned()), "{text}");
    }
}

#[test]
fn texts_are_unescaped_and_joined() {
    for (text, expected) in [
        ("''", ""),
        ("'a'", "a"),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("'a' 'b'", "ab"),
        ("'a' -- it's a comment\n 'b''c'/*'*/'d'", "ab'cd"),
        ("'naïve 星'", "naïve 星"),
        ("'two\nlines'", "two\nlines"),
    ] {
        assert_eq!(value(text), Ok(Value::Text(expected.into())), "{text}");
    }
}

#[test]
fn quoted_names_keep_everything() {
    let name = |text| {
        let mut lexer = Lexer::new(text).unwrap();
        let token = lexer.next().unwrap();
        lexer.name(token)
    };
    assert_eq!(&*name("\"I/355/gaiadr3\"").text, "I/355/gaiadr3");
    assert_eq!(&*name("\"say \"\"x\"\"\"").text, "say \"x\"");
    assert!(name("\"a\"").quoted && !name("_RAJ2000").quoted);
}

#[test]
fn comments_and_odd_blanks_are_blanks() {
    assert_eq!(tokens("a--b\nc/* d\n */e -- f"), "Word:a Word:c Word:e");
    assert_eq!(tokens("\u{feff}a\u{a0}b\u{2009}c\u{3000}\u{200b}\r\n\t"), "Word:a Word:b Word:c");
    assert_eq!(tokens("a /* * / **/ b"), "Word:a Word:b");
}

#[test]
fn a_text_ends_before_blanks_that_no_text_follows() {
    assert_eq!(tokens("'a' , 'b'"), "Text:'a' Comma:, Text:'b'");
    assert_eq!(tokens("'a' /* ' */ x"), "Text:'a' Word:x");
}

/// What is refused, where, and with which hint.
#[test]
fn mistakes_have_a_place_and_a_hint() {
    for (text, start, end, words) in [
        ("2mass", 0, 5, "does not begin with a digit (such a name stands in double quotes: \"2mass\""),
        ("t.2mass", 1, 7, "quotes: \"2mass\""),
        ("0x", 0, 2, "\"0x\""),
        ("naïve = 1", 0, 6, "\"naïve\""),
        ("ra = ‘x’", 5, 8, "typographic quote"),
        ("“ra”", 0, 3, "typographic quote"),
        ("1 − 2", 2, 5, "minus is written -"),
        ("a == b", 2, 4, "(equality is written =)"),
        ("a && b", 2, 4, "write AND"),
        ("a & b", 2, 3, "bits"),
        ("a | b", 2, 3, "joined by ||"),
        ("a << 2", 2, 4, "bits"),
        ("a ^ 2", 2, 3, "POWER"),
        ("a % 2", 2, 3, "MOD"),
        ("a::int", 1, 3, "CAST"),
        ("`a`", 0, 1, "double quotes"),
        ("[a]", 0, 1, "double quotes"),
        ("\\\"a\\\"", 0, 1, "without a backslash"),
        ("a = :id", 4, 5, "parameter"),
        ("{table}", 0, 1, "parameter"),
        ("\u{0}", 0, 1, "U+0000"),
        ("星", 0, 3, "double quotes"),
        ("☃", 0, 3, "no hint"),
        ("a 'b", 2, 3, "this text does not end"),
        ("\"b", 0, 1, "this name in double quotes does not end"),
        ("\"\"", 0, 2, "at least one character"),
        ("a /* b", 2, 4, "this comment does not end"),
        ("a 'b' /*", 6, 8, "this comment does not end"),
    ] {
        let answer = tokens(text);
        assert!(answer.contains(&format!("{start}..{end} ")), "{text}: {answer}");
        assert!(answer.contains(words), "{text}: {answer}");
    }
}

#[test]
fn long_queries_are_refused_and_long_words_clipped() {
    assert_eq!(Lexer::new(&" ".repeat(limits::BYTES)).unwrap().next().unwrap().kind, Kind::End);
    assert_eq!(Lexer::new(&" ".repeat(limits::BYTES + 1)).unwrap_err().problem, Problem::TooLong);
    let error = Lexer::new(&format!("1{}", "ab".repeat(9999))).unwrap().next().unwrap_err();
    assert!(error.hint.unwrap().len() < 200);
}
