//! Uses a plan of one batch size as a start for another (`plan --carry PLAN --of TRACE`).

use std::path::Path;

use planlab_solvers::placement::carry_plan;
use planlab_workloads::Trace;

use crate::cli::PlanArgs;
use crate::inputs::Hints;
use crate::inputs::{self, Source};
use crate::shell::exit::Failure;

/// A plan that was adapted to another batch size.
pub(crate) struct Carried {
    /// Its height for the new sizes, in bytes.
    pub(crate) height: u64,
    pub(crate) hints: Hints,
}

/// The plan that the arguments name; `None` if they name no plan.
///
/// # Errors
///
/// If a file cannot be read, the plan does not belong to its trace, or the traces differ in more than sizes.
pub(crate) fn carried_plan(
    args: &PlanArgs,
    trace: &Trace,
    scratch: &Path,
) -> Result<Option<Carried>, Failure> {
    let (Some(plan), Some(of)) = (&args.carry, &args.of) else { return Ok(None) };
    if [&args.trace, plan, of].into_iter().filter(|name| *name == "-").count() > 1 {
        return Err(Failure::from_usage(
            "only one of the traces and the plan to carry over can come from stdin",
        ));
    }
    let old = inputs::open_trace(&Source::resolve_argument(of, &args.reading, scratch)?)?;
    let verified = old.instance.verify(inputs::read_plan(plan, &old)?);
    let verified = verified.map_err(|violation| {
        Failure::from_usage(format!("{plan} is not a valid plan of {of}: {violation}"))
    })?;
    let carried = carry_plan(&verified, &trace.instance).map_err(|error| {
        Failure::from_usage(format!("{plan} cannot be carried over to {}: {error}", args.trace))
    })?;
    let hints = carried.offsets().iter().copied().map(Some).collect();
    Ok(Some(Carried { height: carried.height().get(), hints }))
}
