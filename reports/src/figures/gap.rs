//! The gaps of each planner, one dot per workload.

use super::coord::Axis;
use super::strip::{self, Look, Strip};
use super::{Drawing, Series};
use crate::format::percent;

/// A planner and its gaps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gaps {
    pub(crate) series: Series,
    /// Workload and gap.
    pub(crate) gaps: Vec<(String, f64)>,
    /// The number of workloads without an answer.
    pub(crate) failures: usize,
}

/// Draws one row per planner; `None` if there are no gaps.
pub(crate) fn plot(all: &[Gaps]) -> Option<Drawing> {
    let most = all.iter().flat_map(|row| &row.gaps).map(|gap| gap.1).max_by(f64::total_cmp)?;
    let strips: Vec<Strip> = all.iter().map(strip).collect();
    let x = Axis::gaps("gap: height over proven bound, less 1", most);
    strip::plot(Look { title: "Gap by planner", x, remark: "no answer", shown: percent }, &strips)
}

fn strip(row: &Gaps) -> Strip {
    let remark = if row.failures > 0 { row.failures.to_string() } else { String::new() };
    Strip { series: row.series.clone(), values: row.gaps.clone(), remark }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_dots_its_median_and_its_failures() {
        let series = Series { label: "p<1>".to_owned(), number: 0 };
        let gaps = vec![("a".to_owned(), 0.0), ("b".to_owned(), 0.1), ("c".to_owned(), 0.02)];
        let svg =
            plot(&[Gaps { series, gaps, failures: 4 }]).expect("drawn").to_inline_svg().expect("writes");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(
            svg.contains(">2.00 %<") && svg.contains(">4<") && svg.contains("p&lt;1&gt;: b: 10.00 %"),
            "{svg}"
        );
        assert!(plot(&[]).is_none());
    }
}
