//! The lab's trace CSV, `MiniMalloc`'s and idealloc's.
//!
//! `#` lines carry `key: value` metadata; then a header, then a row for each buffer, or for each event
//! where the header has a column `event` (see `events`). `# alignment: N` aligns every buffer that has no
//! `alignment` of its own and rounds all sizes up; `# arena NAME: capacity` declares an arena;
//! `# rank-steps: yes` ranks the steps; `# step-unit: ns` (or `us`, `ms`, `s`) says that they are times. Capitals do
//! not matter in these four words; a line that looks like one of them misspelt is a notice.

use std::borrow::Cow;
use std::io::Read;

use planlab_dsa::{Alignment, Label};

use super::draft::{Draft, RawBuffer, RawPause};
use super::error::excerpt;
use super::header::{Column, Header};
use super::text::Lines;
use super::unpacked::{BYTE_ORDER_MARK, Unpacked};
use super::{Dialect, FormatError, ReadOptions, Trace, events, graph, import, text};

/// Reads a trace, a graph as the trace that it lowers to, or a file of another tool (see [`import`](super::import)) that
/// holds one trace, or whose trace the options name. `file` is what errors call it.
///
/// # Errors
///
/// The first thing that is wrong, with its line.
pub fn read_trace(file: &str, bytes: &[u8], options: &ReadOptions) -> Result<Trace, FormatError> {
    read_trace_from(file, bytes, options)
}

/// The same from what need not be in memory as a whole: a file, a pipe.
///
/// # Errors
///
/// As [`read_trace`].
pub fn read_trace_from(file: &str, input: impl Read, options: &ReadOptions) -> Result<Trace, FormatError> {
    let mut input = Unpacked::new(file, input)?;
    if let Some(reader) = import::recognise(file, input.start()) {
        return import::read_one(reader, file, input, options);
    }
    if let Some(part) = &options.part {
        return Err(FormatError::new(
            file,
            1,
            format!("it holds one trace, and no part `{}`", excerpt(part)),
        ));
    }
    read_own(file, input, options)
}

/// Reads a file of the lab's own: a trace or a graph.
pub(super) fn read_own(
    file: &str,
    mut input: Unpacked<'_>,
    options: &ReadOptions,
) -> Result<Trace, FormatError> {
    if input.is_json() {
        return graph::read_lowered(file, input, options);
    }
    let mut draft = Draft::new(file, options);
    let mut lines = Lines::of(file, input, options.limits);
    let (number, header) = find_header(&mut draft, &mut lines)?;
    draft.header_at(number);
    if draft.is_plan && !options.pins {
        let reason = "this is a plan, not a trace (a trace comes before its plan); with `--pins` its offsets are fixed";
        return Err(draft.error(number, reason));
    }
    header.no_typo().map_err(|reason| draft.error(number, reason))?;
    for column in &header.unknown {
        let column = excerpt(column);
        draft.notices.push(format!("column `{column}` is not known and was left out"));
    }
    if header.is_events() {
        events::read(&mut draft, &header, number, &mut lines)?;
    } else {
        read_rows(&mut draft, &header, number, &mut lines)?;
    }
    draft.finish()
}

/// Whether a file that begins with these bytes is one of the lab's own, whatever its name says: a JSON object, or a table.
pub(super) fn looks_like(start: &[u8]) -> bool {
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    text.trim_ascii_start().starts_with(b"{") || is_table(start)
}

/// Whether a file that begins with these bytes has a header with at least two columns that are known, below comments.
pub(super) fn is_table(start: &[u8]) -> bool {
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    let mut lines = start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    let header = first.and_then(|line| Header::parse(std::str::from_utf8(line).ok()?).ok());
    header.is_some_and(|header| header.known() >= 2)
}

