//! The schedules that a suite selects.

use std::num::NonZeroU32;
use std::time::Duration;

use planlab_graph::Machine;

use super::schedule_group::GroupProblem;
use super::suite::{Suite, SuiteError};
use crate::glob::matches_glob;
use crate::models::{Mode, Spec, models};

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

impl Suite {
    /// The cells of the given schedulers: by group, net, batch, machine and scheduler.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] for a pattern that matches no net, machine or scheduler.
    pub fn schedule_cells(&self, schedulers: &[String]) -> Result<Vec<SchedulePick>, SuiteError> {
        let mut picks = Vec::new();
        for group in &self.schedules {
            let models: Vec<_> = models().collect();
            let names: Vec<&str> = models.iter().map(|net| net.name).collect();
            let nets = self.matching_indices("net", &group.nets, &names)?;
            let nets: Vec<Spec> = nets.iter().map(|&at| Spec::new(models[at], Mode::Train, 1)).collect();
            let machines = self.matching_indices("machine", &group.machines, &Machine::BUILT_IN)?;
            let machine = |&at: &usize| Machine::built_in(Machine::BUILT_IN[at]);
            let machines: Vec<Machine> = machines.iter().filter_map(machine).collect();
            let keys: Vec<&str> = schedulers.iter().map(String::as_str).collect();
            self.matching_indices("scheduler", &group.except, &keys)?;
            let mut chosen = self.matching_indices("scheduler", &group.schedulers, &keys)?;
            chosen.retain(|&at| !group.except.iter().any(|pattern| matches_glob(pattern, keys[at])));
            for GroupProblem { spec, machine, capacity, peak_share } in group.list_problems(&nets, &machines)
            {
                for &at in &chosen {
                    let pick = SchedulePick {
                        spec,
                        machine: machine.clone(),
                        capacity,
                        peak_share,
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
}
