//! Parts of a page that the browser draws or sorts.

pub(crate) mod grid;
pub(crate) mod timeline;
pub(crate) mod viewer;

use maud::{Markup, PreEscaped};
use planlab_dsa::is_unprintable;
use serde_json::Value as Json;

/// Data as JSON inside of a script. Text in it cannot end the script; unprintable letters are written out, so that the
/// script shows them as the rest of the page does.
pub(crate) fn script_data(data: &Json) -> Markup {
    let data = data.to_string();
    let mut safe = String::with_capacity(data.len());
    for letter in data.chars() {
        match letter {
            '<' => safe.push_str("\\u003c"),
            // Its backslash is a letter of the text.
            letter if is_unprintable(letter) => {
                safe.extend(std::iter::once('\\').chain(letter.escape_unicode()));
            }
            letter => safe.push(letter),
        }
    }
    PreEscaped(safe)
}
