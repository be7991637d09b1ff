//! What `torch.save` writes: a zip archive whose first entry is the pickle, as it is.
//!
//! The sizes of entries stand behind them, and a pickle says itself where it ends: the archive is read as a stream.

use std::io::{self, BufRead, Read};

use crate::formats::error::clip_to_cell;

/// What an entry of an archive begins with.
const ENTRY: &[u8] = b"PK\x03\x04";
/// Bytes of an entry's header in front of its name.
const HEADER: usize = 30;

pub(crate) fn is_archive(start: &[u8]) -> bool {
    start.starts_with(ENTRY)
}

/// Reads up to the pickle, if the input is an archive.
///
/// # Errors
///
/// If it is one that `torch.save` does not write.
pub(crate) fn enter_archive(input: &mut impl BufRead) -> Result<(), String> {
    if !input.fill_buf().is_ok_and(is_archive) {
        // What cannot be read is reported where it is read again.
        return Ok(());
    }
    let mut header = [0; HEADER];
    let short = |at: usize, header: &[u8; HEADER]| u16::from_le_bytes([header[at], header[at + 1]]);
    let cut = |error: io::Error| format!("the first entry of the zip archive is cut short: {error}");
    input.read_exact(&mut header).map_err(cut)?;
    let (flags, method) = (short(6, &header), short(8, &header));
    let mut name = Vec::new();
    input.take(short(26, &header).into()).read_to_end(&mut name).map_err(cut)?;
    io::copy(&mut input.take(short(28, &header).into()), &mut io::sink()).map_err(cut)?;
    let is_plain = method == 0 && flags & 1 == 0;
    if is_plain && name.ends_with(b"/data.pkl") {
        return Ok(());
    }
    let packed = if is_plain { "" } else { ", compressed" };
    Err(format!(
        "this is a zip archive, and its first entry is `{}`{packed}; of archives only torch.save's are read, which begin \
         with NAME/data.pkl, not compressed",
        clip_to_cell(&String::from_utf8_lossy(&name))
    ))
}
