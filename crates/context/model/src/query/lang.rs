//! The language filter (4.15): ranges of RFC 5646 tags with the weights of RFC 3282.

use super::error::{Error, Reason};
use super::limits::MAX_LANGUAGES;
use super::scan::Scanner;

/// What a client would like to read, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct LanguagePreferences {
    /// Lower-case ranges; `*` stands for any language.
    wanted: Vec<Box<str>>,
    /// Ranges of weight zero.
    unwanted: Vec<Box<str>>,
}

/// Reads the parameter `lang`. Never panics; an entry point for fuzzing.
pub fn parse(text: &str) -> Result<LanguagePreferences, Error> {
    let mut scan = Scanner::new("lang", text)?;
    let mut ranges: Vec<(Box<str>, u16)> = Vec::new();
    loop {
        if ranges.len() == MAX_LANGUAGES {
            return Err(scan.fail(Reason::TooMany("languages", MAX_LANGUAGES)));
        }
        ranges.push(weighted(&mut scan)?);
        if scan.at_end() {
            break;
        }
        scan.expect(",", "\",\", \";q=\" or the end")?;
    }
    // The sort is stable: ranges of one weight keep the order in which they were named.
    ranges.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let (wanted, unwanted): (Vec<_>, Vec<_>) = ranges.into_iter().partition(|(_, weight)| *weight > 0);
    let names = |ranges: Vec<(Box<str>, u16)>| ranges.into_iter().map(|(range, _)| range).collect();
    Ok(LanguagePreferences { wanted: names(wanted), unwanted: names(unwanted) })
}

fn weighted(scan: &mut Scanner<'_>) -> Result<(Box<str>, u16), Error> {
    scan.skip_spaces();
    let range = range(scan)?;
    scan.skip_spaces();
    let mut weight = 1000;
    if scan.eat(";") {
        scan.skip_spaces();
        scan.expect("q=", "\"q=\"")?;
        let mark = scan.mark();
        let text = scan.take_while(|c| c.is_ascii_digit() || c == '.');
        let bad = || Reason::Expected("a weight from 0 to 1 with at most three digits".into());
        weight = weight_of(text).ok_or_else(|| scan.fail_at(mark, bad()))?;
        scan.skip_spaces();
    }
    Ok((range, weight))
}

/// `language-range` of RFC 3282: `*`, or subtags of one to eight letters and digits.
fn range(scan: &mut Scanner<'_>) -> Result<Box<str>, Error> {
    if scan.eat("*") {
        return Ok("*".into());
    }
    let mark = scan.mark();
    let text = scan.take_while(|c| c.is_ascii_alphanumeric() || c == '-');
    let subtag = |subtag: &str| (1..=8).contains(&subtag.len());
    if text.split('-').all(subtag) && text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Ok(text.to_ascii_lowercase().into())
    } else {
        Err(scan.fail_at(mark, Reason::Expected("a language tag or \"*\"".into())))
    }
}

/// `qvalue` in thousandths.
fn weight_of(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !matches!(whole, "0" | "1") || fraction.len() > 3 {
        return None;
    }
    let digits = format!("{whole}{fraction:0<3}").parse().ok()?;
    (digits <= 1000).then_some(digits)
}

impl LanguagePreferences {
    /// The key of a language map to show, of `keys` in their order.
    ///
    /// For each range, best first: the tag itself, the tag that the range shortens to (RFC 4647 section
    /// 3.4), a tag that the range begins. When no range fits: `@none` if the map has it (5.7.2.5), else the
    /// first tag. Tags that were given weight zero come last.
    #[expect(clippy::needless_pass_by_value, reason = "iterators are handed over, as everywhere")]
    pub fn choose<'k>(&self, keys: impl Iterator<Item = &'k str> + Clone) -> Option<&'k str> {
        let allowed = keys.clone().filter(|key| !self.is_unwanted(key));
        let mut fitting = self.wanted.iter().filter_map(|range| choose_for(range, &allowed));
        let none = || keys.clone().find(|key| *key == "@none");
        fitting.next().or_else(none).or_else(|| allowed.clone().next()).or_else(|| keys.clone().next())
    }

    fn is_unwanted(&self, key: &str) -> bool {
        self.unwanted.iter().any(|range| begins(range, key))
    }
}

