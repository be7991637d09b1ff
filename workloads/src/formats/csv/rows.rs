//! The lines of a table: comments, the header, rows.

use std::borrow::Cow;

use super::cells::comment;
use super::header::Header;
use crate::formats::FormatError;
use crate::formats::error::quote_excerpt;
use crate::formats::input::lines::Lines;
use crate::formats::trace::draft::Draft;

/// Takes the comments in front of the header in, and parses the header.
pub(crate) fn find_header(
    draft: &mut Draft<'_>,
    lines: &mut Lines<'_>,
) -> Result<(u64, Header), FormatError> {
    while let Some((number, line)) = lines.next_line()? {
        let read = match comment(line) {
            Some(said) => draft.read_comment(number, said).map(|()| None),
            None => Header::parse(line).map(Some),
        };
        match read {
            Ok(None) => {}
            Ok(Some(header)) => return Ok((number, header)),
            Err(reason) => return Err(draft.error_at(number, reason)),
        }
    }
    Err(draft.error_at(1, "the file is empty: there is no header line"))
}

/// Hands every row below the header to `take`, with its line and its fields.
pub(crate) fn each_row(
    draft: &mut Draft<'_>,
    header: &Header,
    lines: &mut Lines<'_>,
    mut take: impl FnMut(&mut Draft<'_>, u64, &[Cow<'_, str>]) -> Result<(), String>,
) -> Result<(), FormatError> {
    let mut repeats = Repeats::default();
    while let Some((number, line)) = lines.next_line()? {
        let read = match comment(line) {
            Some(said) => metadata(header, line, said).and_then(|()| draft.read_comment(number, said)),
            None => repeats
                .check_line(number, line)
                .and_then(|()| header.split_row(line))
                .and_then(|fields| take(draft, number, &fields)),
        };
        read.map_err(|reason| draft.error_at(number, reason))?;
    }
    Ok(())
}

/// Finds a long file that says the same again and again before it fills the memory, as a few bytes unpack to billions
/// of rows. No two rows of a file are equal: each has an id, or a step and an id, of its own.
///
/// It is Brent's search for a cycle: each row is compared with one before it, which is replaced after 2, 4, 8, ... times
/// as many rows, so that a cycle is found when it has come a few times.
#[derive(Default)]
struct Repeats {
    rows: u64,
    kept: Option<(u64, String)>,
}

impl Repeats {
    /// Shorter files cost little memory, and their errors are clearer once all is read.
    const FIRST: u64 = 1 << 16;

    fn check_line(&mut self, number: u64, line: &str) -> Result<(), String> {
        self.rows += 1;
        if let Some((first, kept)) = &self.kept
            && kept == line
        {
            return Err(format!("this row is there already, in line {first}"));
        }
        if self.rows >= Self::FIRST && self.rows.is_power_of_two() {
            self.kept = Some((number, line.to_owned()));
        }
        Ok(())
    }
}

/// Refuses a line below the header that begins with `#` and has the commas of a row, unless it is `# key: value` and
/// has another number of them than a row: a row whose first field begins with `#` and lacks its quotes would be lost
/// without a word.
fn metadata(header: &Header, line: &str, comment: &str) -> Result<(), String> {
    // Every file has several columns.
    if !line.contains(',') {
        return Ok(());
    }
    let is_key = |key: &str| !key.trim_ascii().is_empty() && !key.contains(',');
    let has_key = comment.split_once(':').is_some_and(|(key, _)| is_key(key));
    let is_row = header.split_row(line).is_ok();
    if has_key && !is_row {
        return Ok(());
    }
    let (first, rest) = line.trim_ascii().split_once(',').unwrap_or_default();
    let quoted = format!("`\"{}\",{}`", quote_excerpt(first), quote_excerpt(rest));
    let shown = quote_excerpt(line.trim_ascii());
    Err(match has_key {
        true => format!(
            "`{shown}` may be a row or metadata: put an id that begins with `#` in quotes ({quoted}), and metadata \
             with this many commas above the header"
        ),
        false => format!(
            "`{shown}` is not `# key: value`: put an id that begins with `#` in quotes ({quoted}), and other comments \
             above the header"
        ),
    })
}
