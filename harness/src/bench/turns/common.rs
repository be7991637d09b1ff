//! Finds what two builds have in common: the requested cells that both would run.
//!
//! It asks each build through its command line: `list planners` for the keys, and `bench --dry-run` for the cells of
//! each pattern of workloads. Cells of one build alone are named and not run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Output};

use planlab_workloads::matches_glob;
use serde::Serialize;
use serde_json::Value;

use crate::cli::TurnsArgs;
use crate::shell::exit::{Exit, Failure};
use crate::shell::output::print_note;

/// One of the two builds: its binary and the folder of its results.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) name: &'static str,
    pub(super) binary: PathBuf,
    pub(super) results: PathBuf,
}

impl Side {
    pub(super) fn side_failure(&self, reason: &dyn std::fmt::Display) -> Failure {
        Failure::from_usage(format!("side {} ({}): {reason}", self.name, self.binary.display()))
    }
}

/// The last line that a binary wrote to stderr.
pub(super) fn last_line(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    told.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing").to_owned()
}

/// A planner on a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct NamedCell {
    pub(crate) planner: String,
    pub(crate) workload: String,
}

/// The planners that both builds would run on a workload.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) workload: String,
    pub(super) planners: Vec<String>,
}

/// What both builds would run, by workload, and what only one would run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Common {
    pub(super) shares: Vec<Share>,
    pub(super) alone: [Vec<NamedCell>; 2],
}

impl Common {
    /// Asks both builds. `told` are the arguments that both receive.
    ///
    /// # Errors
    ///
    /// If a build cannot be run, or the two have no cell in common.
    pub(super) fn ask_both(sides: &[Side; 2], args: &TurnsArgs, told: &[OsString]) -> Result<Self, Failure> {
        let planners = common_planners(sides, args, told)?;
        let [a, b] = common_cells(sides, args, told, planners.as_ref())?;
        let common = Self::split_cells(&a, &b);
        if common.shares.is_empty() {
            return Err(Failure::from_usage(format!(
                "the builds have no cell in common: {} would run {} cells, {} would run {}",
                sides[0].name,
                a.len(),
                sides[1].name,
                b.len()
            )));
        }
        Ok(common)
    }

    fn split_cells(a: &BTreeSet<NamedCell>, b: &BTreeSet<NamedCell>) -> Self {
        let mut shares: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for NamedCell { planner, workload } in a.intersection(b) {
            shares.entry(workload).or_default().push(planner.clone());
        }
        let share = |(workload, planners): (&str, _)| Share { workload: workload.to_owned(), planners };
        let shares = shares.into_iter().map(share).collect();
        Self { shares, alone: [a.difference(b).cloned().collect(), b.difference(a).cloned().collect()] }
    }
}

/// The planners of either build that match the named globs; `None` if no planner is named.
fn common_planners(
    sides: &[Side; 2],
    args: &TurnsArgs,
    told: &[OsString],
) -> Result<Option<[Vec<String>; 2]>, Failure> {
    if args.planners.is_empty() {
        return Ok(None);
    }
    let keys = [planner_keys(&sides[0], told)?, planner_keys(&sides[1], told)?];
    for pattern in &args.planners {
        if !keys.iter().flatten().any(|key| matches_glob(pattern, key)) {
            return Err(Failure::from_usage(format!("neither build has a planner `{pattern}`")));
        }
    }
    let asked = |key: &String| args.planners.iter().any(|pattern| matches_glob(pattern, key));
    Ok(Some(keys.map(|keys| keys.into_iter().filter(asked).collect())))
}

/// The planners that a build can run.
fn planner_keys(side: &Side, told: &[OsString]) -> Result<Vec<String>, Failure> {
    let words = ["list", "planners", "--json"].map(OsString::from);
    let file = told.iter().skip_while(|word| *word != "--planners").take(2).cloned();
    let answer =
        ask_build(side, words.into_iter().chain(file))?.map_err(|reason| side.side_failure(&reason))?;
    let entries: Vec<Value> = serde_json::from_str(&answer).map_err(|error| side.side_failure(&error))?;
    let present = entries.iter().filter(|entry| entry["absent"].is_null());
    Ok(present.filter_map(|entry| entry["key"].as_str().map(str::to_owned)).collect())
}

/// The cells that either build would run.
fn common_cells(
    sides: &[Side; 2],
    args: &TurnsArgs,
    told: &[OsString],
    planners: Option<&[Vec<String>; 2]>,
) -> Result<[BTreeSet<NamedCell>; 2], Failure> {
    let mut cells = [BTreeSet::new(), BTreeSet::new()];
    let patterns: Vec<Option<&String>> =
        if args.workloads.is_empty() { vec![None] } else { args.workloads.iter().map(Some).collect() };
    for pattern in patterns {
        let mut refused = Vec::new();
        for (at, (side, cells)) in sides.iter().zip(&mut cells).enumerate() {
            let named = planners.map(|both| both[at].as_slice());
            match of_pattern(side, told, named, pattern)? {
                Ok(found) => cells.extend(found),
                Err(reason) => refused.push((side.name, reason)),
            }
        }
        match refused.as_slice() {
            [] => {}
            [(name, reason)] => print_note(&format!("side {name} runs none of these cells: {reason}")),
            [(_, reason), ..] => return Err(Failure::from_usage(reason)),
        }
    }
    Ok(cells)
}

