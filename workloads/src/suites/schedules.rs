//! Groups of schedules in a suite: nets in training on machines, by schedulers.

use std::num::NonZeroU32;
use std::time::Duration;

use planlab_graph::Machine;
use serde::Deserialize;

use super::{Suite, SuiteError};
use crate::glob::glob;
use crate::models::{Mode, Spec, models};
use crate::nearest::{did_you_mean, nearest};

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
    #[serde(default)]
    pub peak_share: Option<f64>,
    /// Seconds per scheduler; `None` for the harness's default.
    #[serde(default)]
    pub time_limit: Option<f64>,
    /// Simulated iterations per scheduler; `None` for no limit.
    #[serde(default)]
    pub work_limit: Option<u64>,
    /// The planner for the offsets; `None` for the harness's default.
    #[serde(default)]
    pub planner: Option<String>,
    /// Seconds for that planner; `None` for the harness's default.
    #[serde(default)]
    pub planner_time_limit: Option<f64>,
    /// Repetitions; `None` for one.
    #[serde(default)]
    pub repetitions: Option<NonZeroU32>,
}

/// One scheduler on one problem.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SchedulePick {
    /// The net at a batch.
    pub spec: Spec,
    /// The machine, with the link of the group.
    pub machine: Machine,
    /// The capacity in bytes; `None` for the machine's.
    pub capacity: Option<u64>,
    /// The largest share of what the net needs if it keeps everything, without parameters and workspace; `None` for no
    /// limit.
    pub peak_share: Option<f64>,
    /// The scheduler's key.
    pub scheduler: String,
    /// The time limit of the scheduler; `None` for the harness's default.
    pub time_limit: Option<Duration>,
    /// Simulated iterations; `None` for no limit.
    pub work_limit: Option<u64>,
    /// The planner's key; `None` for the harness's default.
    pub planner: Option<String>,
    /// The time limit of the planner; `None` for the harness's default.
    pub planner_time_limit: Option<Duration>,
    /// Repetitions.
    pub repetitions: u32,
}

impl ScheduleGroup {
    /// The first error in its numbers: the field and the reason.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
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
        if let Some(share) = self.peak_share.filter(|&share| !(share > 0.0 && share <= 1.0)) {
            return Some(("peak_share", format!("a share of {share}: it is above 0 and at most 1")));
        }
        let wrong = time(self.time_limit).or_else(|| time(self.planner_time_limit));
        wrong.map(|wrong| ("time_limit", format!("a time limit of {wrong} seconds")))
    }

    fn problems(&self, nets: &[Spec], machines: &[Machine]) -> Vec<(Spec, Machine, Option<u64>)> {
        let links: Vec<Option<f64>> = super::optional(&self.links);
        let capacities = super::optional(&self.capacities);
        let mut problems = Vec::new();
        for (net, input) in
            nets.iter().flat_map(|net| super::optional(&self.sizes).into_iter().map(move |size| (net, size)))
        {
            let net = Spec { input, ..*net };
            for &batch in &self.batches {
                for machine in machines {
                    for link in &links {
                        let machine =
                            link.map_or_else(|| machine.clone(), |link| machine.clone().with_link(link));
                        let at = |capacity: &Option<u64>| (Spec { batch, ..net }, machine.clone(), *capacity);
                        problems.extend(capacities.iter().map(at));
                    }
                }
            }
        }
        problems
    }
}

impl Suite {
    /// The cells of the given schedulers: by group, net, batch, machine and scheduler.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] for a pattern that matches no net, machine or scheduler.
    pub fn schedules(&self, schedulers: &[String]) -> Result<Vec<SchedulePick>, SuiteError> {
        let mut picks = Vec::new();
        for group in &self.schedules {
            let models: Vec<_> = models().collect();
            let names: Vec<&str> = models.iter().map(|net| net.name).collect();
            let nets = self.matching("net", &group.nets, &names)?;
            let nets: Vec<Spec> = nets.iter().map(|&at| Spec::new(models[at], Mode::Train, 1)).collect();
            let machines = self.matching("machine", &group.machines, &Machine::BUILT_IN)?;
            let machine = |&at: &usize| Machine::built_in(Machine::BUILT_IN[at]);
            let machines: Vec<Machine> = machines.iter().filter_map(machine).collect();
            let keys: Vec<&str> = schedulers.iter().map(String::as_str).collect();
            self.matching("scheduler", &group.except, &keys)?;
            let mut chosen = self.matching("scheduler", &group.schedulers, &keys)?;
            chosen.retain(|&at| !group.except.iter().any(|pattern| glob(pattern, keys[at])));
            for (spec, machine, capacity) in group.problems(&nets, &machines) {
                for &at in &chosen {
                    let pick = SchedulePick {
                        spec,
                        machine: machine.clone(),
                        capacity,
                        peak_share: group.peak_share,
                        scheduler: schedulers[at].clone(),
                        time_limit: group.time_limit.map(Duration::from_secs_f64),
                        work_limit: group.work_limit,
                        planner: group.planner.clone(),
                        planner_time_limit: group.planner_time_limit.map(Duration::from_secs_f64),
                        repetitions: group.repetitions.map_or(1, NonZeroU32::get),
                    };
                    if !picks.contains(&pick) {
                        picks.push(pick);
                    }
                }
            }
        }
        Ok(picks)
    }

    /// The indices of the names that match one of the patterns, ascending.
    pub(super) fn matching(
        &self,
        what: &str,
        patterns: &[String],
        names: &[&str],
    ) -> Result<Vec<usize>, SuiteError> {
        for pattern in patterns {
            if !names.iter().any(|name| glob(pattern, name)) {
                let near = nearest(pattern, names.iter().copied());
                return Err(
                    self.wrong(pattern, format!("there is no {what} `{pattern}`{}", did_you_mean(&near)))
                );
            }
        }
        let fits = |&at: &usize| patterns.iter().any(|pattern| glob(pattern, names[at]));
        Ok((0..names.len()).filter(fits).collect())
    }
}
