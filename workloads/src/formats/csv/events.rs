//! The events shape of the trace CSV: `step,event,id,size[,stream]` and the columns of the buffers shape.
//!
//! At one step frees come before allocations, so an id may be freed and allocated again at the same step. A buffer that
//! is never freed lives until the step after the last event. An id that is allocated again after its free gets a
//! number: `x`, then `x#2`. Streams are read and ignored.
//!
//! The row of an allocation contains `alignment`, `offset`, `hint`, `gaps`, `may_overwrite`, `apart` and `arena`; they
//! are empty in the row of a free. An id in `may_overwrite` or `apart` is the buffer with that id at that step.

use std::borrow::Cow;

use planlab_dsa::{Alignment, Label};
use rustc_hash::FxHashMap;

use super::cells::{alignment, some};
use super::header::{Column, Header};
use super::rows::each_row;
use crate::formats::error::quote_excerpt;
use crate::formats::input::lines::Lines;
use crate::formats::input::numbers::{maybe, positive, whole};
use crate::formats::trace::draft::{Draft, RawBuffer};
use crate::formats::trace::ids::{escape, unescape};
use crate::formats::trace::pauses::{RawPause, gaps};
use crate::formats::unique::UniqueNames;
use crate::formats::{Dialect, FormatError};

/// Columns that describe a buffer; they must be empty in the row of a free.
const OF_BUFFERS: [Column; 7] = [
    Column::Alignment,
    Column::Offset,
    Column::Hint,
    Column::Gaps,
    Column::MayOverwrite,
    Column::Apart,
    Column::Arena,
];
/// Columns that repeat what the events say, or that only a plan has.
const SENSELESS: [Column; 4] = [Column::Lower, Column::Upper, Column::End, Column::Overwrites];

/// One line.
struct Event {
    line: u64,
    step: u64,
    alloc: bool,
    id: Box<str>,
    /// Bytes; 0 if a free gives no size.
    size: u64,
    category: Option<String>,
    op: Option<String>,
    demands: Option<Box<Demands>>,
}

/// The properties that an allocation requests besides its size.
struct Demands {
    align: Option<Alignment>,
    pin: Option<u64>,
    hint: Option<u64>,
    gaps: Vec<RawPause>,
    /// Ids, separated by spaces.
    may_overwrite: String,
    apart: String,
    arena: String,
}

impl Event {
    /// Whether its row refers to other buffers.
    fn names_others(&self) -> bool {
        self.demands
            .as_ref()
            .is_some_and(|demands| !(demands.may_overwrite.is_empty() && demands.apart.is_empty()))
    }
}

/// Reads the lines after the header.
pub(crate) fn read_events(
    draft: &mut Draft<'_>,
    header: &Header,
    header_line: u64,
    lines: &mut Lines<'_>,
) -> Result<(), FormatError> {
    let checked = header
        .require_columns(&[Column::Step, Column::Event, Column::Id, Column::Size])
        .and_then(|()| header.forbid_columns(&SENSELESS, "has no meaning beside `event`: rows are events"));
    checked.map_err(|reason| draft.error_at(header_line, reason))?;
    let mut events = Vec::new();
    each_row(draft, header, lines, |_, line, fields| {
        events.push(parse_event(header, fields, line)?);
        Ok(())
    })?;
    events.sort_by_key(|event| event.step);
    Pairing::new().pair_events(draft, &events)?;
    draft.check_pauses()
}

