//! Replays on a device: one child process for each repetition, in which all contenders take turns.
//!
//! A device has one memory, so contenders are played one after another in one process, each from nothing. A contender
//! that breaks the device ends the process and loses only its own row. The process keeps the figures of those that had
//! a turn in its mailbox, and the others are played in a new process.

mod child;
mod contenders;
mod durations;
mod mailbox;
mod messages;
mod round;
mod table;

use planlab_dsa::{CancelToken, Digest};
use planlab_replay::Work;
use planlab_replay::cuda::{self, DeviceInfo, Protocol};
use planlab_results::replay::ReplayRow;
use planlab_workloads::Trace;

pub(crate) use self::child::DeviceReplay;
use self::round::{Round, Settings};
use super::row::{Place, row};
use super::subject::Subject;
use super::{Contender, Keeper, exit_of, table as shared};
use crate::cells::Supervisor;
use crate::cli::{Device, ReplayArgs};
use crate::inputs::Source;
use crate::shell::clock::now_ns;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::progress::Progress;
use crate::shell::provenance;
use crate::shell::quantity::{as_nanoseconds, format_memory};
use crate::shell::text::Text;

/// Default number of timed propagations of a process.
const TIMED: u32 = 200;
/// Default number of propagations before the timed ones.
const WARM_UP: u32 = 50;
/// The longest warm-up, as a multiple of that number; below, how often in a row the reserved bytes must be the same.
const WARM_UP_MOST: u32 = 4;
const STEADY: u32 = 20;

/// Fails at once if the device is missing or cannot do what is asked.
pub(crate) fn check_device(args: &ReplayArgs) -> Result<(), Failure> {
    if !args.work.is_for_device() {
        return Err(Failure::from_usage("on a device, --work may be `none`, `kernels` or `operations`"));
    }
    if args.threads != [1] {
        return Err(Failure::from_usage("a replay on a device has one thread"));
    }
    if matches!(args.device, Device::Cuda(_)) {
        cuda::probe().map_err(|error| Failure::from_usage(format!("no replay on a GPU: {error}")))?;
    }
    Ok(())
}

/// Plays the traces, one propagation each, on all contenders.
pub(crate) fn run(
    args: &ReplayArgs,
    (sources, traces): (&[Source], &[Trace]),
    plans: &[Contender],
    mut keeper: Keeper,
    cancel: &CancelToken,
    output: Output,
) -> Verdict {
    let first = traces.first().ok_or_else(|| Failure::from_usage("nothing to play"))?;
    let contenders = contenders::device_contenders(plans, args, first)?;
    let subject = Subject::from_sources(sources, traces);
    let settings = replay_settings(args, sources, traces)?;
    let supervisor = Supervisor::without_memory_limit(cancel.clone())?;
    let bar = Progress::new(args.reps.into(), "processes");
    let mut rows: Vec<ReplayRow> = Vec::new();
    for repetition in 0..args.reps {
        let (started_ns, provenance) = (now_ns(), provenance::beside_device(1));
        let round = Round {
            supervisor: &supervisor,
            args,
            sources,
            contenders: &contenders,
            settings: &settings,
            repetition,
        };
        let Some((device, performances)) = round.play_round()? else { break };
        bar.inc(1);
        let place = Place { key: device.key.clone(), name: device.name.clone(), l2_bytes: device.l2_bytes };
        let made = contenders.iter().zip(performances).map(|(contender, played)| {
            let cell = cell_digest(&subject, contender, &settings, &device, &provenance.host);
            row(&subject, contender, (place.clone(), args.work), played, provenance.clone()).with(|row| {
                (row.cell, row.repetition, row.started_ns) = (cell, repetition, started_ns);
                row.capacity = settings.capacity;
            })
        });
        let made: Vec<ReplayRow> = made.collect();
        let is_kept = keeper.keep_rows(&made);
        if output.json {
            made.iter().try_for_each(|row| output.print_value(&shared::process_object(row, "")))?;
        }
        rows.extend(made);
        if !is_kept {
            break;
        }
    }
    bar.finish_and_clear();
    if !output.json {
        output.print_text(Text::from(table_head(&subject, args, &rows)) + table::table(&rows))?;
    }
    keeper.end_keeping()?;
    Ok(if cancel.is_cancelled() { Exit::Interrupted } else { exit_of(&rows) })
}

fn replay_settings(args: &ReplayArgs, sources: &[Source], traces: &[Trace]) -> Result<Settings, Failure> {
    let warm_up = args.warm_up.unwrap_or(WARM_UP);
    let protocol = Protocol {
        work: args.work,
        warm_up,
        warm_up_most: warm_up.saturating_mul(WARM_UP_MOST),
        steady: STEADY,
        timed: args.iterations.unwrap_or(TIMED),
        budget: args.seconds,
        rounds: args.rounds,
        seed: args.seed,
    };
    let operation_ns = args.operation_time.map(as_nanoseconds);
    let recorded = match args.work {
        Work::Operations => durations::require_durations(sources, traces, operation_ns)?,
        _ => None,
    };
    Ok(Settings { protocol, operation_ns, recorded, capacity: args.capacity })
}

fn table_head(subject: &Subject, args: &ReplayArgs, rows: &[ReplayRow]) -> String {
    let work = match rows.first().map(|row| row.work) {
        Some(Work::Kernels) => "kernels write and read every buffer",
        Some(Work::Operations) => "kernels write and read every buffer, and work as long as operations do",
        _ => "no kernels, only the driver's own calls",
    };
    let device = rows.first().map_or("", |row| row.device_name.as_str());
    if matches!(args.device, Device::Simulated(_)) {
        print_note("a simulated device: its kernel times are not measurements");
    }
    let Subject { name, requests, peak, .. } = subject;
    format!("{name}: {requests} requests, at most {} at once; {work}\n{device}\n\n", format_memory(*peak))
}

/// Digest of everything that defines the row except the repetition. It includes the device, its driver and its machine.
fn cell_digest(
    subject: &Subject,
    contender: &Contender,
    settings: &Settings,
    device: &DeviceInfo,
    host: &str,
) -> String {
    let recorded = settings.recorded.map(|digest| digest.to_string()).unwrap_or_default();
    let parts = serde_json::json!([
        "device replay 3",
        host,
        subject.instance.to_string(),
        contender.row_key(),
        contender.planner,
        contender.plan_digest(),
        device,
        settings.protocol,
        settings.operation_ns,
        settings.capacity,
    ]);
    Digest::of_bytes((parts.to_string() + &recorded).as_bytes()).to_string()
}