fn choose_for<'k>(range: &str, keys: &(impl Iterator<Item = &'k str> + Clone)) -> Option<&'k str> {
    if range == "*" {
        return keys.clone().find(|key| *key == "@none").or_else(|| keys.clone().next());
    }
    let exact = |range: &str| keys.clone().find(|key| key.eq_ignore_ascii_case(range));
    shortened(range).find_map(exact).or_else(|| keys.clone().find(|key| begins(range, key)))
}

/// The range, then each shorter form; a single letter or digit goes together with what follows it.
fn shortened(range: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(range), |range| {
        let (head, _) = range.rsplit_once('-')?;
        match head.rsplit_once('-') {
            Some((before, single)) if single.len() == 1 => Some(before),
            _ => Some(head),
        }
    })
}

/// True when the tag `key` is the range or continues it.
fn begins(range: &str, key: &str) -> bool {
    let Some(head) = key.get(..range.len()) else { return false };
    head.eq_ignore_ascii_case(range) && matches!(key.as_bytes().get(range.len()), None | Some(b'-'))
}

impl std::fmt::Display for LanguagePreferences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ranges = self
            .wanted
            .iter()
            .map(|range| (range, ""))
            .chain(self.unwanted.iter().map(|range| (range, ";q=0")));
        for (n, (range, weight)) in ranges.enumerate() {
            write!(f, "{}{range}{weight}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn clause_4_15_the_best_language_is_chosen() {
        for (lang, keys, chosen) in [
            ("en", vec!["fr", "en"], Some("en")),
            ("fr-CH,fr", vec!["nl", "fr"], Some("fr")),
            ("fr-CH,fr;q=0.9,en;q=0.8,*;q=0.5", vec!["en", "fr"], Some("fr")),
            ("fr;q=0.2,nl;q=0.9", vec!["fr", "nl"], Some("nl")),
            ("FR", vec!["nl", "fr"], Some("fr")),
            ("nl-BE", vec!["fr", "nl"], Some("nl")),
            ("en", vec!["de", "en-US"], Some("en-US")),
            ("zh-Hant-CN-x-private1", vec!["zh-Hant", "zh"], Some("zh-Hant")),
            ("*", vec!["fr", "nl"], Some("fr")),
            ("*", vec!["fr", "@none"], Some("@none")),
            ("pt", vec!["fr", "nl"], Some("fr")),
            ("pt", vec!["fr", "@none"], Some("@none")),
            ("fr;q=0,*", vec!["fr", "nl"], Some("nl")),
            ("fr;q=0", vec!["fr"], Some("fr")),
            ("en", vec!["enx"], Some("enx")),
            ("en", vec![], None),
        ] {
            assert_eq!(parse(lang).unwrap().choose(keys.iter().copied()), chosen, "{lang} {keys:?}");
        }
    }

    #[test]
    fn rfc_3282_refusals_name_the_place() {
        for (text, error) in [
            ("", "lang: expected a language tag or \"*\" at character 1"),
            ("en,,fr", "lang: expected a language tag or \"*\" at character 4"),
            ("en;q=2", "lang: expected a weight from 0 to 1 with at most three digits at character 6"),
            ("en;x=1", "lang: expected \"q=\" at character 4"),
            ("en fr", "lang: expected \",\", \";q=\" or the end at character 4"),
            ("verylongtag", "lang: expected a language tag or \"*\" at character 1"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), error);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered_and_the_choice_is_a_key(
            text in "[a-c*;q=01.,é -]{0,16}",
            keys in prop::collection::vec("[a-cé]{1,3}(-[a-c]{1,2})?", 0..4),
        ) {
            if let Ok(preferences) = parse(&text) {
                let chosen = preferences.choose(keys.iter().map(String::as_str));
                prop_assert_eq!(chosen.is_none(), keys.is_empty());
                prop_assert_eq!(parse(&preferences.to_string()), Ok(preferences));
            }
        }
    }
}
