//! What the viewer shows, in words and tables: why a plan is so high, and what is in use at the peak. For readers who do not
//! see the map.

use planlab_dsa::{BufferId, Instance, Labels, Step};
use planlab_results::table::{CellValue, Column, Table, columns};

use crate::data::instances::blocked::{Blocked, Hole, Reason};
use crate::data::instances::clock::Clock;
use crate::data::planners::tables::without_empty;
use crate::format::{as_real, format_bytes, format_count, format_percent};
use crate::site::page::Piece;
use crate::site::parts::viewer::{Panel, Scene};

/// The most holes in a table.
const HOLES: usize = 10;
/// The most buffers of the peak in a table.
const PEAK: usize = 20;

/// Why each plan is not lower.
pub(crate) fn reason_pieces(scene: &Scene<'_>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let clock = Clock::from_labels(&scene.instance, &scene.labels);
    for panel in &scene.panels {
        let Some(blocked) = &panel.blocked else { continue };
        let load = scene.instance.load();
        let (name, height) = (&panel.name, panel.layout.height);
        if height <= load.bytes.get() {
            let step = clock.original_step(load.step);
            pieces.push(Piece::text(format!(
                "{name}: the height is the load, the bytes that are in use at step {step}; no plan is lower."
            )));
            continue;
        }
        pieces.push(Piece::text(gap_sentence(scene, &clock, panel, blocked)));
        if !blocked.holes.is_empty() {
            pieces.push(Piece::Table(hole_table(&scene.labels, &clock, panel, blocked)));
        }
    }
    if !pieces.is_empty() {
        pieces.insert(0, Piece::heading("Why is it not lower?"));
    }
    pieces
}

fn gap_sentence(scene: &Scene<'_>, clock: &Clock, panel: &Panel, blocked: &Blocked) -> String {
    let (load, height) = (scene.instance.load().bytes.get(), panel.layout.height);
    let over = height - load;
    let top = scene.instance.buffer(blocked.top);
    let others = match blocked.tops {
        1 => String::new(),
        tops => format!(", the first of {} that do", format_count(tops as u64)),
    };
    let bound = match scene.bound {
        Some(bound) if bound >= height => " No plan is lower: the bound is proved.".to_owned(),
        Some(bound) if bound > load => format!(" No plan is lower than {}.", format_bytes(bound)),
        _ => String::new(),
    };
    format!(
        "{}: the height is {} ({}) above the load.{bound} Buffer {} of {}, in use from step {} to {}, reaches it{others}. At \
         step {}, the fullest of its life, {} lie free below it, in {}.",
        panel.name,
        format_bytes(over),
        format_percent(as_real(over) / as_real(load.max(1))),
        buffer_name(&scene.labels, blocked.top),
        format_bytes(top.size.get()),
        clock.original_step(top.live.start()),
        clock.original_step(top.live.end()),
        clock.original_step(Step::new(blocked.step)),
        format_bytes(blocked.free),
        match blocked.holes.len() {
            1 => "one hole".to_owned(),
            holes => format!("{} holes", format_count(holes as u64)),
        },
    )
}

fn hole_table(labels: &Labels, clock: &Clock, panel: &Panel, blocked: &Blocked) -> Table {
    let of = blocked.holes.len();
    let which =
        if of > HOLES { format!("The {HOLES} largest of {of} holes") } else { "The holes".to_owned() };
    let caption =
        format!("{which} of {} at step {}.", panel.name, clock.original_step(Step::new(blocked.step)));
    Table::from_rows(
        "",
        caption,
        blocked.holes.iter().take(HOLES),
        columns!(|hole| {
            let below = hole.below.map(|id| CellValue::text(buffer_name(labels, id)));
            let reason = hole_reason(labels, blocked.top, hole);
            [
                ("from_bytes", "From address", CellValue::Bytes(hole.low)),
                ("size_bytes", "Size", CellValue::Bytes(hole.size)),
                ("below", "Above buffer", CellValue::or_missing(below)),
                ("above", "Below buffer", CellValue::text(buffer_name(labels, hole.above))),
                ("reason", "Why the top buffer is not there", CellValue::text(reason)),
            ]
        }),
    )
}

fn hole_reason(labels: &Labels, top: BufferId, hole: &Hole) -> String {
    match hole.reason {
        Reason::TooSmall => "too small for it".to_owned(),
        Reason::Taken(first, 1) => format!("{} lies there in its life", buffer_name(labels, first)),
        Reason::Taken(first, others) => {
            let more = format_count(others as u64 - 1);
            format!("{} and {more} more lie there in its life", buffer_name(labels, first))
        }
        Reason::Fits => format!("nothing: {} would fit there", buffer_name(labels, top)),
    }
}

fn buffer_name(labels: &Labels, id: BufferId) -> &str {
    labels.buffers.get(id.index()).map_or("?", |label| label.name.as_str())
}

/// The largest buffers in use at the peak, with their offsets.
pub(crate) fn peak_table(scene: &Scene<'_>) -> Table {
    let instance = &*scene.instance;
    let (step, clock) = (instance.load().step, Clock::from_labels(instance, &scene.labels));
    let mut active: Vec<BufferId> = instance.ids().filter(|&id| instance.counts_at(id, step)).collect();
    active.sort_by_key(|&id| (std::cmp::Reverse(instance.buffer(id).size), id));
    let of = active.len();
    let which = if of > PEAK {
        format!("The {PEAK} largest of {} buffers", format_count(of as u64))
    } else {
        "The buffers".to_owned()
    };
    let caption = format!("{which} in use at step {}, the peak.", clock.original_step(step));
    let word = |text: Option<&str>| CellValue::or_missing(text.map(CellValue::text));
    let mut table = Table::from_rows(
        "",
        caption,
        active.iter().take(PEAK),
        columns!(|&id| {
            let (buffer, label) = (instance.buffer(id), &scene.labels.buffers[id.index()]);
            [
                ("buffer", "Buffer", CellValue::text(&label.name)),
                ("category", "Category", word(label.category.as_deref())),
                ("op", "Operation", word(label.op.as_deref())),
                ("frame", "Innermost frame", word(scene.stacks.innermost_frame(id.index()))),
                ("size_bytes", "Size", CellValue::Bytes(buffer.size.get())),
                ("start", "From step", CellValue::Count(clock.original_step(buffer.live.start()))),
                ("end", "To step", CellValue::Count(clock.original_step(buffer.live.end()))),
            ]
        }),
    );
    for panel in &scene.panels {
        let title = format!("Offset, {}", panel.name);
        table.columns.push(Column { key: "offset_bytes".to_owned(), title });
        let lows = lowest_addresses(instance, panel);
        for (row, id) in table.rows.iter_mut().zip(&active) {
            row.push(CellValue::bytes(lows[id.index()]));
        }
    }
    without_empty(table, &["category", "op", "frame"])
}

fn lowest_addresses(instance: &Instance, panel: &Panel) -> Vec<Option<u64>> {
    let mut lows = vec![None; instance.len()];
    for rectangle in panel.layout.rectangles.iter().rev() {
        lows[rectangle.id.index()] = Some(rectangle.low);
    }
    lows
}
