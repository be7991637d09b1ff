//! A timeline of a schedule: lanes for the engines, memory below, and a script that zooms the time axis.
//!
//! It is drawn with the precision of the record instead of pixels, because the browser enlarges it. The inner picture
//! has its own coordinates, so that zooming changes a single attribute, however many events there are.

use std::fmt::Write as _;

use maud::{Markup, html};
use planlab_results::schedule::{MemoryStep, Timeline, TimelineSpan};

use crate::figures::palette::{self, hex_text};
use crate::format::{as_real, format_bytes, format_nanoseconds};

pub(crate) const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("../../assets/time.js"),
    include_str!("../../assets/timeline.js"),
    "})();\n"
);

/// A schedule over time, with its caption.
#[derive(Clone, Debug)]
pub(crate) struct TimelinePart {
    pub(crate) title: String,
    pub(crate) timeline: Timeline,
    pub(crate) caption: String,
}

/// Engines in the order of their lanes.
const ENGINES: [(&str, &str); 3] = [("compute", "compute"), ("out", "copy out"), ("in", "copy in")];
pub(crate) const TASKS: [&str; 6] = ["forward", "recompute", "backward", "accumulate", "copy-out", "copy-in"];
/// The length of the whole iteration in units of the inner picture.
const WHOLE: f64 = 1e6;
const LEFT: u32 = 92;
const WIDE: u32 = 1060;
const LANE: u32 = 34;
const LANES: u32 = 3 * LANE;
const BETWEEN: u32 = 14;
const MEMORY: u32 = 190;
const INNER: u32 = LANES + BETWEEN + MEMORY;
const TOP: u32 = 10;
const AXIS: u32 = 34;

pub(crate) fn timeline_html(part: &TimelinePart) -> Markup {
    let timeline = &part.timeline;
    let (width, height) = (LEFT + WIDE + 32, TOP + INNER + AXIS);
    let scale = Scale::from_timeline(timeline);
    html! {
        h3 { (part.title) }
        figure.timeline data-ns=(timeline.iteration_ns.max(1)) {
            (task_legend(timeline))
            div.scroll {
                svg viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" tabindex="0"
                    aria-label=(part.title) font-size="12" {
                    (label_markup(timeline, &scale))
                    svg.view x=(LEFT) y=(TOP) width=(WIDE) height=(INNER) viewBox={ "0 0 1000000 " (INNER) }
                        preserveAspectRatio="none" {
                        (lane_markup(timeline, &scale))
                        (memory_markup(timeline, &scale))
                    }
                    g.ticks data-left=(LEFT) data-width=(WIDE) data-top=(TOP) data-bottom=(TOP + INNER) { (tick_markup(timeline)) }
                }
            }
            figcaption { (part.caption) }
        }
    }
}

/// Converts nanoseconds and bytes to the inner picture.
struct Scale {
    iteration: f64,
    most: f64,
}

impl Scale {
    fn from_timeline(timeline: &Timeline) -> Self {
        let peak = timeline.memory.iter().map(|step| step.bytes).max().unwrap_or(0);
        let most = as_real(peak.max(timeline.capacity).max(1)) * 1.06;
        Self { iteration: as_real(timeline.iteration_ns.max(1)), most }
    }

    fn x(&self, ns: u64) -> f64 {
        (as_real(ns) / self.iteration * WHOLE).min(WHOLE)
    }

    fn y(&self, bytes: f64) -> f64 {
        f64::from(LANES + BETWEEN) + f64::from(MEMORY) * (1.0 - bytes / self.most)
    }
}

fn task_legend(timeline: &Timeline) -> Markup {
    let tasks = TASKS.iter().filter(|task| timeline.spans.iter().any(|span| span.task == **task));
    html! {
        p.keys { @for task in tasks { span { i style={ "background:" (task_color(task)) } {} " " (task) } } }
    }
}

fn task_color(task: &str) -> String {
    hex_text(palette::category_color(Some(task), 0))
}

