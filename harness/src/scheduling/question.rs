//! What schedulers are asked: a net on a machine, in so much memory, under the name of its workload.

use planlab_dsa::{Bytes, Digest};
use planlab_graph::{Machine, PipeDream, Scheduler, SchedulingProblem, Times};
use planlab_solvers::schedule::{scheduler, scheduler_keys};
use planlab_workloads::models::{Allocator, Mode, Spec, Workspace};
use planlab_workloads::{did_you_mean, glob, nearest};

use super::saboteurs;
use crate::inputs;
use crate::shell::exit::Failure;

/// A problem with the names under which its rows are shown.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// `model/resnet50/train/b512`; of a file `net/<name>/train/b32`.
    pub(crate) workload: String,
    pub(crate) problem: SchedulingProblem,
    /// The problem as a file.
    pub(crate) text: String,
    /// Digest of that text.
    pub(crate) digest: String,
}

impl Question {
    pub(crate) fn new(workload: String, problem: SchedulingProblem) -> Self {
        let text = problem.write_jsonl();
        let digest = Digest::of_bytes(text.as_bytes()).to_string();
        Self { workload, problem, text, digest }
    }

    /// A net of ours on a machine, in the machine's memory, with the workspace that the net's key names.
    pub(crate) fn of_net(spec: &Spec, machine: Machine) -> Result<Self, Failure> {
        if spec.mode != Mode::Train {
            return Err(Failure::usage("`schedule` plans training; inference keeps no feature maps"));
        }
        if spec.allocator != Allocator::Ideal {
            let says = "schedules are of feature maps, not of the requests of Chainer; leave out `chainer`";
            return Err(Failure::usage(format!("{spec}: {says}")));
        }
        let problem = SchedulingProblem::new(spec.feature_maps()?, machine);
        let problem = match spec.workspace {
            None => problem,
            Some(Workspace::Fixed(workspace)) => {
                let machine = Machine { workspace, ..problem.machine };
                SchedulingProblem { machine, ..problem }
            }
            Some(Workspace::OutputMaps { thousandths }) => problem
                .with_workspace_limit(thousandths as f64 / 1000.0)
                .map_err(|error| Failure::usage(format!("{spec}: {error}")))?,
        };
        Ok(Self::new(spec.to_string(), problem))
    }

    /// A training net from a file, or a profile of PipeDream that was measured at `measured` images, at `batch`. What the
    /// file says of its machine counts if none is named.
    pub(crate) fn of_file(
        argument: &str,
        machine: Option<Machine>,
        batch: Option<u64>,
        measured: Option<u64>,
    ) -> Result<Self, Failure> {
        let (name, text) = (inputs::name(argument), inputs::document(argument)?);
        let stem = name.rsplit('/').next().unwrap_or(name);
        let stem = stem.split('.').next().unwrap_or(stem);
        let problem = if PipeDream::is_profile(&text) {
            let machine = machine.or_else(|| Machine::built_in(DEFAULT_MACHINE));
            let machine = machine.expect("a machine that is built in");
            let measured = measured.ok_or_else(|| {
                Failure::usage(format!(
                    "{name}: a profile of PipeDream does not say its batch: add --measured-batch"
                ))
            })?;
            let profile = PipeDream::read(name, &text, measured)?;
            profile
                .problem(stem, batch.unwrap_or(measured), machine)
                .map_err(|error| Failure::usage(format!("{name}: {error}")))?
        } else {
            let problem = SchedulingProblem::read_jsonl(name, &text, machine)?;
            if let Some(batch) = batch.filter(|&batch| batch != problem.net.batch()) {
                let own = problem.net.batch();
                return Err(Failure::usage(format!("{name}: the net has batch {own}, not {batch}")));
            }
            problem
        };
        let workload = format!("net/{stem}/train/b{}", problem.net.batch());
        Ok(Self::new(workload, problem))
    }

    /// The same with another capacity, or with measured times.
    pub(crate) fn with(self, capacity: Option<u64>, times: Option<&str>) -> Result<Self, Failure> {
        let mut problem = self.problem;
        if let Some(file) = times {
            let text = inputs::document(file)?;
            let times = Times::from_csv(&problem.machine, &problem.net, inputs::name(file), &text)?;
            problem = problem.with_times(times);
        }
        if let Some(capacity) = capacity {
            problem = problem.with_capacity(Bytes::new(capacity));
        }
        Ok(Self::new(self.workload, problem))
    }

    /// Why no schedule at all can run in the capacity: the base takes more, or one function with its inputs and its
    /// output does.
    pub(crate) fn hopeless(&self) -> Option<String> {
        let (net, capacity, base) = (&self.problem.net, self.problem.capacity, self.problem.base());
        let hopeless = |what: String| Some(format!("a capacity of {capacity} bytes cannot be met: {what}"));
        let Some(room) = capacity.get().checked_sub(base.get()) else {
            return hopeless(format!("parameters and workspace alone take {base}"));
        };
        let bytes = |function: &planlab_graph::Function| -> u64 {
            let maps = function.inputs.iter().chain([&function.output]);
            maps.map(|&map| net.map(map).bytes.get()).sum()
        };
        let largest = net.functions().iter().map(|function| (bytes(function), &function.name)).max()?;
        if largest.0 <= room {
            return None;
        }
        hopeless(format!(
            "function `{}` alone takes {}, beside {base} of parameters and workspace",
            largest.1, largest.0
        ))
    }
}

/// The machine if none is named.
pub(crate) const DEFAULT_MACHINE: &str = "x86-pcie3";

/// A machine by its key, or from a file, with another link if one is named (bytes per second).
pub(crate) fn machine(argument: &str, link: Option<u64>) -> Result<Machine, Failure> {
    let machine = match Machine::built_in(argument) {
        Some(machine) => machine,
        None if argument == "-" || argument.ends_with(".toml") => {
            Machine::from_toml(inputs::name(argument), &inputs::document(argument)?)?
        }
        None => {
            let near = nearest(argument, Machine::BUILT_IN);
            return Err(Failure::usage(format!("there is no machine `{argument}`{}", did_you_mean(&near))));
        }
    };
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    Ok(link.map_or(machine.clone(), |link| machine.with_link(link as f64)))
}

/// The keys of all schedulers, with those that tests let in.
pub(crate) fn known() -> Vec<String> {
    scheduler_keys().into_iter().chain(saboteurs::keys()).collect()
}

/// The schedulers that one of the globs matches; without a glob, all.
pub(crate) fn matching(globs: &[String]) -> Result<Vec<String>, Failure> {
    let keys = known();
    for wanted in globs {
        if !keys.iter().any(|key| glob(wanted, key)) {
            let near = nearest(wanted, keys.iter().map(String::as_str));
            return Err(Failure::usage(format!("there is no scheduler `{wanted}`{}", did_you_mean(&near))));
        }
    }
    if globs.is_empty() {
        return Ok(scheduler_keys());
    }
    Ok(keys.into_iter().filter(|key| globs.iter().any(|wanted| glob(wanted, key))).collect())
}

/// A scheduler by its key.
pub(super) fn find(key: &str) -> Result<Box<dyn Scheduler>, Failure> {
    let found = scheduler(key).or_else(|| saboteurs::scheduler(key));
    found.ok_or_else(|| Failure::usage(format!("there is no scheduler `{key}`")))
}
