//! Suites: which planners run on which workloads, and what is known of the heights.
//!
//! A suite is a TOML file, one of `suites/` (embedded) or the user's own:
//!
//! ```toml
//! name = "mine"
//! analysis = "What this suite is for, and what its results mean."
//! include = ["smoke"]                  # groups and expectations of embedded suites, optional
//!
//! [[group]]
//! workloads = ["torch/*/train/*"]      # `*` any letters, `?` one; or keys, synthetic ones too
//! planners = ["best-fit", "first-fit/*"]
//! except = ["first-fit/input"]         # optional
//! allocators = ["cupy2rc1-pool"]       # online allocators that are played beside them, optional; or they alone
//! time_limit = 10.0                    # seconds for a cell, optional; or several: time_limits = [10.0, 60.0]
//! capacities = [1048576, 1100800]      # bytes: plans that fit are asked for, one cell each, optional
//! threads = [1, 2]                     # where a planner uses more than one, optional
//! repetitions = 5                      # optional; a cell whose first has no answer has no further ones
//! max_buffers = 20000                  # larger workloads are left out, optional
//! quick = true                         # no searches, and no planner past the size it is practical for, optional
//!
//! [[expect]]                           # a height that is known, checked after the run
//! workload = "chainer/alexnet/infer/b1"
//! planner = "best-fit"
//! height = 10169344
//!
//! [limits]                             # optional
//! mip_max_buffers = 300                # no `mip/*` on larger workloads
//! samples = 5                          # timed runs of a cell
//! single_above = 1.0                   # but one where a run takes more seconds than this
//! alone = true                         # a process for each cell: quick planners else share one on small workloads
//! ```
//!
//! A cell (planner, workload, capacity and, where a group lists them, threads and time limit) that several
//! groups ask for takes the limits of the first. Planners `external/*` that are not given are left out with a
//! notice.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use crate::catalog::{Catalog, WorkloadError};
use crate::glob::{glob, is_glob};
use crate::nearest::{did_you_mean, nearest};

static SUITES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/suites");

/// Which planners run on which workloads.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// What it is for, and how to read its results.
    pub analysis: String,
    /// Limits that hold for every group.
    pub limits: Limits,
    /// The groups, in the file's order.
    pub groups: Vec<Group>,
    /// Heights that are known.
    pub expect: Vec<Expectation>,
    file: String,
    text: String,
}

/// Limits of a suite.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// `mip/*` planners run on workloads of at most so many buffers.
    pub mip_max_buffers: usize,
    /// Timed runs of a cell.
    pub samples: u32,
    /// A cell whose first run takes longer than this, in seconds, is timed once.
    pub single_above: f64,
    /// Each cell runs in a process of its own, so that its peak memory holds nothing of another's. Default: quick
    /// planners share one on small workloads.
    pub alone: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { mip_max_buffers: 300, samples: 5, single_above: 1.0, alone: false }
    }
}

/// Workloads and the planners that run on each of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Group {
    /// Patterns over workload keys.
    pub workloads: Vec<String>,
    /// Patterns over planner keys.
    #[serde(default)]
    pub planners: Vec<String>,
    /// Patterns over planner keys that are left out all the same.
    #[serde(default)]
    pub except: Vec<String>,
    /// Patterns over keys of online allocators.
    #[serde(default)]
    pub allocators: Vec<String>,
    /// Seconds for a cell; `None`: the harness's default.
    #[serde(default)]
    pub time_limit: Option<f64>,
    /// Several limits in seconds, a cell for each; instead of `time_limit`.
    #[serde(default)]
    pub time_limits: Vec<f64>,
    /// Workloads with more buffers are left out.
    #[serde(default)]
    pub max_buffers: Option<usize>,
    /// Capacities in bytes, a cell for each; none: the height is minimised.
    #[serde(default)]
    pub capacities: Vec<u64>,
    /// Numbers of threads, a cell for each; planners that use one alone have one cell. None: the harness's
    /// default.
    #[serde(default)]
    pub threads: Vec<NonZeroUsize>,
    /// Repetitions of each cell; `None`: the harness's default.
    #[serde(default)]
    pub repetitions: Option<NonZeroU32>,
    /// Planners that search are left out, and others on workloads larger than they are practical for.
    #[serde(default)]
    pub quick: bool,
}

