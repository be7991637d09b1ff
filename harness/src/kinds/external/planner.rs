//! Runs an external program as a [`Planner`].

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use planlab_dsa::{
    Budget, Bytes, Descriptor, Evidence, Guarantee, Halt, Instance, Labels, Plan, PlanError, Planner, Run,
    Stop, execute,
};
use planlab_files::{TemporaryFolder, open_regular};
use planlab_workloads::Trace;
use planlab_workloads::formats::PlanFile;

use super::entry::{Entry, Unit};
use super::program::{Ended, follow};
use crate::shell::target::scratch_in_memory;

/// Our planners whose lowest plan sets the capacity of a program that needs one, if no capacity is given.
const CAPACITY_BY: [&str; 3] = ["best-fit", "first-fit/size", "greedy-by-size"];
/// The most bytes of a program's output in a reason.
const WORDS: usize = 200;

/// How the program ended, for outcomes that a planner cannot report through its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It ended by itself, or by the run's limits.
    Ended,
    /// It died by a signal, or with an exit code that is not an answer.
    Died { signal: Option<i32>, code: Option<i32> },
    /// Its output is not a plan.
    Nonsense,
}

/// The measurements of the program's last run.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Wall time of the process, from its start to its end.
    pub(crate) wall: Duration,
    /// The time that the program reports.
    pub(crate) reported: Option<Duration>,
    pub(crate) peak_rss_bytes: Option<u64>,
    pub(crate) fate: Fate,
    pub(crate) stderr: String,
}

/// An external planner.
pub(crate) struct External {
    entry: &'static Entry,
    /// Where its folder for a run lies.
    room: Option<PathBuf>,
    report: Mutex<Option<Report>>,
}

impl External {
    pub(crate) fn new(entry: &'static Entry, room: Option<PathBuf>) -> Self {
        Self { entry, room, report: Mutex::new(None) }
    }

    /// A folder for the files of a run.
    fn run_folder(&self) -> io::Result<TemporaryFolder> {
        self.room.as_deref().map_or_else(scratch_in_memory, TemporaryFolder::scratch_in)
    }

    /// Takes the measurements of the last run.
    pub(crate) fn take_report(&self) -> Option<Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Planner for External {
    fn descriptor(&self) -> Descriptor {
        descriptor(self.entry)
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let trace = told(self.entry, run.instance())?;
        let folder =
            self.run_folder().map_err(|error| failed(format!("no folder for the program: {error}")))?;
        let [instance, output, stamp] =
            ["instance.csv", "plan.csv", "began"].map(|name| folder.path().join(name));
        let text = self.entry.write_instance(&trace).map_err(failed)?;
        fs::write(&instance, text).map_err(|error| failed(format!("{}: {error}", instance.display())))?;
        let words = words(self.entry, run, &instance, &output);
        let mut watch = Watch { entry: self.entry, trace: &trace, output: &output, seen: None };
        let ended = follow(&words, &stamp, run, &mut |run| watch.check_output(run))
            .map_err(|error| failed(format!("{}: {error}", self.entry.command[0])))?;
        let (fate, answer) = self.judge_ended(run, &ended, &watch);
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(Report {
            wall: ended.wall,
            reported: self.entry.reported_time(&ended),
            peak_rss_bytes: ended.peak_rss_bytes,
            fate,
            // Otherwise the message is our own.
            stderr: if ended.refused.is_none() { ended.stderr } else { String::new() },
        });
        answer
    }
}

/// The description of an entry for `list` and suites.
pub(crate) fn descriptor(entry: &Entry) -> Descriptor {
    Descriptor {
        key: entry.key.clone().into(),
        summary: entry.summary.clone().into(),
        guarantee: if entry.exact { Guarantee::Exact } else { Guarantee::Heuristic },
        honours: entry.honours,
        randomized: entry.uses_placeholder("{seed}"),
        reference: "the program's own documentation",
        complexity: "unknown",
        practical: entry.practical,
    }
}

impl External {
    /// Judges the end of the program. A plan that it left is offered, however it ended.
    fn judge_ended(&self, run: &mut Run<'_>, ended: &Ended, watch: &Watch<'_>) -> (Fate, Result<(), Halt>) {
        let said = |words: &[String]| {
            let all = format!("{}\n{}", ended.stderr, ended.stdout);
            words.iter().find(|&word| all.contains(word)).cloned()
        };
        // Without every pause the program solved a harder problem, so its bound does not count.
        let told_all = run.instance().buffers() == watch.trace.instance.buffers();
        if let Some(bound) = self.entry.claimed_bound(ended).filter(|_| told_all)
            && let Err(halt) = run.raise_bound(bound, run.scope(), Evidence::Claimed)
        {
            return (Fate::Ended, Err(halt));
        }
        let plan = match watch.read_output() {
            Ok(plan) => plan,
            Err(_) if ended.halt.is_some() => None,
            Err(reason) => return (Fate::Nonsense, Err(failed(reason))),
        };
        let has_plan = plan.is_some();
        if let Some(Err(halt)) = plan.map(|plan| run.offer(plan)) {
            return (Fate::Ended, Err(halt));
        }
        if let Some(halt) = &ended.halt {
            return (Fate::Ended, Err(halt.clone()));
        }
        if said(&self.entry.out_of_time).is_some() {
            return (Fate::Ended, Err(Halt::Stop(Stop::Deadline)));
        }
        if let Some(word) = said(&self.entry.no_plan).filter(|_| !has_plan) {
            return (Fate::Ended, Err(failed(format!("the program says `{word}`, which proves nothing"))));
        }
        self.judge_status(ended, has_plan)
    }