/// The cells that a build would run for a pattern of workloads, or why it refuses.
fn of_pattern(
    side: &Side,
    told: &[OsString],
    planners: Option<&[String]>,
    pattern: Option<&String>,
) -> Result<Result<Vec<NamedCell>, String>, Failure> {
    if planners.is_some_and(<[String]>::is_empty) {
        return Ok(Ok(Vec::new()));
    }
    let flag = |flag: &str, value: &String| -> [OsString; 2] { [flag.into(), value.into()] };
    let mut words: Vec<OsString> = told.to_vec();
    words.extend(pattern.iter().flat_map(|pattern| flag("--workload", pattern)));
    words.extend(planners.unwrap_or_default().iter().flat_map(|planner| flag("--planner", planner)));
    // A folder that is never created, so no cell has a row in it.
    words.extend(["--dry-run", "--json", "--out"].map(OsString::from));
    words.push(side.results.join("none").into());
    match ask_build(side, words)? {
        Ok(answer) => Ok(Ok(parse_dry_run(&answer).map_err(|reason| side.side_failure(&reason))?)),
        Err(reason) => Ok(Err(reason)),
    }
}

/// The cells of a dry run, one JSON value per line. Lines without a planner are skipped: they are online allocators,
/// which take no turns.
fn parse_dry_run(answer: &str) -> Result<Vec<NamedCell>, String> {
    let cell = |line: &str| -> Result<Option<NamedCell>, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let Some(planner) = text("planner") else { return Ok(None) };
        let workload = text("workload").ok_or("its dry run has a planner without a workload")?;
        Ok(Some(NamedCell { planner, workload }))
    };
    answer.lines().map(cell).filter_map(Result::transpose).collect()
}

/// Runs a build with some arguments; returns its output, or its reason to refuse them.
fn ask_build(
    side: &Side,
    words: impl IntoIterator<Item = OsString>,
) -> Result<Result<String, String>, Failure> {
    let output: Output =
        Command::new(&side.binary).args(words).output().map_err(|error| side.side_failure(&error))?;
    let is = |exit: Exit| output.status.code() == Some(i32::from(exit.code()));
    if is(Exit::Complete) {
        return Ok(Ok(String::from_utf8_lossy(&output.stdout).into_owned()));
    }
    if is(Exit::Usage) {
        return Ok(Err(last_line(&output)));
    }
    if is(Exit::Interrupted) {
        return Err(Failure::new(Exit::Interrupted, "interrupted"));
    }
    Err(side.side_failure(&format!("{}: {}", output.status, last_line(&output))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(planner: &str, workload: &str) -> NamedCell {
        NamedCell { planner: planner.to_owned(), workload: workload.to_owned() }
    }

    #[test]
    fn what_both_have_is_told_from_what_one_has() {
        let set = |cells: &[(&str, &str)]| -> BTreeSet<NamedCell> {
            cells.iter().map(|&(planner, workload)| named(planner, workload)).collect()
        };
        let a = set(&[("bump", "x"), ("old", "x"), ("bump", "y"), ("best-fit", "x")]);
        let b = set(&[("bump", "x"), ("best-fit", "x"), ("new", "x"), ("new", "z")]);
        let common = Common::split_cells(&a, &b);
        let both =
            Share { workload: "x".to_owned(), planners: ["best-fit", "bump"].map(str::to_owned).into() };
        assert_eq!(common.shares, [both]);
        let alone = [set(&[("bump", "y"), ("old", "x")]), set(&[("new", "x"), ("new", "z")])];
        assert_eq!(common.alone.map(|cells| cells.into_iter().collect::<BTreeSet<_>>()), alone);
    }

    #[test]
    fn the_allocators_of_a_dry_run_are_no_cells() {
        let lines = [
            r#"{"workload":"x","planner":"bump","repetitions":1}"#,
            r#"{"workload":"x","allocator":"cupy2rc1-pool"}"#,
            r#"{"workload":"y","planner":"best-fit"}"#,
        ];
        assert_eq!(parse_dry_run(&lines.join("\n")), Ok(vec![named("bump", "x"), named("best-fit", "y")]));
        assert_eq!(parse_dry_run(lines[1]), Ok(Vec::new()));
        assert!(parse_dry_run(r#"{"planner":"bump"}"#).is_err_and(|reason| reason.contains("workload")));
        assert!(parse_dry_run("no JSON").is_err());
    }
}