impl Group {
    /// The limits of the cells that one planner on one workload has.
    fn cells(&self) -> Vec<CellLimits> {
        let seconds = match (&self.time_limit, self.time_limits.as_slice()) {
            (limit, []) => vec![*limit],
            (_, several) => several.iter().copied().map(Some).collect(),
        };
        let mut cells = Vec::new();
        for seconds in seconds {
            for capacity in optional(&self.capacities) {
                for threads in optional(&self.threads) {
                    let time_limit = seconds.map(Duration::from_secs_f64);
                    cells.push(CellLimits { time_limit, capacity, threads });
                }
            }
        }
        cells
    }
}

/// Each value, or `None` alone.
fn optional<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().copied().map(Some).collect() }
}

/// What bounds a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CellLimits {
    time_limit: Option<Duration>,
    capacity: Option<u64>,
    threads: Option<NonZeroUsize>,
}

/// A height that is known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Expectation {
    /// The workload's key.
    pub workload: String,
    /// The planner's key.
    pub planner: String,
    /// Bytes.
    pub height: u64,
}

/// The cells of a suite.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Selection {
    /// The cells, by group, workload and planner.
    pub picks: Vec<Pick>,
    /// What was left out and why, a sentence each.
    pub notices: Vec<String>,
}

/// One planner on one workload.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pick {
    /// The workload's key.
    pub workload: String,
    /// The planner's key.
    pub planner: String,
    /// The time for the cell; `None`: the harness's default.
    pub time_limit: Option<Duration>,
    /// The capacity in bytes that a plan is to fit; `None`: the height is minimised.
    pub capacity: Option<u64>,
    /// Threads that the planner may use; `None`: the harness's default.
    pub threads: Option<NonZeroUsize>,
    /// Repetitions; `None`: the harness's default.
    pub repetitions: Option<NonZeroU32>,
}

/// One online allocator on one workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Baseline {
    /// The workload's key.
    pub workload: String,
    /// The allocator's key.
    pub allocator: String,
}

/// Why a suite cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// No suite of that name.
    #[error("there is no suite `{name}`{}", did_you_mean(nearest))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        nearest: Vec<String>,
    },
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Something is wrong in it.
    #[error("{file}:{line}: {reason}")]
    Bad {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    name: String,
    analysis: String,
    #[serde(default)]
    include: Vec<String>,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    group: Vec<Group>,
    #[serde(default)]
    expect: Vec<Expectation>,
}

/// The embedded suites.
///
/// # Panics
///
/// If an embedded suite is damaged, which the tests rule out.
#[must_use]
pub fn builtin() -> &'static [Suite] {
    static ALL: OnceLock<Vec<Suite>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        // Suites that include others come after those.
        let (plain, composed): (Vec<_>, Vec<_>) = SUITES
            .files()
            .partition(|file| !file.contents_utf8().is_some_and(|text| text.contains("\ninclude")));
        for file in plain.into_iter().chain(composed) {
            let name = format!("suites/{}", file.path().display());
            let text = file.contents_utf8().expect("suites are text");
            all.push(parse(&name, text, &all).expect("embedded suites are valid"));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    })
}

impl Suite {
    /// An embedded suite by its name, or one in a file (a name with `/` or ending in `.toml`).
    ///
    /// # Errors
    ///
    /// [`SuiteError`]: no such suite (with the nearest names), or what is wrong with the file.
    pub fn find(name: &str) -> Result<Self, SuiteError> {
        if let Some(suite) = builtin().iter().find(|suite| suite.name == name) {
            return Ok(suite.clone());
        }
        if name.contains('/') || name.ends_with(".toml") {
            return Self::read(Path::new(name));
        }
        let names = builtin().iter().map(|suite| suite.name.as_str());
        let nearest = nearest(name, names).into_iter().map(str::to_owned).collect();
        Err(SuiteError::Unknown { name: name.to_owned(), nearest })
    }