    fn judge_status(&self, ended: &Ended, has_plan: bool) -> (Fate, Result<(), Halt>) {
        let program = &self.entry.command[0];
        let Some(status) = ended.status else {
            let reason = format!("nobody knows how {program} ended");
            return (Fate::Died { signal: None, code: None }, Err(failed(reason)));
        };
        if !status.success() {
            let fate = Fate::Died { signal: status.signal(), code: status.code() };
            if let Some(reason) = &ended.refused {
                return (fate, Err(failed(format!("{program} cannot be started: {reason}"))));
            }
            let words = last_words(&ended.stderr);
            let begin = if names_itself(&words, program) { String::new() } else { format!("{program}: ") };
            return (fate, Err(failed(format!("{begin}{status}: {words}"))));
        }
        if has_plan {
            return (Fate::Ended, Ok(()));
        }
        let reason = format!("{program} ended well and wrote no plan: {}", last_words(&ended.stderr));
        (Fate::Nonsense, Err(failed(reason)))
    }
}

impl Entry {
    /// The time that the program reports.
    fn reported_time(&self, ended: &Ended) -> Option<Duration> {
        let number: f64 = said_after(self.time_after.as_deref()?, ended)?.parse().ok()?;
        let scale = match self.time_unit {
            Unit::Seconds => 1.0,
            Unit::Milliseconds => 1e-3,
            Unit::Microseconds => 1e-6,
        };
        Duration::try_from_secs_f64(number * scale).ok()
    }

    /// The bound that the program claims. A fraction is rounded down, which keeps the bound true.
    fn claimed_bound(&self, ended: &Ended) -> Option<Bytes> {
        let number = said_after(self.bound_after.as_deref()?, ended)?;
        let whole = number.split('.').next().unwrap_or(number);
        whole.parse().ok().map(Bytes::new)
    }
}

/// The number after the last `mark` in the program's output.
fn said_after<'a>(mark: &str, ended: &'a Ended) -> Option<&'a str> {
    let after = |text: &'a str| text.rfind(mark).map(|at| text[at + mark.len()..].trim_start());
    let text = after(&ended.stderr).or_else(|| after(&ended.stdout))?;
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    Some(text[..end].trim_end_matches('.')).filter(|number| !number.is_empty())
}

fn failed(reason: String) -> Halt {
    PlanError::Failed(reason).into()
}

fn last_words(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing").trim();
    line.chars().take(WORDS).collect()
}

/// Whether a message begins with the name or the path of its program and a colon, as many do.
fn names_itself(message: &str, program: &str) -> bool {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let begins_with = |own: &str| message.strip_prefix(own).is_some_and(|rest| rest.starts_with(':'));
    begins_with(program) || begins_with(name)
}

