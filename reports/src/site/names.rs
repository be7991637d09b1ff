//! Makes names of files.

use std::collections::BTreeSet;

use planlab_dsa::Digest;

/// A name for files: lower-case letters, digits, dots and dashes.
pub(crate) fn file_slug(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '/' => name.push('.'),
            letter if letter.is_ascii_alphanumeric() || letter == '.' || letter == '_' => {
                name.push(letter.to_ascii_lowercase());
            }
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    // File systems reject long names; a digest keeps shortened ones distinct.
    if name.len() > 120 {
        name.truncate(100);
        name = format!("{name}-{}", Digest::of_bytes(text.as_bytes()).short_text());
    }
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { "x".to_owned() } else { name.to_owned() }
}

/// Makes names unique by appending a number to repeated ones.
pub(crate) fn make_unique(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let free = |name: String| {
        let mut candidate = name.clone();
        let mut number = 2;
        while !taken.insert(candidate.clone()) {
            candidate = format!("{name}-{number}");
            number += 1;
        }
        candidate
    };
    names.map(free).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_safe_and_differ() {
        let names = ["a/b", "a.b", "../x", "A b <c>", "", "ä"].map(file_slug);
        assert_eq!(names, ["a.b", "a.b", "x", "a-b-c", "x", "x"]);
        assert_eq!(make_unique(names.into_iter()), ["a.b", "a.b-2", "x", "a-b-c", "x-2", "x-3"]);
        assert!(file_slug(&"long/".repeat(100)).len() < 120);
    }
}