fn lane_markup(timeline: &Timeline, scale: &Scale) -> Markup {
    html! {
        @for ((engine, _), lane) in ENGINES.iter().zip(0_u32..) {
            @let spans = timeline.spans.iter().filter(|span| span.engine == *engine);
            @for (span, number) in spans.zip(0_u32..) { (event_markup(span, lane, number % 2 == 1, scale)) }
        }
    }
}

/// Neighbours alternate between two shades to stay distinguishable.
fn event_markup(span: &TimelineSpan, lane: u32, is_odd: bool, scale: &Scale) -> Markup {
    let (from, to) = (scale.x(span.start_ns), scale.x(span.end_ns));
    let tip = format!(
        "{} {}: {}, {}, from {} to {}",
        span.task,
        span.name,
        format_bytes(span.bytes),
        format_nanoseconds(as_real(span.end_ns.saturating_sub(span.start_ns))),
        format_nanoseconds(as_real(span.start_ns)),
        format_nanoseconds(as_real(span.end_ns)),
    );
    html! {
        rect x=(decimal_text(from)) y=(lane * LANE + 4) width=(decimal_text((to - from).max(1.0))) height=(LANE - 8)
            fill=(task_color(&span.task)) opacity=[is_odd.then_some("0.72")] { title { (tip) } }
    }
}

/// Bytes in use as a stepped area, with the capacity as a line.
fn memory_markup(timeline: &Timeline, scale: &Scale) -> Markup {
    let floor = decimal_text(scale.y(0.0));
    let mut outline = format!("M0 {floor}");
    for MemoryStep { at_ns, bytes } in &timeline.memory {
        let _ =
            write!(outline, "H{}V{}", decimal_text(scale.x(*at_ns)), decimal_text(scale.y(as_real(*bytes))));
    }
    let _ = write!(outline, "H{WHOLE}V{floor}Z");
    let capacity = decimal_text(scale.y(as_real(timeline.capacity)));
    html! {
        path d=(outline) fill=(hex_text(palette::BLUE)) fill-opacity="0.25" stroke=(hex_text(palette::BLUE)) vector-effect="non-scaling-stroke" {}
        path d={ "M0 " (capacity) "H1000000" } class="capacity" fill="none" stroke-width="1.5" stroke-dasharray="6 4" vector-effect="non-scaling-stroke" {}
    }
}

/// The labels to the left of the lanes, and the memory scale.
fn label_markup(timeline: &Timeline, scale: &Scale) -> Markup {
    let edge = LEFT - 8;
    let place = |at: f64| format!("{:.1}", f64::from(TOP) + at);
    let peak = timeline.memory.iter().map(|step| step.bytes).max().unwrap_or(0);
    let gigabytes = |bytes: f64| format!("{:.0} GB", bytes / 1e9);
    let step = tick_step(scale.most / 1e9, 5.0) * 1e9;
    let above = as_real(timeline.capacity);
    html! {
        @for ((_, name), lane) in ENGINES.iter().zip(0_u32..) {
            text.ink-text-fill x=(edge) y=(place(f64::from(lane * LANE + LANE / 2) + 4.0)) text-anchor="end" { (name) }
        }
        @for level in (0..6_u32).map(|n| f64::from(n) * step).filter(|level| *level < scale.most && (level - above).abs() > scale.most * 0.07) {
            path.ink-grid-stroke d={ "M" (LEFT) " " (place(scale.y(level))) "h" (WIDE) } fill="none" {}
            text.ink-muted-fill x=(edge) y=(place(scale.y(level) + 4.0)) text-anchor="end" { (gigabytes(level)) }
        }
        text x=(edge) y=(place(scale.y(above) + 4.0)) text-anchor="end" class="capacity" {
            (format!("{:.2} GB", above / 1e9))
            title { "capacity " (timeline.capacity) " bytes; at most " (peak) " bytes in use" }
        }
    }
}

