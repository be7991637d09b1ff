//! The coordinates of charts: plotters' ranges, with our own ticks and labels.

use std::ops::Range;
use std::sync::Arc;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{IntoLogRange, LogCoord};

use crate::format::{
    binary_unit, format_bytes, format_nanoseconds, format_rounded, short_count, unit_name, unit_size,
};

/// How values map to positions.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear,
    /// The logarithm of value plus shift, where the shift makes it linear near 0; ticks are at powers of the base.
    Log {
        base: f64,
        shift: f64,
    },
}

/// With more ticks than this, plotters' logarithmic scale would fill each decade with nine of them.
const POWERS: usize = 9;

/// The most ticks on a linear scale, however large the picture: maps have as many as charts.
const STEPS: usize = 6;

/// A range of values with its scale, its ticks and its name.
#[derive(Clone)]
pub(crate) struct Axis {
    scale: Scale,
    range: Range<f64>,
    /// Explicit ticks; `None` if plotters chooses them.
    ticks: Option<Vec<f64>>,
    /// Ticks are round multiples of this.
    unit: f64,
    label: Arc<dyn Fn(f64) -> String + Send + Sync>,
    pub(super) title: String,
}

impl Axis {
    fn new(
        title: impl Into<String>,
        scale: Scale,
        range: Range<f64>,
        label: impl Fn(f64) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { scale, range, ticks: None, unit: 1.0, label: Arc::new(label), title: title.into() }
    }

    pub(crate) fn without_ticks(range: Range<f64>) -> Self {
        Self { ticks: Some(Vec::new()), ..Self::new("", Scale::Linear, range, |_| String::new()) }
    }

    /// One column per name: the middle of column `n` is at `n + 0.5`.
    pub(crate) fn named_columns(title: impl Into<String>, names: Vec<String>) -> Self {
        let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
        let places = (0..count).map(|column| f64::from(column) + 0.5);
        Self::named_values(title, 0.0..f64::from(count.max(1)), places.zip(names).collect())
    }

    /// Values with names, which are the only ticks.
    pub(crate) fn named_values(
        title: impl Into<String>,
        range: Range<f64>,
        names: Vec<(f64, String)>,
    ) -> Self {
        let ticks = names.iter().map(|(value, _)| *value).collect();
        let label = move |at: f64| {
            let named = names.iter().find(|(value, _)| *value == at);
            named.map_or_else(String::new, |(_, name)| name.clone())
        };
        Self { ticks: Some(ticks), ..Self::new(title, Scale::Linear, range, label) }
    }

    /// One row per name, the first at the top.
    pub(crate) fn named_rows(names: Vec<String>) -> Self {
        let columns = Self::named_columns("", names);
        Self { range: columns.range.end..columns.range.start, ..columns }
    }

    /// Bytes from 0, with ticks at round numbers of one unit.
    pub(crate) fn bytes(title: impl Into<String>, most: f64) -> Self {
        let most = most.max(1.0);
        let unit = binary_unit(whole(most));
        let size = unit_size(unit);
        let label = move |value: f64| format!("{} {}", format_rounded(value / size, 2), unit_name(unit));
        Self { unit: size, ..Self::new(title, Scale::Linear, 0.0..most * 1.04, label) }
    }

    /// Whole numbers from 0; values in between have no label and no tick.
    pub(crate) fn counts(title: impl Into<String>, most: f64) -> Self {
        let label = |value: f64| if value.fract() == 0.0 { short_count(value) } else { String::new() };
        Self::new(title, Scale::Linear, 0.0..most.max(1.0), label)
    }

    pub(crate) fn numbers(title: impl Into<String>, most: f64) -> Self {
        let label = |value: f64| if value < 1000.0 { format_rounded(value, 2) } else { short_count(value) };
        Self::new(title, Scale::Linear, 0.0..if most > 0.0 { most } else { 1.0 }, label)
    }

    /// A logarithmic axis of whole decades.
    pub(crate) fn log(title: impl Into<String>, low: f64, high: f64, label: fn(f64) -> String) -> Self {
        Self::powers(title, 10.0, low.log10()..high.log10(), label)
    }

    /// Whole numbers on a logarithmic axis of powers of two.
    pub(crate) fn log_counts(title: impl Into<String>, low: f64, high: f64) -> Self {
        Self::powers(title, 2.0, low.max(1.0).log2()..high.max(1.0).log2(), short_count)
    }

