//! From bytes to lines, fields and numbers.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use super::error::excerpt;
use super::{FormatError, InputLimits, import};

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Read at a time, in bytes.
const CHUNK: usize = 256 << 10;
/// The start of a file by which its format is recognised, in bytes.
const START: usize = 64 << 10;

/// The bytes of an input: decompressed where they must be.
pub(super) struct Unpacked<'r> {
    input: Box<dyn BufRead + 'r>,
    is_packed: bool,
    /// The first bytes of `input`, once somebody has looked at them.
    start: Option<Vec<u8>>,
}

impl<'r> Unpacked<'r> {
    pub(super) fn new(file: &str, mut input: impl Read + 'r) -> Result<Self, FormatError> {
        let bad = |error: io::Error| FormatError::new(file, 1, format!("cannot be read: {error}"));
        let mut start = Vec::with_capacity(ZSTD_MAGIC.len());
        input.by_ref().take(ZSTD_MAGIC.len() as u64).read_to_end(&mut start).map_err(bad)?;
        let is_packed = is_zstd(&start);
        if !is_packed && file.ends_with(".zst") {
            return Err(FormatError::new(file, 1, "not a zstd file, or cut short"));
        }
        let whole = Cursor::new(start).chain(input);
        let input: Box<dyn BufRead + 'r> = if is_packed {
            Box::new(BufReader::with_capacity(CHUNK, zstd::Decoder::new(whole).map_err(bad)?))
        } else {
            Box::new(BufReader::with_capacity(CHUNK, whole))
        };
        Ok(Self { input, is_packed, start: None })
    }

    /// The first 64 KiB of it, or all of it. They are read again afterwards.
    pub(super) fn start(&mut self) -> &[u8] {
        if self.start.is_none() {
            let mut start = Vec::new();
            // What cannot be read is reported where it is read again.
            let failed = self.input.by_ref().take(START as u64).read_to_end(&mut start).err();
            let rest = std::mem::replace(&mut self.input, Box::new(io::empty()));
            let again = Cursor::new(start.clone());
            self.input = match failed {
                Some(error) => Box::new(BufReader::new(again.chain(Failing(Some(error))))),
                None => Box::new(again.chain(rest)),
            };
            self.start = Some(start);
        }
        self.start.as_deref().unwrap_or_default()
    }

    /// Whether the first thing in it is a JSON object.
    pub(super) fn is_json(&mut self) -> bool {
        let start = self.start();
        start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start).trim_ascii_start().starts_with(b"{")
    }

    /// All of it, held in memory as a whole, if it has no more bytes than these.
    pub(super) fn bytes(mut self, file: &str, most: u64) -> Result<Vec<u8>, FormatError> {
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(most.saturating_add(1)).read_to_end(&mut bytes);
        let end = |bytes: &[u8], reason: String| FormatError::at_byte(file, bytes.len() as u64, reason);
        match read {
            Err(error) => Err(end(&bytes, self.reason(&error))),
            Ok(_) if bytes.len() as u64 > most => Err(end(&bytes, self.too_long(most))),
            Ok(_) => Ok(bytes),
        }
    }

    /// Its bytes one after the other, and an error after `most` of them.
    pub(super) fn limited(self, most: u64) -> Limited<'r> {
        Limited { unpacked: self, left: most, most }
    }

    /// All of it as text, which is held in memory as a whole.
    pub(super) fn document(self, file: &str, limits: InputLimits) -> Result<String, FormatError> {
        self.text(file, limits.document().min(limits.unpacked()))
    }

    /// The same, of no more bytes than these.
    pub(super) fn text(mut self, file: &str, most: u64) -> Result<String, FormatError> {
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(most.saturating_add(1)).read_to_end(&mut bytes);
        let end = |bytes: &[u8], reason: String| FormatError::new(file, line_at(bytes, bytes.len()), reason);
        if let Err(error) = read {
            return Err(end(&bytes, self.reason(&error)));
        }
        if bytes.len() as u64 > most {
            return Err(end(&bytes, self.too_long(most)));
        }
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = line_at(error.as_bytes(), at);
            FormatError::new(file, line, format!("byte {at} of the file is not valid UTF-8"))
        })
    }

    /// What an error of reading means.
    fn reason(&self, error: &io::Error) -> String {
        reason(self.is_packed, error)
    }

    /// That the input is longer than it may be.
    fn too_long(&self, most: u64) -> String {
        let unpacked = if self.is_packed { " unpacked" } else { "" };
        format!(
            "the file has more than {most} bytes{unpacked}, the limit of an input (--input-limit raises it)"
        )
    }
}

/// Fails once, and is at its end then.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// An input that fails where it is longer than it may be.
pub(super) struct Limited<'r> {
    unpacked: Unpacked<'r>,
    left: u64,
    most: u64,
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Limited<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let Self { unpacked, left, most } = self;
        if *left == 0 && !unpacked.input.fill_buf()?.is_empty() {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, unpacked.too_long(*most)));
        }
        let is_packed = unpacked.is_packed;
        let chunk = unpacked.input.fill_buf().map_err(|error| told(is_packed, &error))?;
        let most = usize::try_from(*left).unwrap_or(usize::MAX);
        Ok(&chunk[..chunk.len().min(most)])
    }

    fn consume(&mut self, count: usize) {
        self.left -= count as u64;
        self.unpacked.input.consume(count);
    }
}

/// An error of reading in words for people.
fn told(is_packed: bool, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), reason(is_packed, error))
}

fn reason(is_packed: bool, error: &io::Error) -> String {
    match is_packed {
        true => format!("the zstd data is damaged or cut short: {error}"),
        false => format!("cannot be read: {error}"),
    }
}

/// Whether the bytes begin with a zstd frame, or with one to skip (some compressors put their own notes first).
fn is_zstd(bytes: &[u8]) -> bool {
    let skippable = matches!(bytes, [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..]);
    skippable || bytes.starts_with(&ZSTD_MAGIC)
}

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
            self.error(format!("byte {at} of the file is not valid UTF-8"))
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

/// Reads to the end, and keeps nothing: says whether an input is a file of another tool, or text, within the limits.
///
/// # Errors
///
/// The first thing that is wrong, with its line: a limit, the encoding, the compression.
pub fn check_input(file: &str, input: impl Read, limits: InputLimits) -> Result<(), FormatError> {
    let mut unpacked = Unpacked::new(file, input)?;
    if import::recognise(file, unpacked.start()).is_some() {
        let read = io::copy(&mut unpacked.limited(limits.unpacked()), &mut io::sink());
        return read.map(drop).map_err(|error| FormatError::new(file, 1, error.to_string()));
    }
    let mut lines = Lines::of(file, unpacked, limits);
    while lines.next_line()?.is_some() {}
    Ok(())
}

/// The bytes of a file that is held in memory as a whole: decompressed where it must be.
///
/// # Errors
///
/// If it cannot be read, or is longer than an input may be.
pub fn read_bytes(file: &str, input: impl Read, limits: InputLimits) -> Result<Vec<u8>, FormatError> {
    Unpacked::new(file, input)?.bytes(file, limits.unpacked())
}

/// The text of a document (JSON, TOML), which is held in memory as a whole: decompressed where it must be, without a
/// byte order mark.
///
/// # Errors
///
/// What is wrong, and on which line: a limit, the encoding, the compression.
pub fn read_document(file: &str, input: impl Read, limits: InputLimits) -> Result<String, FormatError> {
    Unpacked::new(file, input)?.document(file, limits)
}

fn line_at(bytes: &[u8], at: usize) -> u64 {
    1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count() as u64
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
