//! Groups of bars or dots: nets across, batches within a net, one or several bars per batch.

use plotters::element::{ErrorBar, Rectangle, Text};
use plotters::style::{Color, RGBColor};

use crate::figures::chart::{
    Chart, Entry, LETTERS, LINE, Marker, Room, centered_style, draw_chart, draw_legend, draw_line,
    nearest_pixel, text_width, told, width_with_legend,
};
use crate::figures::coord::Axis;
use crate::figures::palette::{MUTED, PAPER, TEXT};
use crate::figures::{Area, Drawing, Drawn, Series, figure};
use crate::format::count_real;

/// A bar: from one value up to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) color: RGBColor,
    pub(crate) tip: String,
    /// Written above the bar if the bar leaves the frame.
    pub(crate) label: String,
}

/// A measured value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dot {
    pub(crate) series: Series,
    pub(crate) value: f64,
    /// Its confidence interval, if known.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) tip: String,
}

/// The marks above one batch: bars side by side, each made of stacked parts, and a tick across them. Behind the bars
/// are dots, side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slot {
    /// The net.
    pub(crate) group: String,
    /// The batch.
    pub(crate) name: String,
    pub(crate) bars: Vec<Vec<Part>>,
    pub(crate) dots: Vec<Dot>,
    /// A value marked across all bars.
    pub(crate) mark: Option<f64>,
}

/// A figure of slots.
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) y: Axis,
    /// The height of the frame in pixels.
    pub(crate) height: u32,
    /// The text above the frame.
    pub(crate) note: String,
    pub(crate) slots: Vec<Slot>,
    /// The legend; if empty, the bars use its space.
    pub(crate) entries: Vec<Entry>,
}

/// The width for bars beside a legend, in pixels.
pub(crate) const WIDTH: f64 = 768.0;
const ROOM: Room = Room { left: 92, top: 22, right: 16, bottom: 54, below: 3 };

const LEAST: f64 = 30.0;
const BAR: f64 = 9.0;
const MOST: f64 = 110.0;
const BETWEEN: f64 = 16.0;
/// Bars grow up to this many times the width that they need.
const STRETCH: f64 = 3.0;
/// The least width of a frame with its axis, in pixels.
const NARROW: u32 = 440;

/// The number of bars as wide as this many dots: a dot is two thirds as wide.
pub(crate) const fn narrow_bars(dots: usize) -> usize {
    (dots * 2).div_ceil(3)
}

/// The width in pixels that a net's batches need for this many bars each, and for all names.
pub(crate) fn needed_width<'a>(group: &str, names: impl Iterator<Item = &'a str>, bars: usize) -> f64 {
    let (mut slots, mut widest) = (0, LEAST.max(BAR * count_real(bars)));
    for name in names {
        slots += 1;
        let words = name.split(' ').map(|word| f64::from(text_width(word, 11.0)) + 6.0);
        widest = words.fold(widest, f64::max);
    }
    (count_real(slots) * widest).max(f64::from(text_width(group, LETTERS))) + BETWEEN
}

impl Bars {
    /// A figure as high as its legend needs, without a note.
    pub(crate) fn new(title: impl Into<String>, y: Axis, slots: Vec<Slot>, entries: Vec<Entry>) -> Self {
        let lines = u32::try_from(entries.len()).unwrap_or(u32::MAX).min(60);
        let height = (LINE * lines).max(300);
        Self { title: title.into(), y, height, note: String::new(), slots, entries }
    }

    /// Draws the slots side by side, with space between groups, and names them below the frame.
    pub(crate) fn plot_slots(self) -> Drawing {
        let (most, right) = if self.entries.is_empty() { (1060, 20) } else { (876, ROOM.right) };
        // A few bars do not need the whole width.
        let wanted = nearest_pixel(self.group_widths().iter().sum::<f64>() * STRETCH).unsigned_abs();
        let left = (ROOM.left + right + wanted).clamp(NARROW, most);
        let width = width_with_legend(left, (left.max(NARROW + 200), 1240), &self.entries);
        let size = (width, ROOM.top + self.height + ROOM.bottom + ROOM.below);
        figure(self.title.clone(), size, move |root| {
            let area = draw_legend(root, left, ROOM.top, &self.entries)?;
            let wide = f64::from(left - ROOM.left - right);
            let mut chart =
                draw_chart(&area, Room { right, ..ROOM }, &Axis::without_ticks(0.0..wide), &self.y)?;
            let at = (chart.backend_coord(&(wide / 2.0, self.y.low())).0, 10);
            root.draw(&Text::new(self.note.as_str(), at, centered_style(LETTERS, MUTED)))?;
            self.draw_bars(root, &mut chart, wide)
        })
    }

