//! The events shape of the trace CSV: `step,event,id,size[,stream][,category][,op]`.
//!
//! At one step frees come before allocations, so an id may be freed and allocated again at once. What is
//! never freed lives to the end, which is the step after the last event. An id that comes again after
//! its free gets a number: `x`, then `x#2`. Streams are read and left out.

use std::borrow::Cow;

use planlab_dsa::{ArenaId, Label};
use rustc_hash::{FxHashMap, FxHashSet};

use super::draft::{Draft, RawBuffer};
use super::error::excerpt;
use super::header::{Column, Header};
use super::lab::{positive, some};
use super::{FormatError, text};

/// One line.
struct Event<'t> {
    line: u64,
    step: u64,
    alloc: bool,
    id: Cow<'t, str>,
    /// Bytes; 0 where a free names none.
    size: u64,
    category: Option<String>,
    op: Option<String>,
}

/// Reads the lines after the header.
pub(super) fn read<'t>(
    draft: &mut Draft<'_>,
    header: &Header,
    header_line: u64,
    lines: impl Iterator<Item = (u64, &'t str)>,
) -> Result<(), FormatError> {
    let required =
        [(Column::Step, "step"), (Column::Event, "event"), (Column::Id, "id"), (Column::Size, "size")];
    header.require(&required).map_err(|reason| draft.error(header_line, reason))?;
    let mut events = Vec::new();
    let mut fields = Vec::with_capacity(8);
    for (line, text) in lines {
        let read = match text::comment(text) {
            Some(comment) => draft.comment(line, comment),
            None => header
                .row(text, &mut fields)
                .and_then(|()| event(header, &fields, line))
                .map(|event| events.push(event)),
        };
        read.map_err(|reason| draft.error(line, reason))?;
    }
    events.sort_by_key(|event| event.step);
    Pairing::default().pair(draft, &events)
}

fn event<'t>(header: &Header, fields: &[Cow<'t, str>], line: u64) -> Result<Event<'t>, String> {
    let step = text::whole("step", header.get(fields, Column::Step))?;
    let alloc = match header.get(fields, Column::Event) {
        "alloc" => true,
        "free" => false,
        other => return Err(format!("the event `{}` is neither alloc nor free", excerpt(other))),
    };
    let id = header.at(Column::Id).map(|index| fields[index].clone()).unwrap_or_default();
    if id.is_empty() {
        return Err("the id is empty".to_owned());
    }
    let size = match header.get(fields, Column::Size) {
        "" if !alloc => 0,
        bytes if alloc => positive("size", bytes)?,
        bytes => text::whole("size", bytes)?,
    };
    let category = some(header.get(fields, Column::Category));
    let op = some(header.get(fields, Column::Op));
    Ok(Event { line, step, alloc, id, size, category, op })
}

/// What is live while the events go by.
#[derive(Default)]
struct Pairing<'t> {
    /// Id to buffer and line of its allocation.
    live: FxHashMap<&'t str, (usize, u64)>,
    /// How often each id was allocated.
    times: FxHashMap<&'t str, u32>,
    names: FxHashSet<String>,
    sizes: Vec<u64>,
}

impl<'t> Pairing<'t> {
    fn pair(mut self, draft: &mut Draft<'_>, events: &'t [Event<'t>]) -> Result<(), FormatError> {
        for group in events.chunk_by(|a, b| a.step == b.step) {
            for event in group.iter().filter(|event| !event.alloc) {
                let freed = self.free(draft, event, group);
                freed.map_err(|reason| draft.error(event.line, reason))?;
            }
            for event in group.iter().filter(|event| event.alloc) {
                self.alloc(draft, event).map_err(|reason| draft.error(event.line, reason))?;
            }
        }
        let Some(last) = events.last() else { return Ok(()) };
        let Some(end) = last.step.checked_add(1) else {
            return Err(draft.error(last.line, "a step of 2^64 - 1 leaves no room for the one after"));
        };
        self.live.into_values().for_each(|(buffer, _)| draft.set_upper(buffer, end));
        Ok(())
    }

    fn free(&mut self, draft: &mut Draft<'_>, event: &Event<'t>, group: &[Event<'t>]) -> Result<(), String> {
        let id = excerpt(&event.id);
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

    fn alloc(&mut self, draft: &mut Draft<'_>, event: &'t Event<'t>) -> Result<(), String> {
        let buffer = draft.len();
        if let Some((_, line)) = self.live.insert(&event.id, (buffer, event.line)) {
            let id = excerpt(&event.id);
            return Err(format!("`{id}` is allocated again, but it is live since line {line}"));
        }
        let label = Label {
            name: self.name(&event.id),
            category: event.category.clone(),
            op: event.op.clone(),
            row: Some(event.line),
            ..Label::default()
        };
        self.sizes.push(event.size);
        let (lower, size) = (event.step, event.size);
        draft.buffer(
            RawBuffer { label, lower, upper: lower, size, ..RawBuffer::default() },
            ArenaId::default(),
        );
        Ok(())
    }

    /// A name that no buffer has yet.
    fn name(&mut self, id: &'t str) -> String {
        let times = self.times.entry(id).or_default();
        loop {
            *times += 1;
            let name = if *times == 1 { id.to_owned() } else { format!("{id}#{times}") };
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }
}
