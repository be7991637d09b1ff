//! Patterns over keys.

/// Whether a pattern matches a whole text: `*` matches any letters, `/` included, and `?` matches one.
///
/// # Complexity
///
/// O(pattern · text) at worst, O(text) for one star.
///
/// ```
/// use planlab_workloads::matches_glob;
/// assert!(matches_glob("torch*/infer/b1", "torch-cpu/alexnet/infer/b1"));
/// assert!(!matches_glob("torch/*", "onnx/resnet50/infer/b1"));
/// ```
#[must_use]
pub fn matches_glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // The position of the last star, and that in the text after the letters it matches.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&letter) if letter == b'?' || letter == text[t] => (p, t) = (p + 1, t + 1),
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (p, t) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&letter| letter == b'*')
}

/// Whether a pattern contains a wildcard.
pub(crate) fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

#[cfg(test)]
mod tests {
    use super::matches_glob;

    #[test]
    fn stars_take_as_much_as_they_need() {
        for (pattern, text, matches) in [
            ("", "", true),
            ("*", "", true),
            ("a*c", "abcbc", true),
            ("a*c", "abcb", false),
            ("*/n1000/s?", "synthetic/chain/n1000/s0", true),
            ("*/n1000/s?", "synthetic/chain/n10000/s0", false),
            ("a*b*c*", "aXbYc", true),
            ("a?", "a", false),
        ] {
            assert_eq!(matches_glob(pattern, text), matches, "{pattern} {text}");
        }
    }
}
