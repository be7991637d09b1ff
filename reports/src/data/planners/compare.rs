//! Compares planners on the same workloads, with the variants of a planner under its family.

use std::collections::BTreeMap;

use planlab_results::queries::{Leader, Leaders, Planner};
use planlab_results::statistics::ShiftedMean;

use crate::figures::plots::profile::Profile;
use crate::format::as_real;

/// A planner over the compared workloads. A cell without an answer counts with a penalty.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranked {
    /// The planner's index.
    pub(crate) planner: usize,
    pub(crate) label: String,
    /// Geometric mean of its gaps, shifted by 1 %.
    pub(crate) gap: f64,
    /// Geometric mean of its times in nanoseconds, shifted by 1 ms; `None` unless each cell has one.
    pub(crate) time_ns: Option<f64>,
    /// The number of its cells without an answer.
    pub(crate) unanswered: usize,
}

/// Why a planner of the scope is not compared.
const NOT_RUN: &str = "did not run on all of these";
const UNSUPPORTED: &str = "do not support one of these, or were interrupted";

impl Ranked {
    pub(crate) fn family(&self) -> &str {
        planner_family(&self.label)
    }
}

/// The planners that ran on all of some workloads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// What was chosen from, in words: `recorded nets`.
    pub(crate) scope: String,
    /// The number of workloads in the scope.
    pub(crate) of: usize,
    /// The compared workloads, by index.
    pub(crate) workloads: Vec<usize>,
    /// The planners; least mean gap first, of equals the fastest.
    pub(crate) ranked: Vec<Ranked>,
    /// The labels of the planners of the scope that are not compared, by the reason.
    pub(crate) left_out: BTreeMap<&'static str, Vec<String>>,
}

/// A planner and its variants: orders, parameters, limits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Family<'c> {
    pub(crate) name: &'c str,
    pub(crate) best: &'c Ranked,
    pub(crate) variants: usize,
}

/// The planner's key: its name without parameters and limit.
pub(crate) fn planner_key(label: &str) -> &str {
    label.split(' ').next().unwrap_or(label)
}

/// The family of a planner: its name without order, parameters and limit. Programs of other people stay apart.
pub(crate) fn planner_family(label: &str) -> &str {
    let key = planner_key(label);
    let segments = if key.starts_with("external/") { 2 } else { 1 };
    match key.match_indices('/').nth(segments - 1) {
        Some((end, _)) => &key[..end],
        None => key,
    }
}

/// The mean of a planner, if it covers all of its cells: others do not compare.
pub(crate) fn complete_mean(mean: ShiftedMean) -> Option<f64> {
    mean.mean.filter(|_| mean.failures == 0)
}

impl Comparison {
    /// Compares the planners of a leaderboard; `None` if fewer than two are comparable.
    pub(crate) fn new(scope: &str, of: usize, leaders: &Leaders, planners: &[Planner]) -> Option<Self> {
        let ranked = |leader: &Leader| {
            let planner = &planners[leader.planner_number];
            let gap = complete_mean(leader.mean_gap())?.max(0.0);
            Some(Ranked {
                planner: leader.planner_number,
                label: planner.label.clone(),
                gap,
                time_ns: complete_mean(leader.mean_time()),
                unanswered: leader.unanswered,
            })
        };
        let mut all: Vec<Ranked> = leaders.common.iter().filter_map(ranked).collect();
        let time = |of: &Ranked| of.time_ns.unwrap_or(f64::INFINITY);
        all.sort_by(|a, b| a.gap.total_cmp(&b.gap).then_with(|| time(a).total_cmp(&time(b))));
        let mut left_out: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for number in leaders.all.iter().map(|leader| leader.planner_number) {
            let has_run = leaders.common.iter().any(|leader| leader.planner_number == number);
            if all.iter().any(|one| one.planner == number) {
                continue;
            }
            let why = if has_run { UNSUPPORTED } else { NOT_RUN };
            left_out.entry(why).or_default().push(planners[number].label.clone());
        }
        let workloads = leaders.common_workloads.clone();
        let scope = scope.to_owned();
        (all.len() > 1).then_some(Self { scope, of, workloads, ranked: all, left_out })
    }

