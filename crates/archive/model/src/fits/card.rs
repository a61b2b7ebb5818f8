//! One card of a FITS header: eighty bytes that say `KEYWORD = value / comment` (FITS 4.0 4.1, 4.2).
//!
//! A string that needs more room than one card goes on in `CONTINUE` cards (FITS 4.0 4.2.1.2). What is
//! written is fixed format; what is read is free format, which includes the fixed one.

/// Bytes of a card (FITS 4.0 4.1).
pub(super) const CARD: usize = 80;

/// Bytes of a header or data block (FITS 4.0 3.1).
pub(super) const BLOCK: usize = 2880;

/// Characters of a string that one card holds, between its quotes (FITS 4.0 4.2.1.1).
const TEXT_ROOM: usize = 68;

/// What a card says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// `T` or `F`.
    Logical(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a point or an exponent, or one too long for 64 bits.
    Real(f64),
    /// Characters between quotes, trailing blanks dropped.
    Text(String),
    /// No value, or one of a kind that no keyword of a table has.
    Undefined,
}

/// One card, read.
#[derive(Debug, PartialEq)]
pub(super) enum Card<'a> {
    /// `KEYWORD = value`.
    Keyword(&'a str, Value),
    /// More of the string before (FITS 4.0 4.2.1.2).
    Continue(String),
    /// The last card of a header.
    End,
    /// Commentary, blank, or a convention that tables do not use.
    Other,
}

impl<'a> Card<'a> {
    /// Reads a card. An error is a sentence without the card's name.
    pub(super) fn parse(card: &'a [u8]) -> Result<Self, &'static str> {
        let text =
            std::str::from_utf8(card).ok().filter(|text| text.bytes().all(|b| (b' '..=b'~').contains(&b)));
        let Some(text) = text else {
            // Commentary in a national encoding is common and harmless (FITS 4.0 4.1.2.3 forbids it).
            return match card.get(..8) {
                Some(b"COMMENT " | b"HISTORY " | b"        ") => Ok(Self::Other),
                _ => Err("has characters that are not printable ASCII"),
            };
        };
        let (Some(keyword), Some(rest)) = (text.get(..8), text.get(8..)) else { return Err("is cut short") };
        match keyword.trim_end() {
            "END" if rest.trim().is_empty() => return Ok(Self::End),
            "COMMENT" | "HISTORY" | "" | "HIERARCH" => return Ok(Self::Other),
            "CONTINUE" => {
                return match value(rest)? {
                    Value::Text(text) => Ok(Self::Continue(text)),
                    _ => Ok(Self::Other),
                };
            }
            _ => {}
        }
        match rest.strip_prefix('=').filter(|after| after.starts_with(' ')) {
            Some(after) => Ok(Self::Keyword(keyword.trim_end(), value(after)?)),
            None => Ok(Self::Other),
        }
    }
}

fn value(text: &str) -> Result<Value, &'static str> {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('\'') {
        return string(quoted).map(Value::Text);
    }
    let token = text.split('/').next().unwrap_or_default().trim_end();
    Ok(match token {
        "T" => Value::Logical(true),
        "F" => Value::Logical(false),
        _ => number(token),
    })
}

fn number(token: &str) -> Value {
    if let Ok(integer) = token.parse() {
        return Value::Integer(integer);
    }
    // FITS 4.0 4.2.4: `D` marks an exponent as `E` does.
    let digits = token.bytes().all(|b| b.is_ascii_digit() || b"+-.EDed".contains(&b));
    match token.replace(['D', 'd'], "E").parse() {
        Ok(real) if digits => Value::Real(real),
        _ => Value::Undefined,
    }
}

fn string(quoted: &str) -> Result<String, &'static str> {
    let mut out = String::new();
    let mut rest = quoted;
    loop {
        let Some((before, after)) = rest.split_once('\'') else { return Err("has a string without its end") };
        out.push_str(before);
        match after.strip_prefix('\'') {
            Some(more) => {
                out.push('\'');
                rest = more;
            }
            None => break,
        }
    }
    out.truncate(out.trim_end().len());
    Ok(out)
}

/// A header being written.
#[derive(Debug, Default)]
pub(super) struct Cards {
    bytes: Vec<u8>,
}

impl Cards {
    /// A truth value.
    pub(super) fn logical(&mut self, keyword: &str, value: bool, comment: &str) {
        self.fixed(keyword, if value { "T" } else { "F" }, comment);
    }

    /// A whole number.
    pub(super) fn integer(&mut self, keyword: &str, value: i64, comment: &str) {
        self.fixed(keyword, itoa::Buffer::new().format(value), comment);
    }

