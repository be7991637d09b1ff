//! `verify` and `bound`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use planlab_dsa::{
    Bound, Budget, BufferId, Descriptor, Evidence, Guarantee, Halt, Honours, Instance, Planner, Run, Scope,
    Stop, VerifiedPlan, Violation, alignment_bound, execute, fragmentation, pin_bound,
};
use planlab_solvers::bounds;
use planlab_workloads::Trace;
use serde_json::{Value, json};

use crate::cli::{BoundArgs, VerifyArgs};
use crate::inputs::{self, Source};
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::JSON_VERSION;
use crate::shell::output::{Output, note};
use crate::shell::quantity::percent;
use crate::shell::signals::cancel_token;
use crate::shell::table::Table;
use crate::shell::target::scratch;

use super::certificate;

pub(crate) fn verify(args: &VerifyArgs, output: Output) -> Verdict {
    let given = [&args.plan, &args.certificate].into_iter().flatten();
    if args.trace == "-" && given.into_iter().any(|file| file == "-") {
        return Err(Failure::usage("the trace and what is checked cannot both come from stdin"));
    }
    let scratch = scratch()?;
    let source = Source::resolve(&args.trace, &args.reading, scratch.path())?;
    match (&args.plan, &args.certificate) {
        (_, Some(certificate)) => certificate::verify(&source, certificate, output),
        (Some(plan), None) => verify_plan(&source, plan, output),
        (None, None) => Err(Failure::usage(
            "name the plan to check (verify TRACE PLAN), or a proof of infeasibility (verify TRACE --certificate FILE)",
        )),
    }
}

fn verify_plan(source: &Source, file: &str, output: Output) -> Verdict {
    let trace = inputs::open(source)?;
    let file = inputs::plan_file(file)?;
    match trace.instance.verify(file.plan(&trace)?) {
        Ok(plan) => {
            output.put(&valid_object(&plan), &valid_text(&plan))?;
            Ok(Exit::Complete)
        }
        Err(violation) => {
            let mut text = violation_text(&violation, &trace);
            if matches!(violation, Violation::WrongCount { .. }) {
                text += &format!("  {}\n", file.unmatched(&trace));
            }
            output.put(&violation_object(&violation, &trace), &text)?;
            Ok(Exit::Invalid)
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
        "fragmentation": fragmentation(plan.height(), load),
        "hand_overs": plan.in_place().len(),
    })
}

fn valid_text(plan: &VerifiedPlan<'_>) -> String {
    let load = plan.instance().load().bytes;
    let part = percent(Some(fragmentation(plan.height(), load)));
    format!("valid\nheight         {}\nload           {load}\nfragmentation  {part}\n", plan.height())
}

