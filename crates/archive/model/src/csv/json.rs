//! As much of JSON (RFC 8259) as an array of strings takes.

/// What an array of strings is written with.
#[derive(Debug, PartialEq)]
pub(super) enum Token {
    Comma,
    Close,
    Null,
    Text(String),
}

/// Text being read.
#[derive(Debug)]
pub(super) struct Json<'a> {
    pub(super) rest: &'a [u8],
}

impl Json<'_> {
    /// The next token; nothing where the text is wrong or ends.
    pub(super) fn token(&mut self) -> Option<Token> {
        self.rest = self.rest.trim_ascii_start();
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        match first {
            b',' => Some(Token::Comma),
            b']' => Some(Token::Close),
            b'n' => {
                self.rest = rest.strip_prefix(b"ull")?;
                Some(Token::Null)
            }
            b'"' => self.string().map(Token::Text),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut out = Vec::new();
        loop {
            let special = memchr::memchr2(b'"', b'\\', self.rest)?;
            out.extend_from_slice(self.rest.get(..special)?);
            let byte = self.rest.get(special)?;
            self.rest = self.rest.get(special + 1..)?;
            if *byte == b'"' {
                return String::from_utf8(out).ok();
            }
            let escaped = self.escaped()?;
            out.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn escaped(&mut self) -> Option<char> {
        let (&letter, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(match letter {
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'"' | b'\\' | b'/' => char::from(letter),
            b'u' => self.code_point()?,
            _ => return None,
        })
    }

    fn code_point(&mut self) -> Option<char> {
        let high = self.unit()?;
        if !(0xD800..0xDC00).contains(&high) {
            return char::from_u32(high);
        }
        self.rest = self.rest.strip_prefix(b"\\u")?;
        let low = self.unit()?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
        char::from_u32(0x10000 + ((high - 0xD800) << 10) + low)
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.rest.get(..4)?;
        self.rest = self.rest.get(4..)?;
        let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        let mut json = Json { rest: br#" "a\"\u00e9\ud83d\ude00\n" , null ]"# };
        assert_eq!(json.token(), Some(Token::Text("a\"é😀\n".to_owned())));
        assert_eq!(json.token(), Some(Token::Comma));
        assert_eq!(json.token(), Some(Token::Null));
        assert_eq!(json.token(), Some(Token::Close));
        assert_eq!(json.token(), None);
    }

    #[test]
    fn broken_text_is_nothing() {
        for text in [r#"""#, r#""\"#, r#""\x""#, r#""\u12"#, r#""\ud83dx""#, r#""\u+123""#, "nul", "{"] {
            let text = text.strip_prefix('"').map_or(text.to_owned(), |rest| format!("\"{rest}"));
            assert_eq!(Json { rest: text.as_bytes() }.token(), None, "{text}");
        }
    }
}
