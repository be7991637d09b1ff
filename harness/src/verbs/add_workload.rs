//! `add-workload`: keeps a trace in the repository as a recorded workload.

use planlab_dsa::{Budget, Instance, execute};
use planlab_workloads::recorded::{self, Origin};
use serde_json::json;

use crate::cli::AddWorkloadArgs;
use crate::inputs::{self, Source};
use crate::kinds::placement::planners;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::quantity;
use crate::shell::target::scratch_folder;

/// The planner whose plan has to pass the verifier.
const PLANNER: &str = "best-fit";

pub(crate) fn run(args: &AddWorkloadArgs, output: Output) -> Verdict {
    let scratch = scratch_folder()?;
    let source = Source::resolve_argument(&args.trace, &args.reading, scratch.path())?;
    if !source.is_file() {
        return Err(Failure::from_usage(format!("{}: there is no such file", args.trace)));
    }
    let trace = inputs::open_trace(&source)?;
    trace.notices.iter().for_each(|notice| print_note(notice));
    let height = planned_height(&trace.instance)?;
    let (key, source, license) = (args.key.clone(), args.source.clone(), args.license.clone());
    let entry = recorded::add(&args.data, &trace, &Origin { key, source, license })?;
    let path = args.data.join(&entry.file).display().to_string();
    let value = json!({
        "version": JSON_VERSION,
        "output": path,
        "key": entry.key,
        "buffers": entry.buffers,
        "load": entry.load,
        "digest": entry.digest,
        "provenance": entry.provenance,
    });
    let text = format!(
        "{path}: {}, {} buffers, load {}, height {} by {PLANNER}\n\
         build planlab again to run the workload, and commit the file with MANIFEST.toml\n",
        entry.key,
        entry.buffers,
        quantity::format_memory(entry.load),
        quantity::format_memory(height),
    );
    output.print_result(&value, text, Exit::Complete)
}

/// The height of a plan that the verifier accepts: a trace that nobody can plan is no workload.
fn planned_height(instance: &Instance) -> Result<u64, Failure> {
    let planner = planners::find(PLANNER)?;
    let outcome = execute(planner.as_ref(), instance, Budget::default(), 0);
    match (outcome.height(), &outcome.end) {
        (Some(height), _) => Ok(height.get()),
        (None, Err(error)) => {
            Err(Failure::from_usage(format!("{PLANNER} has no plan of this trace: {error}")))
        }
        (None, Ok(_)) => Err(Failure::from_usage(format!("{PLANNER} has no plan of this trace"))),
    }
}
