//! `simulate`: plays a trace, or several in turn, on online allocators.

use planlab_dsa::performance::{End, Missed, Sample};
use planlab_results::replay::ReplayRow;
use planlab_solvers::online::Entry;
use planlab_workloads::Trace;
use serde_json::{Value, json};

use crate::cli::SimulateArgs;
use crate::inputs::{self, Source};
use crate::kinds::pool::simulated::{self, Order, Played, SETTLING, Stream, play_stream, rounds_to_settle};
use crate::kinds::pool::{Keeper, exit_of};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::quantity::{as_seconds, format_memory, format_percent, format_seconds};
use crate::shell::target::scratch_folder;
use crate::shell::text::{Text, titled_table};
use planlab_results::table::Table;

pub(crate) fn run(args: &SimulateArgs, output: Output) -> Verdict {
    let allocators = simulated::matching(&args.allocators)?;
    let traces = read_traces(args)?;
    let stream = Stream::new(&traces, args.until);
    // Opened before anything is played, so that a folder that cannot be written wastes no time.
    let mut keeper = Keeper::open_store(args.out.as_deref())?;
    let mut table = titled_table(HEAD);
    let mut rows: Vec<ReplayRow> = Vec::new();
    for entry in allocators {
        let order = iteration_order(&entry, &stream, args);
        let played = play_stream(&entry, &stream, order);
        if played.performance.status != End::Complete {
            print_note(&format!(
                "{}: propagation {}: {}",
                entry.key,
                played.performance.samples.len().max(1),
                played.performance.reason
            ));
        }
        if output.json {
            output.print_value(&played_object(&played, &entry, &stream, args))?;
        }
        table.push_texts(played_line(&played, &entry, &stream));
        let row = played.into_row(&entry, &stream, order, "");
        let is_kept = keeper.keep_rows(std::slice::from_ref(&row));
        rows.push(row);
        if !is_kept {
            break;
        }
    }
    if !output.json {
        let mut text = Text::from(table_head(&traces, &stream)) + table.without_empty_columns() + WARM_UP;
        if args.samples {
            text = text + "\n" + propagation_table(&rows);
        }
        output.print_text(text)?;
    }
    keeper.end_keeping()?;
    Ok(exit_of(&rows))
}

/// The given number of rounds; for one trace, by default as many as an allocator that plans needs to settle.
fn iteration_order(entry: &Entry, stream: &Stream, args: &SimulateArgs) -> Order {
    let by_itself = || match stream.keys.len() {
        1 => rounds_to_settle(entry, stream, args.capacity).unwrap_or_else(|| {
            print_note(&format!("{}: did not settle within {SETTLING} propagations", entry.key));
            SETTLING
        }),
        _ => 1,
    };
    let rounds = args.iterations.unwrap_or_else(by_itself);
    Order { rounds, timed: 0, capacity: args.capacity }
}

/// The named traces. Standard input can be read only once.
fn read_traces(args: &SimulateArgs) -> Result<Vec<(String, Trace)>, Failure> {
    if args.traces.iter().filter(|trace| *trace == "-").count() > 1 {
        return Err(Failure::from_usage("standard input can be read only once, but - is named twice"));
    }
    if args.until.is_some() && args.traces.len() > 1 {
        return Err(Failure::from_usage("--until is a step of one trace, but there are several"));
    }
    args.traces.iter().map(|argument| open_argument(argument, args)).collect()
}

fn open_argument(argument: &str, args: &SimulateArgs) -> Result<(String, Trace), Failure> {
    let scratch = scratch_folder()?;
    let source = Source::resolve_argument(argument, &args.reading, scratch.path())?;
    let trace = inputs::open_trace(&source)?;
    trace.notices.iter().for_each(|notice| print_note(notice));
    inputs::refuse_several_arenas(&source.name, &trace, "a simulated allocator")?;
    let source = if args.out.is_some() { source.under_its_key(&trace) } else { source };
    Ok((source.name, trace))
}

fn played_object(played: &Played, entry: &Entry, stream: &Stream, args: &SimulateArgs) -> Value {
    let (requested_peak, live_end) = stream.live_bytes();
    let (usage, before) = (&played.usage, &played.before);
    let iterations = played.performance.samples.len().div_ceil(stream.keys.len());
    json!({
        "version": JSON_VERSION,
        "workload": stream.name,
        "sequence": stream.keys,
        "allocator": entry.key,
        "iterations": iterations,
        "capacity": args.capacity,
        "status": played.performance.status.name(),
        "reserved_peak": usage.reserved_peak,
        "requested_peak": requested_peak,
        "live_end": live_end,
        "reserved_end": usage.reserved,
        "device_allocations": usage.device_allocations,
        "search_steps": usage.search_steps,
        "requests": stream.request_count() * iterations as u64,
        "seconds": as_seconds(played.total_ns()),
        "missed": played.performance.missed,
        "last": {
            "reserved_peak": played.performance.samples.last().and_then(|sample| sample.reserved_peak),
            "device_allocations": usage.device_allocations - before.device_allocations,
            "search_steps": usage.search_steps - before.search_steps,
            "seconds": as_seconds(played.last_ns()),
        },
        "propagations": played.performance.samples.iter().map(sample_object).collect::<Vec<Value>>(),
    })
}

