//! `schedule --check`: validates a schedule from a file, in the memory of the machine.

use planlab_graph::{Schedule, SchedulingProblem, validate};
use serde_json::json;

use crate::inputs;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Verdict};
use crate::shell::output::{Output, note};

pub(super) fn run(problem: &SchedulingProblem, file: &str, output: Output) -> Verdict {
    let name = inputs::name(file);
    let schedule = Schedule::read_jsonl(name, &inputs::document(file)?)?;
    let (net, machine) = (problem.net.name(), &problem.machine.name);
    if (schedule.net.as_str(), &schedule.machine) != (net, machine) {
        note(&format!(
            "{name}: the schedule says it is for {} on {}; it is checked for {net} on {machine}",
            schedule.net, schedule.machine
        ));
    }
    match validate(problem, &schedule, Some(problem.capacity)) {
        Ok(audited) => {
            let speed = problem.images_per_second(audited.seconds);
            let value = json!({
                "version": JSON_VERSION,
                "valid": true,
                "seconds": audited.seconds,
                "images_per_second": speed,
                "height": audited.height,
            });
            let text = format!(
                "valid\nseconds  {:.6}\nimages   {speed:.1} a second\nheight   {}\n",
                audited.seconds, audited.height
            );
            output.put(&value, &text)?;
            Ok(Exit::Complete)
        }
        Err(violation) => {
            let message = violation.to_string();
            let value = json!({ "version": JSON_VERSION, "valid": false, "message": message });
            output.put(&value, &format!("not valid: {message}\n"))?;
            Ok(Exit::Invalid)
        }
    }
}
