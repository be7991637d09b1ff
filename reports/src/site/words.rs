//! What the viewer shows, in words and tables: why a plan is so high, and what is in use at the peak. For readers who do not
//! see the map.

use planlab_dsa::{BufferId, Instance, Labels, Step};
use planlab_results::table::{Column, Table, Value, columns};

use crate::data::instances::blocked::{Blocked, Hole, Reason};
use crate::data::instances::clock::Clock;
use crate::format::{bytes, count, percent, real};
use crate::site::page::Piece;
use crate::site::parts::viewer::{CallStacks, Panel, Scene};

/// The most holes in a table.
const HOLES: usize = 10;
/// The most buffers of the peak in a table.
const PEAK: usize = 20;

/// Why each plan is not lower.
pub(crate) fn why(scene: &Scene<'_>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let clock = Clock::of(&scene.instance, &scene.labels);
    for panel in &scene.panels {
        let Some(blocked) = &panel.blocked else { continue };
        let load = scene.instance.load();
        let (name, height) = (&panel.name, panel.layout.height);
        if height <= load.bytes.get() {
            let step = clock.at(load.step);
            pieces.push(Piece::text(format!(
                "{name}: the height is the load, the bytes that are in use at step {step}; no plan is lower."
            )));
            continue;
        }
        pieces.push(Piece::text(gap(scene, &clock, panel, blocked)));
        if !blocked.holes.is_empty() {
            pieces.push(Piece::Table(holes(&scene.labels, &clock, panel, blocked)));
        }
    }
    if !pieces.is_empty() {
        pieces.insert(0, Piece::heading("Why is it not lower?"));
    }
    pieces
}

fn gap(scene: &Scene<'_>, clock: &Clock, panel: &Panel, blocked: &Blocked) -> String {
    let (load, height) = (scene.instance.load().bytes.get(), panel.layout.height);
    let over = height - load;
    let top = scene.instance.buffer(blocked.top);
    let others = match blocked.tops {
        1 => String::new(),
        tops => format!(", the first of {} that do", count(tops as u64)),
    };
    let bound = match scene.bound {
        Some(bound) if bound >= height => " No plan is lower: the bound is proved.".to_owned(),
        Some(bound) if bound > load => format!(" No plan is lower than {}.", bytes(bound)),
        _ => String::new(),
    };
    format!(
        "{}: the height is {} ({}) above the load.{bound} Buffer {} of {}, in use from step {} to {}, reaches it{others}. At \
         step {}, the fullest of its life, {} lie free below it, in {}.",
        panel.name,
        bytes(over),
        percent(real(over) / real(load.max(1))),
        name(&scene.labels, blocked.top),
        bytes(top.size.get()),
        clock.at(top.live.start()),
        clock.at(top.live.end()),
        clock.at(Step::new(blocked.step)),
        bytes(blocked.free),
        match blocked.holes.len() {
            1 => "one hole".to_owned(),
            holes => format!("{} holes", count(holes as u64)),
        },
    )
}

fn holes(labels: &Labels, clock: &Clock, panel: &Panel, blocked: &Blocked) -> Table {
    let of = blocked.holes.len();
    let which =
        if of > HOLES { format!("The {HOLES} largest of {of} holes") } else { "The holes".to_owned() };
    let caption = format!("{which} of {} at step {}.", panel.name, clock.at(Step::new(blocked.step)));
    Table::from_rows(
        "",
        caption,
        blocked.holes.iter().take(HOLES),
        columns!(|hole| [
            ("from_bytes", "From address", Value::Bytes(hole.low)),
            ("size_bytes", "Size", Value::Bytes(hole.size)),
            ("below", "Above buffer", Value::or_missing(hole.below.map(|id| Value::text(name(labels, id))))),
            ("above", "Below buffer", Value::text(name(labels, hole.above))),
            ("reason", "Why the top buffer is not there", Value::text(reason(labels, blocked.top, hole))),
        ]),
    )
}

