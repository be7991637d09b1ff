//! Groups of schedules in a suite: nets in training on machines, by schedulers.

use std::num::NonZeroU32;

use planlab_graph::Machine;
use serde::Deserialize;

use super::group::{one_or_several, optional};
use crate::models::Spec;

/// Nets in training on machines, and the schedulers that run on each.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ScheduleGroup {
    /// Patterns over the names of nets.
    pub nets: Vec<String>,
    /// Batches.
    pub batches: Vec<u64>,
    /// Patterns over the keys of machines.
    pub machines: Vec<String>,
    /// Patterns over scheduler keys.
    pub schedulers: Vec<String>,
    /// Patterns over the keys of excluded schedulers.
    #[serde(default)]
    pub except: Vec<String>,
    /// Heights and widths of input images, with a problem for each; if empty, the net's.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// Rates of copies in bytes per second, with a problem for each; if empty, the machine's.
    #[serde(default)]
    pub links: Vec<f64>,
    /// Capacities in bytes, with a problem for each; if empty, the machine's.
    #[serde(default)]
    pub capacities: Vec<u64>,
    /// Limits the memory to this share (0.6, say) of what the net needs if it keeps everything, without parameters and
    /// workspace. A net that would fit then has to release something. `None` for the full capacity.
    pub peak_share: Option<f64>,
    /// Several such shares, with a problem for each; instead of `peak_share`.
    #[serde(default)]
    pub peak_shares: Vec<f64>,
    /// Seconds per scheduler; `None` for the harness's default.
    pub time_limit: Option<f64>,
    /// Simulated iterations per scheduler; `None` for no limit.
    pub work_limit: Option<u64>,
    /// The planner for the offsets; `None` for the harness's default.
    pub planner: Option<String>,
    /// Seconds for that planner; `None` for the harness's default.
    pub planner_time_limit: Option<f64>,
    /// Repetitions; `None` for one.
    pub repetitions: Option<NonZeroU32>,
}

impl ScheduleGroup {
    /// The first error in its numbers: the field and the reason.
    pub(super) fn find_fault(&self) -> Option<(&'static str, String)> {
        let time = |seconds: Option<f64>| seconds.filter(|&wrong| !(wrong > 0.0 && wrong < 1e9));
        if self.batches.is_empty() || self.batches.contains(&0) {
            return Some(("batches", "`batches` needs at least one number, each above 0".to_owned()));
        }
        if let Some(wrong) = self.links.iter().find(|&&link| !(link.is_finite() && link > 0.0)) {
            return Some(("links", format!("a link of {wrong} bytes per second")));
        }
        if self.sizes.contains(&0) {
            return Some(("sizes", "an image of 0 pixels".to_owned()));
        }
        if self.capacities.contains(&0) {
            return Some(("capacities", "a capacity of 0 bytes".to_owned()));
        }
        if self.peak_share.is_some() && !self.peak_shares.is_empty() {
            return Some(("peak_shares", "peak_share and peak_shares of one group".to_owned()));
        }
        let mut shares = self.peak_share.iter().chain(&self.peak_shares);
        if let Some(share) = shares.find(|&&share| !(share > 0.0 && share <= 1.0)) {
            return Some(("peak_share", format!("a share of {share}: it is above 0 and at most 1")));
        }
        let wrong = time(self.time_limit).or_else(|| time(self.planner_time_limit));
        wrong.map(|wrong| ("time_limit", format!("a time limit of {wrong} seconds")))
    }

    pub(super) fn list_problems(&self, nets: &[Spec], machines: &[Machine]) -> Vec<GroupProblem> {
        let links: Vec<Option<f64>> = optional(&self.links);
        let memories = self.list_memories();
        let mut problems = Vec::new();
        for (net, input) in
            nets.iter().flat_map(|net| optional(&self.sizes).into_iter().map(move |size| (net, size)))
        {
            let net = Spec { input, ..*net };
            for &batch in &self.batches {
                for machine in machines {
                    for link in &links {
                        let machine =
                            link.map_or_else(|| machine.clone(), |link| machine.clone().with_link(link));
                        let at = |&(capacity, peak_share): &(Option<u64>, Option<f64>)| GroupProblem {
                            spec: Spec { batch, ..net },
                            machine: machine.clone(),
                            capacity,
                            peak_share,
                        };
                        problems.extend(memories.iter().map(at));
                    }
                }
            }
        }
        problems
    }

    /// Each capacity with each share.
    fn list_memories(&self) -> Vec<(Option<u64>, Option<f64>)> {
        let shares = one_or_several(self.peak_share, &self.peak_shares);
        let with_shares = |capacity| shares.iter().map(move |&share| (capacity, share));
        optional(&self.capacities).into_iter().flat_map(with_shares).collect()
    }
}

/// A net at a batch on a machine, with the fields of [`SchedulePick`](super::SchedulePick).
pub(super) struct GroupProblem {
    pub(super) spec: Spec,
    pub(super) machine: Machine,
    pub(super) capacity: Option<u64>,
    pub(super) peak_share: Option<f64>,
}
