//! Axes: scales, ticks, a frame to draw in, and legends.

use super::palette::{Ink, Rgb};
use super::{Anchor, Drawing, Mark, Shape, Spot};
use crate::format::{binary_unit, nanoseconds, short_count, unit_name, unit_size};

/// How values become places between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    Linear {
        low: f64,
        high: f64,
    },
    /// What lies below the low end is drawn there.
    Log {
        low: f64,
        high: f64,
    },
    /// `ln(1 + value / shift)` from 0: linear near 0, logarithmic far from it.
    Shifted {
        high: f64,
        shift: f64,
    },
}

impl Scale {
    pub(crate) fn place(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } => (value.max(low) / low).ln() / (high / low).ln(),
            Self::Shifted { high, shift } => (value.max(0.0) / shift).ln_1p() / (high / shift).ln_1p(),
        };
        if place.is_finite() { place } else { 0.0 }
    }
}

/// A scale with its ticks and its name.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) title: String,
}

impl Axis {
    /// Bytes from 0, with ticks at round numbers of one unit.
    pub(crate) fn bytes(title: impl Into<String>, most: f64) -> Self {
        let most = most.max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive; `as` saturates"
        )]
        let unit = binary_unit(most as u64);
        let size = unit_size(unit);
        let step = round_step(most / size / 5.0) * size;
        let ticks =
            steps(step, most).map(|v| (v, format!("{} {}", trimmed(v / size), unit_name(unit)))).collect();
        Self { scale: Scale::Linear { low: 0.0, high: most * 1.04 }, ticks, title: title.into() }
    }

    /// Whole numbers from 0.
    pub(crate) fn counts(title: impl Into<String>, most: f64) -> Self {
        let most = most.max(1.0);
        let step = round_step(most / 6.0).max(1.0);
        let ticks = steps(step, most).map(|v| (v, short_count(v))).collect();
        Self { scale: Scale::Linear { low: 0.0, high: most }, ticks, title: title.into() }
    }

    /// A logarithmic axis with a tick at each power of ten.
    pub(crate) fn log(title: impl Into<String>, low: f64, high: f64, label: fn(f64) -> String) -> Self {
        let (first, last) = (low.log10().floor(), high.log10().ceil());
        let (first, last) = if last > first { (first, last) } else { (first, first + 1.0) };
        let mut ticks = Vec::new();
        let mut power = first;
        while power <= last {
            let value = 10_f64.powf(power);
            ticks.push((value, label(value)));
            power += 1.0;
        }
        let scale = Scale::Log { low: 10_f64.powf(first), high: 10_f64.powf(last) };
        Self { scale, ticks, title: title.into() }
    }

    /// Nanoseconds on a logarithmic axis.
    pub(crate) fn times(title: impl Into<String>, low: f64, high: f64) -> Self {
        Self::log(title, low, high, |value| nanoseconds(value).replace(".00", "").replace(".0 ", " "))
    }

    /// Nanoseconds on a logarithmic axis that all of the values fit on; what is too short to be written, or
    /// nothing, is drawn at its low end.
    pub(crate) fn times_of(title: impl Into<String>, values: impl Iterator<Item = f64>) -> Self {
        const LEAST: f64 = 0.01;
        let values: Vec<f64> = values.filter(|&value| value >= LEAST).collect();
        let low = values.iter().copied().min_by(f64::total_cmp).unwrap_or(LEAST);
        let high = values.iter().copied().max_by(f64::total_cmp).unwrap_or(LEAST);
        Self::times(title, low, high)
    }

    /// Shares from 0, with what is small drawn apart.
    pub(crate) fn gaps(title: impl Into<String>, most: f64) -> Self {
        const SHIFT: f64 = 0.002;
        let high = most.max(0.01) * 1.1;
        let candidates = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];
        let ticks = candidates.into_iter().filter(|v| *v <= high).map(|v| (v, percent_tick(v))).collect();
        Self { scale: Scale::Shifted { high, shift: SHIFT }, ticks, title: title.into() }
    }

    /// Shares from 0 to 1.
    pub(crate) fn shares(title: impl Into<String>) -> Self {
        let ticks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0].map(|v| (v, percent_tick(v))).to_vec();
        Self { scale: Scale::Linear { low: 0.0, high: 1.0 }, ticks, title: title.into() }
    }

    /// Shares from 0 up to the first tick that is not below the largest.
    pub(crate) fn shares_to(title: impl Into<String>, most: f64) -> Self {
        let most = most.clamp(0.001, 1.0);
        let step = round_step(most / 5.0);
        let high = ((most / step * 0.999).ceil() * step).min(1.0);
        let ticks = steps(step, high).map(|v| (v, percent_tick(v))).collect();
        Self { scale: Scale::Linear { low: 0.0, high }, ticks, title: title.into() }
    }

    /// Shares below and above 0, which is always on it.
    pub(crate) fn differences(title: impl Into<String>, low: f64, high: f64) -> Self {
        let (low, high) = (low.min(0.0), high.max(0.0));
        let step = round_step((high - low).max(0.01) / 5.0);
        let (first, last) = ((low / step * 0.999).floor(), (high / step * 0.999).ceil());
        let mut ticks = Vec::new();
        let mut number = first;
        while number <= last {
            ticks.push((number * step, percent_tick(number * step)));
            number += 1.0;
        }
        let high = if last > first { last } else { first + 1.0 };
        Self { scale: Scale::Linear { low: first * step, high: high * step }, ticks, title: title.into() }
    }
}

