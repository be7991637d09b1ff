//! Planning time against the number of buffers, with the exponent of each planner.

use planlab_results::statistics::{PowerFit, fit_power};

use super::Series;
use crate::drawing::axis::{Axis, Entry, Frame, Key, legend, make_room};
use crate::drawing::palette::Ink;
use crate::drawing::{Drawing, Mark};
use crate::format::{count, nanoseconds, short_count};

/// One measured time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timing {
    pub(crate) workload: String,
    pub(crate) buffers: f64,
    pub(crate) nanoseconds: f64,
    /// Whether it is the time limit's: such a time is drawn and not fitted.
    pub(crate) is_cut: bool,
}

/// A planner and its times.
pub(crate) type Timings = (Series, Vec<Timing>);

/// The times that are fitted; instances so small that the clock's grain rules are left out.
fn fitted(times: &[Timing]) -> impl Iterator<Item = &Timing> {
    times.iter().filter(|time| time.buffers >= 50.0 && !time.is_cut)
}

/// The fit of a planner's times.
pub(crate) fn fit(times: &[Timing]) -> Option<PowerFit> {
    let points: Vec<(f64, f64)> = fitted(times).map(|time| (time.buffers, time.nanoseconds)).collect();
    let least = points.iter().map(|p| p.0).fold(f64::MAX, f64::min);
    let most = points.iter().map(|p| p.0).fold(0.0, f64::max);
    // Less than a factor of four says nothing about growth.
    if most < 4.0 * least { None } else { fit_power(&points) }
}

/// Draws the times on logarithmic axes; `None` where there are none.
pub(crate) fn plot(title: &str, all: &[Timings]) -> Option<Drawing> {
    let points = || all.iter().flat_map(|(_, times)| times);
    let least = |value: fn(&Timing) -> f64| points().map(value).fold(f64::MAX, f64::min);
    let most = |value: fn(&Timing) -> f64| points().map(value).fold(0.0, f64::max);
    points().next()?;
    let x = Axis::log("buffers", least(|t| t.buffers).max(1.0), most(|t| t.buffers).max(1.0), short_count);
    let y = Axis::times("planning time", least(|t| t.nanoseconds).max(1.0), most(|t| t.nanoseconds).max(1.0));
    let named = all.iter().filter(|(_, times)| !times.is_empty()).count();
    let height = u32::try_from(17 * named + 40).unwrap_or(u32::MAX).clamp(520, 1200);
    let mut drawing = Drawing::new(title, 1060, height);
    let frame = Frame { left: 92.0, top: 16.0, right: 780.0, bottom: 462.0, x, y };
    frame.draw(&mut drawing);
    let mut entries = Vec::new();
    for (series, times) in all.iter().filter(|(_, times)| !times.is_empty()) {
        let fit = fit(times);
        if let Some(fit) = fit {
            let range = fitted(times).map(|time| time.buffers);
            let (from, to) = range.fold((f64::MAX, 0.0_f64), |(a, b), n| (a.min(n), b.max(n)));
            let ends = [frame.spot(from, fit.at(from)), frame.spot(to, fit.at(to))];
            drawing.line(ends, Ink::Color(series.color()), 1.0);
        }
        for time in times {
            let tip = format!(
                "{}: {}: {} buffers, {}",
                series.label,
                time.workload,
                count_of(time.buffers),
                nanoseconds(time.nanoseconds)
            );
            let at = frame.spot(time.buffers, time.nanoseconds);
            let ink = Ink::Color(series.color());
            drawing.push(Mark::Dot { at, ink, shape: series.shape(), radius: 3.5, tip });
        }
        let exponent = fit.map_or_else(String::new, |fit| format!("  n^{:.2}", fit.exponent));
        let text = format!("{}{exponent}", series.label);
        entries.push(Entry { key: Key::Dot(series.shape()), color: series.color(), text });
    }
    make_room(&mut drawing, frame.right + 16.0, 1240, &entries);
    legend(&mut drawing, (frame.right + 16.0, frame.top), f64::from(height - 24), &entries);
    Some(drawing)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and positive")]
fn count_of(number: f64) -> String {
    count(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(buffers: f64, nanoseconds: f64) -> Timing {
        Timing { workload: format!("w{buffers}"), buffers, nanoseconds, is_cut: false }
    }

    #[test]
    fn the_legend_names_the_exponent() {
        let series = |label: &str, number| Series { label: label.to_owned(), number };
        let square = [100.0, 1000.0, 10_000.0].map(|n| timing(n, n * n)).to_vec();
        let all = vec![(series("slow", 0), square), (series("once", 1), vec![timing(80.0, 5e3)])];
        let svg = plot("t", &all).expect("there are times").to_inline_svg().expect("writes");
        assert!(svg.contains(">slow  n^2.00<"), "{svg}");
        assert!(svg.contains(">once<"), "{svg}");
        assert!(svg.contains("slow: w100: 100 buffers, 10.0 \u{b5}s"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn small_or_equal_sizes_have_no_exponent() {
        assert_eq!(fit(&[timing(10.0, 1e3), timing(20.0, 1e4)]), None);
        assert_eq!(fit(&[timing(100.0, 1e3), timing(200.0, 1e4)]), None);
        let cut = Timing { is_cut: true, ..timing(1000.0, 1e5) };
        assert_eq!(fit(&[timing(100.0, 1e3), cut]), None);
        assert!(plot("t", &[]).is_none());
    }
}