    pub(crate) fn log_bytes(title: impl Into<String>, low: f64, high: f64) -> Self {
        let label = |value: f64| format_bytes(whole(value)).replace(".00", "").replace(".0 ", " ");
        Self::powers(title, 2.0, low.max(1.0).log2()..high.max(1.0).log2(), label)
    }

    /// Powers of `base` whose exponents cover this range, at least two.
    fn powers(
        title: impl Into<String>,
        base: f64,
        exponents: Range<f64>,
        label: impl Fn(f64) -> String + Send + Sync + 'static,
    ) -> Self {
        let first = exponents.start.floor();
        let last = exponents.end.ceil().max(first + 1.0);
        Self::new(title, Scale::Log { base, shift: 0.0 }, base.powf(first)..base.powf(last), label)
    }

    /// Nanoseconds on a logarithmic axis.
    pub(crate) fn times(title: impl Into<String>, low: f64, high: f64) -> Self {
        Self::log(title, low, high, |value| format_nanoseconds(value).replace(".00", "").replace(".0 ", " "))
    }

    /// Nanoseconds on a logarithmic axis that covers all values; values too short to write, or 0, are drawn at its low
    /// end.
    pub(crate) fn times_of(title: impl Into<String>, values: impl Iterator<Item = f64>) -> Self {
        const LEAST: f64 = 0.01;
        let values: Vec<f64> = values.filter(|&value| value >= LEAST).collect();
        let low = values.iter().copied().min_by(f64::total_cmp).unwrap_or(LEAST);
        let high = values.iter().copied().max_by(f64::total_cmp).unwrap_or(LEAST);
        Self::times(title, low, high)
    }

