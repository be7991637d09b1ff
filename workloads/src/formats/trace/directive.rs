//! Directives: comments that control how a file is read.

use strsim::osa_distance;

use crate::formats::error::quote_excerpt;

/// Sets the default alignment.
pub(crate) const ALIGNMENT_KEY: &str = "alignment";
/// Declares an arena.
pub(crate) const ARENA_KEY: &str = "arena";
/// Requests ranked steps.
pub(crate) const RANK_KEY: &str = "rank-steps";
/// Declares that steps are times in a given unit.
pub(crate) const UNIT_KEY: &str = "step-unit";

/// Units of steps, and their nanoseconds.
const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Each directive with its syntax.
const DIRECTIVES: [(&str, &str); 4] = [
    (ALIGNMENT_KEY, "# alignment: BYTES"),
    (ARENA_KEY, "# arena NAME: BYTES"),
    (RANK_KEY, "# rank-steps: yes"),
    (UNIT_KEY, "# step-unit: ns"),
];

/// Nanoseconds per step of this unit.
pub(crate) fn nanoseconds_per_step(unit: &str) -> Option<u64> {
    UNITS.into_iter().find(|(name, _)| *name == unit).map(|(_, nanoseconds)| nanoseconds)
}

/// The directive of a metadata key, ignoring case; an arena's key also contains its name.
pub(crate) fn find_directive(key: &str) -> Option<&'static str> {
    let is = |(directive, _): &(&'static str, &str)| {
        let (word, rest) = key.split_at_checked(directive.len())?;
        let named = *directive == ARENA_KEY && rest.starts_with(|letter: char| letter.is_ascii_whitespace());
        (word.eq_ignore_ascii_case(directive) && (rest.is_empty() || named)).then_some(*directive)
    };
    DIRECTIVES.iter().find_map(is)
}

/// A notice for a comment that looks like a misspelt directive: its first word differs from one by at most two letters,
/// and it is a key or is followed by a value.
pub(crate) fn misspelling_notice(file: &str, line: u64, comment: &str) -> Option<String> {
    let mut words = comment.split(|letter: char| letter.is_ascii_whitespace() || ":=".contains(letter));
    let (directive, usage) = nearest_directive(words.next()?)?;
    let valued = words.any(|word| {
        let number = word.starts_with(|letter: char| letter.is_ascii_digit());
        number || ["unlimited", "yes"].contains(&word)
    });
    // `arena` is so short that many valid keys resemble it.
    let is_key = comment.split_once(':').is_some_and(|(key, _)| !key.trim_ascii().contains(' '));
    (valued || is_key && directive != ARENA_KEY).then(|| {
        format!("{file}:{line}: `# {}` sets nothing; did you mean `{usage}`?", quote_excerpt(comment))
    })
}

/// The directive within two letters of a word, with its syntax.
fn nearest_directive(word: &str) -> Option<(&'static str, &'static str)> {
    const LONGEST: usize = 16;
    let start: String = word.chars().take(LONGEST).map(|letter| letter.to_ascii_lowercase()).collect();
    DIRECTIVES.into_iter().find(|(directive, _)| osa_distance(&start, directive) <= 2)
}
