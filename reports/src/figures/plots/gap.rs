//! The gaps of each planner, one dot per workload.

use super::strip::{self, Look, Strip};
use crate::figures::Drawing;
use crate::figures::coord::Axis;
use crate::format::percent;

/// Draws one row per planner, its gaps and the number of workloads without an answer; `None` if there are no gaps.
pub(crate) fn plot(planners: &[Strip]) -> Option<Drawing> {
    let most = planners.iter().flat_map(|strip| &strip.values).map(|gap| gap.1).max_by(f64::total_cmp)?;
    let x = Axis::gaps("gap: height over proven bound, less 1", most);
    strip::plot(Look { title: "Gap by planner", x, remark: "no answer", shown: percent }, planners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Series;

    #[test]
    fn a_row_has_its_dots_its_median_and_its_failures() {
        let series = Series { label: "p<1>".to_owned(), number: 0 };
        let values = vec![("a".to_owned(), 0.0), ("b".to_owned(), 0.1), ("c".to_owned(), 0.02)];
        let svg = plot(&[Strip { series, values, remark: "4".to_owned() }])
            .expect("drawn")
            .to_inline_svg()
            .expect("writes");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(
            svg.contains(">2.00 %<") && svg.contains(">4<") && svg.contains("p&lt;1&gt;: b: 10.00 %"),
            "{svg}"
        );
        assert!(plot(&[]).is_none());
    }
}
