//! `query`: runs SQL on results.
//!
//! A few words of SQL can ask for more rows than any machine has room for. So a child answers, with limited memory.

mod child;
mod shown;

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout};
use std::sync::mpsc;
use std::thread::{self, available_parallelism};
use std::time::Duration;

use planlab_dsa::CancelToken;
use planlab_results::queries::STACK;
use rustix::process::Signal;

use crate::cli::QueryArgs;
use crate::inputs::records;
use crate::process::limits::{Cgroup, Mechanism};
use crate::process::{
    Death, confine_child, death_cause, end_of, hidden_command, reap_child, send_request, signal_group,
    spawn_child,
};
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{self, Output};
use crate::shell::quantity::format_memory;
use crate::shell::signals::cancel_token;

pub(crate) use child::serve;
use child::{Head, Refusal, Request};

/// The most bytes of a refusal; a question has at most 10,000.
const LONGEST_REFUSAL: u64 = 1 << 20;
/// The address space that the allocator reserves for a thread, most of it without memory.
const PER_THREAD: u64 = 128 << 20;
/// How often the parent checks whether it was interrupted.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// The longest that a killed child takes to close its stdout.
const CLOSING: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &QueryArgs, output: Output) -> Verdict {
    if args.columns {
        return shown::list_columns(args.csv, output);
    }
    let (results, sql) = args.folder_and_query();
    let missing = records::tell_missing(&results)?;
    let mechanism = Mechanism::detect_mechanism();
    let group = Cgroup::create(mechanism, Some(args.memory_limit))?;
    let request = Request {
        parent: std::process::id(),
        results,
        sql: sql.to_owned(),
        csv: args.csv,
        json: output.json,
        tables: output.tables,
        address_space: group.is_none().then(|| address_space(args.memory_limit)),
    };
    let mut child = spawn_child(&mut hidden_command("run-query")?)?;
    confine_child(&mut child, group.as_ref())?;
    send_request(&mut child, &request);
    let tail = end_of(&mut child);
    let delivery = await_delivery(&mut child, &cancel_token());
    let (status, stderr) = (reap_child(&mut child)?, tail.finish_tail());
    let Some(delivery) = delivery else { return Ok(Exit::Interrupted) };
    match delivery {
        Delivery::Refused(refusal) => Err(refusal.into()),
        Delivery::Printed(Err(error)) => Err(error.into()),
        Delivery::Printed(Ok(())) if status.success() => {
            Ok(records::exit_with(Exit::Complete, missing.is_empty()))
        }
        _ => {
            let ran_out = group.as_ref().is_some_and(Cgroup::ran_out_of_memory);
            let death = death_cause(status, ran_out, &stderr);
            Err(query_failure(&death, args.memory_limit, &stderr))
        }
    }
}

/// The address space that stands for a memory limit: polars' stack and the allocator reserve more than they use.
fn address_space(limit: u64) -> u64 {
    let threads = available_parallelism().map_or(1, |threads| threads.get() as u64);
    limit.saturating_add(STACK as u64).saturating_add(PER_THREAD.saturating_mul(threads))
}

/// What came from the child.
#[derive(Default)]
enum Delivery {
    /// It ended before it had an answer.
    #[default]
    Nothing,
    Refused(Refusal),
    /// The answer was copied to stdout, or could not be.
    Printed(io::Result<()>),
}

/// Returns what came from the child once it has closed its stdout; `None` if an interrupt came first, which kills it.
fn await_delivery(child: &mut Child, cancel: &CancelToken) -> Option<Delivery> {
    let (sender, deliveries) = mpsc::channel();
    let stdout = child.stdout.take();
    thread::spawn(move || {
        let _ = sender.send(stdout.map(deliver_answer).unwrap_or_default());
    });
    loop {
        if let Ok(delivery) = deliveries.recv_timeout(CHECK_INTERVAL) {
            return Some(delivery);
        }
        if cancel.is_cancelled() {
            signal_group(child.id(), Signal::KILL);
            let _ = deliveries.recv_timeout(CLOSING);
            return None;
        }
    }
}

/// Copies the answer to stdout as it comes.
fn deliver_answer(stdout: ChildStdout) -> Delivery {
    let mut stdout = BufReader::new(stdout);
    let mut head = Vec::new();
    let _ = stdout.by_ref().take(LONGEST_REFUSAL).read_until(b'\n', &mut head);
    match serde_json::from_slice(&head) {
        Ok(Head::Refused(refusal)) => Delivery::Refused(refusal),
        Ok(Head::Answer) => Delivery::Printed(output::copy_to_stdout(&mut stdout)),
        Err(_) => Delivery::Nothing,
    }
}

/// Why there is no answer.
fn query_failure(death: &Death, limit: u64, stderr: &str) -> Failure {
    let reason = match death {
        Death::OutOfMemory => format!(
            "the query needs more than {} of memory: ask for fewer rows, or raise --memory-limit",
            format_memory(limit)
        ),
        Death::Signal(signal) => format!("the query died by signal {signal}: {stderr}"),
        _ => format!("the query ended without an answer: {stderr}"),
    };
    Failure::new(Exit::Incomplete, reason)
}
