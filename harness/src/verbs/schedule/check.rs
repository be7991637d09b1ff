//! `schedule --check`: validates a schedule from a file, in the memory of the machine, and compares it with the bound.

use planlab_graph::{Audited, Schedule, ScheduleBound, SchedulingProblem, compute_bound, validate_schedule};
use planlab_solvers::schedule::lp_bound;
use serde_json::json;

use crate::inputs;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::quantity::format_memory;

pub(super) fn run(problem: &SchedulingProblem, file: &str, output: Output) -> Verdict {
    let name = inputs::input_name(file);
    let schedule = Schedule::read_jsonl(name, &inputs::read_file_document(file)?)?;
    let (net, batch, machine) = (problem.net.name(), problem.net.batch(), &problem.machine.name);
    if schedule.net != net || schedule.batch.is_some_and(|own| own != batch) {
        let own = schedule.batch.map_or_else(String::new, |own| format!(" at batch {own}"));
        return Err(Failure::from_usage(format!(
            "{name}: the schedule is for {}{own}, not for {net} at batch {batch}",
            schedule.net
        )));
    }
    if schedule.machine != *machine {
        print_note(&format!("{name}: the schedule is for {}; it is checked for {machine}", schedule.machine));
    }
    match validate_schedule(problem, &schedule, Some(problem.capacity)) {
        Ok(audited) => show_valid(problem, &audited, output),
        Err(violation) => {
            let message = violation.to_string();
            let value = json!({ "version": JSON_VERSION, "valid": false, "message": message });
            output.print_result(&value, format!("not valid: {message}\n"), Exit::Invalid)
        }
    }
}

fn show_valid(problem: &SchedulingProblem, audited: &Audited, output: Output) -> Verdict {
    let compute = compute_bound(problem);
    let bound =
        ScheduleBound::highest_of(&[compute, lp_bound(problem).unwrap_or(compute)]).unwrap_or(compute);
    let speed = problem.images_per_second(audited.seconds);
    let gap = bound.gap(audited.seconds);
    let value = json!({
        "version": JSON_VERSION,
        "valid": true,
        "seconds": audited.seconds,
        "images_per_second": speed,
        "height": audited.height,
        "bound_seconds": bound.seconds,
        "bound_evidence": bound.evidence.name(),
        "gap": gap,
    });
    let text = format!(
        "valid\nseconds  {:.6}\nimages   {speed:.1} a second\nheight   {}\nbound    {:.6}, proof: {}\ngap      {:.3} %\n",
        audited.seconds,
        format_memory(audited.height.get()),
        bound.seconds,
        bound.evidence.name(),
        100.0 * gap
    );
    output.print_either(&value, text)?;
    if bound.is_refuted_by(audited.seconds) {
        return Err(Failure::new(
            Exit::Invalid,
            format!("the schedule refutes the bound of {:.6} s", bound.seconds),
        ));
    }
    Ok(Exit::Complete)
}
