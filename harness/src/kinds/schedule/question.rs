//! Builds scheduling problems: a net on a machine with a memory capacity, under the name of its workload.

use planlab_dsa::{Bytes, Digest};
use planlab_graph::{
    Graph, Machine, MemoryBound, ProfileFormat, Scheduler, SchedulingProblem, Times, bound_memory,
};
use planlab_solvers::schedule::{Class, Lab, Policy, Prefetch, find_scheduler, scheduler_keys};
use planlab_workloads::formats::Document;
use planlab_workloads::formats::import::{Input, has_open_batch, read_training_net};
use planlab_workloads::models::{Allocator, Mode, Spec, Workspace};

use super::saboteurs;
use crate::cells::sabotage;
use crate::inputs;
use crate::shell::exit::Failure;
use crate::shell::keys;

/// A problem with the names under which its rows are shown.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// `model/resnet50/train/b512`; for a file `net/<name>/train/b32`.
    pub(crate) workload: String,
    pub(crate) problem: SchedulingProblem,
    /// The problem in its file format.
    pub(crate) text: String,
    /// Digest of that text.
    pub(crate) digest: String,
    /// The memory that every schedule needs at least.
    pub(crate) least_memory: MemoryBound,
}

impl Question {
    pub(crate) fn new(workload: String, problem: SchedulingProblem) -> Self {
        let text = problem.write_jsonl();
        let digest = Digest::of_bytes(text.as_bytes()).to_string();
        let least_memory = bound_memory(&problem);
        Self { workload, problem, text, digest, least_memory }
    }

    /// A net of ours on a machine, in the machine's memory, with the workspace that the net's key names.
    pub(crate) fn of_net(spec: &Spec, machine: Machine) -> Result<Self, Failure> {
        if spec.mode != Mode::Train {
            return Err(Failure::from_usage("`schedule` plans training; inference keeps no feature maps"));
        }
        if spec.allocator != Allocator::Ideal {
            let says =
                "a schedule is about feature maps, not about the requests of Chainer; leave out `chainer`";
            return Err(Failure::from_usage(format!("{spec}: {says}")));
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
                .map_err(|error| Failure::from_usage(format!("{spec}: {error}")))?,
            Some(other) => {
                return Err(Failure::from_usage(format!(
                    "{spec}: `schedule` does not support a workspace of {other}"
                )));
            }
        };
        Ok(Self::new(spec.to_string(), problem))
    }

    /// A net from a file, on a machine. Without a named machine the one in the file counts, or the default one.
    pub(crate) fn of_file(
        argument: &str,
        machine: Option<Machine>,
        shape: &FileShape<'_>,
    ) -> Result<Self, Failure> {
        let name = inputs::input_name(argument);
        let stem = name.rsplit('/').next().unwrap_or(name);
        let stem = stem.split('.').next().unwrap_or(stem);
        let problem = match open_net(argument)? {
            NetFile::Model(input) => {
                shape.refuse_measured(name)?;
                let net = read_training_net(input, stem, shape.batch, shape.dims)?;
                SchedulingProblem::new(net, machine_or_default(machine))
            }
            _ if !shape.dims.is_empty() => {
                return Err(Failure::from_usage(format!("{name}: --dim is for models of ONNX")));
            }
            NetFile::Profile(format, text) => {
                let assumed = shape.assumes_measured.then_some(shape.batch.unwrap_or(1));
                let measured = shape.measured.or(assumed).ok_or_else(|| {
                    let says = "does not say its batch: add --measured-batch";
                    Failure::from_usage(format!("{name}: {} {says}", format.title()))
                })?;
                let net = format.read(name, &text, measured)?;
                let batch = shape.batch.unwrap_or(measured);
                net.problem_at_batch(stem, batch, machine_or_default(machine))
                    .map_err(|error| Failure::from_usage(format!("{name}: {error}")))?
            }
            NetFile::Net(text) => {
                shape.refuse_measured(name)?;
                let default = machine_or_default(None);
                let problem = SchedulingProblem::read_jsonl_with_default(name, &text, machine, default)?;
                let own = problem.net.batch();
                if let Some(batch) = shape.batch.filter(|&batch| batch != own) {
                    return Err(Failure::from_usage(format!("{name}: the net has batch {own}, not {batch}")));
                }
                problem
            }
        };
        let workload = format!("net/{stem}/train/b{}", problem.net.batch());
        Ok(Self::new(workload, problem))
    }

    /// The same with another capacity, or with measured times.
    pub(crate) fn with_changes(self, capacity: Option<u64>, times: Option<&str>) -> Result<Self, Failure> {
        let mut problem = self.problem;
        if let Some(file) = times {
            let text = inputs::read_file_document(file)?;
            let times = Times::from_csv(&problem.machine, &problem.net, inputs::input_name(file), &text)?;
            problem = problem.with_times(times);
        }
        if let Some(capacity) = capacity {
            problem = problem.with_capacity(Bytes::new(capacity));
        }
        Ok(Self::new(self.workload, problem))
    }

    /// The same with a capacity of at most this share of what the net needs if everything is kept. Parameters and
    /// workspace are not scaled.
    pub(crate) fn with_peak_share(self, share: f64) -> Self {
        let (peak, base) = (self.in_core_bytes(), self.problem.base().get());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the peak")]
        let room = (peak.saturating_sub(base) as f64 * share) as u64;
        let capacity = Bytes::new(base.saturating_add(room)).min(self.problem.capacity);
        Self::new(self.workload, self.problem.with_capacity(capacity))
    }

    /// Memory in bytes if every feature map is kept, base included.
    pub(crate) fn in_core_bytes(&self) -> u64 {
        let lab = Lab::new(&self.problem, Policy::Discard, Prefetch::AsRoomPermits);
        lab.peak_bytes(&lab.all_in_class(Class::Keep)).get()
    }

