//! What the functions and feature maps of a schedule are called: as in a net, or else by their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use planlab_graph::{Content, Schedule, ScheduledBuffer, Task, TrainingNet};

use crate::cli::ShapeArgs;
use crate::inputs::network::{is_file, parse_spec};
use crate::kinds::schedule::{DEFAULT_MACHINE, FileShape, Question, resolve_machine, task_object};
use crate::shell::exit::Failure;

/// The net of several schedules at each of their batches; empty without a net.
pub(super) struct NamedNets(BTreeMap<Option<u64>, TrainingNet>);

impl NamedNets {
    /// Reads the net of a NET argument once for each distinct batch. `dims` fixes dynamic dimensions of a model.
    pub(super) fn from_argument(
        argument: Option<&str>,
        dims: &[(String, u64)],
        batches: impl Iterator<Item = Option<u64>>,
    ) -> Result<Self, Failure> {
        let Some(argument) = argument else { return Ok(Self(BTreeMap::new())) };
        let batches: BTreeSet<Option<u64>> = batches.collect();
        if argument == "-" && batches.len() > 1 {
            let reason = "the schedules have several batches, and stdin is read once: name a file";
            return Err(Failure::from_usage(format!("--net -: {reason}")));
        }
        let read = |batch| read_net(argument, batch, dims).map(|net| (batch, net));
        Ok(Self(batches.into_iter().map(read).collect::<Result<_, Failure>>()?))
    }

    /// The names of the parts of a schedule, whose file errors call `file`.
    pub(super) fn part_names(&self, file: &str, schedule: &Schedule) -> Result<PartNames<'_>, Failure> {
        let net = self.0.get(&schedule.batch);
        match net.and_then(|net| find_mismatch(net, schedule)) {
            Some(reason) => Err(Failure::from_usage(format!("{file}: {reason}")).in_file(file, None)),
            None => Ok(PartNames(net)),
        }
    }
}

/// The names of a net that has all parts of a schedule, or numbers without a net.
pub(super) struct PartNames<'n>(Option<&'n TrainingNet>);

impl PartNames<'_> {
    /// The name of a task's function or feature map.
    pub(super) fn object_name(&self, task: Task) -> String {
        match self.0 {
            Some(net) => task_object(net, task).to_owned(),
            None => task.index().to_string(),
        }
    }

    pub(super) fn buffer_name(&self, buffer: &ScheduledBuffer) -> String {
        let Some(net) = self.0 else { return buffer.to_string() };
        let content = match buffer.content {
            Content::Map(map) => net.map(map).name.clone(),
            Content::Gradient(map) => format!("gradient of {}", net.map(map).name),
        };
        match buffer.version {
            0 => content,
            version => format!("{content}, version {version}"),
        }
    }
}

/// The net of an argument, at the batch of a schedule.
fn read_net(argument: &str, batch: Option<u64>, dims: &[(String, u64)]) -> Result<TrainingNet, Failure> {
    let machine = resolve_machine(DEFAULT_MACHINE, None)?;
    let question = if is_file(argument) {
        // The names of a profile are the same at every batch.
        let shape = FileShape { batch, assumes_measured: true, dims, ..FileShape::default() };
        Question::of_file(argument, Some(machine), &shape)?
    } else if !dims.is_empty() {
        return Err(Failure::from_usage(format!("{argument}: --dim is for models of ONNX")));
    } else {
        // A whole key contains its batch.
        let batch = batch.and_then(NonZeroU64::new).filter(|_| !argument.starts_with("model/"));
        Question::of_net(&parse_spec(argument, &ShapeArgs::default(), batch)?, machine)?
    };
    Ok(question.problem.net)
}

/// Why a schedule is not one of this net, as far as its names show.
fn find_mismatch(net: &TrainingNet, schedule: &Schedule) -> Option<String> {
    if net.name() != schedule.net {
        return Some(format!("the schedule is for {}, not for {}", schedule.net, net.name()));
    }
    let (functions, maps) = (net.functions().len(), net.maps().len());
    let is_known = |task: &Task| match *task {
        Task::Forward(id) | Task::Recompute(id) | Task::Backward(id) => id.index() < functions,
        Task::Accumulate(id) | Task::CopyOut(id) | Task::CopyIn(id) => id.index() < maps,
    };
    let has_map = |content: &Content| {
        let (Content::Map(map) | Content::Gradient(map)) = content;
        map.index() < maps
    };
    let mut tasks = schedule.numbered_events().map(|(_, event)| event.task);
    let mut contents = schedule.buffers.iter().map(|buffer| buffer.content);
    let unknown = tasks.find(|task| !is_known(task)).map(|task| task.to_string());
    let unknown =
        unknown.or_else(|| contents.find(|content| !has_map(content)).map(|content| content.to_string()));
    Some(format!("{} is not in the net, which has {functions} functions and {maps} maps", unknown?))
}
