//! The lab's trace CSV, `MiniMalloc`'s and idealloc's.
//!
//! `#` lines carry `key: value` metadata; then a header, then a row for each buffer, or for each event
//! where the header has a column `event` (see `events`). `# alignment: N` aligns every buffer that has no
//! `alignment` of its own and rounds all sizes up; `# arena NAME: capacity` declares an arena;
//! `# rank-steps: yes` ranks the steps; `# step-unit: ns` (or `us`, `ms`, `s`) says that they are times. Capitals do
//! not matter in these four words; a line that looks like one of them misspelt is a notice.

use std::borrow::Cow;

use planlab_dsa::{Alignment, Label};

use super::draft::{Draft, RawBuffer, RawPause};
use super::error::excerpt;
use super::header::{Column, Header};
use super::{Dialect, FormatError, ReadOptions, Trace, events, text};

/// Reads a trace. `file` is what errors call it.
///
/// # Errors
///
/// The first thing that is wrong, with its line.
pub fn read_trace(file: &str, bytes: &[u8], options: &ReadOptions) -> Result<Trace, FormatError> {
    let text = text::decode(file, bytes)?;
    let mut draft = Draft::new(file, options);
    let mut lines = text::lines(&text);
    let (number, header) = find_header(&mut draft, &mut lines)?;
    draft.header_at(number);
    if draft.is_plan && !options.pins {
        let reason = "this is a plan, not a trace; ask for its offsets as pins to read it as one";
        return Err(draft.error(number, reason));
    }
    for column in &header.unknown {
        draft.notices.push(format!("column `{column}` is not known and was left out"));
    }
    if header.is_events() {
        events::read(&mut draft, &header, number, lines)?;
    } else {
        // A row has about 40 bytes; a little too much room costs less than moving everything.
        draft.reserve(text.len() / 40);
        read_rows(&mut draft, &header, number, lines)?;
    }
    draft.finish()
}

/// Takes the comments in front of the header in, and parses the header.
pub(super) fn find_header<'t>(
    draft: &mut Draft<'_>,
    lines: &mut impl Iterator<Item = (u64, &'t str)>,
) -> Result<(u64, Header), FormatError> {
    for (number, line) in lines {
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

fn read_rows<'t>(
    draft: &mut Draft<'_>,
    header: &Header,
    header_line: u64,
    lines: impl Iterator<Item = (u64, &'t str)>,
) -> Result<(), FormatError> {
    let upper = if header.has(Column::End) { Column::End } else { Column::Upper };
    let required = [(Column::Id, "id"), (Column::Lower, "lower"), (upper, "upper"), (Column::Size, "size")];
    header.require(&required).map_err(|reason| draft.error(header_line, reason))?;
    let dialect = if upper == Column::End { Dialect::Inclusive } else { draft.options().dialect };
    let mut fields = Vec::with_capacity(16);
    for (number, line) in lines {
        let read = match text::comment(line) {
            Some(comment) => draft.comment(number, comment),
            None => header
                .row(line, &mut fields)
                .and_then(|()| read_row(draft, &Row { header, fields: &fields, dialect, number })),
        };
        read.map_err(|reason| draft.error(number, reason))?;
    }
    Ok(())
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

    fn pauses(&self, (start, end): (u64, u64), size: u64) -> Result<Vec<RawPause>, String> {
        let gaps = self.get(Column::Gaps).split_ascii_whitespace();
        let mut pauses = gaps.map(|gap| self.pause(gap)).collect::<Result<Vec<_>, _>>()?;
        pauses.sort_by_key(|pause| pause.lower);
        let mut from = start;
        for pause in &pauses {
            let (lower, upper) = (pause.lower, pause.upper);
            if upper > end || lower < start {
                return Err(format!("the gap [{lower}, {upper}) leaves the life [{start}, {end})"));
            } else if lower < from {
                return Err(format!("the gap [{lower}, {upper}) overlaps the one before it"));
            } else if pause.window.is_some_and(|(low, high)| low >= high || high > size) {
                return Err(format!(
                    "the window of the gap [{lower}, {upper}) is empty or leaves the buffer"
                ));
            }
            from = upper;
        }
        Ok(pauses)
    }

    fn pause(&self, gap: &str) -> Result<RawPause, String> {
        let bad = || format!("the gap `{}` is not `lo-hi` or `lo-hi@wlo:whi`", excerpt(gap));
        let (steps, window) = match gap.split_once('@') {
            Some((steps, window)) => (steps, Some(window.split_once(':').ok_or_else(bad)?)),
            None => (gap, None),
        };
        let (lower, upper) = steps.split_once('-').ok_or_else(bad)?;
        let (lower, upper) = (text::whole("the gap's start", lower)?, text::whole("the gap's end", upper)?);
        let half_open = self.dialect.half_open(lower, upper).filter(|(lower, upper)| lower < upper);
        let (lower, upper) = half_open.ok_or_else(|| format!("the gap `{}` is empty", excerpt(gap)))?;
        let window = match window {
            Some((low, high)) => {
                Some((text::whole("the window's start", low)?, text::whole("the window's end", high)?))
            }
            None => None,
        };
        Ok(RawPause { lower, upper, window })
    }
}

fn read_row(draft: &mut Draft<'_>, row: &Row<'_>) -> Result<(), String> {
    let mut label = row.label();
    if label.name.is_empty() {
        return Err("the id is empty".to_owned());
    }
    let (lower, upper) = row.life()?;
    let size = positive("size", row.get(Column::Size))?;
    label.hint = text::maybe("hint", row.get(Column::Hint))?;
    let align = match row.get(Column::Alignment) {
        "" => None,
        bytes => Alignment::new(positive("alignment", bytes)?),
    };
    let pin = text::maybe("offset", row.get(Column::Offset))?;
    let pauses = row.pauses((lower, upper), size)?;
    let arena = match row.header.has(Column::Arena) {
        true => draft.arena(row.get(Column::Arena))?,
        false => planlab_dsa::ArenaId::default(),
    };
    draft.buffer(RawBuffer { label, lower, upper, size, align, pin, pauses }, arena);
    draft.may_overwrite(row.get(Column::MayOverwrite));
    draft.keep_apart(row.get(Column::Apart));
    Ok(())
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
