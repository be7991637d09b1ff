//! Names of anybody as text that people read: letters that hide, move or turn text around are written out.

use std::borrow::Cow;

/// Whether a letter acts on the text around it, or is not seen, or is no letter at all: controls, marks of direction,
/// line separators, format characters, noncharacters. XML forbids some of them, a terminal obeys others.
///
/// ```
/// use planlab_dsa::is_unprintable;
/// assert!(['\u{1b}', '\n', '\u{202e}', '\u{2028}', '\u{feff}', '\u{ffff}'].into_iter().all(is_unprintable));
/// assert!(!['a', 'é', '漢', ' ', '\u{202f}'].into_iter().any(is_unprintable));
/// ```
#[must_use]
pub fn is_unprintable(letter: char) -> bool {
    let is_format = matches!(
        letter,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e007f}'
    );
    let is_noncharacter = letter as u32 & 0xfffe == 0xfffe || matches!(letter, '\u{fdd0}'..='\u{fdef}');
    letter.is_control() || is_format || is_noncharacter
}

/// The text on one line, with every [unprintable](is_unprintable) letter written out as `\u{202e}`.
///
/// ```
/// assert_eq!(planlab_dsa::printable_line("a\u{202e}b\nc"), "a\\u{202e}b\\u{a}c");
/// ```
#[must_use]
pub fn printable_line(text: &str) -> Cow<'_, str> {
    written_out(text, is_unprintable)
}

/// The same of a text of several lines: line feeds and tabs stay.
#[must_use]
pub fn printable_text(text: &str) -> Cow<'_, str> {
    written_out(text, |letter| !matches!(letter, '\n' | '\t') && is_unprintable(letter))
}

fn written_out(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_bad) else { return Cow::Borrowed(text) };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for letter in text[first..].chars() {
        match is_bad(letter) {
            true => shown.extend(letter.escape_unicode()),
            false => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_cannot_see_is_written_out() {
        for (text, shown) in [
            ("plain é 漢\n\tnext", "plain é 漢\n\tnext"),
            ("\x1b[2J\x07", "\\u{1b}[2J\\u{7}"),
            ("over\rwritten\x08", "over\\u{d}written\\u{8}"),
            ("\u{9b}31m \u{7f} \u{202e}cba", "\\u{9b}31m \\u{7f} \\u{202e}cba"),
            ("C:\\u{1b}", "C:\\u{1b}"),
            ("\u{fffe}\u{10ffff}\u{fdd0}", "\\u{fffe}\\u{10ffff}\\u{fdd0}"),
        ] {
            assert_eq!(printable_text(text), shown);
        }
        assert_eq!(printable_line("a\n\tb"), "a\\u{a}\\u{9}b");
        assert!(matches!(printable_line("plain"), Cow::Borrowed("plain")));
    }
}