    fn most_bars(&self) -> usize {
        self.slots.iter().map(|slot| slot.bars.len() + narrow_bars(slot.dots.len())).max().unwrap_or(0)
    }

    /// The pixels that each group needs.
    fn group_widths(&self) -> Vec<f64> {
        let width = |group: &[Slot]| {
            let names = group.iter().map(|slot| slot.name.as_str());
            needed_width(&group[0].group, names, self.most_bars())
        };
        self.slots.chunk_by(|a, b| a.group == b.group).map(width).collect()
    }

    fn draw_bars(&self, root: &Area<'_>, chart: &mut Chart<'_>, wide: f64) -> Drawn {
        let groups: Vec<&[Slot]> = self.slots.chunk_by(|a, b| a.group == b.group).collect();
        let most = MOST.max(BAR * count_real(self.most_bars()));
        let widths = self.group_widths();
        let stretch = (wide / widths.iter().sum::<f64>().max(1.0)).min(STRETCH);
        let mut left = 0.0;
        for (group, width) in groups.into_iter().zip(widths) {
            let width = width * stretch;
            let unit = ((width - BETWEEN) / count_real(group.len())).min(most);
            let mut x = left + (width - unit * count_real(group.len())) / 2.0;
            for slot in group {
                self.draw_slot(root, chart, slot, (x, unit))?;
                x += unit;
            }
            let (x, y) = chart.backend_coord(&(left + width / 2.0, self.y.low()));
            root.draw(&Text::new(group[0].group.as_str(), (x, y + 42), centered_style(LETTERS, TEXT)))?;
            left += width;
        }
        Ok(())
    }

    fn draw_slot(&self, root: &Area<'_>, chart: &mut Chart<'_>, slot: &Slot, (x, unit): (f64, f64)) -> Drawn {
        let width = unit * 0.84 / count_real(slot.bars.len() + slot.dots.len()).max(1.0);
        let mut left = x + unit * 0.08;
        for bar in &slot.bars {
            for part in bar.iter().filter(|part| part.to > part.from) {
                self.draw_part(root, chart, part, (left, width))?;
            }
            left += width;
        }
        for dot in &slot.dots {
            draw_dot(chart, dot, left + width / 2.0)?;
            left += width;
        }
        if let Some(mark) = slot.mark {
            let points = vec![(x + unit * 0.04, mark), (x + unit * 0.96, mark)];
            draw_line(chart, points, TEXT.stroke_width(2), false)?;
        }
        // A variant is written below its batch.
        let (x, y) = chart.backend_coord(&(x + unit / 2.0, self.y.low()));
        for (word, line) in slot.name.split(' ').zip(0..) {
            root.draw(&Text::new(word, (x, y + 12 + 12 * line), centered_style(11.0, MUTED)))?;
        }
        Ok(())
    }

    /// A bar that leaves the frame is cut off, with a gap near its end and its value above.
    fn draw_part(
        &self,
        root: &Area<'_>,
        chart: &mut Chart<'_>,
        part: &Part,
        (left, width): (f64, f64),
    ) -> Drawn {
        let corners = [(left, part.from), (left + (width - 2.0).max(0.0), part.to)];
        let element = Rectangle::new(corners, part.color.filled());
        chart.draw_series([told(element, part.tip.as_str())])?;
        if part.to > self.y.high() {
            let (left, top) = chart.backend_coord(&(left, self.y.high()));
            let right = left + nearest_pixel(width);
            root.draw(&Rectangle::new([(left, top + 8), (right, top + 11)], PAPER.filled()))?;
            let at = (i32::midpoint(left, right), top - 7);
            root.draw(&Text::new(part.label.as_str(), at, centered_style(9.0, MUTED)))?;
        }
        Ok(())
    }
}

/// A dot in front of its interval, a line with a cap at each end.
fn draw_dot(chart: &mut Chart<'_>, dot: &Dot, x: f64) -> Drawn {
    let color = dot.series.color();
    if let Some((low, high)) = dot.interval {
        chart.draw_series([ErrorBar::new_vertical(x, low, dot.value, high, color, 5)])?;
    }
    let marker = Marker::new((x, dot.value), dot.series.shape(), 3, color);
    chart.draw_series([told(marker, dot.tip.as_str())])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn width(nets: usize) -> u32 {
        let slot =
            |number: usize| Slot { group: format!("net {number}"), name: "b1".to_owned(), ..Slot::default() };
        Bars::new("t", Axis::without_ticks(0.0..1.0), (0..nets).map(slot).collect(), Vec::new())
            .plot_slots()
            .size()
            .0
    }

    #[test]
    fn a_chart_of_a_few_bars_is_narrow() {
        assert!(width(1) < 700 && width(1) < width(6), "{} {}", width(1), width(6));
        assert_eq!(width(60), 1060);
    }
}
