//! Globs over keys: `*` stands for any characters, slashes too.

/// Whether `key` is what `glob` describes.
pub(crate) fn matches(glob: &str, key: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = key.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_stand_for_anything() {
        for (glob, key, expected) in [
            ("best-fit", "best-fit", true),
            ("best-fit", "best-fit/reference", false),
            ("best-fit*", "best-fit/reference", true),
            ("*/size", "first-fit/size", true),
            ("chainer/*/train/*", "chainer/alexnet/train/b32", true),
            ("chainer/*/train/*", "chainer/alexnet/infer/b1", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("a*b*c", "aXbYc", true),
        ] {
            assert_eq!(matches(glob, key), expected, "{glob} {key}");
        }
    }
}