fn violation_object(violation: &Violation, trace: &Trace) -> Value {
    let names: Vec<&str> = violation.buffers().iter().map(|&id| name(trace, id)).collect();
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

fn name(trace: &Trace, id: BufferId) -> &str {
    trace.labels.buffers.get(id.index()).map_or("", |label| label.name.as_str())
}

/// Time for the arguments where none is said.
const DEFAULT_WALL: Duration = Duration::from_secs(10);

pub(crate) fn bound(args: &BoundArgs, output: Output) -> Verdict {
    let scratch = scratch()?;
    let source = Source::resolve(&args.trace, &args.reading, scratch.path())?;
    let wall = args.time_limit.unwrap_or(DEFAULT_WALL);
    if let Some(file) = &args.certificate {
        return certificate::write(&source, args.capacity, file, wall, output);
    }
    let cancel = cancel_token();
    let trace = inputs::open(&source)?;
    trace.notices.iter().for_each(|notice| note(notice));
    let mut rows = arguments(&trace.instance);
    let prover = Prover::default();
    let outcome =
        execute(&prover, &trace.instance, Budget { wall: Some(wall), cancel, ..Budget::default() }, 0);
    rows.extend(prover.steps.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().map(row_of));
    let seconds = outcome.elapsed.as_secs_f64();
    let best = outcome.bound;
    let text = bound_text(&rows, best) + &certificate_hint(&args.trace, &trace.instance, best);
    output.put(&bound_object(&source.name, &trace.instance, best, &rows, seconds), &text)?;
    match outcome.end {
        Ok(Stop::Cancelled) => Ok(Exit::Interrupted),
        Ok(Stop::Deadline) => {
            note(&out_of_time(&rows));
            Ok(Exit::Complete)
        }
        Ok(_) => Ok(Exit::Complete),
        Err(error) => Err(Failure::new(Exit::Invalid, error)),
    }
}

/// A planner that plans nothing and proves what it can.
#[derive(Default)]
pub(crate) struct Prover {
    steps: Mutex<Vec<bounds::Step>>,
}

impl Planner for Prover {
    fn descriptor(&self) -> Descriptor {
        let honours = Honours {
            in_place: true,
            pins: true,
            pauses: true,
            alignment: true,
            arenas: true,
            apart: true,
            ..Honours::default()
        };
        Descriptor {
            key: "bounds".into(),
            summary: "lower bounds alone".into(),
            guarantee: Guarantee::Heuristic,
            honours,
            randomized: false,
            reference: "planlab_solvers::bounds",
            complexity: "that of each argument",
            practical: None,
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        bounds::prove(run, bounds::Effort::Thorough, &mut |step| {
            self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
        })
    }
}

fn row_of(step: bounds::Step) -> Argument {
    let bounds::Step { evidence, scope, value, how, seconds, raised, finished, .. } = step;
    let how = match (finished, raised) {
        (false, _) => format!("cut short; nothing above {value} so far"),
        (true, false) => format!("found nothing above {value}: {how}"),
        (true, true) => how,
    };
    Argument { evidence, scope, value: value.get(), how, seconds, finished }
}

/// What the time limit cut short.
fn out_of_time(rows: &[Argument]) -> String {
    let Some(row) = rows.iter().find(|row| !row.finished) else {
        return "the time was up before every argument had been tried".to_owned();
    };
    let time = crate::shell::quantity::seconds(nanoseconds(row.seconds));
    format!(
        "the time was up during the argument by {}, which had run for {time}; a longer --time-limit may prove more",
        row.evidence
    )
}

/// One way to a bound, and what it gives.
struct Argument {
    evidence: Evidence,
    scope: Scope,
    value: u64,
    how: String,
    seconds: f64,
    finished: bool,
}

fn arguments(instance: &Instance) -> Vec<Argument> {
    let mut rows = Vec::new();
    let mut add = |evidence, scope, find: &dyn Fn() -> Option<(u64, String)>| {
        let before = Instant::now();
        let found = find();
        let seconds = before.elapsed().as_secs_f64();
        rows.extend(found.map(|(value, how)| Argument {
            evidence,
            scope,
            value,
            how,
            seconds,
            finished: true,
        }));
    };
    add(Evidence::Load, Scope::NoHandOver, &|| {
        let load = instance.load_curve().peak();
        Some((instance.load().bytes.get(), format!("most bytes live at one step (step {})", load.step)))
    });
    add(Evidence::Load, Scope::Any, &|| {
        let how = "the same, outputs that may overwrite left out at their first step".to_owned();
        (!instance.in_place().is_empty()).then(|| (instance.relaxed_load().bytes.get(), how))
    });
    add(Evidence::Load, Scope::Any, &|| {
        let value = pin_bound(instance).get();
        (value > 0).then(|| (value, "highest end of a pinned buffer".to_owned()))
    });
    add(Evidence::Alignment, Scope::NoHandOver, &|| {
        let value = alignment_bound(instance)?.get();
        Some((value, "load of sizes rounded up to the common alignment, less the top's padding".to_owned()))
    });
    rows
}

fn scope_text(scope: Scope) -> &'static str {
    match scope {
        Scope::Any => "any plan",
        Scope::NoHandOver => "plans without hand-overs",
    }
}

fn bound_object(name: &str, instance: &Instance, best: Bound, rows: &[Argument], seconds: f64) -> Value {
    let claim = best.of(Scope::NoHandOver);
    let arguments: Vec<Value> = rows
        .iter()
        .map(|row| json!({ "evidence": row.evidence, "scope": row.scope, "value": row.value, "how": row.how, "seconds": row.seconds, "finished": row.finished }))
        .collect();
    json!({
        "version": JSON_VERSION,
        "workload": name,
        "buffers": instance.len(),
        "load": instance.load().bytes,
        "bound": claim.value,
        "bound_evidence": claim.evidence,
        "bound_with_hand_overs": best.of(Scope::Any).value,
        "arguments": arguments,
        "seconds": seconds,
    })
}

fn bound_text(rows: &[Argument], best: Bound) -> String {
    let mut table = Table::new(&["bound", "evidence", "holds for", "how", "time"]);
    for row in rows {
        let time = crate::shell::quantity::seconds(nanoseconds(row.seconds));
        table.row([
            row.value.to_string(),
            row.evidence.to_string(),
            scope_text(row.scope).to_owned(),
            row.how.clone(),
            time,
        ]);
    }
    let claim = best.of(Scope::NoHandOver);
    format!("{}\nbest: {} ({})\n", table.render(), claim.value, claim.evidence)
}

/// How to have a proof that others can check, where there may be one. The load needs none.
fn certificate_hint(trace: &str, instance: &Instance, best: Bound) -> String {
    let claim = best.of(Scope::NoHandOver);
    let below = claim.value.get().saturating_sub(1);
    if claim.value <= instance.load().bytes || instance.len() > certificate::MOST_BUFFERS {
        return String::new();
    }
    format!("a proof for others to check: planlab bound {trace} --certificate FILE --capacity {below}\n")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time that was just measured")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
