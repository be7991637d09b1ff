//! Suggests similar names for one that does not exist.

use strsim::osa_distance;

/// At most three candidates that resemble `word` most, nearest first; equals in their given order. Candidates that
/// share less than half of their letters with it are left out, except those one letter away.
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
    let word = beginning(word);
    let mut scored: Vec<(usize, &str)> = Vec::new();
    for candidate in candidates {
        let start = beginning(candidate);
        let distance = osa_distance(word, start);
        if distance <= 1 || 2 * distance <= word.chars().count().max(start.chars().count()) {
            scored.push((distance, candidate));
        }
    }
    scored.sort_by_key(|&(distance, _)| distance);
    scored.into_iter().take(SHOWN).map(|(_, candidate)| candidate).collect()
}

/// The first 100 letters.
fn beginning(word: &str) -> &str {
    word.char_indices().nth(100).map_or(word, |(end, _)| &word[..end])
}

/// "; did you mean `a`, `b`?", or an empty string without candidates.
#[must_use]
pub fn did_you_mean(near: &[impl AsRef<str>]) -> String {
    if near.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = near.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    format!("; did you mean {}?", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swapped_letters_are_one_step() {
        assert_eq!(nearest("bmup", ["pump", "bump", "b"]), ["bump", "pump"]);
    }

    #[test]
    fn what_is_far_away_is_not_suggested() {
        assert!(nearest("zzzz", ["bump", "best-fit"]).is_empty());
        assert_eq!(did_you_mean(&[] as &[&str]), "");
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean `a`, `b`?");
    }
}
