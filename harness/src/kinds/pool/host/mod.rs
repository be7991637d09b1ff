//! Replays on the host: one child process for each contender, number of threads and repetition.
//!
//! An allocator's options and memory counters belong to a process, and a contender that crashes loses only its own row.
//! The parent shuffles the turns, watches the time and makes the rows; the child plays.

mod kind;

use planlab_dsa::{CancelToken, Digest};
use planlab_replay::{End, Performance, Work};
use planlab_results::replay::ReplayRow;
use planlab_workloads::Trace;
use rand::SeedableRng;
use rand::seq::SliceRandom;

pub(crate) use self::kind::HostReplay;
use self::kind::{HostRequest, Settings};
use super::row::{Place, performance_of_death, row};
use super::subject::Subject;
use super::{Contender, Keeper, exit_of, table};
use crate::cells::{CellEnd, Order, Supervisor};
use crate::cli::ReplayArgs;
use crate::inputs::Source;
use crate::process::Death;
use crate::shell::clock::now_ns;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note, printable};
use crate::shell::progress::Progress;
use crate::shell::provenance;
use crate::shell::quantity::{as_nanoseconds, format_memory};
use crate::shell::text::Text;

/// Refuses arguments that only a device supports.
pub(crate) fn check_args(args: &ReplayArgs) -> Result<(), Failure> {
    let is_for_devices = !args.work.is_for_host() || args.rounds > 1 || args.operation_time.is_some();
    if is_for_devices {
        let says = "--rounds, --operation-time and kernels are for devices";
        return Err(Failure::from_usage(says));
    }
    Ok(())
}

/// Plays the traces, one propagation each, on all contenders.
pub(crate) fn run(
    args: &ReplayArgs,
    (sources, traces): (&[Source], &[Trace]),
    contenders: &[Contender],
    mut keeper: Keeper,
    cancel: &CancelToken,
    output: Output,
) -> Verdict {
    let subject = Subject::from_sources(sources, traces);
    let supervisor = Supervisor::without_memory_limit(cancel.clone())?;
    let (source, turns) = (sources.to_vec(), process_turns(args, contenders));
    let bar = Progress::new(turns.len() as u64, "replays");
    let mut rows = Vec::new();
    for turn in &turns {
        if cancel.is_cancelled() {
            break;
        }
        bar.set_message(printable(&turn.contender.name()).into_owned());
        let started_ns = now_ns();
        let provenance = provenance::this_machine(1);
        let order = Order { source: &source, cells: &[turn.request()], memory: None, core: None };
        let Some(end) = supervisor.run::<HostReplay>(&order)?.pop() else { break };
        if matches!(end.end, Err(Death::Interrupted)) {
            break;
        }
        bar.inc(1);
        let (contender, settings) = (turn.contender, &turn.settings);
        let place = (Place::of_host("host"), settings.work);
        let cell = cell_digest(&subject, contender, settings, &provenance.host);
        let performance = performance_of(contender, settings, &end);
        let row = row(&subject, contender, place, performance, provenance).with(|row| {
            (row.cell, row.repetition, row.started_ns) = (cell, turn.repetition, started_ns);
            (row.threads, row.capacity) = (settings.threads, settings.capacity);
        });
        let is_kept = keeper.keep_rows(std::slice::from_ref(&row));
        let told = print_notes(&end, turn);
        if output.json {
            output.print_value(&table::process_object(&row, &told))?;
        }
        rows.push(row);
        if !is_kept {
            break;
        }
    }
    bar.finish_and_clear();
    rows.sort_by_key(|row| order_of(row, contenders));
    if !output.json {
        output.print_text(Text::from(table_head(&subject, args)) + table::table(&rows))?;
    }
    keeper.end_keeping()?;
    Ok(if cancel.is_cancelled() { Exit::Interrupted } else { exit_of(&rows) })
}

/// One process: a contender with a number of threads in a repetition.
struct Turn<'a> {
    contender: &'a Contender,
    settings: Settings,
    repetition: u32,
}

impl Turn<'_> {
    fn request(&self) -> HostRequest {
        HostRequest {
            contender: self.contender.key.clone(),
            plan: self.contender.plan.clone(),
            settings: self.settings.clone(),
        }
    }
}

