//! Makes a row of a contender's figures, or of a child's death.

use std::time::Duration;

use planlab_replay::{End, Performance, Work};
use planlab_results::replay::{REPLAY_SCHEMA, ReplayRow, ReplayRun};
use planlab_results::{Provenance, Row};

use super::contender::Contender;
use super::subject::Subject;
use crate::process::Death;
use crate::shell::exit::Exit;
use crate::shell::quantity;

/// The memory that was played on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// `simulated`, `host`, `cuda:0`.
    pub(crate) key: String,
    /// The name that a device reports.
    pub(crate) name: String,
    pub(crate) l2_bytes: Option<u64>,
}

impl Place {
    /// The host's memory, real or simulated.
    pub(crate) fn of_host(key: &str) -> Self {
        Self { key: key.to_owned(), ..Self::default() }
    }
}

/// The row of a contender's figures: the first repetition in one thread, without a cell, a suite and a time.
pub(crate) fn row(
    subject: &Subject,
    contender: &Contender,
    (place, work): (Place, Work),
    performance: Performance,
    provenance: Provenance,
) -> ReplayRow {
    Row {
        schema: REPLAY_SCHEMA,
        cell: String::new(),
        repetition: 0,
        run: ReplayRun {
            suite: String::new(),
            workload: subject.name.clone(),
            sequence: subject.sequence.clone(),
            until: subject.until,
            instance: subject.instance.to_string(),
            requests: subject.requests,
            requested_peak: subject.peak,
            retained: subject.retained,
            contender: contender.row_key(),
            planner: contender.planner.clone(),
            plan: contender.plan_digest(),
            device: place.key,
            device_name: place.name,
            l2_bytes: place.l2_bytes,
            work,
            threads: 1,
            capacity: None,
            performance,
            // Each buffer is written once and read once.
            touched_bytes: matches!(work, Work::Kernels | Work::Operations).then(|| 2 * subject.total),
        },
        started_ns: 0,
        provenance,
    }
}

/// The figures of a contender whose process died.
pub(crate) fn performance_of_death(death: &Death, stderr: &str, limit: Duration) -> Performance {
    let how = match death {
        Death::Timeout => {
            format!("killed after {}", quantity::format_seconds(quantity::as_nanoseconds(limit)))
        }
        Death::OutOfMemory => {
            return Performance::without_measurements(
                End::OutOfMemory,
                "the process ran out of memory".to_owned(),
            );
        }
        Death::Signal(signal) => format!("signal {signal}"),
        Death::Exit(code) => format!("exit code {code}"),
        Death::BadOutput(what) | Death::Unreadable(what) => what.clone(),
        Death::Interrupted => "interrupted".to_owned(),
    };
    let told = stderr.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
    Performance::without_measurements(End::Failed, how + &told)
}

/// The exit code of the rows. Corrupted memory is worse than a contender without figures.
pub(crate) fn exit_of(rows: &[ReplayRow]) -> Exit {
    Exit::first_of([
        (Exit::Invalid, rows.iter().any(|row| row.performance.status == End::Corrupt)),
        (Exit::Incomplete, rows.iter().any(|row| row.performance.status != End::Complete)),
    ])
}
