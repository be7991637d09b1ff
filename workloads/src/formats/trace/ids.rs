//! Ids in a list of ids, which spaces separate.

use std::fmt::Write;

/// Writes an id for a list of ids, which spaces separate.
pub(crate) fn escape(id: &str) -> String {
    if !id.contains(|letter: char| letter == '%' || letter.is_ascii_whitespace()) {
        return id.to_owned();
    }
    let mut escaped = String::with_capacity(id.len() + 8);
    for letter in id.chars() {
        match letter {
            '%' => escaped.push_str("%25"),
            letter if letter.is_ascii_whitespace() => {
                let _ = write!(escaped, "%{:02x}", u32::from(letter));
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The id of an entry in a list of ids.
pub(crate) fn unescape(id: &str) -> String {
    let mut plain = String::with_capacity(id.len());
    let mut parts = id.split('%');
    plain.push_str(parts.next().unwrap_or(""));
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => {
                plain.push(char::from(code));
                plain.push_str(&part[2..]);
            }
            None => {
                plain.push('%');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_from_lists() {
        for id in ["plain", "two words", "100%", "%20", "a\tb", "ä %"] {
            assert!(!escape(id).contains(' '), "{id}");
            assert_eq!(unescape(&escape(id)), id);
        }
    }
}
