//! `simulate`: online allocators over a trace.

use std::time::{Duration, Instant};

use planlab_dsa::{Backing, Bytes, Instance, OnlineAllocator, Simulated, Step, Usage};
use planlab_solvers::online::{self, Entry, Requests, SimulationError, Simulator};
use planlab_workloads::{Trace, glob, nearest};
use serde_json::{Value, json};

use crate::cli::SimulateArgs;
use crate::exit::{Exit, Failure, Verdict};
use crate::input::{self, Source};
use crate::output::{Output, note};
use crate::planners::suggestion;
use crate::quantity::{nanoseconds, seconds};
use crate::table::Table;
use crate::view::{JSON_VERSION, percent};

/// So many iterations are checked for overlaps before any is timed.
const AUDITED: u32 = 2;

pub(crate) fn run(args: &SimulateArgs, output: Output) -> Verdict {
    let allocators = matching(&args.allocators)?;
    let scratch = tempfile::tempdir()?;
    let source = Source::resolve(&args.trace, &args.reading, scratch.path())?;
    let trace = input::open(&source)?;
    trace.notices.iter().for_each(|notice| note(notice));
    let requests = requests(&trace, args.until);
    let mut table = Table::new(&[
        "allocator",
        "reserved peak",
        "over requests",
        "reserved end",
        "device calls",
        "search steps",
        "time",
        "per iteration",
    ]);
    let mut exit = Exit::Complete;
    for entry in allocators {
        let played = play(&entry, &requests, args)?;
        if let Some(error) = &played.out_of_memory {
            note(&format!("{}: iteration {}: {error}", entry.key, played.iterations));
            exit = Exit::Incomplete;
        }
        if output.json {
            output.value(&played.object(&source.name, &entry, &requests, args))?;
        }
        table.row(played.row(&entry, &requests));
    }
    if !output.json {
        output.text(&(head(&source.name, &trace.instance, &requests) + &table.render()))?;
    }
    Ok(exit)
}

/// The allocators that one of the globs matches, in the registry's order.
fn matching(globs: &[String]) -> Result<Vec<Entry>, Failure> {
    for wanted in globs {
        if !online::keys().into_iter().any(|key| glob(wanted, key)) {
            let near = nearest(wanted, online::keys());
            return Err(Failure::usage(format!("there is no allocator `{wanted}`{}", suggestion(&near))));
        }
    }
    let is_wanted = |entry: &&Entry| globs.iter().any(|wanted| glob(wanted, entry.key));
    Ok(online::registry().iter().filter(is_wanted).copied().collect())
}

/// The requests of a trace, for what was asked for before sizes were rounded up.
fn requests(trace: &Trace, until: Option<u32>) -> Requests {
    let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let sizes = buffers.map(|(buffer, label)| label.requested.unwrap_or(buffer.size)).collect();
    let requests = Requests::new(&trace.instance).with_sizes(sizes);
    match until {
        Some(step) => requests.with_until(Step::new(step)),
        None => requests,
    }
}

/// What an allocator came to.
struct Played {
    usage: Usage,
    /// What it had come to before the last iteration.
    before: Usage,
    iterations: u32,
    total: Duration,
    last: Duration,
    out_of_memory: Option<SimulationError>,
}

fn play(entry: &Entry, requests: &Requests, args: &SimulateArgs) -> Result<Played, Failure> {
    audit(entry, requests, args)?;
    let mut allocator = build(entry, args);
    let mut simulator = Simulator::new(requests, allocator.as_mut());
    let mut played = Played {
        usage: Usage::default(),
        before: Usage::default(),
        iterations: 0,
        total: Duration::ZERO,
        last: Duration::ZERO,
        out_of_memory: None,
    };
    while played.iterations < args.iterations && played.out_of_memory.is_none() {
        played.iterations += 1;
        played.before = played.usage;
        let start = Instant::now();
        let end = simulator.run();
        played.last = start.elapsed();
        played.total += played.last;
        played.usage = simulator.usage();
        played.out_of_memory = lack(entry, end)?;
    }
    Ok(played)
}

fn build(entry: &Entry, args: &SimulateArgs) -> Box<dyn OnlineAllocator> {
    let device =
        args.capacity.map_or_else(Simulated::new, |bytes| Simulated::with_capacity(Bytes::new(bytes)));
    let device: Box<dyn Backing> = Box::new(device);
    entry.build(device)
}

/// Plays some iterations and checks that no live memory is handed out.
fn audit(entry: &Entry, requests: &Requests, args: &SimulateArgs) -> Result<(), Failure> {
    let mut allocator = build(entry, args);
    let mut simulator = Simulator::new(requests, allocator.as_mut()).with_audit();
    for _ in 0..args.iterations.min(AUDITED) {
        if lack(entry, simulator.run())?.is_some() {
            break;
        }
    }
    Ok(())
}

/// The request that found no memory, if that is how it ended; all else is the allocator's fault.
fn lack(entry: &Entry, end: Result<(), SimulationError>) -> Result<Option<SimulationError>, Failure> {
    match end {
        Ok(()) => Ok(None),
        Err(error @ SimulationError::Alloc { .. }) => Ok(Some(error)),
        Err(error) => Err(Failure::new(Exit::Invalid, format!("{}: {error}", entry.key))),
    }
}

impl Played {
    fn object(&self, workload: &str, entry: &Entry, requests: &Requests, args: &SimulateArgs) -> Value {
        let (requested_peak, live_end) = requests.live();
        let (usage, before) = (&self.usage, &self.before);
        json!({
            "version": JSON_VERSION,
            "workload": workload,
            "allocator": entry.key,
            "iterations": self.iterations,
            "capacity": args.capacity,
            "status": if self.out_of_memory.is_some() { "out-of-memory" } else { "complete" },
            "reserved_peak": usage.reserved_peak,
            "requested_peak": requested_peak,
            "live_end": live_end,
            "reserved_end": usage.reserved,
            "device_allocations": usage.device_allocations,
            "search_steps": usage.search_steps,
            "requests": requests.count() * u64::from(self.iterations),
            "seconds": self.total.as_secs_f64(),
            "last": {
                "device_allocations": usage.device_allocations - before.device_allocations,
                "search_steps": usage.search_steps - before.search_steps,
                "seconds": self.last.as_secs_f64(),
            },
        })
    }

    fn row(&self, entry: &Entry, requests: &Requests) -> Vec<String> {
        let (requested_peak, _) = requests.live();
        let over = planlab_dsa::fragmentation(self.usage.reserved_peak, requested_peak);
        let mark = if self.out_of_memory.is_some() { " (out of memory)" } else { "" };
        vec![
            format!("{}{mark}", entry.key),
            self.usage.reserved_peak.to_string(),
            percent(Some(over)),
            self.usage.reserved.to_string(),
            self.usage.device_allocations.to_string(),
            self.usage.search_steps.to_string(),
            seconds(nanoseconds(self.total)),
            seconds(nanoseconds(self.last)),
        ]
    }
}

fn head(workload: &str, instance: &Instance, requests: &Requests) -> String {
    let (peak, end) = requests.live();
    let count = instance.len();
    format!("{workload}: {count} buffers, at most {peak} bytes requested at once, {end} live at the end\n\n")
}
