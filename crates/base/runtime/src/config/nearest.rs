//! The known name that a mistyped one most resembles.

/// The candidate with the least edit distance to `name`; the first of equals, and an empty text if there is none.
///
/// A name given without its section is compared with the last part of each candidate too, at the price of one
/// edit, so that `listen` leads to `http.listen` and not to some short word.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> &'a str {
    let cost = |candidate: &str| {
        let last = candidate.rsplit('.').next().unwrap_or(candidate);
        distance(name, candidate).min(1 + distance(name, last))
    };
    candidates.min_by_key(|candidate| cost(candidate)).unwrap_or("")
}

/// Insertions, deletions, substitutions and swaps of neighbours that lead from one text to the other
/// (optimal string alignment). Names are short: the whole table is kept, in rows.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for (i, letter) in from.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other) in to.iter().enumerate() {
            let substituted = rows[i][j] + usize::from(letter != other);
            let mut least = substituted.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == to[j - 1] && from[i - 1] == *other {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let table = [
            ("", "", 0),
            ("a", "", 1),
            ("listen", "lisetn", 1),
            ("store", "stroe", 1),
            ("kitten", "sitting", 3),
        ];
        for (from, to, edits) in table {
            assert_eq!(distance(from, to), edits, "{from} {to}");
            assert_eq!(distance(to, from), edits, "{to} {from}");
        }
    }

    #[test]
    fn the_nearest_name() {
        let known = ["data_dir", "doors", "http.listen", "context.store", "context.sweep_interval"];
        let table = [
            ("http.lsiten", "http.listen"),
            ("listen", "http.listen"),
            ("datadir", "data_dir"),
            ("context.stor", "context.store"),
        ];
        for (name, expected) in table {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
    }
}
