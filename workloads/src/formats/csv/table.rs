//! The lab's trace CSV, `MiniMalloc`'s and idealloc's.
//!
//! `#` lines carry `key: value` metadata; then a header, then a row for each buffer, or for each event
//! where the header has a column `event` (see `events`). `# alignment: N` aligns every buffer that has no
//! `alignment` of its own and rounds all sizes up; `# arena NAME: capacity` declares an arena;
//! `# rank-steps: yes` ranks the steps; `# step-unit: ns` (or `us`, `ms`, `s`) says that they are times. Capitals do
//! not matter in these four words; a line that looks like one of them misspelt is a notice.

use std::borrow::Cow;

use planlab_dsa::Label;

use super::cells::{alignment, some};
use super::events;
use super::header::{Column, Header};
use super::rows::{each_row, find_header};
use crate::formats::error::quote_excerpt;
use crate::formats::input::lines::Lines;
use crate::formats::input::numbers::{maybe, positive, whole};
use crate::formats::input::unpacked::{BYTE_ORDER_MARK, Unpacked};
use crate::formats::trace::draft::{Draft, RawBuffer};
use crate::formats::trace::pauses::{check_gaps, gaps};
use crate::formats::{Dialect, FormatError, ReadOptions, Trace};

/// Reads a trace in one of its two shapes.
pub(crate) fn read(file: &str, input: Unpacked<'_>, options: &ReadOptions) -> Result<Trace, FormatError> {
    let mut draft = Draft::new(file, options);
    let mut lines = Lines::from_input(file, input, options.limits);
    let (number, header) = find_header(&mut draft, &mut lines)?;
    draft.header_line = number;
    if draft.is_plan && !options.pins {
        let reason = "this is a plan, not a trace (a trace comes before its plan); with `--pins` its offsets are fixed";
        return Err(draft.error_at(number, reason));
    }
    header.no_typo().map_err(|reason| draft.error_at(number, reason))?;
    for column in &header.unknown {
        let column = quote_excerpt(column);
        draft.notices.push(format!("column `{column}` is not known and was left out"));
    }
    if header.has_column(Column::Overwrites) && !draft.is_plan {
        draft.notices.push("column `overwrites` was left out: permissions are in `may_overwrite`".to_owned());
    }
    if header.has_column(Column::Event) {
        events::read_events(&mut draft, &header, number, &mut lines)?;
    } else {
        read_rows(&mut draft, &header, number, &mut lines)?;
    }
    draft.build_trace()
}

/// Whether a file that begins with these bytes has a header with at least two columns that are known, below comments.
pub(crate) fn is_table(start: &[u8]) -> bool {
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    let mut lines = start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    let header = first.and_then(|line| Header::parse(std::str::from_utf8(line).ok()?).ok());
    header.is_some_and(|header| header.known_columns() >= 2)
}

fn read_rows(
    draft: &mut Draft<'_>,
    header: &Header,
    header_line: u64,
    lines: &mut Lines<'_>,
) -> Result<(), FormatError> {
    let upper = if header.has_column(Column::End) { Column::End } else { Column::Upper };
    let required = [Column::Id, Column::Lower, upper, Column::Size];
    header.require_columns(&required).map_err(|reason| draft.error_at(header_line, reason))?;
    let dialect = if upper == Column::End { Dialect::Inclusive } else { draft.options.dialect };
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
    fn field_of(&self, column: Column) -> &str {
        self.header.field_of(self.fields, column)
    }

    fn live_steps(&self) -> Result<(u64, u64), String> {
        let lower = whole("lower", self.field_of(Column::Lower))?;
        let upper = if self.header.has_column(Column::End) { Column::End } else { Column::Upper };
        let upper = whole(upper.name(), self.field_of(upper))?;
        let half_open = self.dialect.half_open(lower, upper);
        let (start, end) = half_open.ok_or("a step of 2^64 - 1 leaves no room for the one after")?;
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
}

fn read_row(draft: &mut Draft<'_>, row: &Row<'_>) -> Result<(), String> {
    let mut label = Label {
        name: row.field_of(Column::Id).to_owned(),
        category: some(row.field_of(Column::Category)),
        op: some(row.field_of(Column::Op)),
        row: Some(row.number),
        ..Label::default()
    };
    if label.name.is_empty() {
        return Err("the id is empty".to_owned());
    }
    let (lower, upper) = row.live_steps()?;
    let size = positive("size", row.field_of(Column::Size))?;
    label.hint = maybe("hint", row.field_of(Column::Hint))?;
    let align = alignment(row.field_of(Column::Alignment))?;
    let pin = maybe("offset", row.field_of(Column::Offset))?;
    let pauses = gaps(row.field_of(Column::Gaps), row.dialect)?;
    check_gaps(&pauses, (lower, upper), size)?;
    let arena = draft.find_arena(row.field_of(Column::Arena))?;
    let buffer = draft.append_buffer(RawBuffer { label, lower, upper, size, align, pin, pauses }, arena);
    draft.may_overwrite(buffer, row.field_of(Column::MayOverwrite));
    draft.keep_apart(buffer, row.field_of(Column::Apart));
    Ok(())
}