/// Takes the comments in front of the header in, and parses the header.
pub(super) fn find_header(
    draft: &mut Draft<'_>,
    lines: &mut Lines<'_>,
) -> Result<(u64, Header), FormatError> {
    while let Some((number, line)) = lines.next_line()? {
        let read = match text::comment(line) {
            Some(comment) => draft.comment(number, comment).map(|()| None),
            None => Header::parse(line).map(Some),
        };
        match read {
            Ok(None) => {}
            Ok(Some(header)) => return Ok((number, header)),
            Err(reason) => return Err(draft.error(number, reason)),
        }
    }
    Err(draft.error(1, "the file is empty: there is no header line"))
}

/// Hands every row below the header to `take`, with its line and its fields.
pub(super) fn each_row(
    draft: &mut Draft<'_>,
    header: &Header,
    lines: &mut Lines<'_>,
    mut take: impl FnMut(&mut Draft<'_>, u64, &[Cow<'_, str>]) -> Result<(), String>,
) -> Result<(), FormatError> {
    let mut repeats = Repeats::default();
    while let Some((number, line)) = lines.next_line()? {
        let read = match text::comment(line) {
            Some(comment) => metadata(header, line, comment).and_then(|()| draft.comment(number, comment)),
            None => repeats
                .look(number, line)
                .and_then(|()| header.row(line))
                .and_then(|fields| take(draft, number, &fields)),
        };
        read.map_err(|reason| draft.error(number, reason))?;
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

    fn look(&mut self, number: u64, line: &str) -> Result<(), String> {
        self.rows += 1;
        match &self.kept {
            Some((first, kept)) if kept == line => {
                return Err(format!("this row is there already, in line {first}"));
            }
            _ => {}
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
    let is_row = header.row(line).is_ok();
    if has_key && !is_row {
        return Ok(());
    }
    let (first, rest) = line.trim_ascii().split_once(',').unwrap_or_default();
    let quoted = format!("`\"{}\",{}`", excerpt(first), excerpt(rest));
    let shown = excerpt(line.trim_ascii());
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

fn read_rows(
    draft: &mut Draft<'_>,
    header: &Header,
    header_line: u64,
    lines: &mut Lines<'_>,
) -> Result<(), FormatError> {
    let upper = if header.has(Column::End) { Column::End } else { Column::Upper };
    let required = [(Column::Id, "id"), (Column::Lower, "lower"), (upper, "upper"), (Column::Size, "size")];
    header.require(&required).map_err(|reason| draft.error(header_line, reason))?;
    let dialect = if upper == Column::End { Dialect::Inclusive } else { draft.options().dialect };
    each_row(draft, header, lines, |draft, number, fields| {
        read_row(draft, &Row { header, fields, dialect, number })
    })
}

/// A row of the buffers shape.
struct Row<'r> {
    header: &'r Header,
    fields: &'r [Cow<'r, str>],
    dialect: Dialect,
    number: u64,
}

impl Row<'_> {
    fn get(&self, column: Column) -> &str {
        self.header.get(self.fields, column)
    }

    fn life(&self) -> Result<(u64, u64), String> {
        let lower = text::whole("lower", self.get(Column::Lower))?;
        let inclusive = self.header.has(Column::End);
        let upper = if inclusive {
            text::whole("end", self.get(Column::End))?
        } else {
            text::whole("upper", self.get(Column::Upper))?
        };
        let (start, end) = self
            .dialect
            .half_open(lower, upper)
            .ok_or("a step of 2^64 - 1 leaves no room for the one after")?;
        if start < end {
            Ok((start, end))
        } else if lower > upper {
            Err(format!("lower {lower} is above upper {upper}"))
        } else {
            Err(format!(
                "a life of length zero: lower {lower}, upper {upper} as {}; the dialects are half-open \
                 [lower, upper), inclusive [lower, upper], open (lower, upper)",
                self.dialect.name()
            ))
        }
    }

    fn label(&self) -> Label {
        Label {
            name: self.get(Column::Id).to_owned(),
            category: some(self.get(Column::Category)),
            op: some(self.get(Column::Op)),
            row: Some(self.number),
            ..Label::default()
        }
    }
}

/// The pauses of a cell, in their order; see [`check_gaps`].
pub(super) fn gaps(cell: &str, dialect: Dialect) -> Result<Vec<RawPause>, String> {
    let gaps = cell.split_ascii_whitespace();
    let mut pauses = gaps.map(|gap| pause(gap, dialect)).collect::<Result<Vec<_>, _>>()?;
    pauses.sort_by_key(|pause| pause.lower);
    Ok(pauses)
}

/// Whether pauses lie apart from each other inside a life, and their windows inside the buffer.
pub(super) fn check_gaps(pauses: &[RawPause], (start, end): (u64, u64), size: u64) -> Result<(), String> {
    let mut from = start;
    for pause in pauses {
        let (lower, upper) = (pause.lower, pause.upper);
        if upper > end || lower < start {
            return Err(format!("the gap [{lower}, {upper}) leaves the life [{start}, {end})"));
        } else if lower < from {
            return Err(format!("the gap [{lower}, {upper}) overlaps the one before it"));
        } else if pause.window.is_some_and(|(low, high)| low >= high || high > size) {
            return Err(format!("the window of the gap [{lower}, {upper}) is empty or leaves the buffer"));
        }
        from = upper;
    }
    Ok(())
}

fn pause(gap: &str, dialect: Dialect) -> Result<RawPause, String> {
    let bad = || format!("the gap `{}` is not `lo-hi` or `lo-hi@wlo:whi`", excerpt(gap));
    let (steps, window) = match gap.split_once('@') {
        Some((steps, window)) => (steps, Some(window.split_once(':').ok_or_else(bad)?)),
        None => (gap, None),
    };
    let (lower, upper) = steps.split_once('-').ok_or_else(bad)?;
    let (lower, upper) = (text::whole("the gap's start", lower)?, text::whole("the gap's end", upper)?);
    let half_open = dialect.half_open(lower, upper).filter(|(lower, upper)| lower < upper);
    let (lower, upper) = half_open.ok_or_else(|| format!("the gap `{}` is empty", excerpt(gap)))?;
    let window = match window {
        Some((low, high)) => {
            Some((text::whole("the window's start", low)?, text::whole("the window's end", high)?))
        }
        None => None,
    };
    Ok(RawPause { lower, upper, window })
}

fn read_row(draft: &mut Draft<'_>, row: &Row<'_>) -> Result<(), String> {
    let mut label = row.label();
    if label.name.is_empty() {
        return Err("the id is empty".to_owned());
    }
    let (lower, upper) = row.life()?;
    let size = positive("size", row.get(Column::Size))?;
    label.hint = text::maybe("hint", row.get(Column::Hint))?;
    let align = alignment(row.get(Column::Alignment))?;
    let pin = text::maybe("offset", row.get(Column::Offset))?;
    let pauses = gaps(row.get(Column::Gaps), row.dialect)?;
    check_gaps(&pauses, (lower, upper), size)?;
    let arena = draft.arena(row.get(Column::Arena))?;
    let buffer = draft.buffer(RawBuffer { label, lower, upper, size, align, pin, pauses }, arena);
    draft.may_overwrite(buffer, row.get(Column::MayOverwrite));
    draft.keep_apart(buffer, row.get(Column::Apart));
    Ok(())
}

/// The alignment of a cell, if it has one.
pub(super) fn alignment(cell: &str) -> Result<Option<Alignment>, String> {
    match cell {
        "" => Ok(None),
        bytes => Ok(Alignment::new(positive("alignment", bytes)?)),
    }
}

/// A whole number above 0.
pub(super) fn positive(what: &str, field: &str) -> Result<u64, String> {
    match text::whole(what, field)? {
        0 => Err(format!("{what} is 0")),
        number => Ok(number),
    }
}

/// The text, unless it is empty.
pub(super) fn some(field: &str) -> Option<String> {
    (!field.is_empty()).then(|| field.to_owned())
}
