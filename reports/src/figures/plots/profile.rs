//! The performance profile of heights.
//!
//! # References
//!
//! 1. E. D. Dolan, J. J. Moré: Benchmarking optimization software with performance profiles. Mathematical
//!    Programming 91 (2002). DOI 10.1007/s101070100263.

use plotters::element::{Rectangle, Text};
use plotters::style::Color;

use super::pareto::{ROOM, SIZE};
use crate::figures::chart::{Entry, Key, LETTERS, LINE, draw_chart, draw_line, text_style, text_width};
use crate::figures::coord::Axis;
use crate::figures::palette::{PAPER, TEXT};
use crate::figures::{Area, Drawing, Drawn, Series, figure};
use crate::format::count_real;

/// For each factor: the share of a planner's workloads on which its height is within that factor of the lowest.
#[derive(Clone)]
pub(crate) struct Profile {
    /// Height divided by the lowest height of the workload, ascending; workloads without an answer are left out.
    pub(crate) ratios: Vec<f64>,
    /// The number of workloads, answered or not.
    pub(crate) total: usize,
}

impl Profile {
    fn share_lowest(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        count_real(self.ratios.partition_point(|&ratio| ratio <= 1.0)) / count_real(self.total)
    }
}

/// Draws, for each planner, the share of workloads on which its height is within a factor of the lowest; `None` if
/// there is nothing to compare. The colours are by rank, so that no two lines share one.
pub(crate) fn plot_profiles(all: &[(String, Profile)]) -> Option<Drawing> {
    all.iter().find(|(_, profile)| profile.total > 0)?;
    let mut order = all.to_vec();
    order.sort_by(|a, b| profile_area(&b.1).total_cmp(&profile_area(&a.1)));
    order.truncate(LINES);
    let most = order.iter().filter_map(|(_, profile)| profile.ratios.last()).fold(1.0, |m: f64, r| m.max(*r));
    let x = Axis::factors("height over the lowest height of the workload", most);
    let y = Axis::shares("share of workloads", 1.0);
    let ranked = |(number, (label, profile)): (usize, (String, Profile))| (Series { label, number }, profile);
    let order: Vec<(Series, Profile)> = order.into_iter().enumerate().map(ranked).collect();
    let entries: Vec<Entry> = order.iter().map(legend_entry).collect();
    Some(figure("Performance profile of heights", SIZE, move |root| {
        let mut chart = draw_chart(root, ROOM, &x, &y)?;
        // The worst first, so that the best line is on top.
        for (series, profile) in order.iter().rev() {
            let (steps, style) = (profile_steps(profile, x.high()), series.color().stroke_width(2));
            draw_line(&mut chart, steps, style, is_dashed(series))?;
        }
        draw_legend(root, &entries)
    }))
}

/// More lines than this cannot be distinguished.
const LINES: usize = 9;

const fn is_dashed(series: &Series) -> bool {
    series.number % 3 == 2
}

fn legend_entry((series, profile): &(Series, Profile)) -> Entry {
    let text = format!("{} ({:.0} %)", series.label, profile.share_lowest() * 100.0);
    Entry { key: Key::Line { dashed: is_dashed(series) }, color: series.color(), text }
}

/// The legend, in the corner below the lines.
fn draw_legend(root: &Area<'_>, entries: &[Entry]) -> Drawn {
    let widest =
        entries.iter().map(|entry| text_width(&entry.text, LETTERS)).max().unwrap_or(0).cast_signed();
    let lines = LINE.cast_signed() * i32::try_from(entries.len()).unwrap_or(i32::MAX);
    let right = (SIZE.0 - ROOM.right).cast_signed() - 8;
    let bottom = (SIZE.1 - ROOM.bottom - ROOM.below).cast_signed() - 8;
    let (left, top) = (right - widest - 30, bottom - lines);
    root.draw(&Rectangle::new([(left - 6, top - 2), (right + 2, bottom)], PAPER.mix(0.85).filled()))?;
    for (entry, number) in entries.iter().zip(0..) {
        let middle = top + number * LINE.cast_signed() + LINE.cast_signed() / 2;
        entry.draw_at(root, (left + 10, middle))?;
        root.draw(&Text::new(entry.text.as_str(), (left + 26, middle), text_style(LETTERS, TEXT)))?;
    }
    Ok(())
}

/// The share reached at each ratio, from a factor of 1 up to `1 + most`.
fn profile_steps(profile: &Profile, most: f64) -> Vec<(f64, f64)> {
    let share = |rank: usize| count_real(rank) / count_real(profile.total);
    let mut points = vec![(0.0, 0.0)];
    for (rank, ratio) in profile.ratios.iter().enumerate() {
        points.extend([(ratio - 1.0, share(rank)), (ratio - 1.0, share(rank + 1))]);
    }
    points.push((most, share(profile.ratios.len())));
    points
}

/// How early a profile rises: the mean over the workloads of 1 / ratio, or 0 without an answer.
fn profile_area(profile: &Profile) -> f64 {
    let sum: f64 = profile.ratios.iter().map(|ratio| 1.0 / ratio).sum();
    sum / count_real(profile.total.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_planner_comes_first_in_the_legend() {
        let all = [
            ("worse".to_owned(), Profile { ratios: vec![1.0, 1.5], total: 3 }),
            ("better".to_owned(), Profile { ratios: vec![1.0, 1.0, 1.2], total: 3 }),
        ];
        let svg = plot_profiles(&all).expect("drawn").to_inline_svg().expect("writes");
        let (better, worse) = (svg.find(">better (67 %)<"), svg.find(">worse (33 %)<"));
        assert!(better.is_some() && better < worse, "{svg}");
        assert!(plot_profiles(&[("none".to_owned(), Profile { ratios: vec![], total: 0 })]).is_none());
    }

    #[test]
    fn no_two_lines_share_a_colour() {
        let profile = || Profile { ratios: vec![1.0], total: 1 };
        let all: Vec<(String, Profile)> = (0..LINES).map(|at| (format!("p{at}"), profile())).collect();
        let svg = plot_profiles(&all).expect("drawn").to_inline_svg().expect("writes");
        let colors: std::collections::BTreeSet<&str> =
            svg.split("stroke=\"").skip(1).filter_map(|part| part.split('"').next()).collect();
        assert!(colors.len() >= LINES, "{colors:?}");
    }
}