/// The time axis of the whole iteration; the script draws those of parts.
fn tick_markup(timeline: &Timeline) -> Markup {
    let whole = as_real(timeline.iteration_ns.max(1));
    let step = tick_step(whole, 8.0);
    let bottom = TOP + INNER;
    html! {
        @for at in (0..20_u32).map(|n| f64::from(n) * step).take_while(|at| *at <= whole) {
            @let x = decimal_text(f64::from(LEFT) + f64::from(WIDE) * at / whole);
            path.ink-muted-stroke d={ "M" (x) " " (bottom) "v5" } fill="none" {}
            text.ink-text-fill x=(x) y=(bottom + 20) text-anchor="middle" { (tick_text(at, step, whole)) }
        }
    }
}

/// The smallest step of 1, 2 or 5 times a power of ten that gives at most `most` steps.
fn tick_step(whole: f64, most: f64) -> f64 {
    let raw = whole / most;
    let power = 10f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= raw * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A tick of an axis with this step, with the same unit for all ticks; the script does the same.
fn tick_text(ns: f64, step: f64, whole: f64) -> String {
    if ns < step / 2.0 {
        return "0".to_owned();
    }
    let (size, unit) = match step {
        step if whole >= 1e9 && step >= 1e7 => (1e9, "s"),
        step if step >= 1e4 => (1e6, "ms"),
        _ => (1e3, "\u{b5}s"),
    };
    let digits = (0..9).find(|&digits| step * 10f64.powi(digits) >= size * (1.0 - 1e-9)).unwrap_or(9);
    format!("{:.*} {unit}", digits.unsigned_abs() as usize, ns / size)
}

/// The number with one decimal, or without decimals if that digit is 0.
fn decimal_text(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_keep_their_place_and_names_are_escaped() {
        let span = |engine: &str, task: &str, start_ns, end_ns| TimelineSpan {
            engine: engine.to_owned(),
            task: task.to_owned(),
            name: "conv<1>".to_owned(),
            bytes: 2048,
            start_ns,
            end_ns,
        };
        let spans = vec![
            span("compute", "forward", 0, 500_000),
            span("compute", "backward", 500_000, 2_000_000),
            span("out", "copy-out", 500_000, 1_000_000),
        ];
        let memory = vec![MemoryStep { at_ns: 0, bytes: 100 }, MemoryStep { at_ns: 1_000_000, bytes: 400 }];
        let timeline = Timeline { spans, memory, capacity: 300, iteration_ns: 2_000_000 };
        let part = TimelinePart { title: "a & b".to_owned(), timeline, caption: String::new() };
        let html = timeline_html(&part).into_string();
        assert!(html.contains(r#"<rect x="250000" y="4" width="750000" height="26""#), "{html}");
        assert!(html.contains(r#"<rect x="250000" y="38" width="250000""#), "{html}");
        assert!(
            html.contains("forward conv&lt;1&gt;: 2.00 KiB, 500 \u{b5}s, from 0.00 ns to 500 \u{b5}s"),
            "{html}"
        );
        // The floor, up to 100 at the start, up to 400 in the middle, which is above the capacity.
        assert!(html.contains("M0 306H0V261.2H500000V126.8H1000000V306Z"), "{html}");
        assert!(html.contains("M0 171.6H1000000"), "the capacity: {html}");
        assert!(html.contains("a &amp; b") && !html.contains("recompute"), "{html}");
        assert!(!SCRIPT.contains("http"), "a report names no address");
    }

    #[test]
    fn steps_of_an_axis_are_round() {
        let steps = [tick_step(2.0e9, 8.0), tick_step(1.5, 5.0), tick_step(16.0, 5.0), tick_step(8.0, 8.0)];
        assert_eq!(steps, [5.0e8, 0.5, 5.0, 1.0]);
        let ticks = [
            tick_text(1.5e9, 5e8, 2e9),
            tick_text(2e7, 2e7, 1.6e8),
            tick_text(400.0, 200.0, 1500.0),
            tick_text(0.0, 1.0, 8.0),
        ];
        assert_eq!(ticks, ["1.5 s", "20 ms", "0.4 \u{b5}s", "0"]);
    }
}
