//! What somebody may have meant by a name that does not exist.

/// The candidates that look most like `word`, the nearest first, at most three; equals in their given
/// order. Candidates that share less than half of their letters with it are left out, but
/// for those one letter away.
///
/// # Complexity
///
/// O(c · w · l) for `c` candidates of length `l` and a word of length `w` (cut off at 100 letters).
///
/// ```
/// use planlab_workloads::nearest;
/// assert_eq!(nearest("best-fti", ["first-fit/size", "best-fit", "bump"]), ["best-fit"]);
/// ```
#[must_use]
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Vec<&'c str> {
    const SHOWN: usize = 3;
    let word: Vec<char> = word.chars().take(100).collect();
    let mut scored: Vec<(usize, &str)> = Vec::new();
    for candidate in candidates {
        let letters: Vec<char> = candidate.chars().take(100).collect();
        let distance = distance(&word, &letters);
        if distance <= 1 || 2 * distance <= word.len().max(letters.len()) {
            scored.push((distance, candidate));
        }
    }
    scored.sort_by_key(|&(distance, _)| distance);
    scored.into_iter().take(SHOWN).map(|(_, candidate)| candidate).collect()
}

/// "; did you mean `a`, `b`?", or nothing where nothing is near.
#[must_use]
pub fn did_you_mean(near: &[impl AsRef<str>]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = near.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    format!("; did you mean {}?", quoted.join(", "))
}

/// The number of letters to insert, delete, replace, or swap with a neighbour.
pub(crate) fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        (before, last) = (last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("kitten", "sitting", 3)]
        {
            let letters = |word: &str| word.chars().collect::<Vec<_>>();
            assert_eq!(distance(&letters(a), &letters(b)), expected, "{a} {b}");
        }
    }

    #[test]
    fn what_is_far_away_is_not_suggested() {
        assert!(nearest("zzzz", ["bump", "best-fit"]).is_empty());
        assert_eq!(did_you_mean(&[] as &[&str]), "");
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean `a`, `b`?");
    }
}
