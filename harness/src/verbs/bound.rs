//! `bound`: lower bounds on the height of any plan, and how each was derived.

use std::time::{Duration, Instant};

use planlab_dsa::{
    Bound, Budget, Claim, Evidence, Instance, Scope, Stop, alignment_bound, execute, pin_bound,
};
use planlab_solvers::bounds;
use serde::Serialize;
use serde_json::{Value, json};

use super::arenas::ArenaSizes;
use super::{certificate, view};
use crate::cli::BoundArgs;
use crate::inputs::{self, Source};
use crate::kinds::placement::Prover;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::quantity;
use crate::shell::signals::cancel_token;
use crate::shell::target::scratch_folder;
use crate::shell::text::Text;
use planlab_results::table::Table;

/// Default time for the arguments.
const DEFAULT_WALL: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &BoundArgs, output: Output) -> Verdict {
    let scratch = scratch_folder()?;
    let source = Source::resolve_argument(&args.trace, &args.reading, scratch.path())?;
    let wall = args.time_limit.unwrap_or(DEFAULT_WALL);
    if let Some(file) = &args.certificate {
        return certificate::write_certificate((&args.trace, &source), args.capacity, file, wall, output);
    }
    let cancel = cancel_token();
    let trace = inputs::open_trace(&source)?;
    trace.notices.iter().for_each(|notice| print_note(notice));
    let mut rows = bound_arguments(&trace.instance);
    let prover = Prover::default();
    let outcome =
        execute(&prover, &trace.instance, Budget { wall: Some(wall), cancel, ..Budget::default() }, 0);
    rows.extend(prover.into_steps().into_iter().map(row_of));
    let rows = rows;
    let seconds = outcome.elapsed.as_secs_f64();
    let best = outcome.bound;
    let mut text = bound_text(&rows, best, trace.instance.in_place().len())
        + certificate_hint(&args.trace, &trace.instance, best);
    let arenas = ArenaSizes::from_instance(&trace.instance);
    if let Some(table) = arenas.arena_table(None) {
        text = text + "\n" + table;
    }
    let mut object = bound_object(&source.name, &trace.instance, best, &rows, seconds);
    object["arenas"] = arenas.arena_objects(None);
    output.print_either(&object, text)?;
    match outcome.end {
        Ok(Stop::Cancelled) => Ok(Exit::Interrupted),
        Ok(Stop::Deadline) => {
            print_note(&out_of_time(&rows));
            Ok(Exit::Complete)
        }
        Ok(_) => Ok(Exit::Complete),
        Err(error) => Err(Failure::new(Exit::Invalid, error)),
    }
}

fn row_of(step: bounds::Step) -> Argument {
    let bounds::Step { evidence, scope, value, how, seconds, raised, finished, .. } = step;
    let how = match (finished, raised) {
        (false, _) => format!("cut short; nothing above {value} so far"),
        (true, false) => format!("found nothing above {value}: {how}"),
        (true, true) => how,
    };
    Argument { evidence, scope, value: value.get(), how, seconds, finished, is_news: raised || !finished }
}

/// The argument that the time limit cut short, in words.
fn out_of_time(rows: &[Argument]) -> String {
    let Some(row) = rows.iter().find(|row| !row.finished) else {
        return "the time limit came before every argument was tried".to_owned();
    };
    let time = quantity::format_seconds(nanoseconds(row.seconds));
    format!(
        "the time limit came during the argument by {}, which ran for {time}; a longer --time-limit may prove more",
        row.evidence
    )
}

/// One argument for a bound, with its result.
#[derive(Serialize)]
struct Argument {
    evidence: Evidence,
    scope: Scope,
    value: u64,
    how: String,
    seconds: f64,
    finished: bool,
    /// Whether the table shows it: it raised the bound, or time ran out.
    #[serde(skip)]
    is_news: bool,
}

