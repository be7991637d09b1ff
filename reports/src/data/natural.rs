//! The order of keys.

use std::cmp::Ordering;

/// Compares keys, with numbers inside them in numeric order: `b8` before `b32`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (l, r) = (left.find(|c: char| c.is_ascii_digit()), right.find(|c: char| c.is_ascii_digit()));
        let ((l_text, l_rest), (r_text, r_rest)) =
            (left.split_at(l.unwrap_or(left.len())), right.split_at(r.unwrap_or(right.len())));
        let (l_number, l_rest) = number(l_rest);
        let (r_number, r_rest) = number(r_rest);
        let order =
            l_text.cmp(r_text).then_with(|| (l_number.len(), l_number).cmp(&(r_number.len(), r_number)));
        if order != Ordering::Equal || (l_rest.is_empty() && r_rest.is_empty()) {
            // Texts that differ only in leading zeros still need an order.
            return order.then_with(|| left.cmp(right)).then_with(|| a.cmp(b));
        }
        (left, right) = (l_rest, r_rest);
    }
}

/// The leading digits without leading zeros, and the remaining text.
fn number(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_keys_sort_as_numbers() {
        let mut keys = ["a/b32", "a/b8", "a/b128/x", "a/b128", "a/b08", "a", "b/n1000/s2", "b/n1000/s10"];
        keys.sort_by(|a, b| natural(a, b));
        assert_eq!(keys, ["a", "a/b08", "a/b8", "a/b32", "a/b128", "a/b128/x", "b/n1000/s2", "b/n1000/s10"]);
    }
}