    /// The families, each with its best variant; the best first.
    pub(crate) fn ranked_families(&self) -> Vec<Family<'_>> {
        let mut families: Vec<Family<'_>> = Vec::new();
        for best in &self.ranked {
            let name = best.family();
            match families.iter_mut().find(|family| family.name == name) {
                Some(family) => family.variants += 1,
                None => families.push(Family { name, best, variants: 1 }),
            }
        }
        families
    }

    /// A planner's rank from 1, and the number of other planners with the same mean gap; `None` if it is not compared.
    pub(crate) fn planner_rank(&self, planner: usize) -> Option<(usize, usize)> {
        let own = self.ranked.iter().find(|one| one.planner == planner)?.gap;
        let counted = |is: fn(f64, f64) -> bool| self.ranked.iter().filter(|one| is(one.gap, own)).count();
        let less = counted(|gap, own| gap < own);
        Some((less + 1, counted(|gap, own| gap <= own) - less - 1))
    }

    /// The planners to which no other is both faster and closer; the fastest first.
    pub(crate) fn pareto_front(&self) -> Vec<&Ranked> {
        let mut timed: Vec<(f64, &Ranked)> =
            self.ranked.iter().filter_map(|one| Some((one.time_ns?, one))).collect();
        timed.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.gap.total_cmp(&b.1.gap)));
        let mut least = f64::INFINITY;
        timed.retain(|(_, one)| {
            let is_closer = one.gap < least;
            least = least.min(one.gap);
            is_closer
        });
        timed.into_iter().map(|(_, one)| one).collect()
    }

    /// The closest planner with a mean time of at most this many nanoseconds.
    pub(crate) fn closest_within(&self, time_ns: f64) -> Option<&Ranked> {
        self.ranked.iter().find(|one| one.time_ns.is_some_and(|time| time <= time_ns))
    }

    /// The best variants of the families that are on the front or among the closest, at most `most` planners.
    pub(crate) fn best_variants(&self, most: usize) -> Vec<&Ranked> {
        let mut chosen = self.pareto_front();
        chosen.truncate(most);
        for family in self.ranked_families() {
            let is_there = chosen.iter().any(|one| one.family() == family.name);
            if chosen.len() < most && !is_there {
                chosen.push(family.best);
            }
        }
        chosen
    }

    /// The profiles of some of its planners over its workloads, each height relative to the lowest of all its planners;
    /// `height` returns that of a planner on a workload in bytes.
    pub(crate) fn height_profiles<'c>(
        &self,
        chosen: impl IntoIterator<Item = &'c Ranked>,
        height: impl Fn(usize, usize) -> Option<u64>,
    ) -> Vec<(String, Profile)> {
        let lowest =
            |&workload: &usize| self.ranked.iter().filter_map(|one| height(one.planner, workload)).min();
        let lowest: Vec<Option<u64>> = self.workloads.iter().map(lowest).collect();
        let profile = |one: &'c Ranked| {
            let ratio = |(&workload, lowest): (&usize, &Option<u64>)| {
                let (own, lowest) = (height(one.planner, workload)?, (*lowest)?);
                Some(if lowest == 0 { 1.0 } else { as_real(own) / as_real(lowest) })
            };
            let mut ratios: Vec<f64> = self.workloads.iter().zip(&lowest).filter_map(ratio).collect();
            ratios.sort_by(f64::total_cmp);
            let total = self.workloads.len();
            (one.label.clone(), Profile { ratios, total })
        };
        chosen.into_iter().map(profile).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(label: &str, gap: f64, time_ns: f64) -> Ranked {
        Ranked { planner: label.len(), label: label.to_owned(), gap, time_ns: Some(time_ns), unanswered: 0 }
    }

    fn sample() -> Comparison {
        let ranked = vec![
            ranked("exact {\"threads\":2}", 0.0, 9e6),
            ranked("exact", 0.0, 8e7),
            ranked("first-fit/size", 0.01, 4e5),
            ranked("first-fit/start", 0.02, 3e5),
            ranked("slow-and-far", 0.03, 5e5),
        ];
        let left_out = BTreeMap::from([(NOT_RUN, vec!["rare".to_owned()])]);
        Comparison { scope: "nets".to_owned(), of: 3, workloads: vec![0, 2], ranked, left_out }
    }

    #[test]
    fn variants_stand_under_their_family() {
        for (label, name) in [
            ("best-fit", "best-fit"),
            ("first-fit/size", "first-fit"),
            ("oneflow/best/published", "oneflow"),
            ("portfolio {\"threads\":2} @ 1 s", "portfolio"),
            ("external/cp-sat @ 1 s", "external/cp-sat"),
            ("external/a/b", "external/a"),
        ] {
            assert_eq!(planner_family(label), name);
        }
        let compared = sample();
        let families: Vec<_> = compared.ranked_families().into_iter().map(|f| (f.name, f.variants)).collect();
        assert_eq!(families, [("exact", 2), ("first-fit", 2), ("slow-and-far", 1)]);
    }

    #[test]
    fn the_front_holds_whatever_is_not_beaten_in_both() {
        let compared = sample();
        let front: Vec<&str> = compared.pareto_front().into_iter().map(|one| one.label.as_str()).collect();
        assert_eq!(front, ["first-fit/start", "first-fit/size", "exact {\"threads\":2}"]);
        assert_eq!(compared.closest_within(1e6).map(|one| one.label.as_str()), Some("first-fit/size"));
        assert_eq!(compared.closest_within(1e5), None);
        let chosen: Vec<&str> = compared.best_variants(9).into_iter().map(|one| one.label.as_str()).collect();
        assert_eq!(chosen.last(), Some(&"slow-and-far"));
        assert_eq!(compared.best_variants(2).len(), 2);
    }

    #[test]
    fn planners_with_equal_gaps_share_a_rank() {
        let compared = sample();
        let ranks: Vec<_> = compared.ranked.iter().map(|one| compared.planner_rank(one.planner)).collect();
        assert_eq!(ranks, [(1, 1), (1, 1), (3, 0), (4, 0), (5, 0)].map(Some));
        assert_eq!(compared.planner_rank(99), None);
    }

    #[test]
    fn profiles_are_relative_to_the_lowest_of_the_compared() {
        let compared = sample();
        let height = |planner: usize, workload: usize| match (planner, workload) {
            (5, 0) => Some(100),
            (12, 2) => None,
            (_, 1) => Some(1),
            _ => Some(150),
        };
        let profiles = compared.height_profiles(&compared.ranked, height);
        assert_eq!(profiles[1].1.ratios, [1.0, 1.0]);
        assert_eq!(profiles[2].1.ratios, [1.0, 1.5]);
        assert_eq!((profiles[4].1.ratios.as_slice(), profiles[4].1.total), (&[1.5][..], 2));
    }
}
