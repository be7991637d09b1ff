//! The cells of a line of CSV.

use std::borrow::Cow;

use planlab_dsa::Alignment;

use crate::formats::error::quote_excerpt;
use crate::formats::input::numbers::positive;

/// What follows the `#` of a comment line.
pub(crate) fn comment(line: &str) -> Option<&str> {
    line.trim_ascii_start().strip_prefix('#').map(str::trim_ascii)
}

/// Splits a line at its commas into `fields`, at most `most + 1` of them. Spaces around a field do not
/// count; a field in double quotes may hold commas, spaces and doubled quotes.
pub(crate) fn split<'a>(line: &'a str, most: usize, fields: &mut Vec<Cow<'a, str>>) -> Result<(), String> {
    fields.clear();
    if !line.contains('"') {
        fields.extend(line.split(',').take(most + 1).map(|field| Cow::Borrowed(field.trim_ascii())));
        return Ok(());
    }
    let mut rest = line;
    while fields.len() <= most {
        let (field, after) = next_field(rest)?;
        fields.push(field);
        let Some(after) = after else { break };
        rest = after;
    }
    Ok(())
}

fn next_field(rest: &str) -> Result<(Cow<'_, str>, Option<&str>), String> {
    let Some(quoted) = rest.trim_ascii_start().strip_prefix('"') else {
        return Ok(match rest.split_once(',') {
            Some((field, after)) => (Cow::Borrowed(field.trim_ascii()), Some(after)),
            None => (Cow::Borrowed(rest.trim_ascii()), None),
        });
    };
    let mut from = 0;
    loop {
        let close = from + quoted[from..].find('"').ok_or("a double quote is never closed")?;
        if quoted[close + 1..].starts_with('"') {
            from = close + 2;
            continue;
        }
        let field = match &quoted[..close] {
            plain if plain.contains('"') => Cow::Owned(plain.replace("\"\"", "\"")),
            plain => Cow::Borrowed(plain),
        };
        let after = quoted[close + 1..].trim_ascii_start();
        return match after.strip_prefix(',') {
            Some(after) => Ok((field, Some(after))),
            None if after.is_empty() => Ok((field, None)),
            None => Err(format!("`{}` follows a closing quote", quote_excerpt(after))),
        };
    }
}

/// The alignment of a cell, if it has one.
pub(crate) fn alignment(cell: &str) -> Result<Option<Alignment>, String> {
    match cell {
        "" => Ok(None),
        bytes => Ok(Alignment::new(positive("alignment", bytes)?)),
    }
}

/// The text, unless it is empty.
pub(crate) fn some(field: &str) -> Option<String> {
    (!field.is_empty()).then(|| field.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_split_at_commas_outside_quotes() {
        let cases: [(&str, &[&str]); 6] = [
            ("a,b,,c", &["a", "b", "", "c"]),
            (" a , b\t", &["a", "b"]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("x, \"say \"\"hi\"\"\" ,", &["x", "say \"hi\"", ""]),
            ("\"\",\" \"", &["", " "]),
            ("a\"b,c", &["a\"b", "c"]),
        ];
        for (line, expected) in cases {
            let mut fields = Vec::new();
            split(line, 10, &mut fields).expect(line);
            assert_eq!(fields, expected, "{line}");
        }
        let mut fields = Vec::new();
        assert!(split("\"a,b", 10, &mut fields).is_err());
        assert!(split("\"a\"b,c", 10, &mut fields).is_err());
    }
}
