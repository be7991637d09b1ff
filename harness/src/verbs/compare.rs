//! `compare`: runs all quick planners on one trace, external ones too, and prints one table.

use planlab_dsa::Instance;
use planlab_results::{Record, Status};
use serde_json::Value;

use super::view;
use crate::cli::CompareArgs;
use crate::external;
use crate::inputs::{self, Source};
use crate::planning::{Cell, RowContext, Runner, Samples, Subject, planners, record};
use crate::shell::clock::now_ns;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, note};
use crate::shell::signals::cancel_token;
use crate::shell::target::scratch;
use crate::shell::text::Text;

pub(crate) fn run(args: &CompareArgs, output: Output) -> Verdict {
    let cancel = cancel_token();
    let scratch = scratch()?;
    let source = Source::resolve(&args.trace, &args.reading, scratch.path())?;
    let trace = inputs::open(&source)?;
    trace.notices.iter().for_each(|notice| note(notice));
    let digest = trace.instance.digest();
    let subject = Subject { source: &source, instance: &trace.instance, digest, hints: None };
    let runner = Runner::new(cancel, Samples::ONCE)?;
    let mut rows = Vec::new();
    let chosen = chosen(args, trace.instance.len())?;
    external::ask_versions(|key| chosen.iter().any(|planner| planner == key));
    for planner in chosen {
        if runner.cancel().is_cancelled() {
            break;
        }
        let cell = Cell::of(&source, &planner, &args.limits);
        rows.push(row(&runner, &subject, &cell)?);
    }
    view::share_bound(&mut rows);
    let objects: Vec<Value> = rows.iter().map(|row| object(row, &trace.instance)).collect();
    output
        .put(&Value::Array(objects), Text::from(head(&source, &trace.instance)) + view::comparison(&rows))?;
    // If interrupted, some planners are missing, whatever the others found.
    Ok(if runner.cancel().is_cancelled() { Exit::Interrupted } else { exit_of(&rows) })
}

/// What the rows have in common.
fn head(source: &Source, instance: &Instance) -> String {
    let [load, without] = [instance.load(), instance.load_without_in_place()].map(|load| load.bytes.get());
    let mut head =
        format!("{}: {} buffers, load {}\n", source.name, instance.len(), view::load(load, without));
    let permissions = instance.in_place().len();
    if permissions > 0 {
        let permissions = view::permissions(permissions);
        head += &format!(
            "in-place: {permissions} (off with --in-place no); a planner with hand-overs `never` uses none\n"
        );
    }
    head + "\n"
}

fn object(row: &Record, instance: &Instance) -> Value {
    let mut object = view::object(row);
    object["permissions"] = instance.in_place().len().into();
    object
}

fn row(runner: &Runner, subject: &Subject<'_>, cell: &Cell) -> Result<Record, Failure> {
    let started = now_ns();
    let judged = runner.run(subject, std::slice::from_ref(cell), None)?;
    let judgement = judged.first().ok_or_else(|| Failure::usage("the child did not answer for its cell"))?;
    Ok(record(cell, subject, judgement, None, RowContext::of(runner, started)))
}

/// The named planners, or all that do not search and every external one, if they are practical at this size.
fn chosen(args: &CompareArgs, buffers: usize) -> Result<Vec<String>, Failure> {
    if !args.planners.is_empty() {
        return planners::matching(&args.planners);
    }
    let descriptors = planners::descriptors().into_iter();
    let quick = descriptors.filter(|descriptor| planners::is_quick_for(descriptor, buffers));
    let external = external::entries().iter().map(external::descriptor);
    let external = external.filter(|descriptor| planners::is_practical_for(descriptor, buffers));
    for (key, reason) in external::all_absent() {
        note(&format!("`{key}` cannot run: {reason}"));
    }
    Ok(quick.chain(external).map(|descriptor| descriptor.key.into_owned()).collect())
}

fn exit_of(rows: &[Record]) -> Exit {
    if rows.iter().any(|row| row.status == Status::Interrupted) {
        Exit::Interrupted
    } else if rows.iter().any(|row| row.status.is_lie()) {
        Exit::Invalid
    } else if rows.iter().any(|row| !row.status.is_answer() && row.status != Status::Unsupported) {
        Exit::Incomplete
    } else {
        Exit::Complete
    }
}