fn reason(labels: &Labels, top: BufferId, hole: &Hole) -> String {
    match hole.reason {
        Reason::TooSmall => "too small for it".to_owned(),
        Reason::Taken(first, 1) => format!("{} lies there in its life", name(labels, first)),
        Reason::Taken(first, others) => {
            format!("{} and {} more lie there in its life", name(labels, first), count(others as u64 - 1))
        }
        Reason::Fits => format!("nothing: {} would fit there", name(labels, top)),
    }
}

fn name(labels: &Labels, id: BufferId) -> &str {
    labels.buffers.get(id.index()).map_or("?", |label| label.name.as_str())
}

/// The largest buffers in use at the peak, with their offsets.
pub(crate) fn peak(scene: &Scene<'_>) -> Table {
    let instance = &*scene.instance;
    let (step, clock) = (instance.load().step, Clock::of(instance, &scene.labels));
    let mut active: Vec<BufferId> = instance.ids().filter(|&id| instance.counts_at(id, step)).collect();
    active.sort_by_key(|&id| (std::cmp::Reverse(instance.buffer(id).size), id));
    let offsets: Vec<Vec<Option<u64>>> = scene.panels.iter().map(|panel| lows(instance, panel)).collect();
    let mut columns = columns_of(scene, &clock, &active);
    let of = active.len();
    let which = if of > PEAK {
        format!("The {PEAK} largest of {} buffers", count(of as u64))
    } else {
        "The buffers".to_owned()
    };
    let caption = format!("{which} in use at step {}, the peak.", clock.at(step));
    let mut table = Table::named("", caption, &[]);
    for &id in active.iter().take(PEAK) {
        let mut row: Vec<Value> = columns.iter().map(|column| (column.value)(id)).collect();
        row.extend(offsets.iter().map(|offsets| Value::bytes(offsets[id.index()])));
        table.rows.push(row);
    }
    let own = columns.drain(..).map(|column| column.head);
    let offset = |panel: &Panel| head("offset_bytes", format!("Offset, {}", panel.name));
    table.columns = own.chain(scene.panels.iter().map(offset)).collect();
    table
}

/// A column, and its value of a buffer.
struct Described<'s> {
    head: Column,
    value: Box<dyn Fn(BufferId) -> Value + 's>,
}

/// The columns that some buffer has something in.
fn columns_of<'s>(scene: &'s Scene<'_>, clock: &'s Clock, active: &[BufferId]) -> Vec<Described<'s>> {
    let (instance, labels, stacks): (_, _, &CallStacks<'_>) =
        (&*scene.instance, &*scene.labels, &scene.stacks);
    let label = move |id: BufferId| &labels.buffers[id.index()];
    let word = |text: Option<&str>| Value::or_missing(text.map(Value::text));
    let described = |key: &str, title: &str, value: Box<dyn Fn(BufferId) -> Value + 's>| Described {
        head: head(key, title),
        value,
    };
    let words = [
        described("category", "Category", Box::new(move |id| word(label(id).category.as_deref()))),
        described("op", "Operation", Box::new(move |id| word(label(id).op.as_deref()))),
        described("frame", "Innermost frame", Box::new(move |id| word(stacks.innermost(id.index())))),
    ];
    let is_said = |column: &Described<'_>| {
        active.iter().take(PEAK).any(|&id| !matches!((column.value)(id), Value::Missing))
    };
    let mut columns = vec![described("buffer", "Buffer", Box::new(move |id| Value::text(&label(id).name)))];
    columns.extend(words.into_iter().filter(is_said));
    let step = |step: Step| Value::Count(clock.at(step));
    columns.extend([
        described("size_bytes", "Size", Box::new(move |id| Value::Bytes(instance.buffer(id).size.get()))),
        described("start", "From step", Box::new(move |id| step(instance.buffer(id).live.start()))),
        described("end", "To step", Box::new(move |id| step(instance.buffer(id).live.end()))),
    ]);
    columns
}

fn head(key: &str, title: impl Into<String>) -> Column {
    Column { key: key.to_owned(), title: title.into() }
}

/// The lowest address of each buffer.
fn lows(instance: &Instance, panel: &Panel) -> Vec<Option<u64>> {
    let mut lows = vec![None; instance.len()];
    for rectangle in panel.layout.rectangles.iter().rev() {
        lows[rectangle.id.index()] = Some(rectangle.low);
    }
    lows
}
