//! The parameter `collation` (4.23.3): an ICU collation named by a tag of RFC 6067.
//!
//! A language that has no rules of its own falls back to its parent and at last to the root collation, as
//! ICU does; a tag that is not well formed, or has a collation option that is unknown, is refused.

use std::fmt::Write as _;

use icu_collator::options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength};
use icu_collator::{CollatorBorrowed, CollatorPreferences};
use icu_locale_core::Locale;

use crate::query::error::Error;
use crate::query::limits::MAX_SORT_TEXT;

/// Greatest length of a tag; the longest registered ones are far below.
const MAX_TAG: usize = 128;

/// How texts are ordered.
///
/// 4.23.1 names the ICU root collation as default, and lets a deployment decide; hence the caller chooses
/// between [`Collation::root`] and [`Collation::CodePoint`] when a request names none.
#[derive(Debug)]
pub enum Collation {
    /// By code point.
    CodePoint,
    /// By the rules of a language.
    Language(Box<CollatorBorrowed<'static>>),
}

impl Collation {
    /// The ICU root collation, `und`.
    pub fn root() -> Self {
        Self::parse("und").unwrap_or(Collation::CodePoint)
    }

    /// Reads a tag such as `de-u-co-phonebk`.
    pub fn parse(tag: &str) -> Result<Self, Error> {
        let bad =
            |why: &str| Error::invalid("collation", format!("\"{}\" is not a collation: {why}", clip(tag)));
        if tag.len() > MAX_TAG {
            return Err(bad("too long"));
        }
        let locale = Locale::try_from_str(tag).map_err(|error| bad(&error.to_string()))?;
        let options = options(&locale).map_err(|key| bad(&format!("unknown value of the option {key}")))?;
        let collator = CollatorBorrowed::try_new(CollatorPreferences::from(&locale), options);
        collator.map(|own| Collation::Language(Box::new(own))).map_err(|error| bad(&error.to_string()))
    }

    /// Bytes that compare as the texts do.
    pub(crate) fn key(&self, text: &str) -> Box<[u8]> {
        let text = head(text, MAX_SORT_TEXT);
        match self {
            Collation::CodePoint => text.as_bytes().into(),
            Collation::Language(collator) => {
                let mut key = Vec::with_capacity(text.len() * 2 + 4);
                // The sink is a vector: writing to it cannot fail.
                let _ = collator.write_sort_key_to(text, &mut key);
                key.into()
            }
        }
    }
}

/// The beginning of `text`, at most `limit` bytes, whole characters.
pub(super) fn head(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn clip(tag: &str) -> String {
    let mut out = head(tag, 40).to_owned();
    if out.len() < tag.len() {
        let _ = out.write_str("...");
    }
    out
}

/// The options of RFC 6067 that the locale's preferences do not carry: `ks`, `ka`, `kc`, `kv`. The error is
/// the key whose value is unknown.
fn options(locale: &Locale) -> Result<CollatorOptions, &'static str> {
    let keywords = &locale.extensions.unicode.keywords;
    let value = |key: &str| {
        let key = key.parse().ok()?;
        keywords.get(&key).map(ToString::to_string)
    };
    let mut options = CollatorOptions::default();
    options.strength = value("ks").map(|own| strength(&own).ok_or("ks")).transpose()?;
    options.alternate_handling = value("ka").map(|own| alternate(&own).ok_or("ka")).transpose()?;
    options.case_level = value("kc").map(|own| case_level(&own).ok_or("kc")).transpose()?;
    options.max_variable = value("kv").map(|own| max_variable(&own).ok_or("kv")).transpose()?;
    Ok(options)
}

fn strength(value: &str) -> Option<Strength> {
    Some(match value {
        "level1" | "primary" => Strength::Primary,
        "level2" | "seconda" => Strength::Secondary,
        "level3" | "tertiar" => Strength::Tertiary,
        "level4" | "quarter" | "quatern" => Strength::Quaternary,
        "identic" => Strength::Identical,
        _ => return None,
    })
}

fn alternate(value: &str) -> Option<AlternateHandling> {
    match value {
        "noignore" => Some(AlternateHandling::NonIgnorable),
        "shifted" => Some(AlternateHandling::Shifted),
        _ => None,
    }
}

fn case_level(value: &str) -> Option<CaseLevel> {
    match value {
        "" | "true" => Some(CaseLevel::On),
        "false" => Some(CaseLevel::Off),
        _ => None,
    }
}

fn max_variable(value: &str) -> Option<MaxVariable> {
    match value {
        "space" => Some(MaxVariable::Space),
        "punct" => Some(MaxVariable::Punctuation),
        "symbol" => Some(MaxVariable::Symbol),
        "currency" => Some(MaxVariable::Currency),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(tag: Option<&str>, texts: &[&str]) -> Vec<String> {
        let collation = tag.map_or(Collation::CodePoint, |tag| Collation::parse(tag).unwrap());
        let mut texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        texts.sort_by_key(|text| collation.key(text));
        texts
    }

    #[test]
    fn clause_4_23_3_collations_order_by_language() {
        assert_eq!(sorted(None, &["b", "á", "A"]), ["A", "b", "á"]);
        assert_eq!(sorted(Some("und"), &["b", "á", "A"]), ["A", "á", "b"]);
        assert_eq!(sorted(Some("de-u-co-phonebk"), &["Zebra", "Ähre"]), ["Ähre", "Zebra"]);
        // German phone books file ä as ae, dictionaries as a.
        assert_eq!(sorted(Some("de-u-co-phonebk"), &["Äd", "Ad", "Af"]), ["Ad", "Äd", "Af"]);
        assert_eq!(sorted(Some("sv"), &["ö", "z"]), ["z", "ö"]);
        assert_eq!(sorted(Some("und-u-kn"), &["a10", "a9"]), ["a9", "a10"]);
        assert_eq!(sorted(Some("xx-u-ks-identic"), &["b", "a"]), ["a", "b"]);
        let primary = Collation::parse("und-u-ks-level1").unwrap();
        assert_eq!(primary.key("A"), primary.key("á"));
    }

    #[test]
    fn clause_5_7_2_4_malformed_collations_are_refused() {
        for tag in ["!!nope", "not a bcp47 tag!!", "", "und-u-ks-level9", &"a-".repeat(100)] {
            let error = Collation::parse(tag).unwrap_err().to_string();
            assert!(error.starts_with("collation: \""), "{error}");
            assert!(error.len() < 200, "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_tag_is_answered_and_keys_are_bounded(tag in "[a-z!é-]{0,12}", text in "\\PC{0,40}") {
            let _ = Collation::parse(&tag);
            prop_assert!(Collation::root().key(&text.repeat(100)).len() < MAX_SORT_TEXT * 16);
        }
    }
}
