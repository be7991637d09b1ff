//! Groups of bars: nets across, batches within a net, one bar or several for each.

use crate::drawing::axis::{Frame, text_width};
use crate::drawing::palette::{Ink, Rgb};
use crate::drawing::{Anchor, Drawing};

/// A bar: from one value up to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) color: Rgb,
    pub(crate) tip: String,
}

/// What stands over one batch: bars beside each other, each of parts one above the other, and a tick across
/// them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slot {
    /// The net.
    pub(crate) group: String,
    /// The batch.
    pub(crate) name: String,
    pub(crate) bars: Vec<Vec<Part>>,
    /// A value that is marked across all bars.
    pub(crate) mark: Option<f64>,
}

/// Draws the slots side by side, with room between groups, and names them below the frame.
pub(crate) fn draw(drawing: &mut Drawing, frame: &Frame, slots: &[Slot]) {
    let groups = slots.chunk_by(|a, b| a.group == b.group).count();
    let units = crate::format::count_real(slots.len()) + crate::format::count_real(groups) * 0.6;
    let unit = (frame.right - frame.left) / units.max(1.0);
    let mut x = frame.left + unit * 0.3;
    for group in slots.chunk_by(|a, b| a.group == b.group) {
        let start = x;
        for slot in group {
            draw_slot(drawing, frame, slot, (x, unit));
            x += unit;
        }
        let middle = start.midpoint(x);
        let name = fitted(&group[0].group, x - start + unit * 0.6);
        drawing.text((middle, frame.bottom + 31.0), name, Anchor::Middle);
        x += unit * 0.6;
    }
}

/// A name cut to the room there is.
fn fitted(name: &str, room: f64) -> String {
    if text_width(name, 12.0) <= room.max(40.0) {
        return name.to_owned();
    }
    let mut short = String::new();
    for letter in name.chars() {
        if text_width(&short, 12.0) + 14.0 > room.max(40.0) {
            break;
        }
        short.push(letter);
    }
    short + "\u{2026}"
}

fn draw_slot(drawing: &mut Drawing, frame: &Frame, slot: &Slot, (x, unit): (f64, f64)) {
    let width = unit * 0.84 / crate::format::count_real(slot.bars.len()).max(1.0);
    let mut left = x + unit * 0.08;
    for bar in &slot.bars {
        for part in bar.iter().filter(|part| part.to > part.from) {
            let (top, bottom) = (frame.up(part.to), frame.up(part.from).min(frame.bottom));
            drawing.rect(
                (left, top),
                ((width - 1.0).max(1.0), bottom - top),
                Ink::Color(part.color),
                &part.tip,
            );
        }
        left += width;
    }
    if let Some(mark) = slot.mark {
        let y = frame.up(mark);
        drawing.line([(x + unit * 0.04, y), (x + unit * 0.96, y)], Ink::Text, 2.0);
    }
    let at = (x + unit / 2.0, frame.bottom + 13.0);
    drawing.text_of(at, slot.name.clone(), Anchor::Middle, 11.0, Ink::Muted);
}
