//! Which ADQL a query is written in.

/// A version of ADQL, as the parameter LANG of TAP names it (TAP 1.1 2.7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// ADQL 2.0. One grammar serves both: what 2.0 allows means the same here, and everything of 2.1 is understood
    /// all the same. Only the word OFFSET, which 2.1 took, is still a name wherever it can be one.
    V2_0,
    /// ADQL 2.1.
    #[default]
    V2_1,
}

impl Language {
    /// What LANG asks for: `ADQL`, `ADQL-2.0`, `ADQL-2.1`. Case does not count, although it should (DALI 1.1 3.1):
    /// clients send all of them.
    pub fn named(lang: &str) -> Option<Self> {
        if lang.eq_ignore_ascii_case("ADQL") || lang.eq_ignore_ascii_case("ADQL-2.1") {
            Some(Self::V2_1)
        } else if lang.eq_ignore_ascii_case("ADQL-2.0") {
            Some(Self::V2_0)
        } else {
            None
        }
    }

    /// The version number.
    pub const fn version(self) -> &'static str {
        match self {
            Self::V2_0 => "2.0",
            Self::V2_1 => "2.1",
        }
    }
}
