//! `verify`: checks a plan or a certificate against its trace.

use planlab_dsa::{BufferId, VerifiedPlan, Violation, fragmentation};
use planlab_workloads::Trace;
use serde_json::{Value, json};

use super::arenas::ArenaSizes;
use super::{certificate, view};
use crate::cli::VerifyArgs;
use crate::inputs::{self, Source};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::Output;
use crate::shell::quantity::{format_memory, format_percent};
use crate::shell::target::scratch_folder;
use crate::shell::text::Text;

pub(crate) fn run(args: &VerifyArgs, output: Output) -> Verdict {
    let given = [&args.plan, &args.certificate].into_iter().flatten();
    if args.trace == "-" && given.into_iter().any(|file| file == "-") {
        return Err(Failure::from_usage("the trace and the file to check cannot both come from stdin"));
    }
    let scratch = scratch_folder()?;
    let source = Source::resolve_argument(&args.trace, &args.reading, scratch.path())?;
    match (&args.plan, &args.certificate) {
        (_, Some(certificate)) => certificate::verify_certificate(&source, certificate, output),
        (Some(plan), None) => verify_plan(&source, plan, output),
        (None, None) => Err(Failure::from_usage(
            "name the plan to check (verify TRACE PLAN), or a proof of infeasibility (verify TRACE --certificate FILE)",
        )),
    }
}

fn verify_plan(source: &Source, file: &str, output: Output) -> Verdict {
    let trace = inputs::open_trace(source)?;
    let file = inputs::plan_file(file)?;
    match trace.instance.verify(file.plan_for(&trace)?) {
        Ok(plan) => output.print_result(&valid_object(&plan), valid_text(&plan), Exit::Complete),
        Err(violation) => {
            let mut text = violation_text(&violation, &trace);
            if matches!(violation, Violation::WrongCount { .. }) {
                text += &format!("  {}\n", file.unmatched_ids(&trace));
            }
            output.print_result(&violation_object(&violation, &trace), text, Exit::Invalid)
        }
    }
}

fn valid_object(plan: &VerifiedPlan<'_>) -> Value {
    let load = plan.instance().load().bytes;
    json!({
        "version": JSON_VERSION,
        "valid": true,
        "height": plan.height(),
        "load": load,
        "load_without_in_place": plan.instance().load_without_in_place().bytes,
        "fragmentation": fragmentation(plan.height(), load),
        "permissions": plan.instance().in_place().len(),
        "hand_overs": plan.in_place().len(),
        "arenas": ArenaSizes::from_instance(plan.instance()).arena_objects(Some(&plan.arena_heights())),
    })
}

fn valid_text(plan: &VerifiedPlan<'_>) -> Text {
    let instance = plan.instance();
    let load = instance.load().bytes;
    let part = format_percent(Some(fragmentation(plan.height(), load)));
    let arenas = ArenaSizes::from_instance(instance);
    let sum = arenas.sum_remark();
    let mut words = format!(
        "valid\nheight         {}{sum}\nload           {}{sum}\nfragmentation  {part}\n",
        format_memory(plan.height().get()),
        view::load_text(load.get(), instance.load_without_in_place().bytes.get())
    );
    let permissions = instance.in_place().len();
    if permissions > 0 {
        words += &format!(
            "in-place       {}, used {}\n",
            view::permission_words(permissions),
            plan.in_place().len()
        );
    }
    match arenas.arena_table(Some(&plan.arena_heights())) {
        Some(table) => Text::from(words) + "\n" + table,
        None => words.into(),
    }
}

fn violation_object(violation: &Violation, trace: &Trace) -> Value {
    let name = |id: &BufferId| trace.labels.buffers.get(id.index()).map_or("", |label| label.name.as_str());
    let names: Vec<&str> = violation.buffers().iter().map(name).collect();
    json!({
        "version": JSON_VERSION,
        "valid": false,
        "violation": violation.kind(),
        "message": violation.to_string(),
        "buffers": names,
        "steps": violation.steps().map(|steps| [steps.start(), steps.end()]),
    })
}

fn violation_text(violation: &Violation, trace: &Trace) -> String {
    let mut text = format!("not valid: {violation}\n");
    if let Violation::OverCapacity { arena, .. } = violation {
        text += &format!("  arena {arena} is `{}`\n", trace.instance.arenas()[arena.index()].name);
    }
    for id in violation.buffers() {
        let Some(label) = trace.labels.buffers.get(id.index()) else { continue };
        let row = label.row.map(|row| format!(", line {row}")).unwrap_or_default();
        let live = trace.instance.buffers().get(id.index()).map(|b| b.live.to_string()).unwrap_or_default();
        text += &format!("  buffer {id} is `{}`, live {live}{row}\n", label.name);
    }
    text
}
