//! Groups of bars or dots: nets across, batches within a net, one or several for each.

use super::Series;
use crate::drawing::axis::{Frame, text_width};
use crate::drawing::palette::{Ink, Rgb};
use crate::drawing::{Anchor, Drawing, Mark};
use crate::format::count_real;

/// A bar: from one value up to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) color: Rgb,
    pub(crate) tip: String,
    /// Written above the bar where the bar leaves the frame.
    pub(crate) label: String,
}

/// A value that is measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dot {
    pub(crate) series: Series,
    pub(crate) value: f64,
    /// Where it lies with some confidence.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) tip: String,
}

/// What stands over one batch: bars beside each other, each of parts one above the other, and a tick across
/// them; behind the bars dots beside each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slot {
    /// The net.
    pub(crate) group: String,
    /// The batch.
    pub(crate) name: String,
    pub(crate) bars: Vec<Vec<Part>>,
    pub(crate) dots: Vec<Dot>,
    /// A value that is marked across all bars.
    pub(crate) mark: Option<f64>,
}

const LEAST: f64 = 30.0;
const BAR: f64 = 9.0;
const MOST: f64 = 110.0;
const BETWEEN: f64 = 16.0;

/// So many bars are as wide as so many dots.
pub(crate) const fn narrow(dots: usize) -> usize {
    (dots * 2).div_ceil(3)
}

/// The width that a net's batches need, in pixels: for so many bars each and for all names.
pub(crate) fn needed<'a>(group: &str, names: impl Iterator<Item = &'a str>, bars: usize) -> f64 {
    let (mut slots, mut widest) = (0, LEAST.max(BAR * count_real(bars)));
    for name in names {
        slots += 1;
        let words = name.split(' ').map(|word| text_width(word, 11.0) + 6.0);
        widest = words.fold(widest, f64::max);
    }
    (count_real(slots) * widest).max(text_width(group, 12.0)) + BETWEEN
}

/// Draws the slots side by side, with room between groups, and names them below the frame.
pub(crate) fn draw(drawing: &mut Drawing, frame: &Frame, slots: &[Slot]) {
    let groups: Vec<&[Slot]> = slots.chunk_by(|a, b| a.group == b.group).collect();
    let bars = slots.iter().map(|slot| slot.bars.len() + narrow(slot.dots.len())).max().unwrap_or(0);
    let most = MOST.max(BAR * count_real(bars));
    let widths: Vec<f64> = groups
        .iter()
        .map(|group| needed(&group[0].group, group.iter().map(|slot| slot.name.as_str()), bars))
        .collect();
    let stretch = ((frame.right - frame.left) / widths.iter().sum::<f64>().max(1.0)).min(3.0);
    let mut left = frame.left;
    for (group, width) in groups.into_iter().zip(widths) {
        let width = width * stretch;
        let unit = ((width - BETWEEN) / count_real(group.len())).min(most);
        let mut x = left + (width - unit * count_real(group.len())) / 2.0;
        for slot in group {
            draw_slot(drawing, frame, slot, (x, unit));
            x += unit;
        }
        drawing.text((left + width / 2.0, frame.bottom + 40.0), group[0].group.clone(), Anchor::Middle);
        left += width;
    }
}

fn draw_slot(drawing: &mut Drawing, frame: &Frame, slot: &Slot, (x, unit): (f64, f64)) {
    let width = unit * 0.84 / count_real(slot.bars.len() + slot.dots.len()).max(1.0);
    let mut left = x + unit * 0.08;
    for bar in &slot.bars {
        for part in bar.iter().filter(|part| part.to > part.from) {
            draw_part(drawing, frame, part, (left, width));
        }
        left += width;
    }
    for dot in &slot.dots {
        draw_dot(drawing, frame, dot, left + width / 2.0);
        left += width;
    }
    if let Some(mark) = slot.mark {
        let y = frame.up(mark);
        drawing.line([(x + unit * 0.04, y), (x + unit * 0.96, y)], Ink::Text, 2.0);
    }
    // A variant stands below its batch.
    for (word, line) in slot.name.split(' ').zip(0_u32..) {
        let at = (x + unit / 2.0, frame.bottom + 11.0 + 12.0 * f64::from(line));
        drawing.text_of(at, word, Anchor::Middle, 11.0, Ink::Muted);
    }
}

/// A dot, with its interval as a line behind it that has a cap at each end.
fn draw_dot(drawing: &mut Drawing, frame: &Frame, dot: &Dot, x: f64) {
    let ink = Ink::Color(dot.series.color());
    if let Some((low, high)) = dot.interval {
        let (bottom, top) = (frame.up(low).min(frame.bottom), frame.up(high).max(frame.top));
        drawing.line([(x, bottom), (x, top)], ink, 1.0);
        for y in [bottom, top] {
            drawing.line([(x - 2.5, y), (x + 2.5, y)], ink, 1.0);
        }
    }
    let (at, shape, tip) = ((x, frame.up(dot.value)), dot.series.shape(), dot.tip.clone());
    drawing.push(Mark::Dot { at, ink, shape, radius: 3.0, tip });
}

/// A bar that leaves the frame is cut off, with a gap near its end and its value above.
fn draw_part(drawing: &mut Drawing, frame: &Frame, part: &Part, (left, width): (f64, f64)) {
    let (top, bottom) = (frame.up(part.to), frame.up(part.from).min(frame.bottom));
    let (ink, width) = (Ink::Color(part.color), (width - 1.0).max(1.0));
    if top >= frame.top - 0.5 {
        return drawing.rect((left, top), (width, bottom - top), ink, &part.tip);
    }
    drawing.rect((left, frame.top), (width, 8.0), ink, &part.tip);
    drawing.rect((left, frame.top + 12.0), (width, bottom - frame.top - 12.0), ink, &part.tip);
    let at = (left + width / 2.0, frame.top - 7.0);
    drawing.text_of(at, part.label.clone(), Anchor::Middle, 9.0, Ink::Muted);
}
