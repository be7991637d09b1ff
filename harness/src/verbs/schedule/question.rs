//! The problem and the cells that arguments name.

use std::num::NonZeroU64;

use crate::cli::{LimitArgs, ScheduleArgs};
use crate::inputs::network::{is_file, parse_spec};
use crate::kinds::schedule::{
    Cell, DEFAULT_MACHINE, FileShape, PLANNER_WALL, Question, WALL, resolve_machine, usable_threads,
};
use crate::shell::exit::Failure;

/// The problem of the net in training on the machine, at a batch.
pub(super) fn question(args: &ScheduleArgs, batch: Option<NonZeroU64>) -> Result<Question, Failure> {
    let name = args.machine.as_deref().or(args.link.map(|_| DEFAULT_MACHINE));
    let named = name.map(|name| resolve_machine(name, args.link)).transpose()?;
    let question = if is_file(&args.net) {
        if args.shape.is_said() {
            let says = "--mode, --size, --sequence, --allocator-model and --workspace are for nets";
            return Err(Failure::from_usage(format!("{}: {says}; a file has its own shape", args.net)));
        }
        let shape = FileShape {
            batch: batch.map(NonZeroU64::get),
            measured: args.measured_batch.map(NonZeroU64::get),
            dims: &args.dims,
            ..FileShape::default()
        };
        Question::of_file(&args.net, named, &shape)?
    } else {
        if args.measured_batch.is_some() {
            return Err(Failure::from_usage(
                "--measured-batch is for profiles of PipeDream and dnn-partitioning",
            ));
        }
        if !args.dims.is_empty() {
            return Err(Failure::from_usage("--dim is for models of ONNX"));
        }
        let machine = named.map_or_else(|| resolve_machine(DEFAULT_MACHINE, None), Ok)?;
        Question::of_net(&parse_spec(&args.net, &args.shape, batch)?, machine)?
    };
    question.with_changes(args.capacity, args.times.as_deref())
}

/// The cell of a scheduler.
pub(super) fn cell(args: &ScheduleArgs, scheduler: &str) -> Cell {
    let LimitArgs { time_limit, memory_limit, work_limit, seed, threads } = args.limits;
    Cell {
        scheduler: scheduler.to_owned(),
        wall: Some(time_limit.unwrap_or(WALL)),
        memory: Some(memory_limit),
        work: work_limit,
        target: None,
        seed,
        threads: usable_threads(scheduler, threads),
        planner: args.planner.clone(),
        planner_wall: Some(args.planner_time_limit.unwrap_or(PLANNER_WALL)),
        repetition: 0,
    }
}
