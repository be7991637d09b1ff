//! The performance profile of heights.

use planlab_results::statistics::Profile;

use super::Series;
use crate::drawing::Drawing;
use crate::drawing::axis::{Axis, Entry, Frame, Key, Scale, legend, make_room};
use crate::drawing::palette::Ink;

/// Draws, for each planner, the share of workloads on which its height is within a factor of the lowest;
/// `None` where there is nothing to compare.
pub(crate) fn plot(all: &[(Series, Profile)]) -> Option<Drawing> {
    all.iter().find(|(_, profile)| profile.total > 0)?;
    let mut order: Vec<&(Series, Profile)> = all.iter().collect();
    order.sort_by(|a, b| area(&b.1).total_cmp(&area(&a.1)));
    order.truncate(LINES);
    let most = order.iter().filter_map(|(_, profile)| profile.ratios.last()).fold(1.0, |m: f64, r| m.max(*r));
    let x = axis(most);
    let y = Axis::shares("share of workloads");
    let mut drawing = Drawing::new("Performance profile of heights", 1060, 480);
    let frame = Frame { left: 92.0, top: 16.0, right: 780.0, bottom: 422.0, x, y };
    frame.draw(&mut drawing);
    let mut entries = Vec::new();
    for (number, (series, profile)) in order.iter().enumerate() {
        let dashed = series.number >= 16 || number % 3 == 2;
        let mut points = vec![frame.spot(0.0, 0.0)];
        for (rank, ratio) in profile.ratios.iter().enumerate() {
            let share =
                |rank: usize| crate::format::count_real(rank) / crate::format::count_real(profile.total);
            points.push(frame.spot(ratio - 1.0, share(rank)));
            points.push(frame.spot(ratio - 1.0, share(rank + 1)));
        }
        points.push((frame.right, points.last().map_or(frame.bottom, |last| last.1)));
        let ink = Ink::Color(series.color());
        if dashed {
            drawing.dashed(points, ink, 2.0);
        } else {
            drawing.line(points, ink, 2.0);
        }
        let text = format!("{} ({:.0} %)", series.label, profile.at(1.0) * 100.0);
        entries.push(Entry { key: Key::Line { dashed }, color: series.color(), text });
    }
    make_room(&mut drawing, frame.right + 16.0, 1240, &entries);
    legend(&mut drawing, (frame.right + 16.0, frame.top), 450.0, &entries);
    Some(drawing)
}

/// More lines cannot be told apart.
const LINES: usize = 14;

/// The axis shows `factor - 1`, so that what is near the best is drawn apart.
fn axis(most: f64) -> Axis {
    const SHIFT: f64 = 0.005;
    let high = (most - 1.0).max(0.01) * 1.05;
    let candidates = [0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
    let ticks = candidates.into_iter().filter(|v| *v <= high).map(|v| (v, format!("{}", 1.0 + v))).collect();
    let title = "height over the lowest height of the workload".to_owned();
    Axis { scale: Scale::Shifted { high, shift: SHIFT }, ticks, title }
}

/// How early a profile rises: the mean over the workloads of 1 / ratio, 0 where there is no answer.
fn area(profile: &Profile) -> f64 {
    let sum: f64 = profile.ratios.iter().map(|ratio| 1.0 / ratio).sum();
    sum / crate::format::count_real(profile.total.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_planner_comes_first_in_the_legend() {
        let series = |label: &str, number| Series { label: label.to_owned(), number };
        let all = [
            (series("worse", 0), Profile { ratios: vec![1.0, 1.5], total: 3 }),
            (series("better", 1), Profile { ratios: vec![1.0, 1.0, 1.2], total: 3 }),
        ];
        let svg = plot(&all).expect("drawn").to_inline_svg().expect("writes");
        let (better, worse) = (svg.find(">better (67 %)<"), svg.find(">worse (33 %)<"));
        assert!(better.is_some() && better < worse, "{svg}");
        assert!(plot(&[(series("none", 0), Profile { ratios: vec![], total: 0 })]).is_none());
    }
}
