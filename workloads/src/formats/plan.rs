//! Plans: the trace's columns with every offset filled in.
//!
//! The first line is `# planlab: plan`; without it any CSV with `id` and `offset` is read as well
//! (`MiniMalloc`'s output, say). Rows go by id, in any order.

use std::borrow::Cow;

use planlab_dsa::{BufferId, InPlace, Offset, Plan};
use rustc_hash::FxHashMap;

use super::draft::Draft;
use super::error::excerpt;
use super::header::{Column, Header};
use super::lab::find_header;
use super::{FormatError, ReadOptions, Trace, text};

/// Reads a plan for the buffers of `trace`; nothing says yet that it is a valid one.
///
/// A file with another number of rows than the trace has buffers gives a plan with so many offsets, in
/// the file's order: verification refuses it with both numbers.
///
/// # Errors
///
/// The first thing that is wrong, with its line: no column `offset`, a row without one, an id that the
/// trace lacks or that comes twice, a size that is not the trace's.
pub fn read_plan(file: &str, bytes: &[u8], trace: &Trace) -> Result<Plan, FormatError> {
    let text = text::decode(file, bytes)?;
    let options = ReadOptions::default();
    let mut draft = Draft::new(file, &options);
    let mut lines = text::lines(&text);
    let (header_line, header) = find_header(&mut draft, &mut lines)?;
    let required = [(Column::Id, "id"), (Column::Offset, "offset")];
    header.require(&required).map_err(|reason| draft.error(header_line, reason))?;
    let rows = read_rows(file, &header, lines)?;
    if rows.len() == trace.instance.len() {
        match_rows(file, &rows, trace)
    } else {
        Ok(Plan::from_offsets(rows.iter().map(|row| row.offset).collect::<Vec<_>>()))
    }
}

struct Row<'t> {
    line: u64,
    id: Cow<'t, str>,
    offset: Offset,
    size: Option<u64>,
    overwrites: Cow<'t, str>,
}

fn read_rows<'t>(
    file: &str,
    header: &Header,
    lines: impl Iterator<Item = (u64, &'t str)>,
) -> Result<Vec<Row<'t>>, FormatError> {
    let mut fields = Vec::with_capacity(16);
    let mut rows = Vec::new();
    for (line, text) in lines.filter(|(_, text)| text::comment(text).is_none()) {
        let read = header.row(text, &mut fields).and_then(|()| read_row(header, &fields, line));
        rows.push(read.map_err(|reason| FormatError::new(file, line, reason))?);
    }
    Ok(rows)
}

fn read_row<'t>(header: &Header, fields: &[Cow<'t, str>], line: u64) -> Result<Row<'t>, String> {
    let cell = |column| header.at(column).map(|index: usize| fields[index].clone()).unwrap_or_default();
    let id = cell(Column::Id);
    let offset = text::maybe("offset", &cell(Column::Offset))?
        .ok_or_else(|| format!("buffer `{}` has no offset", excerpt(&id)))?;
    let size = text::maybe("size", &cell(Column::Size))?;
    Ok(Row { line, id, offset: Offset::new(offset), size, overwrites: cell(Column::Overwrites) })
}

fn match_rows(file: &str, rows: &[Row<'_>], trace: &Trace) -> Result<Plan, FormatError> {
    let names = trace.labels.buffers.iter().map(|label| label.name.as_str());
    let numbers: FxHashMap<&str, usize> = names.zip(0..).collect();
    let number = |line: u64, id: &str| {
        let unknown = || FormatError::new(file, line, format!("`{}` is no buffer of the trace", excerpt(id)));
        numbers.get(id).copied().ok_or_else(unknown)
    };
    let mut offsets = vec![None; rows.len()];
    let mut in_place = Vec::new();
    for row in rows {
        let buffer = number(row.line, &row.id)?;
        let wrong = |reason: String| Err(FormatError::new(file, row.line, reason));
        if offsets[buffer].replace(row.offset).is_some() {
            return wrong(format!("buffer `{}` has an offset already", excerpt(&row.id)));
        }
        if let Some(reason) = row.size.and_then(|size| other_size(trace, buffer, size)) {
            return wrong(reason);
        }
        if !row.overwrites.is_empty() {
            let input = BufferId::from_index(number(row.line, &row.overwrites)?);
            in_place.push(InPlace { input, output: BufferId::from_index(buffer) });
        }
    }
    in_place.sort_unstable();
    // As many distinct buffers as rows, and as many rows as buffers: every place is filled.
    Ok(Plan { offsets: offsets.into_iter().flatten().collect(), in_place })
}

fn other_size(trace: &Trace, buffer: usize, size: u64) -> Option<String> {
    let planned = trace.instance.buffers()[buffer].size;
    let requested = trace.labels.buffers[buffer].requested;
    let known = size == planned.get() || requested.is_some_and(|bytes| bytes.get() == size);
    (!known).then(|| format!("the size is {size} here, but {planned} in the trace"))
}