/// All processes, in rounds. In each round every contender with every number of threads has a turn, shuffled.
fn process_turns<'a>(args: &ReplayArgs, contenders: &'a [Contender]) -> Vec<Turn<'a>> {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(args.seed);
    let mut all = Vec::new();
    for repetition in 0..args.reps {
        let mut round = Vec::new();
        for &threads in &args.threads {
            let turn = |contender| Turn { contender, settings: replay_settings(args, threads), repetition };
            round.extend(contenders.iter().map(turn));
        }
        round.shuffle(&mut random);
        all.extend(round);
    }
    all
}

fn replay_settings(args: &ReplayArgs, threads: u32) -> Settings {
    Settings {
        work: args.work,
        threads,
        capacity: args.capacity,
        budget: args.seconds,
        iterations: args.iterations,
        warm_up: args.warm_up,
        limit: args.time_limit,
    }
}

/// Prints what the row lacks: the contender's options, which are returned, and whether only addresses were checked.
fn print_notes(cell: &CellEnd<HostReplay>, turn: &Turn<'_>) -> String {
    let Ok(Ok(report)) = &cell.end else { return String::new() };
    let name = turn.contender.name();
    if turn.repetition == 0 && !report.options.is_empty() {
        print_note(&format!("{name}: {}", report.options));
    }
    if report.performance.used_peak.is_some() && !report.is_pattern_checked {
        print_note(&format!("{name}: too large to be written: only the addresses were checked"));
    }
    report.options.clone()
}

/// The sort key of rows: those of one contender stand together, in the order of the arguments.
fn order_of(row: &ReplayRow, contenders: &[Contender]) -> (u32, Option<usize>, u32) {
    let is_of = |contender: &Contender| {
        let is_one_plan = contender.planner == row.planner && contender.plan_digest() == row.plan;
        contender.row_key() == row.contender && is_one_plan
    };
    (row.threads, contenders.iter().position(is_of), row.repetition)
}

fn table_head(subject: &Subject, args: &ReplayArgs) -> String {
    let Subject { name, requests, peak, .. } = subject;
    let work = match args.work {
        Work::Pages => "a byte of each page is written",
        Work::Pattern => "every byte is written and checked",
        _ => "blocks are not touched",
    };
    format!("{name}: {requests} requests, at most {} at once; {work}\n\n", format_memory(*peak))
}

/// Digest of everything that defines the row except the repetition. It includes the machine.
fn cell_digest(subject: &Subject, contender: &Contender, settings: &Settings, host: &str) -> String {
    let parts = serde_json::json!([
        "host replay 3",
        host,
        subject.instance.to_string(),
        contender.row_key(),
        contender.planner,
        contender.plan_digest(),
        "host",
        settings.work,
        settings.threads,
        settings.capacity,
        as_nanoseconds(settings.budget),
        settings.iterations,
        settings.warm_up,
    ]);
    Digest::of_bytes(parts.to_string().as_bytes()).to_string()
}

fn performance_of(contender: &Contender, settings: &Settings, cell: &CellEnd<HostReplay>) -> Performance {
    match &cell.end {
        Ok(Ok(report)) => {
            let lack = report.refused_range.map(|bytes| no_addresses(contender, bytes, settings.threads));
            let reason = lack.unwrap_or_else(|| report.performance.reason.clone());
            Performance { reason, ..report.performance.clone() }
        }
        Ok(Err(reason)) | Err(Death::Unreadable(reason)) => {
            Performance::without_measurements(End::Failed, reason.clone())
        }
        Err(death) => performance_of_death(death, &cell.stderr_tail, settings.limit),
    }
}

/// The reason if a range of addresses does not fit, which can happen with free memory.
fn no_addresses(contender: &Contender, bytes: u64, threads: u32) -> String {
    let key = &contender.key;
    let asked = format!("no addresses for `{key}`: each thread requests a range of {bytes} bytes");
    match threads {
        1 => format!("{asked}, more than this process may have"),
        _ => format!("{asked}, and {threads} threads are more than fit into one process: fewer threads help"),
    }
}