    /// Shares from 0, with small ones spread out.
    pub(crate) fn gaps(title: impl Into<String>, most: f64) -> Self {
        let ticks = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];
        Self::shifted(title, 0.002, most.max(0.01) * 1.1, &ticks, percent_tick)
    }

    /// Factors from 1, given as their excess over 1, with factors near 1 spread out.
    pub(crate) fn factors(title: impl Into<String>, most: f64) -> Self {
        let ticks = [0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
        Self::shifted(title, 0.005, (most - 1.0).max(0.01) * 1.05, &ticks, |above| format!("{}", 1.0 + above))
    }

    fn shifted(
        title: impl Into<String>,
        shift: f64,
        high: f64,
        ticks: &[f64],
        label: fn(f64) -> String,
    ) -> Self {
        let ticks = ticks.iter().copied().filter(|tick| *tick <= high).collect();
        Self { ticks: Some(ticks), ..Self::new(title, Scale::Log { base: 10.0, shift }, 0.0..high, label) }
    }

    pub(crate) fn shares(title: impl Into<String>, most: f64) -> Self {
        Self { unit: 0.01, ..Self::new(title, Scale::Linear, 0.0..most, percent_tick) }
    }

    /// Shares below and above 0, which is always included.
    pub(crate) fn differences(title: impl Into<String>, low: f64, high: f64) -> Self {
        let (low, high) = (low.min(0.0), high.max(0.0));
        let room = ((high - low) * 0.06).max(0.005);
        Self { unit: 0.01, ..Self::new(title, Scale::Linear, low - room..high + room, percent_tick) }
    }

    pub(crate) fn over_range(self, range: Range<f64>) -> Self {
        Self { range, ..self }
    }

    /// Whether its ticks are names of columns or rows, not values.
    pub(crate) fn is_named(&self) -> bool {
        self.ticks.is_some() && self.scale == Scale::Linear
    }

    pub(crate) fn low(&self) -> f64 {
        self.range.start
    }

    pub(crate) fn high(&self) -> f64 {
        self.range.end
    }

    fn log_coord(&self, base: f64, shift: f64) -> LogCoord<f64> {
        // The ends are powers of the base; rounding must not lose the ticks there.
        let range = self.range.start * (1.0 - 1e-9)..self.range.end * (1.0 + 1e-9);
        range.log_scale().base(base).zero_point(-shift).into()
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    /// Values outside the range are drawn at its end: far outside, plotters' pixels would overflow.
    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let Range { start, end } = self.range;
        let value = &value.max(start.min(end)).min(start.max(end));
        match self.scale {
            Scale::Linear => RangedCoordf64::from(self.range.clone()).map(value, limit),
            Scale::Log { base, shift } => self.log_coord(base, shift).map(value, limit),
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        match (&self.ticks, self.scale) {
            (Some(ticks), _) => ticks.clone(),
            (None, Scale::Log { base, shift }) => {
                self.log_coord(base, shift).key_points(hint.max_num_points().min(POWERS))
            }
            (None, _) => {
                let range = self.range.start / self.unit..self.range.end / self.unit;
                let points = RangedCoordf64::from(range).key_points(hint.max_num_points().min(STEPS));
                let ticks = points.into_iter().map(|point| point * self.unit);
                ticks.filter(|tick| !self.format_ext(tick).is_empty()).collect()
            }
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        (self.label)(*value)
    }
}

/// The whole part of a number that is not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; `as` saturates")]
pub(crate) const fn whole(number: f64) -> u64 {
    number as u64
}

fn percent_tick(share: f64) -> String {
    format!("{} %", format_rounded(share * 100.0, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::coord::ranged1d::BoldPoints;

    fn labels(axis: &Axis, most: usize) -> String {
        let labels = axis.key_points(BoldPoints(most)).into_iter().map(|tick| axis.format_ext(&tick));
        labels.collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn scales_place_their_ends() {
        let shifted = Axis::gaps("", 8.0);
        let high = shifted.high();
        for (axis, low, high) in
            [(Axis::counts("", 8.0), 0.0, 8.0), (Axis::times("", 1.0, 1e3), 1.0, 1e3), (shifted, 0.0, high)]
        {
            let places = [low, high / 2.0, high].map(|value| axis.map(&value, (0, 1000)));
            assert_eq!((places[0], places[2]), (0, 1000));
            assert!(places[0] < places[1] && places[1] < places[2], "{places:?}");
        }
    }

    #[test]
    fn an_axis_of_times_holds_all_of_them_and_nothing_at_its_low_end() {
        let axis = Axis::times_of("", [0.25, 0.0, 30.0].into_iter());
        assert_eq!(labels(&axis, 9), "0.10 ns | 1 ns | 10 ns | 100 ns");
        assert!(axis.map(&0.25, (0, 1000)) > 0 && axis.map(&30.0, (0, 1000)) < 1000);
        for far in [f64::MIN, f64::MAX] {
            assert!((0..=1000).contains(&Axis::counts("", 3.0).map(&far, (0, 1000))));
        }
        for nothing in [&[0.0][..], &[]] {
            assert_eq!(Axis::times_of("", nothing.iter().copied()).map(&0.0, (0, 1000)), 0);
        }
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(&Axis::bytes("", 9.7 * 1024.0 * 1024.0), 6),
            "0 MiB | 2 MiB | 4 MiB | 6 MiB | 8 MiB | 10 MiB"
        );
        assert_eq!(labels(&Axis::counts("", 3.0), 9), "0 | 1 | 2 | 3");
        assert_eq!(labels(&Axis::numbers("", 1.3), 9), "0 | 0.5 | 1");
        assert_eq!(labels(&Axis::numbers("", 317.0), 9), "0 | 100 | 200 | 300");
        assert_eq!(labels(&Axis::counts("", 8.0), 9), "0 | 2 | 4 | 6 | 8", "no more on a large picture");
        assert_eq!(
            labels(&Axis::times("", 2e3, 3e6), 9),
            "1 \u{b5}s | 10 \u{b5}s | 100 \u{b5}s | 1 ms | 10 ms"
        );
        assert_eq!(labels(&Axis::log("", 1.0, 5.0, short_count), 9), "1 | 10", "of one decade its ends");
        assert_eq!(
            labels(&Axis::log_bytes("", 3000.0, 5e8), 9),
            "2 KiB | 8 KiB | 32 KiB | 128 KiB | 512 KiB | 2 MiB | 8 MiB | 32 MiB | 128 MiB | 512 MiB"
        );
        assert_eq!(labels(&Axis::gaps("", 0.2), 9), "0 % | 0.1 % | 0.3 % | 1 % | 3 % | 10 %");
        assert_eq!(labels(&Axis::shares("", 1.0), 6), "0 % | 20 % | 40 % | 60 % | 80 % | 100 %");
        assert_eq!(labels(&Axis::differences("", -0.17, 0.02), 6), "-15 % | -10 % | -5 % | 0 %");
        assert_eq!(labels(&Axis::differences("", 0.0, 0.0), 3), "-0.5 % | 0 % | 0.5 %");
        assert_eq!(labels(&Axis::named_rows(vec!["a".to_owned(), "b".to_owned()]), 9), "a | b");
    }
}
