//! From a file to its bytes: decompressed where they must be, within the limits of an input.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use super::packing::{CHUNK, Packing};
use crate::formats::{FormatError, InputLimits};

/// The mark that some programs put in front of UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// The start of a file by which its format is recognised, in bytes.
const START: usize = 64 << 10;

/// The bytes of an input: decompressed where they must be.
pub(crate) struct Unpacked<'r> {
    pub(crate) input: Box<dyn BufRead + 'r>,
    packing: Option<Packing>,
    /// The first bytes of `input`, once somebody has looked at them.
    start: Option<Vec<u8>>,
}

impl<'r> Unpacked<'r> {
    pub(crate) fn new(file: &str, mut input: impl Read + 'r) -> Result<Self, FormatError> {
        let bad = |error: io::Error| FormatError::new(file, 1, format!("cannot be read: {error}"));
        let mut start = Vec::with_capacity(Packing::MARK);
        input.by_ref().take(Packing::MARK as u64).read_to_end(&mut start).map_err(bad)?;
        let packing = Packing::from_start(&start);
        if let (None, Some(promised)) = (packing, Packing::promised_by_name(file)) {
            return Err(FormatError::at_byte(file, 0, format!("not a {promised} file, or cut short")));
        }
        let whole = Cursor::new(start).chain(input);
        let input: Box<dyn BufRead + 'r> = match packing {
            Some(packing) => packing.unpack(whole).map_err(bad)?,
            None => Box::new(BufReader::with_capacity(CHUNK, whole)),
        };
        Ok(Self { input, packing, start: None })
    }

    /// What is not compressed and in memory already.
    pub(crate) fn plain(input: &'r [u8]) -> Self {
        Self { input: Box::new(input), packing: None, start: None }
    }

    /// The first 64 KiB of it, or all of it. They are read again afterwards.
    pub(crate) fn peek_start(&mut self) -> &[u8] {
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
    pub(crate) fn is_json(&mut self) -> bool {
        let start = self.peek_start();
        start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start).trim_ascii_start().starts_with(b"{")
    }

    /// All of it, held in memory as a whole, if it has no more bytes than these.
    pub(crate) fn read_bytes(self, file: &str, most: u64) -> Result<Vec<u8>, FormatError> {
        self.whole(most).map_err(|(bytes, reason)| FormatError::at_byte(file, bytes.len() as u64, reason))
    }

    /// All of it, or what was read of it and why there is no more.
    fn whole(mut self, most: u64) -> Result<Vec<u8>, (Vec<u8>, String)> {
        let mut bytes = Vec::new();
        match self.input.by_ref().take(most.saturating_add(1)).read_to_end(&mut bytes) {
            Err(error) => Err((bytes, self.error_reason(&error))),
            Ok(_) if bytes.len() as u64 > most => Err((bytes, self.too_long(most))),
            Ok(_) => Ok(bytes),
        }
    }

    /// Its bytes one after the other, and an error after `most` of them.
    pub(crate) fn into_limited(self, most: u64) -> Limited<'r> {
        Limited { unpacked: self, left: most, most }
    }

    /// All of it as text, which is held in memory as a whole.
    pub(crate) fn read_document(self, file: &str, limits: InputLimits) -> Result<String, FormatError> {
        self.read_text(file, limits.document_bytes().min(limits.unpacked_bytes()))
    }

    /// The same, of no more bytes than these.
    pub(crate) fn read_text(self, file: &str, most: u64) -> Result<String, FormatError> {
        let whole = self.whole(most);
        let mut bytes =
            whole.map_err(|(bytes, reason)| FormatError::new(file, line_at(&bytes, bytes.len()), reason))?;
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
    pub(crate) fn error_reason(&self, error: &io::Error) -> String {
        packing_reason(self.packing, error)
    }

    /// That the input is longer than it may be.
    pub(crate) fn too_long(&self, most: u64) -> String {
        let unpacked = if self.packing.is_some() { " unpacked" } else { "" };
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
pub(crate) struct Limited<'r> {
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
        let packing = unpacked.packing;
        let in_words = |error: io::Error| io::Error::new(error.kind(), packing_reason(packing, &error));
        let chunk = unpacked.input.fill_buf().map_err(in_words)?;
        let most = usize::try_from(*left).unwrap_or(usize::MAX);
        Ok(&chunk[..chunk.len().min(most)])
    }

    fn consume(&mut self, count: usize) {
        self.left -= count as u64;
        self.unpacked.input.consume(count);
    }
}

/// An error of reading in words for people.
fn packing_reason(packing: Option<Packing>, error: &io::Error) -> String {
    match packing {
        Some(packing) => format!("the {packing} data is damaged or cut short: {error}"),
        None => format!("cannot be read: {error}"),
    }
}

/// The bytes of a file that is held in memory as a whole: decompressed where it must be.
///
/// # Errors
///
/// If it cannot be read, or is longer than an input may be.
pub fn read_bytes(file: &str, input: impl Read, limits: InputLimits) -> Result<Vec<u8>, FormatError> {
    Unpacked::new(file, input)?.read_bytes(file, limits.unpacked_bytes())
}

/// The text of a document (JSON, TOML), which is held in memory as a whole: decompressed where it must be, without a
/// byte order mark.
///
/// # Errors
///
/// What is wrong, and on which line: a limit, the encoding, the compression.
pub fn read_document(file: &str, input: impl Read, limits: InputLimits) -> Result<String, FormatError> {
    Unpacked::new(file, input)?.read_document(file, limits)
}

fn line_at(bytes: &[u8], at: usize) -> u64 {
    1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count() as u64
}
