//! How a cell ended, whatever its kind: the part of a verdict that every row has.

use planlab_dsa::Stop;
use planlab_results::Status;
use serde::{Deserialize, Serialize};

use crate::process::{Death, ProcessUsage};

/// Why a run failed, as the child reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportedFailure {
    /// The row's status. With [`Status::Unknown`] the best that was found decides.
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl ReportedFailure {
    pub(crate) fn new(status: Status, error: &impl ToString) -> Self {
        Self { status, message: error.to_string() }
    }
}

/// What a child says of a run, whatever it found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunEnd {
    pub(crate) stop: Option<Stop>,
    pub(crate) error: Option<ReportedFailure>,
    pub(crate) usage: ProcessUsage,
    pub(crate) work: u64,
}

/// The part of a verdict that does not depend on the kind of cell.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) status: Status,
    pub(crate) stop: Option<Stop>,
    pub(crate) reason: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stderr_tail: String,
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) peak_rss_bytes: Option<u64>,
    pub(crate) work: u64,
}

impl Ending {
    /// The reason of a cell that was interrupted.
    pub(crate) const INTERRUPTED: &'static str = "ended from outside; this is the best so far";

    /// Returns an ending with a status; the other fields are empty.
    pub(crate) fn new(status: Status) -> Self {
        Self {
            status,
            stop: None,
            reason: String::new(),
            exit_code: None,
            signal: None,
            stderr_tail: String::new(),
            cpu_ns: None,
            peak_rss_bytes: None,
            work: 0,
        }
    }

    /// Takes over how the run of a child that answered ended. `ranked` has the status and the reason that its answer
    /// deserves. A reported failure replaces both; one with [`Status::Unknown`] replaces the reason only.
    pub(crate) fn take_run(&mut self, run: RunEnd, ranked: (Status, String)) {
        self.stop = run.stop;
        self.exit_code = Some(0);
        self.cpu_ns = Some(run.usage.cpu_ns);
        self.peak_rss_bytes = run.usage.peak_rss_bytes;
        self.work = run.work;
        (self.status, self.reason) = match run.error {
            Some(ReportedFailure { status: Status::Unknown, message }) => (ranked.0, message),
            Some(ReportedFailure { status, message }) => (status, message),
            None => ranked,
        };
    }

    /// Takes over why a child did not answer.
    pub(crate) fn take_death(&mut self, death: Death) {
        (self.status, self.reason) = match death {
            Death::Timeout => (Status::Timeout, "did not end at its time limit and was killed".to_owned()),
            Death::OutOfMemory => (Status::OutOfMemory, "needed more memory than its limit".to_owned()),
            Death::Signal(signal) => {
                self.signal = Some(signal);
                // KILL comes from outside; a planner that crashes ends with ABRT, SEGV, ...
                let status = if signal == 9 { Status::Killed } else { Status::Crashed };
                (status, format!("ended by signal {signal}"))
            }
            Death::Exit(code) => {
                self.exit_code = Some(code);
                (Status::Crashed, format!("ended with exit code {code}"))
            }
            Death::BadOutput(reason) | Death::Unreadable(reason) => (Status::BadOutput, reason),
            Death::Interrupted => (Status::Interrupted, Self::INTERRUPTED.to_owned()),
        };
    }
}
