//! Tokens, and the words that the grammar has taken.

use crate::span::Span;

/// A token: what it is and where. What it says is read from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or an unquoted name.
    Word,
    /// A name in double quotes.
    Quoted,
    /// Digits.
    Integer,
    /// `0x` and hexadecimal digits.
    Hex,
    /// A number with a point or an exponent.
    Decimal,
    /// A text in single quotes; adjacent ones are one token (ADQL 2.0, `<character_string_literal>`).
    Text,
    LeftParen,
    RightParen,
    Comma,
    Dot,
    Semicolon,
    Star,
    Slash,
    Plus,
    Minus,
    Concat,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    End,
}

impl Kind {
    /// Whether the token is one of those that [`crate::tree::Slot`]s count.
    pub(crate) const fn is_literal(self) -> bool {
        matches!(self, Self::Integer | Self::Hex | Self::Decimal | Self::Text)
    }

    /// Whether the token is a number.
    pub(crate) const fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Hex | Self::Decimal)
    }
}

/// Defines [`Keyword`] with its spellings.
macro_rules! keywords {
    ($($name:ident $text:literal,)*) => {
        /// The words that mean something to the parser. Whether one may be a name all the same depends on where it
        /// stands. The standard reserves many more (ADQL 2.1 2.1.3, 2.1.4), among them `size`, `date` and `dec`; they
        /// are ordinary names here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Keyword {
            $($name,)*
        }

        impl Keyword {
            const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word, in capitals.
            pub(crate) const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

keywords! {
    All "ALL",
    And "AND",
    As "AS",
    Asc "ASC",
    Between "BETWEEN",
    By "BY",
    Case "CASE",
    Cast "CAST",
    Cross "CROSS",
    Date "DATE",
    Desc "DESC",
    Distinct "DISTINCT",
    Else "ELSE",
    End "END",
    Except "EXCEPT",
    Exists "EXISTS",
    False "FALSE",
    Fetch "FETCH",
    From "FROM",
    Full "FULL",
    Group "GROUP",
    Having "HAVING",
    ILike "ILIKE",
    In "IN",
    Inner "INNER",
    Intersect "INTERSECT",
    Interval "INTERVAL",
    Is "IS",
    Join "JOIN",
    Left "LEFT",
    Like "LIKE",
    Limit "LIMIT",
    Natural "NATURAL",
    Not "NOT",
    Null "NULL",
    Offset "OFFSET",
    On "ON",
    Or "OR",
    Order "ORDER",
    Outer "OUTER",
    Over "OVER",
    Right "RIGHT",
    Select "SELECT",
    Then "THEN",
    Time "TIME",
    Timestamp "TIMESTAMP",
    Top "TOP",
    True "TRUE",
    Union "UNION",
    Using "USING",
    When "WHEN",
    Where "WHERE",
    With "WITH",
}

impl Keyword {
    /// The keyword that a word is, case ignored: one multiplication and mostly one comparison.
    pub(crate) fn of(word: &str) -> Option<Self> {
        let packed = pack(word.as_bytes())?;
        let mut slot = hash(packed);
        loop {
            let keyword = *TABLE[slot].as_ref()?;
            if PACKED[keyword as usize] == packed {
                return Some(keyword);
            }
            slot = (slot + 1) % TABLE.len();
        }
    }

    /// Whether the word is never a column's bare name: it structures what stands around it.
    pub(crate) const fn is_reserved(self) -> bool {
        !matches!(
            self,
            Self::Asc
                | Self::Cast
                | Self::Date
                | Self::Desc
                | Self::Fetch
                | Self::ILike
                | Self::Interval
                | Self::Limit
                | Self::Offset
                | Self::Over
                | Self::Time
                | Self::Timestamp
        )
    }

    /// Whether the word is never an alias without AS: it may follow there as itself.
    pub(crate) const fn ends_alias(self) -> bool {
        self.is_reserved() || matches!(self, Self::ILike | Self::Offset)
    }
}

/// The letters of a word in one number; `None` for what is too long to be a keyword.
const fn pack(word: &[u8]) -> Option<u128> {
    if word.len() > 16 {
        return None;
    }
    let mut packed = 0;
    let mut at = 0;
    while at < word.len() {
        packed = packed << 8 | word[at].to_ascii_uppercase() as u128;
        at += 1;
    }
    Some(packed)
}

/// The slot of [`TABLE`] where a search begins.
const fn hash(packed: u128) -> usize {
    let folded = packed as u64 ^ (packed >> 64) as u64;
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize
}

/// What each keyword packs to.
static PACKED: [u128; Keyword::ALL.len()] = {
    let mut packed = [0; Keyword::ALL.len()];
    let mut at = 0;
    while at < packed.len() {
        packed[at] = pack(Keyword::ALL[at].text().as_bytes()).expect("keywords are short");
        at += 1;
    }
    packed
};

/// Keywords by hash, the next free slot taken where two meet. Mostly empty: few words that are none find one.
static TABLE: [Option<Keyword>; 256] = {
    let mut table = [None; 256];
    let mut at = 0;
    while at < Keyword::ALL.len() {
        let mut slot = hash(pack(Keyword::ALL[at].text().as_bytes()).expect("keywords are short"));
        while table[slot].is_some() {
            slot = (slot + 1) % table.len();
        }
        table[slot] = Some(Keyword::ALL[at]);
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found_in_any_case() {
        for keyword in Keyword::ALL {
            assert_eq!(Keyword::of(keyword.text()), Some(*keyword));
            assert_eq!(Keyword::of(&keyword.text().to_lowercase()), Some(*keyword));
        }
    }

    #[test]
    fn other_words_are_not() {
        for word in ["", "x", "ra", "SELEC", "SELECTS", "dec", "size", "a_very_long_column_name_indeed"] {
            assert_eq!(Keyword::of(word), None, "{word}");
        }
    }
}
