//! "Did you mean": the candidate that a mistyped word is nearest to.
//!
//! Optimal string alignment distance (insertions, deletions, replacements, swaps of neighbours), case ignored, up to
//! a third of the word's length. A candidate costs its length times the word's length at most, and nothing when
//! the lengths alone are too far apart; nothing is allocated.

use crate::limits::SUGGEST_WORD;

/// The candidate nearest to `word`, if one is near enough to be what was meant; the first of equally near ones.
///
/// ```
/// use trifid_archive_adql::suggest::nearest;
/// assert_eq!(nearest("paralax", ["ra", "parallax", "pmra"]), Some("parallax"));
/// assert_eq!(nearest("flux", ["ra", "parallax", "pmra"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = Letters::of(word)?;
    let mut bound = word.tolerance() + 1;
    let mut best = None;
    for candidate in candidates {
        let Some(letters) = Letters::of(candidate) else { continue };
        if letters.len.abs_diff(word.len) >= bound {
            continue;
        }
        let distance = word.distance(&letters);
        if distance < bound {
            (bound, best) = (distance, Some(candidate));
        }
    }
    best
}

/// The letters of a word, in lower case.
struct Letters {
    letters: [char; SUGGEST_WORD],
    len: usize,
}

impl Letters {
    /// `None` if there are too many.
    fn of(word: &str) -> Option<Self> {
        let mut letters = ['\0'; SUGGEST_WORD];
        let mut len = 0;
        for letter in word.chars() {
            *letters.get_mut(len)? = letter.to_ascii_lowercase();
            len += 1;
        }
        Some(Self { letters, len })
    }

    fn as_slice(&self) -> &[char] {
        &self.letters[..self.len]
    }

    /// How many mistakes a word of this length may have: one in three letters, at least one in two letters.
    fn tolerance(&self) -> usize {
        match self.len {
            0 | 1 => 0,
            2..=5 => 1,
            len => len / 3,
        }
    }

    fn distance(&self, other: &Self) -> usize {
        let (a, b) = (self.as_slice(), other.as_slice());
        let mut before = [0; SUGGEST_WORD + 1];
        let mut last: [usize; SUGGEST_WORD + 1] = std::array::from_fn(|at| at);
        let mut row = [0; SUGGEST_WORD + 1];
        for i in 1..=a.len() {
            row[0] = i;
            for j in 1..=b.len() {
                let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
                row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped {
                    row[j] = row[j].min(before[j - 2] + 1);
                }
            }
            (before, last) = (last, row);
        }
        last[b.len()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(word: &str, candidates: &[&str], expected: Option<&str>) {
        assert_eq!(nearest(word, candidates.iter().copied()), expected, "{word} among {candidates:?}");
    }

    #[test]
    fn small_mistakes_are_forgiven() {
        check("SELCT", &["SELECT", "SET"], Some("SELECT"));
        check("form", &["FROM", "FORMAT"], Some("FROM"));
        check("phot_g_mag", &["phot_g_mean_mag", "phot_bp_mean_mag"], None);
        check("phot_g_meen_mag", &["phot_g_mean_mag", "phot_bp_mean_mag"], Some("phot_g_mean_mag"));
        check("rа", &["ra"], Some("ra")); // a Cyrillic letter
    }

    #[test]
    fn the_nearest_wins_and_the_first_of_equals() {
        check("pmra", &["pmdec", "pmRA", "pmr"], Some("pmRA"));
        check("hip2", &["hip1", "hip3"], Some("hip1"));
    }

    #[test]
    fn large_mistakes_are_not() {
        check("x", &["y", "z"], None);
        check("", &["a"], None);
        check("abc", &["xyz", "ab_and_more"], None);
        check("abc", &[], None);
    }

    #[test]
    fn long_words_are_passed_over() {
        let long = "x".repeat(SUGGEST_WORD + 1);
        check(&long, &["x"], None);
        check("x1", &[&long, "x2"], Some("x2"));
    }

    #[test]
    fn the_distance_is_a_count_of_mistakes() {
        let distance = |a, b| Letters::of(a).unwrap().distance(&Letters::of(b).unwrap());
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("abcdef", "badcfe"), 3);
    }
}