fn percent_tick(share: f64) -> String {
    format!("{} %", trimmed(share * 100.0))
}

fn trimmed(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The least of 1, 2, 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.max(1e-9).log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * 0.999).unwrap_or(10.0);
    factor * power
}

fn steps(step: f64, most: f64) -> impl Iterator<Item = f64> {
    (0..60).map(move |n| f64::from(n) * step).take_while(move |value| *value <= most * 1.001)
}

/// The part of a picture between its axes, in pixels.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl Frame {
    /// Where a pair of values lies.
    pub(crate) fn spot(&self, x: f64, y: f64) -> Spot {
        (self.across(x), self.up(y))
    }

    pub(crate) fn across(&self, value: f64) -> f64 {
        self.left + self.x.scale.place(value) * (self.right - self.left)
    }

    pub(crate) fn up(&self, value: f64) -> f64 {
        self.bottom - self.y.scale.place(value) * (self.bottom - self.top)
    }

    /// Draws grid, ticks and names.
    pub(crate) fn draw(&self, drawing: &mut Drawing) {
        for (value, label) in &self.y.ticks {
            let y = self.up(*value);
            if y >= self.top - 0.5 && y <= self.bottom + 0.5 {
                drawing.line([(self.left, y), (self.right, y)], Ink::Grid, 1.0);
                drawing.text((self.left - 8.0, y), label, Anchor::End);
            }
        }
        self.draw_below(drawing);
        drawing.line(
            [(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)],
            Ink::Muted,
            1.0,
        );
        if !self.y.title.is_empty() {
            let at = (14.0, self.top.midpoint(self.bottom));
            let text = self.y.title.clone();
            let (anchor, size, ink) = (Anchor::Middle, 12.0, Ink::Muted);
            drawing.push(Mark::Text { at, text, anchor, size, ink, turned: true });
        }
    }

    /// Ticks whose letters would touch the ones before are left out.
    fn draw_below(&self, drawing: &mut Drawing) {
        let mut free_from = f64::NEG_INFINITY;
        for (value, label) in &self.x.ticks {
            let (x, half) = (self.across(*value), text_width(label, 12.0) / 2.0);
            if x < self.left - 0.5 || x > self.right + 0.5 || x - half < free_from {
                continue;
            }
            free_from = x + half + 8.0;
            drawing.line([(x, self.top), (x, self.bottom)], Ink::Grid, 1.0);
            drawing.text((x, self.bottom + 14.0), label, Anchor::Middle);
        }
        let at = (self.left.midpoint(self.right), self.bottom + 34.0);
        drawing.text_of(at, self.x.title.clone(), Anchor::Middle, 12.0, Ink::Muted);
    }
}

