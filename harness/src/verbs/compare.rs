//! `compare`: runs all quick planners on one trace, external ones too, and prints one table.

use planlab_dsa::{Bytes, Instance, VerifiedPlan};
use planlab_results::{Record, Status};
use serde_json::Value;

use super::arenas::ArenaSizes;
use super::view;
use crate::cli::CompareArgs;
use crate::inputs::{self, Source};
use crate::kinds::external;
use crate::kinds::placement::{Cell, Runner, Samples, Subject, planners};
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::signals::cancel_token;
use crate::shell::target::scratch_folder;
use crate::shell::text::Text;

pub(crate) fn run(args: &CompareArgs, output: Output) -> Verdict {
    let cancel = cancel_token();
    let scratch = scratch_folder()?;
    let source = Source::resolve_argument(&args.trace, &args.reading, scratch.path())?;
    let trace = inputs::open_trace(&source)?;
    trace.notices.iter().for_each(|notice| print_note(notice));
    let digest = trace.instance.digest();
    let subject = Subject { source: &source, instance: &trace.instance, digest, hints: None };
    let runner = Runner::new(cancel, Samples::ONCE)?;
    let (mut rows, mut heights) = (Vec::new(), Vec::new());
    let chosen = chosen_planners(args, trace.instance.len())?;
    external::ask_versions(|key| chosen.iter().any(|planner| planner == key));
    for planner in chosen {
        if runner.cancel().is_cancelled() {
            break;
        }
        let cell = Cell::of(&source, &planner, &args.limits);
        let (judgement, row) = runner.run_alone(&subject, &cell)?;
        rows.push(row);
        heights.push(judgement.plan.as_ref().map(VerifiedPlan::arena_heights));
    }
    view::share_bound(&mut rows);
    let arenas = ArenaSizes::from_instance(&trace.instance);
    let object = |(row, heights): (&Record, &Option<Vec<Bytes>>)| {
        let mut object = view::record_object(row);
        object["permissions"] = trace.instance.in_place().len().into();
        object["arenas"] = arenas.arena_objects(heights.as_deref());
        object
    };
    let objects: Vec<Value> = rows.iter().zip(&heights).map(object).collect();
    let mut text = Text::from(table_head(&source, &trace.instance, &arenas)) + view::comparison_table(&rows);
    let planned = rows.iter().map(|row| row.planner.as_str()).zip(heights.iter().map(Option::as_deref));
    if let (Some(each), Some(table)) = (arenas.comparison_table(planned), arenas.arena_table(None)) {
        text = text + "\nheights by arena:\n\n" + each + "\n" + table;
    }
    output.print_either(&Value::Array(objects), text)?;
    Ok(exit_of(&rows, runner.cancel().is_cancelled()))
}

/// What the rows have in common.
fn table_head(source: &Source, instance: &Instance, arenas: &ArenaSizes<'_>) -> String {
    let [load, without] = [instance.load(), instance.load_without_in_place()].map(|load| load.bytes.get());
    let load = view::load_text(load, without) + &arenas.sum_remark();
    let mut head = format!("{}: {} buffers, load {load}\n", source.name, instance.len());
    let permissions = instance.in_place().len();
    if permissions > 0 {
        let permissions = view::permission_words(permissions);
        head += &format!(
            "in-place: {permissions} (off with --in-place no); a planner with hand-overs `never` uses none\n"
        );
    }
    head + "\n"
}

/// The named planners, or all that do not search and every external one, if they are practical at this size.
fn chosen_planners(args: &CompareArgs, buffers: usize) -> Result<Vec<String>, Failure> {
    if !args.planners.is_empty() {
        return planners::matching(&args.planners);
    }
    let descriptors = planners::descriptors().into_iter();
    let quick = descriptors.filter(|descriptor| planners::is_quick_for(descriptor, buffers));
    let external = external::entries().iter().map(external::descriptor);
    let external = external.filter(|descriptor| planners::is_practical_for(descriptor, buffers));
    for (key, reason) in external::all_absent() {
        print_note(&format!("`{key}` cannot run: {reason}"));
    }
    Ok(quick.chain(external).map(|descriptor| descriptor.key.into_owned()).collect())
}

fn exit_of(rows: &[Record], is_cancelled: bool) -> Exit {
    let any = |test: fn(Status) -> bool| rows.iter().any(|row| test(row.status));
    Exit::first_of([
        // Some planners are missing, whatever the others found.
        (Exit::Interrupted, is_cancelled || any(|status| status == Status::Interrupted)),
        (Exit::Invalid, any(Status::is_lie)),
        (Exit::Incomplete, any(|status| !status.is_answer() && status != Status::Unsupported)),
    ])
}
