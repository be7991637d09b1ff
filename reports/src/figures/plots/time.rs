//! Planning time over the number of buffers, with the exponent of each planner.

use planlab_results::statistics::{PowerFit, fit_power};

use super::curves::{self, Curve, Point};
use crate::figures::coord::Axis;
use crate::figures::{Drawing, Series};
use crate::format::{as_real, format_count, format_nanoseconds, short_count};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Timing {
    pub(crate) workload: String,
    pub(crate) buffers: u64,
    pub(crate) nanoseconds: f64,
    /// Whether the time limit cut it short: such a time is drawn but not fitted.
    pub(crate) is_cut: bool,
}

/// A planner and its times.
pub(crate) type Timings = (Series, Vec<Timing>);

/// The times to fit, without instances so small that the clock's resolution dominates.
fn times_to_fit(times: &[Timing]) -> impl Iterator<Item = &Timing> {
    times.iter().filter(|time| time.buffers >= 50 && !time.is_cut)
}

pub(crate) fn fit_times(times: &[Timing]) -> Option<PowerFit> {
    let points: Vec<(f64, f64)> =
        times_to_fit(times).map(|time| (as_real(time.buffers), time.nanoseconds)).collect();
    let least = points.iter().map(|p| p.0).fold(f64::MAX, f64::min);
    let most = points.iter().map(|p| p.0).fold(0.0, f64::max);
    // Less than a factor of four shows nothing about growth.
    if most < 4.0 * least { None } else { fit_power(&points) }
}

/// Draws the times on logarithmic axes; `None` without times.
pub(crate) fn plot_times(title: &str, all: &[Timings]) -> Option<Drawing> {
    let curves: Vec<Curve> = all.iter().map(curve).collect();
    let ((least, most), (quickest, slowest)) = curves::ranges(&curves)?;
    let axes =
        (Axis::log("buffers", least, most, short_count), Axis::times("planning time", quickest, slowest));
    curves::plot(title, 520, axes, curves)
}

/// The times as dots, and their fit as a line over their sizes.
fn curve((series, times): &Timings) -> Curve {
    let point = |time: &Timing| {
        let shown = format_nanoseconds(time.nanoseconds);
        let tip = format!("{}: {} buffers, {shown}", time.workload, format_count(time.buffers));
        Point::new(series, as_real(time.buffers), time.nanoseconds, &tip)
    };
    let mut curve = Curve::dots(series.clone(), times.iter().map(point).collect());
    if let Some(fit) = fit_times(times) {
        let sizes = times_to_fit(times).map(|time| as_real(time.buffers));
        let (from, to) = sizes.fold((f64::MAX, 0.0_f64), |(a, b), n| (a.min(n), b.max(n)));
        curve.name += &format!("  n^{:.2}", fit.exponent);
        curve.lines = vec![vec![(from, fit.value_at(from)), (to, fit.value_at(to))]];
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(buffers: u64, nanoseconds: f64) -> Timing {
        Timing { workload: format!("w{buffers}"), buffers, nanoseconds, is_cut: false }
    }

    #[test]
    fn the_legend_names_the_exponent() {
        let series = |label: &str, number| Series { label: label.to_owned(), number };
        let square = [100, 1000, 10_000].map(|n| timing(n, as_real(n * n))).to_vec();
        let all = vec![(series("slow", 0), square), (series("once", 1), vec![timing(80, 5e3)])];
        let svg = plot_times("t", &all).expect("there are times").to_inline_svg().expect("writes");
        assert!(svg.contains(">slow  n^2.00<"), "{svg}");
        assert!(svg.contains(">once<"), "{svg}");
        assert!(svg.contains("slow: w100: 100 buffers, 10.0 \u{b5}s"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn small_or_equal_sizes_have_no_exponent() {
        assert_eq!(fit_times(&[timing(10, 1e3), timing(20, 1e4)]), None);
        assert_eq!(fit_times(&[timing(100, 1e3), timing(200, 1e4)]), None);
        let cut = Timing { is_cut: true, ..timing(1000, 1e5) };
        assert_eq!(fit_times(&[timing(100, 1e3), cut]), None);
        assert!(plot_times("t", &[]).is_none());
    }
}