fn bound_arguments(instance: &Instance) -> Vec<Argument> {
    let mut rows: Vec<Argument> = Vec::new();
    let mut add = |evidence, scope, find: &dyn Fn() -> Option<(u64, String)>| {
        let before = Instant::now();
        let found = find();
        let seconds = before.elapsed().as_secs_f64();
        let Some((value, how)) = found else { return };
        let is_known = |row: &Argument| row.scope == scope && row.value >= value;
        let is_news = !rows.iter().any(is_known);
        rows.push(Argument { evidence, scope, value, how, seconds, finished: true, is_news });
    };
    let permits = !instance.in_place().is_empty();
    add(Evidence::Load, Scope::Any, &|| {
        let load = instance.load();
        let except = if permits { "; outputs that may overwrite do not count at their first" } else { "" };
        let how = match instance.arenas().len() {
            1 => format!("most bytes live at one step (step {}){except}", load.step),
            arenas => format!("sum of the loads of {arenas} arenas, each at a step of its own{except}"),
        };
        Some((load.bytes.get(), how))
    });
    add(Evidence::Load, Scope::NoHandOver, &|| {
        let load = instance.load_without_in_place();
        permits.then(|| (load.bytes.get(), "the same, all outputs counted".to_owned()))
    });
    add(Evidence::Load, Scope::Any, &|| {
        let value = pin_bound(instance).get();
        (value > 0).then(|| (value, "highest end of a pinned buffer".to_owned()))
    });
    let scopes = if permits { &[Scope::Any, Scope::NoHandOver][..] } else { &[Scope::Any] };
    for &scope in scopes {
        add(Evidence::Alignment, scope, &|| {
            let value = alignment_bound(instance, scope)?.get();
            Some((
                value,
                "load of sizes rounded up to the common alignment, less the top's padding".to_owned(),
            ))
        });
    }
    rows
}

fn scope_text(scope: Scope) -> &'static str {
    match scope {
        Scope::Any => "any plan",
        Scope::NoHandOver => "plans without hand-overs",
    }
}

fn bound_object(name: &str, instance: &Instance, best: Bound, rows: &[Argument], seconds: f64) -> Value {
    let claim = best.best_claim(Scope::Any);
    let permits = !instance.in_place().is_empty();
    json!({
        "version": JSON_VERSION,
        "workload": name,
        "buffers": instance.len(),
        "load": instance.load().bytes,
        "load_without_in_place": instance.load_without_in_place().bytes,
        "permissions": instance.in_place().len(),
        "bound": claim.value,
        "bound_evidence": claim.evidence,
        "bound_without_in_place": permits.then(|| best.best_claim(Scope::NoHandOver).value),
        "arguments": rows,
        "seconds": seconds,
    })
}

fn bound_text(rows: &[Argument], best: Bound, permissions: usize) -> Text {
    let mut table = Table::new(&["bound", "evidence", "holds for", "how", "time"]);
    for row in rows.iter().filter(|row| row.is_news) {
        let time = quantity::format_seconds(nanoseconds(row.seconds));
        table.push_texts([
            quantity::format_memory(row.value),
            row.evidence.to_string(),
            scope_text(row.scope).to_owned(),
            row.how.clone(),
            time,
        ]);
    }
    let describe_claim = |scope| {
        let Claim { value, evidence } = best.best_claim(scope);
        format!("{}, proof: {evidence}", quantity::format_memory(value.get()))
    };
    let text = Text::from(table) + format!("{}\nbest: {}\n", no_news(rows), describe_claim(Scope::Any));
    if permissions == 0 {
        return text;
    }
    let permissions = view::permission_words(permissions);
    text + format!(
        "without {permissions} to overwrite in place (--in-place no): {}\n",
        describe_claim(Scope::NoHandOver)
    )
}

/// One line about the arguments that found nothing above what was known.
fn no_news(rows: &[Argument]) -> String {
    let mut tried: Vec<(Evidence, usize, f64)> = Vec::new();
    for row in rows.iter().filter(|row| !row.is_news) {
        match tried.iter_mut().find(|(evidence, ..)| *evidence == row.evidence) {
            Some((_, times, seconds)) => (*times, *seconds) = (*times + 1, *seconds + row.seconds),
            None => tried.push((row.evidence, 1, row.seconds)),
        }
    }
    let one = |(evidence, times, seconds): &(Evidence, usize, f64)| {
        let times = if *times > 1 { format!("{times} times, ") } else { String::new() };
        format!("{evidence} ({times}{})", quantity::format_seconds(nanoseconds(*seconds)))
    };
    let tried: Vec<String> = tried.iter().map(one).collect();
    if tried.is_empty() { String::new() } else { format!("found nothing higher: {}\n", tried.join(", ")) }
}

/// How to get a proof that others can check, if one is possible. The load needs no proof. A certificate is about plans
/// without hand-overs.
fn certificate_hint(trace: &str, instance: &Instance, best: Bound) -> String {
    let claim = best.best_claim(Scope::NoHandOver);
    let below = claim.value.get().saturating_sub(1);
    let is_load = claim.value <= instance.load_without_in_place().bytes;
    if is_load || instance.len() > certificate::MOST_BUFFERS {
        return String::new();
    }
    let off = if instance.in_place().is_empty() { "" } else { " --in-place no" };
    format!("a proof for others to check: planlab bound {trace}{off} --certificate FILE --capacity {below}\n")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time that was just measured")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}