    /// The memory above the base, for the buffers of a schedule.
    pub(crate) fn room_above_base(&self) -> Bytes {
        Bytes::new(self.problem.capacity.get().saturating_sub(self.problem.base().get()))
    }
}

/// What arguments say of the shape of a net in a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileShape<'a> {
    pub(crate) batch: Option<u64>,
    /// The batch at which a profile was measured.
    pub(crate) measured: Option<u64>,
    /// Whether a profile without `measured` counts as measured at `batch`, as where its names alone matter.
    pub(crate) assumes_measured: bool,
    /// Dynamic dimensions of a model.
    pub(crate) dims: &'a [(String, u64)],
}

impl FileShape<'_> {
    fn refuse_measured(&self, name: &str) -> Result<(), Failure> {
        match self.measured {
            None => Ok(()),
            Some(_) => Err(Failure::from_usage(format!("{name}: --measured-batch is for profiles"))),
        }
    }
}

/// A file that holds a net.
enum NetFile {
    /// A model of ONNX.
    Model(Input<'static>),
    Profile(ProfileFormat, String),
    /// A training net.
    Net(String),
}

/// Opens a file by its content. One that holds something else is refused with what it is.
fn open_net(argument: &str) -> Result<NetFile, Failure> {
    let title = match inputs::open_document(argument)? {
        Document::Foreign(reader, input) if reader.key == "onnx" => return Ok(NetFile::Model(input)),
        Document::Foreign(reader, _) => reader.title,
        Document::Table => "a table of buffers (a trace or a plan)",
        Document::Text(text) if Graph::begins_file(text.as_bytes()) => "a graph of planlab",
        Document::Text(text) => {
            return Ok(match ProfileFormat::recognise(&text) {
                Some(format) => NetFile::Profile(format, text),
                None => NetFile::Net(text),
            });
        }
    };
    Err(Failure::from_usage(format!(
        "{}: this is {title}, which says neither the times nor the backward passes of operations; `schedule` takes a \
         net (`planlab list models`), a training net (JSON Lines), a model of ONNX, a profile of PipeDream or a graph \
         of dnn-partitioning",
        inputs::input_name(argument)
    )))
}

/// Whether the net in a file can be made for any batch: a profile, or a model of ONNX whose batch is dynamic.
pub(crate) fn has_any_batch(argument: &str, dims: &[(String, u64)]) -> Result<bool, Failure> {
    Ok(match open_net(argument)? {
        NetFile::Model(input) => has_open_batch(input, dims)?,
        NetFile::Profile(..) => true,
        NetFile::Net(_) => false,
    })
}

fn machine_or_default(machine: Option<Machine>) -> Machine {
    machine.or_else(|| Machine::built_in(DEFAULT_MACHINE)).expect("a machine that is built in")
}

/// The default machine.
pub(crate) const DEFAULT_MACHINE: &str = "x86-pcie3";

/// A machine by its key, or from a file, with another link if one is named (bytes per second).
pub(crate) fn resolve_machine(argument: &str, link: Option<u64>) -> Result<Machine, Failure> {
    let machine = match Machine::built_in(argument) {
        Some(machine) => machine,
        None if argument == "-" || argument.ends_with(".toml") => {
            Machine::from_toml(inputs::input_name(argument), &inputs::read_file_document(argument)?)?
        }
        None => return Err(keys::unknown("there is no machine", argument, Machine::BUILT_IN)),
    };
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    Ok(link.map_or(machine.clone(), |link| machine.with_link(link as f64)))
}

/// The keys of all schedulers, including enabled saboteurs.
pub(crate) fn known_schedulers() -> Vec<String> {
    let saboteurs = sabotage::enabled(&saboteurs::KEYS).map(str::to_owned);
    scheduler_keys().into_iter().chain(saboteurs).collect()
}

/// The schedulers that one of the globs matches; without a glob, all.
pub(crate) fn matching_schedulers(globs: &[String]) -> Result<Vec<String>, Failure> {
    if globs.is_empty() {
        return Ok(scheduler_keys());
    }
    keys::matching("there is no scheduler", globs, known_schedulers())
}

/// A scheduler by its key.
pub(super) fn resolve_scheduler(key: &str) -> Result<Box<dyn Scheduler>, Failure> {
    let found = find_scheduler(key).or_else(|| saboteurs::scheduler(key));
    found.ok_or_else(|| Failure::from_usage(format!("there is no scheduler `{key}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_share_scales_what_in_core_needs_above_the_base() {
        let spec: Spec = "model/alexnet/train/b8".parse().expect("a net");
        let machine = Machine::built_in(DEFAULT_MACHINE).expect("built in");
        let question = Question::of_net(&spec, machine).expect("a problem");
        let (needed, base) = (question.in_core_bytes(), question.problem.base().get());
        let largest_map: u64 =
            question.problem.net.maps().iter().map(|map| map.bytes.get()).max().expect("a map");
        assert!(needed >= base + largest_map, "{needed} bytes, {base} of them the base");
        let half = question.clone().with_peak_share(0.5);
        assert_eq!(half.problem.capacity.get(), base + (needed - base) / 2);
        assert_eq!(half.in_core_bytes(), needed, "the capacity does not change what is needed");
        let all = question.clone().with_peak_share(1.0);
        assert_eq!(all.problem.capacity.get(), needed);
        let small = question.with_changes(Some(base + 1), None).expect("a capacity").with_peak_share(0.5);
        assert_eq!(small.problem.capacity.get(), base + 1, "a share does not raise the capacity");
    }
}