/// The instance for the program, without the opportunities that it does not honour.
fn told(entry: &Entry, instance: &Instance) -> Result<Trace, Halt> {
    let honours = entry.honours;
    let buffers = instance.buffers().iter().cloned().map(|mut buffer| {
        if !honours.pauses {
            buffer.pauses = Box::default();
        }
        buffer
    });
    let in_place = instance.in_place().iter().copied().filter(|_| honours.in_place);
    let told = Instance::builder()
        .buffers(buffers)
        .in_place(in_place)
        .arenas(instance.arenas().iter().cloned())
        .apart(instance.keep_apart_pairs().iter().copied())
        .build();
    let told = told.map_err(|error| failed(format!("the instance without pauses: {error}")))?;
    let labels = Labels::from_numbers(told.len());
    Ok(Trace::new(told, labels))
}

/// The command line with the placeholders filled in.
fn words(entry: &Entry, run: &mut Run<'_>, instance: &Path, output: &Path) -> Vec<OsString> {
    let capacity = if entry.uses_placeholder("{capacity}") { capacity(run).get() } else { 0 };
    let seed = if entry.uses_placeholder("{seed}") { rand::RngExt::random::<u32>(run.rng()) >> 1 } else { 0 };
    // A year means no limit, as programs need a number.
    let left = run.remaining_time().unwrap_or(Duration::from_secs(365 * 24 * 3600));
    let values = [
        ("{instance}", instance.display().to_string()),
        ("{output}", output.display().to_string()),
        ("{capacity}", capacity.to_string()),
        ("{time_limit}", format!("{:.3}", left.as_secs_f64())),
        ("{time_limit_ms}", left.as_millis().to_string()),
        ("{seed}", seed.to_string()),
        ("{threads}", run.threads().to_string()),
    ];
    let fill = |word: &String| {
        let filled = values.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value));
        OsString::from(filled)
    };
    entry.command.iter().map(fill).collect()
}

/// The run's own capacity, else the best height so far or of our quick planners.
fn capacity(run: &Run<'_>) -> Bytes {
    if let Some(target) = run.target() {
        return target;
    }
    let known = run.height_to_beat();
    let quick = CAPACITY_BY.into_iter().filter_map(planlab_solvers::find_planner).filter_map(|planner| {
        let budget = Budget { wall: run.remaining_time(), ..Budget::default() };
        execute(&*planner, run.instance(), budget, 0).height()
    });
    known.into_iter().chain(quick).min().unwrap_or(Bytes::new(i64::MAX as u64))
}

/// Watches the output of a program that keeps its best plan there while it runs.
struct Watch<'a> {
    entry: &'a Entry,
    trace: &'a Trace,
    output: &'a Path,
    seen: Option<(SystemTime, u64)>,
}

impl Watch<'_> {
    fn check_output(&mut self, run: &mut Run<'_>) -> Result<(), Halt> {
        if !self.entry.anytime {
            return Ok(());
        }
        let Ok(metadata) = fs::metadata(self.output) else { return Ok(()) };
        let now = metadata.modified().ok().map(|time| (time, metadata.len()));
        if now == self.seen {
            return Ok(());
        }
        self.seen = now;
        match self.read_output() {
            Ok(Some(plan)) => run.offer(plan),
            // The program may be writing a file that cannot be read now.
            _ => Ok(()),
        }
    }

    /// The plan in the output; `None` if the output is missing or empty.
    fn read_output(&self) -> Result<Option<Plan>, String> {
        let file = match open_regular(self.output) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(format!("its plan: {error}"));
            }
            Err(_) => return Ok(None),
        };
        if file.metadata().is_ok_and(|there| there.len() == 0) {
            return Ok(None);
        }
        let rows = PlanFile::read_rows("its plan", file, crate::inputs::input_limits());
        let plan = rows.and_then(|rows| rows.plan_for(self.trace)).map_err(|error| error.to_string())?;
        Ok(Some(plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_its_program_at_its_beginning_alone() {
        for own in ["sh: 0: cannot open it", "/bin/sh: no such file"] {
            assert!(names_itself(own, "/bin/sh"), "{own}");
        }
        for other in ["not finished", "sh", "shell: no", "what sh: said", "it says nothing"] {
            assert!(!names_itself(other, "sh"), "{other}");
        }
    }
}