    /// Reads a suite from a file.
    ///
    /// # Errors
    ///
    /// [`SuiteError`]: why the file cannot be read, or what is wrong in which line.
    pub fn read(path: &Path) -> Result<Self, SuiteError> {
        let file = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => parse(&file, &text, builtin()),
            Err(source) => Err(SuiteError::Io { file, source }),
        }
    }

    /// The cells over the workloads of a catalog and the planners of these keys. `is_quick` knows which planner
    /// is quick for how many buffers: groups for quick ones have no cells of others.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] for a key that does not exist, or a pattern that no workload fits, unless it
    /// asks for public instances that are not there: that is a notice.
    pub fn select(
        &self,
        catalog: &Catalog,
        planners: &[String],
        is_quick: impl Fn(&str, usize) -> bool,
    ) -> Result<Selection, SuiteError> {
        let keys = catalog.keys();
        let mut selection = Selection::default();
        let mut known = BTreeSet::new();
        for group in &self.groups {
            let chosen = self.planners(group, planners, &mut selection.notices);
            for workload in self.workloads(group, catalog, &keys, &mut selection.notices)? {
                let buffers = catalog.buffers(&workload).map_err(|error| self.bad(&workload, &error))?;
                for planner in &chosen {
                    let large = planner.starts_with("mip/") && buffers > self.limits.mip_max_buffers;
                    let slow = group.quick && !is_quick(planner, buffers);
                    let fits = group.max_buffers.is_none_or(|most| buffers <= most) && !large && !slow;
                    for limits in group.cells().into_iter().filter(|_| fits) {
                        let CellLimits { time_limit, capacity, threads } = limits;
                        let listed = time_limit.filter(|_| !group.time_limits.is_empty());
                        let key = (workload.clone(), planner.clone(), capacity, threads, listed);
                        if known.insert(key) {
                            let (workload, planner) = (workload.clone(), planner.clone());
                            let repetitions = group.repetitions;
                            selection.picks.push(Pick {
                                workload,
                                planner,
                                time_limit,
                                capacity,
                                threads,
                                repetitions,
                            });
                        }
                    }
                }
            }
        }
        let mut said = BTreeSet::new();
        selection.notices.retain(|notice| said.insert(notice.clone()));
        Ok(selection)
    }

    /// The online allocators of these keys over the workloads of a catalog: by workload, as the suite has them, then
    /// in the order of the keys; each pair once.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] for a pattern that no allocator fits, else as [`Suite::select`].
    pub fn baselines(&self, catalog: &Catalog, allocators: &[&str]) -> Result<Vec<Baseline>, SuiteError> {
        let keys = catalog.keys();
        let (mut baselines, mut known, mut notices) = (Vec::new(), BTreeSet::new(), Vec::new());
        for group in self.groups.iter().filter(|group| !group.allocators.is_empty()) {
            let chosen = self.allocators(group, allocators)?;
            for workload in self.workloads(group, catalog, &keys, &mut notices)? {
                let buffers = catalog.buffers(&workload).map_err(|error| self.bad(&workload, &error))?;
                if group.max_buffers.is_some_and(|most| buffers > most) {
                    continue;
                }
                for allocator in &chosen {
                    let baseline =
                        Baseline { workload: workload.clone(), allocator: (*allocator).to_owned() };
                    if known.insert(baseline.clone()) {
                        baselines.push(baseline);
                    }
                }
            }
        }
        Ok(baselines)
    }

    fn allocators<'a>(&self, group: &Group, allocators: &[&'a str]) -> Result<Vec<&'a str>, SuiteError> {
        let fits = |pattern: &String| allocators.iter().any(|key| glob(pattern, key));
        if let Some(wrong) = group.allocators.iter().find(|pattern| !fits(pattern)) {
            let near = nearest(wrong, allocators.iter().copied());
            let reason = format!("there is no allocator `{wrong}`{}", did_you_mean(&near));
            return Err(self.wrong(wrong, reason));
        }
        let is_wanted = |key: &&str| group.allocators.iter().any(|pattern| glob(pattern, key));
        Ok(allocators.iter().copied().filter(is_wanted).collect())
    }

    fn planners(&self, group: &Group, planners: &[String], notices: &mut Vec<String>) -> Vec<String> {
        for pattern in &group.planners {
            if planners.iter().any(|planner| glob(pattern, planner)) {
                continue;
            }
            if pattern.starts_with("external/") {
                notices.push(format!("`{pattern}` is not given (docs/external-planners.md): not run"));
            } else {
                let near = nearest(pattern, planners.iter().map(String::as_str));
                notices.push(format!("this build has no planner `{pattern}`{}", did_you_mean(&near)));
            }
        }
        let any = |patterns: &[String], planner: &str| patterns.iter().any(|pattern| glob(pattern, planner));
        let wanted = |planner: &&String| any(&group.planners, planner) && !any(&group.except, planner);
        planners.iter().filter(wanted).cloned().collect()
    }

    fn workloads(
        &self,
        group: &Group,
        catalog: &Catalog,
        keys: &[String],
        notices: &mut Vec<String>,
    ) -> Result<Vec<String>, SuiteError> {
        let mut chosen = Vec::new();
        for pattern in &group.workloads {
            let matching: Vec<&String> = keys.iter().filter(|key| glob(pattern, key)).collect();
            if !matching.is_empty() {
                chosen.extend(matching.into_iter().cloned());
            } else if !is_glob(pattern) && catalog.describe(pattern).is_some() {
                chosen.push(pattern.clone());
            } else {
                match catalog.unknown(pattern) {
                    WorkloadError::Absent { notice, .. } => notices.push(notice),
                    error => return Err(self.bad(pattern, &error)),
                }
            }
        }
        Ok(chosen)
    }

    /// An error at the line of the file in which `what` is named.
    fn bad(&self, what: &str, error: &WorkloadError) -> SuiteError {
        self.wrong(what, error.to_string())
    }

    fn wrong(&self, what: &str, reason: String) -> SuiteError {
        let line = self.text.lines().position(|line| line.contains(what)).map_or(1, |index| index + 1);
        SuiteError::Bad { file: self.file.clone(), line, reason }
    }
}

