//! Plan files: the columns of the trace, with an offset in every row.
//!
//! The first line is `# planlab: plan`; without it any CSV with `id` and `offset` is accepted too (`MiniMalloc`'s
//! output, say). Rows are matched by id, in any order.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;

use planlab_dsa::{BufferId, InPlace, Offset, Plan};
use rustc_hash::{FxHashMap, FxHashSet};

use super::header::{Column, Header};
use super::rows::{each_row, find_header};
use crate::formats::error::{quote_excerpt, quote_names};
use crate::formats::input::lines::Lines;
use crate::formats::input::numbers::maybe;
use crate::formats::input::unpacked::Unpacked;
use crate::formats::trace::draft::Draft;
use crate::formats::{FormatError, InputLimits, ReadOptions, Trace};

/// The rows of a plan file, before they are matched to buffers.
pub struct PlanFile {
    file: String,
    rows: Vec<Row>,
}

impl PlanFile {
    /// Reads the rows.
    ///
    /// # Errors
    ///
    /// The first error in the file itself, with its line: no column `offset`, or a row without an offset.
    pub fn read_rows(file: &str, input: impl Read, limits: InputLimits) -> Result<Self, FormatError> {
        let options = ReadOptions::default();
        let mut draft = Draft::new(file, &options);
        let mut lines = Lines::from_input(file, Unpacked::new(file, input)?, limits);
        let (header_line, header) = find_header(&mut draft, &mut lines)?;
        header
            .require_columns(&[Column::Id, Column::Offset])
            .map_err(|reason| draft.error_at(header_line, reason))?;
        let mut rows = Vec::new();
        each_row(&mut draft, &header, &mut lines, |_, line, fields| {
            rows.push(read_row(&header, fields, line)?);
            Ok(())
        })?;
        Ok(Self { file: file.to_owned(), rows })
    }

    /// The plan for the buffers of `trace`; not verified yet.
    ///
    /// If the number of rows differs from the number of buffers, the plan has the offsets in file order. The verifier
    /// then rejects it with both numbers, and [`unmatched_ids`](Self::unmatched_ids) lists the ids.
    ///
    /// # Errors
    ///
    /// The first row that does not match the trace, with its line: an unknown or repeated id, or a different size or
    /// live range.
    pub fn plan_for(&self, trace: &Trace) -> Result<Plan, FormatError> {
        if self.rows.len() == trace.instance.len() {
            match_rows(&self.file, &self.rows, trace)
        } else {
            Ok(Plan::from_offsets(self.rows.iter().map(|row| row.offset).collect::<Vec<_>>()))
        }
    }

    /// The ids that only the file or only the trace contains: why [`plan_for`](Self::plan_for) has the wrong number of offsets.
    #[must_use]
    pub fn unmatched_ids(&self, trace: &Trace) -> Unmatched {
        let names = || trace.labels.buffers.iter().map(|label| label.name.as_str());
        let mut missing: FxHashSet<&str> = names().collect();
        let extra = self.rows.iter().filter(|row| !missing.remove(&*row.id)).map(|row| row.id.to_string());
        let extra = extra.collect();
        Unmatched {
            missing: names().filter(|name| missing.contains(name)).map(str::to_owned).collect(),
            extra,
        }
    }
}

/// Ids that only a plan or only its trace contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// Buffers of the trace without a row, in trace order.
    pub missing: Vec<String>,
    /// Unknown or repeated ids of rows, in file order.
    pub extra: Vec<String>,
}

impl Unmatched {
    /// Whether rows and buffers match one to one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty()
    }
}

/// "no row for `a`, `b` and 3 more; one too many for `c`".
impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        let lists = [("no row for ", &self.missing), ("one too many for ", &self.extra)];
        let mut between = "";
        for (what, ids) in lists.iter().filter(|(_, ids)| !ids.is_empty()) {
            write!(f, "{between}{what}{}", quote_names(ids.iter(), SHOWN))?;
            between = "; ";
        }
        Ok(())
    }
}

