//! Hints: offsets that a planner may start from, of a trace's column `hint`, an old plan, or a plan of another batch size.
//!
//! They are not part of the instance and its digest. A cell with hints has their digest among its parameters, so its
//! rows never count for a cell without hints.

use std::path::Path;
use std::sync::Arc;

use planlab_dsa::{Digest, Offset, Violation};
use planlab_solvers::placement::carry_plan;
use planlab_workloads::Trace;

use crate::cli::PlanArgs;
use crate::inputs::{self, Source};
use crate::shell::exit::Failure;
use crate::shell::output::print_note;

/// For each buffer an offset, or none.
pub(crate) type Hints = Arc<[Option<Offset>]>;

/// The hints of a trace; `None` if no row has one.
pub(crate) fn of_trace(trace: &Trace) -> Option<Hints> {
    let hints: Hints = trace.labels.buffers.iter().map(|label| label.hint.map(Offset::new)).collect();
    hints.iter().any(Option::is_some).then_some(hints)
}

/// The offsets of a plan of the trace. An invalid plan is reported, but its valid parts may still help.
///
/// # Errors
///
/// If the file is not a plan of exactly the trace's buffers.
pub(crate) fn of_plan(argument: &str, trace: &Trace) -> Result<Hints, Failure> {
    let name = inputs::input_name(argument);
    let file = inputs::plan_file(argument)?;
    let plan = file.plan_for(trace)?;
    let hints = plan.offsets.iter().copied().map(Some).collect();
    match trace.instance.verify(plan) {
        Ok(_) => Ok(hints),
        Err(Violation::WrongCount { .. }) => {
            let unmatched = file.unmatched_ids(trace);
            Err(Failure::from_usage(format!("{name}: not a plan of this trace: {unmatched}"))
                .in_file(name, None))
        }
        Err(violation) => {
            print_note(&format!(
                "{name} is not a valid plan ({violation}); its usable offsets serve as hints"
            ));
            Ok(hints)
        }
    }
}

/// A plan that was adapted to another batch size.
pub(crate) struct Carried {
    /// Its height for the new sizes, in bytes.
    pub(crate) height: u64,
    pub(crate) hints: Hints,
}

/// The plan that `--carry PLAN --of TRACE` name; `None` if they name no plan.
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

/// The digest that distinguishes these hints from others.
pub(crate) fn hints_digest(hints: &[Option<Offset>]) -> Digest {
    let word = |hint: &Option<Offset>| {
        let mut word = [0; 9];
        if let Some(offset) = hint {
            word[0] = 1;
            word[1..].copy_from_slice(&offset.get().to_le_bytes());
        }
        word
    };
    Digest::of_bytes(&hints.iter().flat_map(word).collect::<Vec<u8>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hint_is_another_hint_than_offset_0() {
        let all = [vec![], vec![None], vec![Some(0)], vec![Some(0), None], vec![None, Some(0)]];
        let digest = |hints: &Vec<Option<u64>>| {
            hints_digest(&hints.iter().map(|hint| hint.map(Offset::new)).collect::<Vec<_>>())
        };
        for (at, hints) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| digest(other) != digest(hints)), "{hints:?}");
        }
    }
}
