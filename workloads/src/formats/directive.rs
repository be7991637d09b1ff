//! Comments that say how a file is read.

use strsim::osa_distance;

use super::error::excerpt;

/// Metadata of the default alignment.
pub(super) const ALIGNMENT_KEY: &str = "alignment";
/// Declares an arena.
pub(super) const ARENA_KEY: &str = "arena";
/// Metadata that asks for ranked steps.
pub(super) const RANK_KEY: &str = "rank-steps";
/// Metadata that says that steps are times, and of which unit.
pub(super) const UNIT_KEY: &str = "step-unit";

/// Units of steps, and their nanoseconds.
const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Each directive with how it is written.
const DIRECTIVES: [(&str, &str); 4] = [
    (ALIGNMENT_KEY, "# alignment: BYTES"),
    (ARENA_KEY, "# arena NAME: BYTES"),
    (RANK_KEY, "# rank-steps: yes"),
    (UNIT_KEY, "# step-unit: ns"),
];

/// Nanoseconds of a step in such a unit.
pub(super) fn nanoseconds(unit: &str) -> Option<u64> {
    UNITS.into_iter().find(|(name, _)| *name == unit).map(|(_, nanoseconds)| nanoseconds)
}

/// The directive that a metadata key is, in capitals or not; an arena's key has its name as well.
pub(super) fn of(key: &str) -> Option<&'static str> {
    let is = |(directive, _): &(&'static str, &str)| {
        let (word, rest) = key.split_at_checked(directive.len())?;
        let named = *directive == ARENA_KEY && rest.starts_with(|letter: char| letter.is_ascii_whitespace());
        (word.eq_ignore_ascii_case(directive) && (rest.is_empty() || named)).then_some(*directive)
    };
    DIRECTIVES.iter().find_map(is)
}

/// A sentence on a comment that is no directive but looks like one: its first word is at most two letters
/// away, and it is a key of its own or a value follows.
pub(super) fn misspelt(line: u64, comment: &str) -> Option<String> {
    let mut words = comment.split(|letter: char| letter.is_ascii_whitespace() || ":=".contains(letter));
    let (directive, usage) = near(words.next()?)?;
    let valued = words.any(|word| {
        let number = word.starts_with(|letter: char| letter.is_ascii_digit());
        number || ["unlimited", "yes"].contains(&word)
    });
    // `arena` is so short that many an honest key is near it.
    let is_key = comment.split_once(':').is_some_and(|(key, _)| !key.trim_ascii().contains(' '));
    (valued || is_key && directive != ARENA_KEY)
        .then(|| format!("line {line}: `# {}` sets nothing; did you mean `{usage}`?", excerpt(comment)))
}

/// The directive at most two letters away from a word, with how it is written.
fn near(word: &str) -> Option<(&'static str, &'static str)> {
    const LONGEST: usize = 16;
    let start: String = word.chars().take(LONGEST).map(|letter| letter.to_ascii_lowercase()).collect();
    DIRECTIVES.into_iter().find(|(directive, _)| osa_distance(&start, directive) <= 2)
}