struct Row {
    line: u64,
    id: Box<str>,
    offset: Offset,
    lower: Option<u64>,
    /// Half-open, like `upper` in the trace.
    upper: Option<u64>,
    size: Option<u64>,
    overwrites: Box<str>,
}

fn read_row(header: &Header, fields: &[Cow<'_, str>], line: u64) -> Result<Row, String> {
    let cell = |column| header.field_of(fields, column);
    let id = cell(Column::Id);
    let offset = maybe("offset", cell(Column::Offset))?
        .ok_or_else(|| format!("buffer `{}` has no offset", quote_excerpt(id)))?;
    let lower = maybe("lower", cell(Column::Lower))?;
    let upper = match maybe("end", cell(Column::End))? {
        Some(end) => Some(end.checked_add(1).ok_or("a step of 2^64 - 1 leaves no room for the one after")?),
        None => maybe("upper", cell(Column::Upper))?,
    };
    let size = maybe("size", cell(Column::Size))?;
    let overwrites = cell(Column::Overwrites).into();
    Ok(Row { line, id: id.into(), offset: Offset::new(offset), lower, upper, size, overwrites })
}

fn match_rows(file: &str, rows: &[Row], trace: &Trace) -> Result<Plan, FormatError> {
    let names = trace.labels.buffers.iter().map(|label| label.name.as_str());
    let numbers: FxHashMap<&str, usize> = names.zip(0..).collect();
    let number = |line: u64, id: &str| {
        let unknown =
            || FormatError::new(file, line, format!("`{}` is no buffer of the trace", quote_excerpt(id)));
        numbers.get(id).copied().ok_or_else(unknown)
    };
    let mut offsets = vec![None; rows.len()];
    let mut in_place = Vec::new();
    for row in rows {
        let buffer = number(row.line, &row.id)?;
        let wrong = |reason: String| Err(FormatError::new(file, row.line, reason));
        if offsets[buffer].replace(row.offset).is_some() {
            return wrong(format!("buffer `{}` has an offset already", quote_excerpt(&row.id)));
        }
        let other = row.size.and_then(|size| other_size(trace, buffer, size));
        if let Some(reason) = other.or_else(|| other_life(trace, buffer, row)) {
            return wrong(reason);
        }
        if !row.overwrites.is_empty() {
            let input = BufferId::from_index(number(row.line, &row.overwrites)?);
            in_place.push(InPlace { input, output: BufferId::from_index(buffer) });
        }
    }
    in_place.sort_unstable();
    // As many distinct buffers as rows, and as many rows as buffers: every buffer has an offset.
    Ok(Plan { offsets: offsets.into_iter().flatten().collect(), in_place })
}

fn other_size(trace: &Trace, buffer: usize, size: u64) -> Option<String> {
    let planned = trace.instance.buffers()[buffer].size;
    let requested = trace.labels.buffers[buffer].requested;
    let known = size == planned.get() || requested.is_some_and(|bytes| bytes.get() == size);
    (!known).then(|| format!("the size is {size} here, but {planned} in the trace"))
}

/// Steps may be those of the trace or, if the trace ranks them, those of its file.
fn other_life(trace: &Trace, buffer: usize, row: &Row) -> Option<String> {
    let (lower, upper) = <(u32, u32)>::from(trace.instance.buffers()[buffer].live);
    let planned = (u64::from(lower), u64::from(upper));
    let fits = |(lower, upper): (u64, u64)| {
        row.lower.is_none_or(|step| step == lower) && row.upper.is_none_or(|step| step == upper)
    };
    let original = trace.labels.buffers[buffer].original_steps;
    let (lower, upper) = original.unwrap_or(planned);
    let here = (row.lower.unwrap_or(lower), row.upper.unwrap_or(upper));
    (!fits(planned) && !original.is_some_and(fits))
        .then(|| format!("the life is [{}, {}) here, but [{lower}, {upper}) in the trace", here.0, here.1))
}
