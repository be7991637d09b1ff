//! Measures two builds in turns: on each workload A then B, at the next repetition B then A.
//!
//! A turn is one `bench` of one binary on one workload, which runs the next repetition of its cells and leaves the
//! earlier ones alone. So the builds share nothing but the command line, and may differ as much as that allows. A slow
//! minute of the machine affects both sides. A steady drift affects both equally, as the order alternates. If one build
//! has planners or workloads that the other lacks, both run only the common ones.

mod common;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use planlab_dsa::CancelToken;

pub(crate) use self::common::NamedCell;
use self::common::{Common, Share, Side, last_line};
use crate::cli::{LimitArgs, TurnsArgs};
use crate::shell::exit::{Exit, Failure};
use crate::shell::output::printable;
use crate::shell::progress::Progress;
use crate::shell::quantity::as_nanoseconds;

const REPETITIONS: u32 = 5;
const OUT: &str = "results/store-diff";

/// The result of the measurements.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The folders of the results of both sides.
    pub(crate) results: [PathBuf; 2],
    /// Cells that only one build would run, and that were not run.
    pub(crate) alone: [Vec<NamedCell>; 2],
    pub(crate) interrupted: bool,
}

/// Measures both builds.
///
/// # Errors
///
/// If a binary cannot be run or ends without having run its cells, or the builds have no cells in common.
pub(crate) fn measure_turns(
    args: &TurnsArgs,
    planners_file: Option<&Path>,
    cancel: &CancelToken,
) -> Result<Measured, Failure> {
    let sides = both_sides(args)?;
    let told = common_arguments(args, planners_file);
    let Common { shares, alone } = Common::ask_both(&sides, args, &told)?;
    let repetitions = args.reps.unwrap_or(REPETITIONS);
    let bar = Progress::new(2 * u64::from(repetitions) * shares.len() as u64, "turns");
    let results = [sides[0].results.clone(), sides[1].results.clone()];
    let mark = Mark::begin_folder(args, &sides, &told, &shares, repetitions)?;
    for repetition in 1..=repetitions {
        for (at, share) in (0_u32..).zip(&shares) {
            bar.set_message(printable(&share.workload).into_owned());
            for side in turn_order(&sides, repetition + at) {
                if cancel.is_cancelled() || !run_turn(side, &told, share, repetition)? {
                    return Ok(Measured { results, alone, interrupted: true });
                }
                bar.inc(1);
            }
        }
    }
    bar.finish_and_clear();
    mark.end_folder()?;
    Ok(Measured { results, alone, interrupted: false })
}

/// Marks a folder with the turns that it holds: rows of other builds, or of earlier turns, were not measured in turns
/// with these.
struct Mark {
    file: PathBuf,
    /// A digest of both binaries and their arguments.
    turns: String,
}

impl Mark {
    /// Marks the folder as begun. Interrupted turns continue.
    fn begin_folder(
        args: &TurnsArgs,
        sides: &[Side; 2],
        told: &[OsString],
        shares: &[Share],
        repetitions: u32,
    ) -> Result<Self, Failure> {
        let out = output_folder(args);
        let mut hasher = blake3::Hasher::new();
        for side in sides {
            hasher.update(blake3::hash(&std::fs::read(&side.binary)?).as_bytes());
        }
        let mut update = |word: &str| {
            hasher.update(blake3::hash(word.as_bytes()).as_bytes());
        };
        told.iter().for_each(|word| update(&word.to_string_lossy()));
        for share in shares {
            update(&share.workload);
            share.planners.iter().for_each(|planner| update(planner));
        }
        hasher.update(&repetitions.to_le_bytes());
        let mark = Self { file: out.join("turns"), turns: hasher.finalize().to_hex().to_string() };
        let known = std::fs::read_to_string(&mark.file).ok();
        let is_begun = known.as_ref().is_some_and(|known| known.trim() == mark.turns);
        if mark.file.exists() && !known.is_some_and(|known| is_mark(&known)) {
            let file = mark.file.display();
            return Err(Failure::from_usage(format!(
                "planlab did not write {file}; name another folder with --out"
            )));
        }
        let has_rows = sides.iter().any(|side| side.results.exists());
        if has_rows && !is_begun {
            let reason = format!(
                "{}: the folder has the results of other turns; name another one with --out",
                out.display()
            );
            return Err(Failure::from_usage(reason));
        }
        mark.write_mark(&mark.turns)?;
        Ok(mark)
    }

    /// Marks the folder as complete: the same turns do not continue in it.
    fn end_folder(&self) -> Result<(), Failure> {
        self.write_mark(&format!("{} whole", self.turns))
    }

