//! From bytes to lines, fields and numbers.

use std::borrow::Cow;
use std::io::Read;

use super::FormatError;
use super::error::excerpt;

/// What a file may hold once it is decompressed, in bytes; more is taken for a mistake.
const MOST_DECODED: u64 = 8 << 30;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// The text of a file: decompresses where it must, checks the encoding, takes the byte order mark off.
///
/// # Errors
///
/// What is wrong, and on which line.
pub fn decode<'a>(file: &str, bytes: &'a [u8]) -> Result<Cow<'a, str>, FormatError> {
    let bytes = if is_zstd(bytes) {
        Cow::Owned(decompress(file, bytes)?)
    } else if file.ends_with(".zst") {
        return Err(FormatError::new(file, 1, "not a zstd file, or cut short"));
    } else {
        Cow::Borrowed(bytes)
    };
    let bad = |error: std::str::Utf8Error, bytes: &[u8]| {
        let at = error.valid_up_to();
        FormatError::new(file, line_at(bytes, at), format!("byte {at} of the file is not valid UTF-8"))
    };
    match bytes {
        Cow::Borrowed(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|error| bad(error, bytes))?;
            Ok(Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)))
        }
        Cow::Owned(bytes) => {
            let mut text = String::from_utf8(bytes).map_err(|e| bad(e.utf8_error(), e.as_bytes()))?;
            if text.starts_with('\u{feff}') {
                text.drain(..'\u{feff}'.len_utf8());
            }
            Ok(Cow::Owned(text))
        }
    }
}

/// Whether the bytes begin with a zstd frame, be it one to skip (some compressors put their own notes first).
fn is_zstd(bytes: &[u8]) -> bool {
    let skippable = matches!(bytes, [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..]);
    skippable || bytes.starts_with(&ZSTD_MAGIC)
}

fn decompress(file: &str, bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let mut out = Vec::new();
    let read = zstd::Decoder::new(bytes).and_then(|decoder| decoder.take(MOST_DECODED).read_to_end(&mut out));
    let end = |reason: String| Err(FormatError::new(file, line_at(&out, out.len()), reason));
    match read {
        Ok(_) if out.len() as u64 == MOST_DECODED => {
            end(format!("decompressed, the file has {MOST_DECODED} bytes or more"))
        }
        Ok(_) => Ok(out),
        Err(error) => end(format!("the zstd data is damaged or cut short: {error}")),
    }
}

fn line_at(bytes: &[u8], at: usize) -> u64 {
    1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// The lines with their numbers from 1, without line ends; blank ones are left out.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    (1..).zip(text.split('\n')).filter_map(|(number, line)| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        (!line.trim_ascii().is_empty()).then_some((number, line))
    })
}

/// What follows the `#` of a comment line.
pub(super) fn comment(line: &str) -> Option<&str> {
    line.trim_ascii_start().strip_prefix('#').map(str::trim_ascii)
}

/// Splits a line at its commas into `fields`, at most `most + 1` of them. Spaces around a field do not
/// count; a field in double quotes may hold commas, spaces and doubled quotes.
pub(super) fn split<'a>(line: &'a str, most: usize, fields: &mut Vec<Cow<'a, str>>) -> Result<(), String> {
    fields.clear();
    if !line.contains('"') {
        fields.extend(line.split(',').take(most + 1).map(|field| Cow::Borrowed(field.trim_ascii())));
        return Ok(());
    }
    let mut rest = line;
    while fields.len() <= most {
        let (field, after) = next_field(rest)?;
        fields.push(field);
        match after {
            Some(after) => rest = after,
            None => break,
        }
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
            None => Err(format!("`{}` follows a closing quote", excerpt(after))),
        };
    }
}

/// A whole number from 0 to 2^64 - 1.
pub(super) fn whole(what: &str, field: &str) -> Result<u64, String> {
    if let Ok(number) = field.parse::<u64>()
        && !field.starts_with('+')
    {
        return Ok(number);
    }
    let digits = field.strip_prefix('-').unwrap_or(field);
    let numeric = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let shown = excerpt(field);
    Err(match (field.is_empty(), numeric, field.starts_with('-')) {
        (true, ..) => format!("{what} is empty"),
        (_, true, true) => format!("{what} {shown} is negative"),
        (_, true, false) => format!("{what} {shown} does not fit 64 bits"),
        (_, false, _) => format!("{what} `{shown}` is not a whole number"),
    })
}

/// As [`whole`]; an empty field and -1 say that there is none.
pub(super) fn maybe(what: &str, field: &str) -> Result<Option<u64>, String> {
    if field.is_empty() || field == "-1" { Ok(None) } else { whole(what, field).map(Some) }
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

    #[test]
    fn numbers_say_what_is_wrong_with_them() {
        for (field, reason) in [
            ("", "size is empty"),
            ("-5", "size -5 is negative"),
            ("18446744073709551616", "size 18446744073709551616 does not fit 64 bits"),
            ("NaN", "size `NaN` is not a whole number"),
            ("+3", "size `+3` is not a whole number"),
            ("1.5", "size `1.5` is not a whole number"),
        ] {
            assert_eq!(whole("size", field), Err(reason.to_owned()));
        }
        assert_eq!(whole("size", "18446744073709551615"), Ok(u64::MAX));
        assert_eq!(maybe("hint", "-1"), Ok(None));
    }
}
