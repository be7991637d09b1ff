//! From lines to fields and numbers.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use super::error::excerpt;
use super::unpacked::{BYTE_ORDER_MARK, Unpacked};
use super::{FormatError, InputLimits};

/// The lines of an input, one in memory at a time. Decompresses where it must, checks the encoding, takes the byte
/// order mark off.
pub(super) struct Lines<'r> {
    file: String,
    input: Unpacked<'r>,
    limits: InputLimits,
    line: Vec<u8>,
    /// Of the line that was read last, from 1.
    number: u64,
    /// Bytes of the input up to the end of that line.
    read: u64,
}

impl<'r> Lines<'r> {
    pub(super) fn new(file: &str, input: impl Read + 'r, limits: InputLimits) -> Result<Self, FormatError> {
        Ok(Self::of(file, Unpacked::new(file, input)?, limits))
    }

    pub(super) fn of(file: &str, input: Unpacked<'r>, limits: InputLimits) -> Self {
        Self { file: file.to_owned(), input, limits, line: Vec::new(), number: 0, read: 0 }
    }

    /// The next line that is not blank, with its number from 1, without its end.
    pub(super) fn next_line(&mut self) -> Result<Option<(u64, &str)>, FormatError> {
        let blank_from = self.read;
        loop {
            self.skip_line_feeds(blank_from)?;
            if !self.fill()? {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let text = std::str::from_utf8(&self.line).map_err(|error| {
            let at = self.read - self.line.len() as u64 + error.valid_up_to() as u64;
            self.error(format!(
                "byte {at} of the file is not valid UTF-8: it is neither text nor a known recording"
            ))
        })?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        Ok(Some((self.number, text.strip_suffix('\r').unwrap_or(text))))
    }

    fn error(&self, reason: impl Into<String>) -> FormatError {
        FormatError::new(&self.file, self.number.max(1), reason)
    }

    /// Passes empty lines by, as many as a line has bytes at most: nobody waits for a billion of them.
    fn skip_line_feeds(&mut self, blank_from: u64) -> Result<(), FormatError> {
        loop {
            let chunk = match self.input.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.error(self.input.reason(&error))),
            };
            let count = chunk.iter().take_while(|&&byte| byte == b'\n').count();
            let all = count == chunk.len() && count > 0;
            self.input.input.consume(count);
            self.number += count as u64;
            self.count(count)?;
            if self.read - blank_from > self.limits.line() {
                return Err(self.over_line("the blank lines here have"));
            }
            if !all {
                return Ok(());
            }
        }
    }

    /// Reads a line with its end; `false` after the last.
    fn fill(&mut self) -> Result<bool, FormatError> {
        self.line.clear();
        self.number += 1;
        let most = self.limits.line().min(self.limits.unpacked() - self.read).saturating_add(1);
        let line = self.input.input.by_ref().take(most).read_until(b'\n', &mut self.line);
        let length = line.map_err(|error| self.error(self.input.reason(&error)))?;
        self.count(length)?;
        if self.number == 1 && self.line.starts_with(BYTE_ORDER_MARK) {
            self.line.drain(..BYTE_ORDER_MARK.len());
        }
        if length as u64 > self.limits.line() && self.line.last() != Some(&b'\n') {
            return Err(self.over_line("the line has"));
        }
        Ok(length > 0)
    }

    fn over_line(&self, what: &str) -> FormatError {
        let most = self.limits.line();
        self.error(format!("{what} more than {most} bytes, the limit of a line (--input-limit raises it)"))
    }

    fn count(&mut self, bytes: usize) -> Result<(), FormatError> {
        self.read += bytes as u64;
        let most = self.limits.unpacked();
        if self.read > most { Err(self.error(self.input.too_long(most))) } else { Ok(()) }
    }
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

/// As [`whole`]; an empty field and -1 give `None`.
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