    fn write_mark(&self, text: &str) -> Result<(), Failure> {
        if let Some(folder) = self.file.parent() {
            planlab_files::create_folders(folder)?;
        }
        Ok(planlab_workloads::formats::save_file(&self.file, format!("{text}\n").as_bytes())?)
    }
}

/// Whether a text is a digest, as [`Mark::begin_folder`] and [`Mark::end_folder`] write it.
fn is_mark(text: &str) -> bool {
    let mut words = text.split_whitespace();
    words.next().is_some_and(|digest| blake3::Hash::from_hex(digest).is_ok())
        && matches!((words.next(), words.next()), (None | Some("whole"), None))
}

fn output_folder(args: &TurnsArgs) -> PathBuf {
    args.out.clone().unwrap_or_else(|| OUT.into())
}

fn both_sides(args: &TurnsArgs) -> Result<[Side; 2], Failure> {
    let out = output_folder(args);
    let side = |name: &'static str, binary: &Option<PathBuf>| {
        let missing = || Failure::from_usage(format!("--{name}-binary says which build to measure"));
        let binary = binary.as_ref().ok_or_else(missing)?;
        // A bare name is a file in this folder, not a program in PATH.
        let binary = binary
            .canonicalize()
            .map_err(|error| Failure::from_usage(format!("--{name}-binary {}: {error}", binary.display())))?;
        Ok::<Side, Failure>(Side { name, binary, results: out.join(name) })
    };
    Ok([side("a", &args.a_binary)?, side("b", &args.b_binary)?])
}

/// The arguments of both binaries, without the cells, the repetition and the folder.
fn common_arguments(args: &TurnsArgs, planners_file: Option<&Path>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["bench".into()];
    let mut say = |flag: &str, value: &dyn AsRef<std::ffi::OsStr>| {
        words.push(flag.into());
        words.push(value.as_ref().to_owned());
    };
    if let Some(suite) = suite_name(args) {
        say("--suite", &suite);
    }
    if let Some(corpus) = &args.corpus.corpus {
        say("--corpus", corpus);
    }
    if let Some(file) = planners_file {
        say("--planners", &file);
    }
    let LimitArgs { time_limit, memory_limit, work_limit, seed, threads } = &args.limits;
    if let Some(limit) = time_limit {
        say("--time-limit", &format!("{}ns", as_nanoseconds(*limit)));
    }
    say("--memory-limit", &memory_limit.to_string());
    if let Some(limit) = work_limit {
        say("--work-limit", &limit.to_string());
    }
    say("--seed", &seed.to_string());
    if let Some(threads) = threads {
        say("--threads", &threads.to_string());
    }
    words
}

/// The suite, chosen as `bench` does: if workloads are given without a suite, there is no suite.
fn suite_name(args: &TurnsArgs) -> Option<&str> {
    match &args.suite {
        Some(suite) => Some(suite),
        None if args.workloads.is_empty() => Some("smoke"),
        None => None,
    }
}

/// A B at even turns, B A at odd ones.
fn turn_order(sides: &[Side; 2], turn: u32) -> [&Side; 2] {
    if turn.is_multiple_of(2) { [&sides[0], &sides[1]] } else { [&sides[1], &sides[0]] }
}

/// Runs one side's next repetition on one workload; returns false if it was interrupted.
fn run_turn(side: &Side, told: &[OsString], share: &Share, repetition: u32) -> Result<bool, Failure> {
    let mut command = Command::new(&side.binary);
    command.args(told).args(["--workload", &share.workload, "--reps", &repetition.to_string()]);
    command.arg("--out").arg(&side.results);
    share.planners.iter().for_each(|planner| {
        command.args(["--planner", planner]);
    });
    let output = command.output().map_err(|error| side.side_failure(&error))?;
    let is = |exit: Exit| output.status.code() == Some(i32::from(exit.code()));
    // A cell without an answer, a false plan or an unexpected height has a row like others, and the diff reports it.
    if [Exit::Complete, Exit::Regression, Exit::Incomplete, Exit::Invalid].into_iter().any(is) {
        return Ok(true);
    }
    if is(Exit::Interrupted) {
        return Ok(false);
    }
    Err(side.side_failure(&format!("{} on {}: {}", output.status, share.workload, last_line(&output))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_turns() {
        let side = |name| Side { name, binary: PathBuf::new(), results: PathBuf::new() };
        let sides = [side("a"), side("b")];
        let names = |turn| turn_order(&sides, turn).map(|side| side.name).concat();
        assert_eq!([0, 1, 2, 3].map(names), ["ab", "ba", "ab", "ba"]);
    }
}