fn sample_object(sample: &Sample) -> Value {
    json!({
        "reserved": sample.reserved,
        "reserved_peak": sample.reserved_peak,
        "seconds": as_seconds(sample.wall_ns),
        "plans": sample.plans,
        "planning_seconds": sample.planning_ns.map(as_seconds),
        "planned": sample.planned,
        "missed": sample.missed,
    })
}

const HEAD: &str = "allocator, propagations, reserved peak, over requests, last: reserved peak, \
    reserved at the end, device calls, search steps, planned, missed, time, last: time";

const WARM_UP: &str = "\nEvery allocator begins with an empty pool. `replay` plays propagations to warm it up before it\n\
    measures, so a pool can be larger there; --iterations N plays the trace N times here.\n";

fn played_line(played: &Played, entry: &Entry, stream: &Stream) -> Vec<String> {
    let (requested_peak, _) = stream.live_bytes();
    let usage = &played.usage;
    // If there is one propagation, it is the last, and the total says the same.
    let several = played.performance.samples.len() > 1;
    let over = planlab_dsa::fragmentation(usage.reserved_peak, requested_peak);
    let last = played.performance.samples.last().and_then(|sample| sample.reserved_peak);
    let planned = played.performance.samples.last().and_then(|sample| sample.planned);
    let mark = match played.performance.status {
        End::Complete => String::new(),
        status => format!(" ({})", status.name().replace('-', " ")),
    };
    vec![
        format!("{}{mark}", entry.key),
        played.performance.samples.len().to_string(),
        format_memory(usage.reserved_peak.get()),
        format_percent(Some(over)),
        last.filter(|_| several).map_or_else(|| "-".to_owned(), format_memory),
        format_memory(usage.reserved.get()),
        usage.device_allocations.to_string(),
        usage.search_steps.to_string(),
        planned.map_or_else(|| "-".to_owned(), |planned| planned.to_string()),
        played.performance.missed.map_or_else(|| "-".to_owned(), missed_text),
        format_seconds(played.total_ns()),
        if several { format_seconds(played.last_ns()) } else { "-".to_owned() },
    ]
}

/// The number of requests that no plan served, by reason.
fn missed_text(missed: Missed) -> String {
    let Missed { unknown, larger, taken, outliving, no_memory } = missed;
    let reasons = [
        (unknown, "unknown"),
        (larger, "larger"),
        (taken, "taken"),
        (outliving, "outliving"),
        (no_memory, "no memory"),
    ];
    let told: Vec<String> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, reason)| format!("{count} {reason}"))
        .collect();
    if told.is_empty() { "0".to_owned() } else { told.join(", ") }
}

/// A table with every propagation of every allocator.
fn propagation_table(rows: &[ReplayRow]) -> Table {
    let mut table = titled_table(
        "allocator, propagation, reserved at most, at its end, time, plans, planning so far, \
         planned so far, missed so far",
    );
    for row in rows {
        for (sample, number) in row.performance.samples.iter().zip(1_u32..) {
            let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
            table.push_texts([
                row.contender.clone(),
                number.to_string(),
                or_dash(sample.reserved_peak.map(format_memory)),
                or_dash(sample.reserved.map(format_memory)),
                format_seconds(sample.wall_ns),
                or_dash(sample.plans.map(|plans| plans.to_string())),
                or_dash(sample.planning_ns.map(format_seconds)),
                or_dash(sample.planned.map(|planned| planned.to_string())),
                or_dash(sample.missed.map(|missed| missed.to_string())),
            ]);
        }
    }
    table.without_empty_columns()
}

fn table_head(traces: &[(String, Trace)], stream: &Stream) -> String {
    let (peak, end) = stream.live_bytes();
    let buffers: usize = traces.iter().map(|(_, trace)| trace.instance.len()).sum();
    let several = match traces.len() {
        1 => String::new(),
        count => format!(" in {count} propagations"),
    };
    let name = &stream.name;
    format!(
        "{name}: {buffers} buffers{several}, at most {} requested at once, {} still live at the end\n\n",
        format_memory(peak.get()),
        format_memory(end.get())
    )
}