    /// A string, over as many cards as it takes; what is not printable ASCII becomes `?` (FITS 4.0 4.2.1.1).
    pub(super) fn text(&mut self, keyword: &str, value: &str, comment: &str) {
        let escaped = escape(value);
        if escaped.len() <= TEXT_ROOM {
            let text = format!("{keyword:<8}= '{escaped:<8}'");
            return self.card(&text, comment);
        }
        let mut rest = escaped.as_str();
        let mut lead = format!("{keyword:<8}= ");
        while !rest.is_empty() {
            let (piece, after) = split(rest, TEXT_ROOM - 1);
            let more = if after.is_empty() { "" } else { "&" };
            self.card(&format!("{lead}'{piece}{more}'"), "");
            lead = "CONTINUE  ".to_owned();
            rest = after;
        }
    }

    /// Commentary over as many cards as it takes (FITS 4.0 4.4.2.4).
    pub(super) fn wrapped(&mut self, text: &str) {
        let text = printable(text);
        for piece in text.as_bytes().chunks(CARD - 8) {
            self.card(&format!("COMMENT {}", String::from_utf8_lossy(piece)), "");
        }
    }

    /// Ends the header and fills its last block (FITS 4.0 3.3.1, 4.4.1.1).
    pub(super) fn finish(mut self, out: &mut Vec<u8>) {
        self.card("END", "");
        let padded = self.bytes.len().next_multiple_of(BLOCK);
        self.bytes.resize(padded, b' ');
        out.extend_from_slice(&self.bytes);
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    fn fixed(&mut self, keyword: &str, value: &str, comment: &str) {
        self.card(&format!("{keyword:<8}= {value:>20}"), comment);
    }

    fn card(&mut self, text: &str, comment: &str) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text.as_bytes());
        if !comment.is_empty() && text.len() + 3 + comment.len() <= CARD {
            self.bytes.extend_from_slice(b" / ");
            self.bytes.extend_from_slice(comment.as_bytes());
        }
        self.bytes.resize(start + CARD, b' ');
    }
}

/// One card of fixed format holding a whole number, for a header that is patched after the fact.
pub(super) fn integer_card(keyword: &str, value: i64, comment: &str) -> Vec<u8> {
    let mut cards = Cards::default();
    cards.integer(keyword, value, comment);
    cards.bytes
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '?' }).collect()
}

fn escape(text: &str) -> String {
    printable(text).replace('\'', "''")
}

/// The longest beginning of at most `room` bytes that does not cut a doubled quote in two.
fn split(text: &str, room: usize) -> (&str, &str) {
    if text.len() <= room + 1 {
        return (text, "");
    }
    let quotes = text.bytes().take(room).rev().take_while(|&b| b == b'\'').count();
    text.split_at(if quotes % 2 == 1 { room - 1 } else { room })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cards: Cards) -> String {
        let mut out = Vec::new();
        cards.finish(&mut out);
        assert_eq!(out.len() % BLOCK, 0);
        let mut text = String::new();
        for card in out.chunks(CARD) {
            match Card::parse(card).unwrap() {
                Card::Keyword(_, Value::Text(value)) => text = value,
                Card::Continue(more) => {
                    assert_eq!(text.pop(), Some('&'));
                    text += &more;
                }
                Card::End => break,
                other => panic!("{other:?}"),
            }
        }
        text
    }

    #[test]
    fn strings_of_every_length_and_with_quotes_read_back() {
        for length in [0, 1, 8, 66, 67, 68, 69, 70, 133, 134, 135, 500] {
            for filler in ["x", "'", "x'", "'x"] {
                let text: String = filler.repeat(length).chars().take(length).collect();
                let mut cards = Cards::default();
                cards.text("TCOMM1", &text, "a comment");
                assert_eq!(read(cards), text, "{length} of {filler}");
            }
        }
    }

    #[test]
    fn free_format_is_read() {
        let check = |card: &str, expected: Value| {
            let card = format!("{card:<80}");
            assert_eq!(Card::parse(card.as_bytes()), Ok(Card::Keyword("K", expected)), "{card}");
        };
        check("K       = T / yes", Value::Logical(true));
        check("K       =                    F", Value::Logical(false));
        check("K       = -12", Value::Integer(-12));
        check("K       = 1.5D3/x", Value::Real(1500.0));
        check("K       = 99999999999999999999", Value::Real(1e20));
        check("K       = 'it''s / so  ' / c", Value::Text("it's / so".to_owned()));
        check("K       =", Value::Undefined);
        check("K       = (1.0, 2.0)", Value::Undefined);
        check("K       = inf", Value::Undefined);
    }

    #[test]
    fn broken_cards_are_refused() {
        assert!(Card::parse(format!("{:<80}", "K       = 'open").as_bytes()).is_err());
        assert!(Card::parse(b"K       = \x80").is_err());
        assert!(Card::parse(b"K").is_err());
        assert_eq!(Card::parse(b"COMMENT \xb5"), Ok(Card::Other));
    }
}
