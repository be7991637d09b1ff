//! The performance profile of heights.

use planlab_results::queries::Profile;

use plotters::style::Color;

use super::chart::{Entry, Key, Room, chart, legend, line, width_with_legend};
use super::coord::Axis;
use super::{Drawing, Series, figure};
use crate::format::count_real;

/// Draws, for each planner, the share of workloads on which its height is within a factor of the lowest; `None` if
/// there is nothing to compare.
pub(crate) fn plot(all: &[(Series, Profile)]) -> Option<Drawing> {
    all.iter().find(|(_, profile)| profile.total > 0)?;
    let mut order = all.to_vec();
    order.sort_by(|a, b| area(&b.1).total_cmp(&area(&a.1)));
    order.truncate(LINES);
    let most = order.iter().filter_map(|(_, profile)| profile.ratios.last()).fold(1.0, |m: f64, r| m.max(*r));
    let (x, y) = (
        Axis::factors("height over the lowest height of the workload", most),
        Axis::shares("share of workloads", 1.0),
    );
    let entries: Vec<Entry> = order.iter().enumerate().map(entry).collect();
    let size = (width_with_legend(LEFT, (1060, 1240), &entries), 480);
    Some(figure("Performance profile of heights", size, move |root| {
        let area = legend(root, LEFT, Room::default().top, &entries)?;
        let mut chart = chart(&area, Room::default(), &x, &y)?;
        for (number, (series, profile)) in order.iter().enumerate() {
            let style = series.color().stroke_width(2);
            line(&mut chart, steps(profile, x.high()), style, is_dashed(number, series))?;
        }
        Ok(())
    }))
}

/// More lines than this cannot be distinguished.
const LINES: usize = 14;
/// Left edge of the legend in pixels.
const LEFT: u32 = 796;

fn is_dashed(number: usize, series: &Series) -> bool {
    series.number >= 16 || number % 3 == 2
}

fn entry((number, (series, profile)): (usize, &(Series, Profile))) -> Entry {
    let text = format!("{} ({:.0} %)", series.label, profile.at(1.0) * 100.0);
    Entry { key: Key::Line { dashed: is_dashed(number, series) }, color: series.color(), text }
}

/// The share reached at each ratio, from a factor of 1 up to `1 + most`.
fn steps(profile: &Profile, most: f64) -> Vec<(f64, f64)> {
    let share = |rank: usize| count_real(rank) / count_real(profile.total);
    let mut points = vec![(0.0, 0.0)];
    for (rank, ratio) in profile.ratios.iter().enumerate() {
        points.extend([(ratio - 1.0, share(rank)), (ratio - 1.0, share(rank + 1))]);
    }
    points.push((most, share(profile.ratios.len())));
    points
}

/// How early a profile rises: the mean over the workloads of 1 / ratio, or 0 without an answer.
fn area(profile: &Profile) -> f64 {
    let sum: f64 = profile.ratios.iter().map(|ratio| 1.0 / ratio).sum();
    sum / count_real(profile.total.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_planner_comes_first_in_the_legend() {
        let series = |label: &str, number| Series { label: label.to_owned(), number };
        let all = [
            (series("worse", 0), Profile { planner_number: 0, ratios: vec![1.0, 1.5], total: 3 }),
            (series("better", 1), Profile { planner_number: 0, ratios: vec![1.0, 1.0, 1.2], total: 3 }),
        ];
        let svg = plot(&all).expect("drawn").to_inline_svg().expect("writes");
        let (better, worse) = (svg.find(">better (67 %)<"), svg.find(">worse (33 %)<"));
        assert!(better.is_some() && better < worse, "{svg}");
        assert!(
            plot(&[(series("none", 0), Profile { planner_number: 0, ratios: vec![], total: 0 })]).is_none()
        );
    }
}