/// About how wide a text will be, in pixels.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    crate::format::count_real(text.chars().count()) * size * 0.6
}

/// What stands beside a line of a legend.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    Dot(Shape),
    Line { dashed: bool },
    Box,
}

/// A line of a legend.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) color: Rgb,
    pub(crate) text: String,
}

const LINE: f64 = 17.0;
const INDENT: f64 = 22.0;
const LETTERS: f64 = 12.0;

/// Makes a picture as wide as a legend at `left` needs, up to `most` pixels; what is wider is wrapped.
pub(crate) fn make_room(drawing: &mut Drawing, left: f64, most: u32, entries: &[Entry]) {
    let widest = entries.iter().map(|entry| text_width(&entry.text, LETTERS)).fold(0.0, f64::max);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; `as` saturates")]
    let needed = (left + INDENT + widest + 4.0).ceil() as u32;
    drawing.widen(needed.min(most));
}

/// Draws a legend downwards from `corner`, long texts on several lines; what does not fit into `height` is
/// counted in a last line.
pub(crate) fn legend(drawing: &mut Drawing, corner: Spot, height: f64, entries: &[Entry]) {
    let width = f64::from(drawing.size().0) - corner.0 - INDENT;
    let wrapped: Vec<Vec<String>> = entries.iter().map(|entry| wrap(&entry.text, width)).collect();
    let lines = |count: usize| wrapped[..count].iter().map(Vec::len).sum::<usize>();
    let fits = |count: usize, lines_left: usize| {
        crate::format::count_real(lines(count) + lines_left) * LINE <= height.max(LINE)
    };
    let count = entries.len();
    let shown = if fits(count, 0) { count } else { (0..count).rev().find(|&n| fits(n, 1)).unwrap_or(0) };
    let mut y = corner.1 + LINE / 2.0;
    for (entry, texts) in entries.iter().zip(&wrapped).take(shown) {
        draw_key(drawing, entry, (corner.0, y));
        for text in texts {
            drawing.text((corner.0 + INDENT, y), text.clone(), Anchor::Start);
            y += LINE;
        }
    }
    if shown < count {
        let text = format!("and {} more", count - shown);
        drawing.text_of((corner.0 + INDENT, y), text, Anchor::Start, LETTERS, Ink::Muted);
    }
}

fn draw_key(drawing: &mut Drawing, entry: &Entry, (x, y): Spot) {
    let (at, ink) = ((x + 8.0, y), Ink::Color(entry.color));
    match entry.key {
        Key::Dot(shape) => drawing.push(Mark::Dot { at, ink, shape, radius: 4.5, tip: String::new() }),
        Key::Line { dashed: false } => drawing.line([(x, y), (x + 16.0, y)], ink, 2.0),
        Key::Line { dashed: true } => drawing.dashed([(x, y), (x + 16.0, y)], ink, 2.0),
        Key::Box => drawing.rect((x + 2.0, y - 6.0), (12.0, 12.0), ink, ""),
    }
}