fn parse(file: &str, text: &str, known: &[Suite]) -> Result<Suite, SuiteError> {
    let bad = |at: usize, reason: String| {
        let line = 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        SuiteError::Bad { file: file.to_owned(), line, reason }
    };
    let raw: RawSuite = toml::from_str(text).map_err(|error| {
        bad(error.span().map_or(0, |span| span.start), error.message().replace('\n', " "))
    })?;
    let RawSuite { name, analysis, include, limits, group: mut groups, mut expect } = raw;
    let place = |what: &str| text.find(what).unwrap_or(0);
    if let Some(group) =
        groups.iter().find(|group| group.time_limit.is_some() && !group.time_limits.is_empty())
    {
        let planners = group.planners.join(", ");
        return Err(bad(
            place("time_limits"),
            format!("time_limit and time_limits of one group: {planners}"),
        ));
    }
    for wrong in groups.iter().flat_map(|group| group.time_limits.iter().copied().chain(group.time_limit)) {
        if !(wrong.is_finite() && wrong > 0.0 && wrong < 1e9) {
            return Err(bad(place("time_limit"), format!("a time limit of {wrong} seconds")));
        }
    }
    for other in include {
        let Some(suite) = known.iter().find(|suite| suite.name == other) else {
            let near = nearest(&other, known.iter().map(|suite| suite.name.as_str()));
            return Err(bad(place(&other), format!("there is no suite `{other}`{}", did_you_mean(&near))));
        };
        groups.extend(suite.groups.iter().cloned());
        expect.extend(suite.expect.iter().cloned());
    }
    if groups.is_empty() {
        return Err(bad(0, "the suite has no [[group]]".to_owned()));
    }
    if groups.iter().any(|group| group.planners.is_empty() && group.allocators.is_empty()) {
        return Err(bad(place("[[group]]"), "a group has neither planners nor allocators".to_owned()));
    }
    Ok(Suite { name, analysis, limits, groups, expect, file: file.to_owned(), text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expected::expected;

    fn planners() -> Vec<String> {
        ["bump", "best-fit", "best-fit/reference", "first-fit/size", "mip/highs"].map(str::to_owned).to_vec()
    }

    const fn all_quick(_planner: &str, _buffers: usize) -> bool {
        true
    }

    #[test]
    fn every_embedded_suite_selects_something() {
        let catalog = Catalog::new(None);
        for suite in builtin() {
            let selection = suite.select(&catalog, &planners(), all_quick).expect(&suite.name);
            assert_eq!(selection.picks.is_empty(), suite.name == "public", "{}", suite.name);
            assert!(suite.analysis.len() > 40, "{}", suite.name);
        }
    }

    #[test]
    fn all_is_seeds_recorded_and_synthetic() {
        let catalog = Catalog::new(None);
        let picks = |name: &str| {
            Suite::find(name).expect(name).select(&catalog, &planners(), all_quick).expect(name).picks
        };
        let all = picks("all");
        for name in ["seeds", "recorded", "synthetic"] {
            assert!(picks(name).iter().all(|pick| all.contains(pick)), "{name}");
        }
    }

    #[test]
    fn the_seeds_expect_what_was_measured() {
        let suite = Suite::find("seeds").expect("embedded");
        for propagation in &expected().propagation {
            for planner in ["best-fit", "best-fit/reference"] {
                let known =
                    suite.expect.iter().find(|e| e.workload == propagation.key && e.planner == planner);
                assert_eq!(
                    known.map(|e| e.height),
                    Some(propagation.best_fit_height.get()),
                    "{}",
                    propagation.key
                );
            }
        }
    }

    #[test]
    fn the_published_optima_need_no_model() {
        let catalog = Catalog::new(None);
        let picks = Suite::find("seeds")
            .expect("embedded")
            .select(&catalog, &planners(), all_quick)
            .expect("valid")
            .picks;
        for key in ["chainer/alexnet/infer/b1", "chainer/googlenet/infer/b1"] {
            assert!(picks.iter().any(|pick| pick.workload == key && pick.planner == "mip/highs"), "{key}");
            let known = expected().propagation(key).expect("measured");
            assert_eq!(known.best_fit_height, known.load, "{key}");
        }
    }

    #[test]
    fn mips_run_on_small_workloads_only() {
        let catalog = Catalog::new(None);
        for pick in Suite::find("all")
            .expect("embedded")
            .select(&catalog, &planners(), all_quick)
            .expect("valid")
            .picks
        {
            let buffers = catalog.buffers(&pick.workload).expect("known");
            assert!(!pick.planner.starts_with("mip/") || buffers <= 300, "{}", pick.workload);
        }
    }

    #[test]
    fn errors_name_file_and_line() {
        let catalog = Catalog::new(None);
        let group = "[[group]]\nworkloads = [\"WHAT\"]\nplanners = [\"*\"]\n";
        for (text, place) in [
            ("name = \"x\"", "bad.toml:1: missing field `analysis`"),
            ("name = \"x\"\nanalysis = \"\"\ncolour = 1", "bad.toml:3: unknown field `colour`"),
            ("name = \"x\"\nanalysis = \"\"\n", "bad.toml:1: the suite has no [[group]]"),
            (
                "name = \"x\"\nanalysis = \"\"\ninclude = [\"smok\"]\n",
                "bad.toml:3: there is no suite `smok`; did",
            ),
        ] {
            let error = parse("bad.toml", text, builtin()).expect_err(text);
            assert!(error.to_string().starts_with(place), "{error}");
        }
        let head = "name = \"x\"\nanalysis = \"\"\n";
        for (key, place) in [
            (
                "chainer/alexnet/infer/b2",
                "bad.toml:4: there is no workload `chainer/alexnet/infer/b2`; did you",
            ),
            ("nothing/*", "bad.toml:4: there is no workload `nothing/*`"),
        ] {
            let suite = parse("bad.toml", &format!("{head}{}", group.replace("WHAT", key)), builtin());
            let error = suite.expect("well formed").select(&catalog, &planners(), all_quick).expect_err(key);
            assert!(error.to_string().starts_with(place), "{error}");
        }
    }

    #[test]
    fn lists_of_limits_make_cells() {
        let text = "name = \"x\"\nanalysis = \"x\"\n[[group]]\nworkloads = [\"chainer/alexnet/infer/b1\"]\n\
                    planners = [\"bump\", \"external/peer\"]\ntime_limits = [1.0, 2.0]\n\
                    capacities = [10, 20, 30]\nthreads = [1, 2]\nrepetitions = 5\n";
        let suite = parse("x.toml", text, builtin()).expect("well formed");
        let selection = suite.select(&Catalog::new(None), &planners(), all_quick).expect("valid");
        assert_eq!(selection.picks.len(), 12);
        let last = selection.picks.last().expect("twelve");
        assert_eq!(last.time_limit, Some(Duration::from_secs(2)));
        assert_eq!((last.capacity, last.threads), (Some(30), NonZeroUsize::new(2)));
        assert!(selection.picks.iter().all(|pick| pick.repetitions == NonZeroU32::new(5)));
        assert!(selection.notices[0].contains("external/peer"), "{:?}", selection.notices);
        assert!(selection.notices[0].ends_with("not run"), "{:?}", selection.notices);
        let both = text.replace("repetitions", "time_limit = 3.0\nrepetitions");
        let error = parse("x.toml", &both, builtin()).expect_err("two ways to say it");
        assert!(error.to_string().starts_with("x.toml:6: time_limit and time_limits"), "{error}");
    }

    #[test]
    fn what_a_group_for_quick_planners_leaves_out_another_group_may_have() {
        let text = "name = \"x\"\nanalysis = \"x\"\n[[group]]\nworkloads = [\"chainer/alexnet/infer/b1\"]\n\
                    planners = [\"*\"]\nexcept = [\"mip/*\"]\nquick = true\n[[group]]\n\
                    workloads = [\"chainer/alexnet/infer/b1\"]\nplanners = [\"b*\"]\ntime_limit = 3.0\n";
        let suite = parse("x.toml", text, builtin()).expect("well formed");
        let is_quick = |planner: &str, buffers: usize| planner == "bump" && buffers == 39;
        let picks = suite.select(&Catalog::new(None), &planners(), is_quick).expect("valid").picks;
        let chosen: Vec<(&str, Option<Duration>)> =
            picks.iter().map(|pick| (pick.planner.as_str(), pick.time_limit)).collect();
        let limit = Some(Duration::from_secs(3));
        assert_eq!(chosen, [("bump", None), ("best-fit", limit), ("best-fit/reference", limit)]);
    }

    #[test]
    fn allocators_are_played_on_the_workloads_of_their_groups() {
        let catalog = Catalog::new(None);
        let keys = ["network-wise", "cupy1-pool", "cupy2rc1-pool"];
        let text = "name = \"x\"\nanalysis = \"x\"\n[[group]]\nworkloads = [\"chainer/*/infer/b1\"]\n\
                    allocators = [\"cupy*\"]\nmax_buffers = 250\n[[group]]\n\
                    workloads = [\"chainer/alexnet/infer/b1\"]\nplanners = [\"bump\"]\nallocators = [\"*\"]\n";
        let suite = parse("x.toml", text, builtin()).expect("well formed");
        let baselines = suite.baselines(&catalog, &keys).expect("valid");
        let of = |workload: &str| -> Vec<&str> {
            let own = baselines.iter().filter(|baseline| baseline.workload == workload);
            own.map(|baseline| baseline.allocator.as_str()).collect()
        };
        assert_eq!(of("chainer/googlenet/infer/b1"), ["cupy1-pool", "cupy2rc1-pool"]);
        assert_eq!(of("chainer/alexnet/infer/b1"), ["cupy1-pool", "cupy2rc1-pool", "network-wise"]);
        assert!(of("chainer/inception-resnet-v2/infer/b1").is_empty(), "too many buffers");
        assert_eq!(suite.select(&catalog, &planners(), all_quick).expect("valid").picks.len(), 1);
        let wrong = parse("x.toml", &text.replace("cupy*", "cupi1-pool"), builtin()).expect("well formed");
        let error = wrong.baselines(&catalog, &keys).expect_err("no such allocator");
        let start = "x.toml:5: there is no allocator `cupi1-pool`; did you mean `cupy1-pool`";
        assert!(error.to_string().starts_with(start), "{error}");
        let none = text.replace("planners = [\"bump\"]\nallocators = [\"*\"]\n", "");
        let error = parse("x.toml", &none, builtin()).expect_err("nothing to run");
        assert!(error.to_string().contains("neither planners nor allocators"), "{error}");
    }

    #[test]
    fn embedded_suites_name_allocators_that_exist_on_the_nets_of_the_paper() {
        let catalog = Catalog::new(None);
        // All that the harness has, as every pattern has to fit one.
        let keys = [
            "network-wise",
            "device",
            "cupy1-pool",
            "cupy2rc1-pool",
            "cupy4-pool",
            "pytorch-caching",
            "pytorch-caching/expandable",
            "tensorflow-bfc",
            "tensorflow-bfc/one-region",
            "mxnet-naive",
            "mxnet-rounded",
            "tlsf",
            "profile-guided",
        ];
        let count = |name: &str, allocator: &str| {
            let suite = Suite::find(name).expect(name);
            let baselines = suite.baselines(&catalog, &keys).expect(name);
            baselines.iter().filter(|baseline| baseline.allocator == allocator).count()
        };
        let nets = catalog.keys().iter().filter(|key| key.starts_with("chainer/")).count();
        assert_eq!(count("seeds", "cupy2rc1-pool"), nets);
        assert!(count("smoke", "cupy2rc1-pool") >= 3 && count("smoke", "profile-guided") >= 3);
        assert!(count("recorded", "pytorch-caching") > 50);
    }

    #[test]
    fn missing_public_instances_are_a_notice() {
        let suite = Suite::find("public").expect("embedded");
        let selection =
            suite.select(&Catalog::new(None), &planners(), all_quick).expect("a notice, no error");
        assert!(
            selection.notices.iter().any(|notice| notice.contains("idealloc")),
            "{:?}",
            selection.notices
        );
    }

    #[test]
    fn mips_run_on_small_public_instances() {
        let corpus = tempfile::tempdir().expect("a temporary folder");
        for (name, buffers) in
            [("minimalloc/S.100.csv", 300), ("minimalloc/L.100.csv", 301), ("idealloc/I.csv", 9)]
        {
            let path = corpus.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            let rows: String = (0..buffers).map(|id| format!("{id},0,3,4\n")).collect();
            fs::write(path, format!("id,lower,upper,size\n{rows}")).expect("writable");
        }
        let suite = Suite::find("public").expect("embedded");
        let catalog = Catalog::new(Some(corpus.path().to_owned()));
        let picks = suite.select(&catalog, &planners(), all_quick).expect("all there").picks;
        let with_mip = picks.iter().filter(|pick| pick.planner == "mip/highs");
        assert_eq!(
            with_mip.map(|pick| pick.workload.as_str()).collect::<Vec<_>>(),
            ["minimalloc/s", "idealloc/i"]
        );
    }

    #[test]
    fn an_unknown_suite_has_near_ones() {
        let error = Suite::find("smokes").expect_err("unknown");
        assert_eq!(error.to_string(), "there is no suite `smokes`; did you mean `smoke`?");
        assert!(matches!(Suite::find("missing.toml"), Err(SuiteError::Io { .. })));
    }
}