fn parse_event(header: &Header, fields: &[Cow<'_, str>], line: u64) -> Result<Event, String> {
    let step = whole("step", header.field_of(fields, Column::Step))?;
    let alloc = match header.field_of(fields, Column::Event) {
        "alloc" => true,
        "free" => false,
        other => return Err(format!("the event `{}` is neither alloc nor free", quote_excerpt(other))),
    };
    let id = header.field_of(fields, Column::Id);
    if id.is_empty() {
        return Err("the id is empty".to_owned());
    }
    let size = match header.field_of(fields, Column::Size) {
        "" if !alloc => 0,
        bytes if alloc => positive("size", bytes)?,
        bytes => whole("size", bytes)?,
    };
    let demands = if alloc { parse_demands(header, fields)? } else { demand_nothing(header, fields)? };
    let category = some(header.field_of(fields, Column::Category));
    let op = some(header.field_of(fields, Column::Op));
    Ok(Event { line, step, alloc, id: id.into(), size, category, op, demands })
}

fn parse_demands(header: &Header, fields: &[Cow<'_, str>]) -> Result<Option<Box<Demands>>, String> {
    if !OF_BUFFERS.iter().any(|&column| header.has_column(column)) {
        return Ok(None);
    }
    let cell = |column| header.field_of(fields, column);
    Ok(Some(Box::new(Demands {
        align: alignment(cell(Column::Alignment))?,
        pin: maybe("offset", cell(Column::Offset))?,
        hint: maybe("hint", cell(Column::Hint))?,
        gaps: gaps(cell(Column::Gaps), Dialect::HalfOpen)?,
        may_overwrite: cell(Column::MayOverwrite).to_owned(),
        apart: cell(Column::Apart).to_owned(),
        arena: cell(Column::Arena).to_owned(),
    })))
}

fn demand_nothing(header: &Header, fields: &[Cow<'_, str>]) -> Result<Option<Box<Demands>>, String> {
    let is_none = |column, cell: &str| {
        cell.is_empty() || cell == "-1" && matches!(column, Column::Offset | Column::Hint)
    };
    let said = OF_BUFFERS.into_iter().find(|&column| !is_none(column, header.field_of(fields, column)));
    match said {
        Some(column) => Err(format!(
            "a free has `{}` in the column `{}`, which belongs to the row of the alloc",
            quote_excerpt(header.field_of(fields, column)),
            column.name()
        )),
        None => Ok(None),
    }
}

/// The live buffers while the events are processed.
struct Pairing<'t> {
    /// Id to buffer and line of its allocation.
    live: FxHashMap<&'t str, (usize, u64)>,
    /// The buffers of each id; empty if no buffer refers to another.
    buffers: FxHashMap<&'t str, Vec<usize>>,
    names: UniqueNames,
    sizes: Vec<u64>,
}

impl<'t> Pairing<'t> {
    fn new() -> Self {
        let names = UniqueNames::new("#");
        Self { live: FxHashMap::default(), buffers: FxHashMap::default(), names, sizes: Vec::new() }
    }

    fn pair_events(mut self, draft: &mut Draft<'_>, events: &'t [Event]) -> Result<(), FormatError> {
        let names_any = events.iter().any(Event::names_others);
        let mut naming = Vec::new();
        for group in events.chunk_by(|a, b| a.step == b.step) {
            for event in group.iter().filter(|event| !event.alloc) {
                let freed = self.end_buffer(draft, event, group);
                freed.map_err(|reason| draft.error_at(event.line, reason))?;
            }
            for event in group.iter().filter(|event| event.alloc) {
                let buffer =
                    self.begin_buffer(draft, event).map_err(|reason| draft.error_at(event.line, reason))?;
                if names_any {
                    self.buffers.entry(&event.id).or_default().push(buffer);
                }
                naming.extend(event.names_others().then_some((buffer, event)));
            }
        }
        let Some(last) = events.last() else { return Ok(()) };
        let Some(end) = last.step.checked_add(1) else {
            return Err(draft.error_at(last.line, "a step of 2^64 - 1 leaves no room for the one after"));
        };
        self.live.values().for_each(|&(buffer, _)| draft.set_upper(buffer, end));
        // The buffer behind an id is only known once every end is.
        for (buffer, event) in naming {
            self.link_event(draft, buffer, event).map_err(|reason| draft.error_at(event.line, reason))?;
        }
        Ok(())
    }

    fn link_event(&self, draft: &mut Draft<'_>, buffer: usize, event: &Event) -> Result<(), String> {
        let Some(demands) = &event.demands else { return Ok(()) };
        let may_overwrite = self.resolve_ids(draft, buffer, &demands.may_overwrite)?;
        let apart = self.resolve_ids(draft, buffer, &demands.apart)?;
        draft.may_overwrite(buffer, &may_overwrite);
        draft.keep_apart(buffer, &apart);
        Ok(())
    }

    /// Replaces the ids in a buffer's row by buffer names. If several buffers have an id, it means the one that is live
    /// when the buffer is allocated.
    fn resolve_ids(&self, draft: &Draft<'_>, buffer: usize, ids: &str) -> Result<String, String> {
        let (start, _) = draft.raw_range(buffer);
        let mut names = Vec::new();
        for id in ids.split_ascii_whitespace() {
            let plain = unescape(id);
            let known = self.buffers.get(id).or_else(|| self.buffers.get(plain.as_str()));
            names.push(match known.map(Vec::as_slice) {
                // Not an id of the file; perhaps the name of a buffer with a repeated id, `x#2`.
                None => id.to_owned(),
                Some([only]) => escape(draft.name(*only)),
                Some(several) => {
                    let is_live = |other: &&usize| {
                        let (lower, upper) = draft.raw_range(**other);
                        **other != buffer && lower <= start && start < upper
                    };
                    let live = several.iter().find(is_live).ok_or_else(|| {
                        format!(
                            "`{}` is not live at step {start}, and several buffers have the id",
                            quote_excerpt(id)
                        )
                    })?;
                    escape(draft.name(*live))
                }
            });
        }
        Ok(names.join(" "))
    }

    fn end_buffer(&mut self, draft: &mut Draft<'_>, event: &Event, group: &[Event]) -> Result<(), String> {
        let id = quote_excerpt(&event.id);
        let Some((buffer, line)) = self.live.remove(&*event.id) else {
            let same_step = group.iter().find(|other| other.alloc && other.id == event.id);
            return Err(match same_step {
                Some(alloc) => format!(
                    "a life of length zero: `{id}` is allocated (line {}) and freed at step {}",
                    alloc.line, event.step
                ),
                None => format!("`{id}` is freed at step {}, but it is not live", event.step),
            });
        };
        let size = self.sizes[buffer];
        if event.size != 0 && event.size != size {
            return Err(format!("`{id}` is freed with size {}, but line {line} gave it {size}", event.size));
        }
        draft.set_upper(buffer, event.step);
        Ok(())
    }

    /// Adds a buffer and returns its number.
    fn begin_buffer(&mut self, draft: &mut Draft<'_>, event: &'t Event) -> Result<usize, String> {
        if let Some((_, line)) = self.live.insert(&event.id, (draft.len(), event.line)) {
            let id = quote_excerpt(&event.id);
            return Err(format!("`{id}` is allocated again, but it is live since line {line}"));
        }
        let demands = event.demands.as_deref();
        let label = Label {
            name: self.names.make_unique(&event.id),
            category: event.category.clone(),
            op: event.op.clone(),
            row: Some(event.line),
            hint: demands.and_then(|demands| demands.hint),
            ..Label::default()
        };
        self.sizes.push(event.size);
        let arena = draft.find_arena(demands.map_or("", |demands| demands.arena.as_str()))?;
        let raw = RawBuffer {
            label,
            lower: event.step,
            upper: event.step,
            size: event.size,
            align: demands.and_then(|demands| demands.align),
            pin: demands.and_then(|demands| demands.pin),
            pauses: demands.map(|demands| demands.gaps.clone()).unwrap_or_default(),
        };
        Ok(draft.append_buffer(raw, arena))
    }
}