/// A text in lines of at most `width` pixels: broken behind a space, a comma or a dash where there is one.
fn wrap(text: &str, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    let is_full = |line: &str, piece: &str| {
        text_width(line, LETTERS) + text_width(piece.trim_end(), LETTERS) > width.max(LETTERS)
    };
    for piece in text.split_inclusive([' ', ',', '-']) {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && is_full(&lines[last], piece) {
            lines.push(String::new());
        }
        for letter in piece.chars() {
            let last = lines.len() - 1;
            if !lines[last].is_empty()
                && letter != ' '
                && is_full(&lines[last], letter.encode_utf8(&mut [0; 4]))
            {
                lines.push(String::new());
            }
            let last = lines.len() - 1;
            lines[last].push(letter);
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_place_their_ends() {
        let scales = [
            Scale::Linear { low: 0.0, high: 8.0 },
            Scale::Log { low: 0.1, high: 8.0 },
            Scale::Shifted { high: 8.0, shift: 0.1 },
        ];
        for (scale, low) in scales.into_iter().zip([0.0, 0.1, 0.0]) {
            assert!(scale.place(low).abs() < 1e-12 && (scale.place(8.0) - 1.0).abs() < 1e-12, "{scale:?}");
            assert!(scale.place(4.0) > scale.place(2.0), "{scale:?}");
        }
        assert_eq!(Scale::Linear { low: 0.0, high: 0.0 }.place(0.0), 0.0);
    }

    #[test]
    fn an_axis_of_times_holds_all_of_them_and_nothing_at_its_low_end() {
        let axis = Axis::times_of("", [0.25, 0.0, 30.0].into_iter());
        assert_eq!(axis.ticks.len(), 4, "0.1, 1, 10 and 100 ns");
        assert!(axis.scale.place(0.25) > 0.0 && axis.scale.place(30.0) < 1.0);
        assert_eq!(axis.scale.place(0.0), 0.0);
        for nothing in [&[0.0][..], &[]] {
            assert_eq!(Axis::times_of("", nothing.iter().copied()).scale.place(0.0), 0.0);
        }
    }

    #[test]
    fn a_legend_stays_inside_its_picture() {
        assert_eq!(wrap("first-fit by size", 80.0), ["first-fit", "by size"]);
        assert_eq!(wrap("abcdefgh", 30.0), ["abcd", "efgh"]);
        assert_eq!(wrap("", 30.0), [""]);
        let entry = |text: &str| Entry { key: Key::Box, color: [0; 3], text: text.to_owned() };
        let entries = ["short", "a name of many words that has to be broken", "last"].map(entry);
        let mut drawing = Drawing::new("t", 200, 100);
        legend(&mut drawing, (90.0, 0.0), 85.0, &entries);
        let texts: Vec<(f64, &str)> = drawing
            .marks()
            .iter()
            .filter_map(|mark| match mark {
                Mark::Text { at, text, .. } => Some((at.0 + text_width(text, 12.0), text.as_str())),
                _ => None,
            })
            .collect();
        assert!(texts.iter().all(|(end, _)| *end <= 200.0), "{texts:?}");
        assert_eq!((texts[0].1, texts[texts.len() - 1].1), ("short", "and 2 more"));
        make_room(&mut drawing, 90.0, 1000, &entries);
        assert!(drawing.size().0 > 350 && drawing.size().0 < 1000, "{:?}", drawing.size());
        make_room(&mut drawing, 90.0, 300, &entries);
        assert!(drawing.size().0 > 350, "never narrower");
    }

    #[test]
    fn ticks_are_round() {
        let labels =
            |axis: Axis| axis.ticks.into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" | ");
        assert_eq!(labels(Axis::bytes("", 9.7 * 1024.0 * 1024.0)), "0 MiB | 2 MiB | 4 MiB | 6 MiB | 8 MiB");
        assert_eq!(labels(Axis::bytes("", 0.0)), "0 B | 0.2 B | 0.4 B | 0.6 B | 0.8 B | 1 B");
        assert_eq!(labels(Axis::counts("", 3.0)), "0 | 1 | 2 | 3");
        assert_eq!(labels(Axis::times("", 2e3, 3e6)), "1 \u{b5}s | 10 \u{b5}s | 100 \u{b5}s | 1 ms | 10 ms");
        assert_eq!(labels(Axis::gaps("", 0.2)), "0 % | 0.1 % | 0.3 % | 1 % | 3 % | 10 %");
        assert_eq!(
            labels(Axis::shares_to("", 0.352)),
            "0 % | 10 % | 20 % | 30 % | 40 %",
            "the last tick is not below the largest share"
        );
        assert_eq!(labels(Axis::shares_to("", 1.0)), "0 % | 20 % | 40 % | 60 % | 80 % | 100 %");
        assert_eq!(labels(Axis::shares_to("", 0.05)), "0 % | 1 % | 2 % | 3 % | 4 % | 5 %");
        assert_eq!(labels(Axis::shares("")), "0 % | 20 % | 40 % | 60 % | 80 % | 100 %");
        assert_eq!(labels(Axis::differences("", -0.17, 0.02)), "-20 % | -15 % | -10 % | -5 % | 0 % | 5 %");
        assert_eq!(labels(Axis::differences("", 0.0, 0.0)), "0 %");
    }
}
