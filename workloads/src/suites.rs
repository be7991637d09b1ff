//! Suites: which planners run on which workloads, and which heights are expected.
//!
//! A suite is a TOML file, one of `suites/` (embedded) or the user's own:
//!
//! ```toml
//! name = "mine"
//! analysis = "What this suite is for, and what its results mean."
//! include = ["smoke"]                  # groups and expectations of embedded suites, optional
//!
//! [[group]]
//! workloads = ["torch/*/train/*"]      # keys, or patterns with `*` and `?`; `*/process` selects processes
//! planners = ["best-fit", "first-fit/*"]
//! except = ["first-fit/input"]         # optional
//! allocators = ["cupy2rc1-pool"]       # online allocators on the same workloads; optional, also without planners
//! time_limit = 10.0                    # seconds per cell, optional; or several: time_limits = [10.0, 60.0]
//! capacities = [1048576, 1100800]      # bytes, one cell each: any plan that fits counts; optional
//! threads = [1, 2]                     # for planners that use several, optional
//! repetitions = 5                      # optional; a cell without an answer is not repeated
//! max_buffers = 20000                  # leaves out larger workloads, optional
//! quick = true                         # no searches, no planners beyond their practical size, optional
//!
//! [[group]]
//! files = ["nets/*.csv", "my.onnx"]    # traces in files of any format, relative to this file; also beside `workloads`
//! dims = { batch = 8 }                 # values of dynamic dimensions of these files, optional
//! part = "cuda:0"                      # the trace to take from files that contain several, optional
//! align = 512                          # bytes: rounds sizes up and aligns offsets, optional
//! planners = ["best-fit", "portfolio"]
//!
//! [[schedule]]                         # nets in training that may not fit, optional; also without groups
//! nets = ["resnet50", "vgg*"]          # of `planlab list models`
//! batches = [256, 512]
//! machines = ["x86-pcie3"]             # of `planlab list machines`
//! schedulers = ["*"]
//! except = ["local-search"]            # optional
//! sizes = [224, 320]                   # height and width of input images, instead of the net's, optional
//! links = [16e9]                       # bytes per second, instead of the machine's, optional
//! capacities = [14_950_000_000]        # bytes, instead of the machine's, optional
//! time_limit = 60.0                    # seconds per scheduler, optional
//! work_limit = 10000                   # simulated iterations per scheduler, optional
//! planner = "portfolio"                # the planner for the offsets, optional
//! planner_time_limit = 10.0            # seconds for that planner, optional
//! repetitions = 3                      # optional
//!
//! [[expect]]                           # an expected height, checked after the run
//! workload = "chainer/alexnet/infer/b1"
//! planner = "best-fit"
//! height = 10169344
//!
//! [limits]                             # optional
//! mip_max_buffers = 300                # no `mip/*` on larger workloads
//! samples = 5                          # timed runs per cell
//! single_above = 1.0                   # only one sample if a run takes more seconds than this
//! alone = true                         # one process per cell; otherwise quick planners share one on small workloads
//! ```
//!
//! Several groups may select the same cell (planner, workload, capacity and, if a group lists them, threads and time
//! limit); it takes the limits of the first. Planners `external/*` that are not provided are left out with a notice.
//! Every other name has to match something, and every `[[expect]]` a cell of the suite.

mod files;
mod schedules;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use include_dir::{Dir, File, include_dir};
use planlab_dsa::Alignment;
use serde::Deserialize;

use crate::catalog::{Catalog, WorkloadError};
use crate::external::ExternalError;
use crate::formats::{InputLimits, read_document};
use crate::glob::{glob, is_glob};
use crate::nearest::{did_you_mean, nearest};
use crate::process::selects;

pub use schedules::{ScheduleGroup, SchedulePick};

/// The prefix of the keys of external planners.
const EXTERNAL: &str = "external/";

static SUITES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/suites");

/// Which planners run on which workloads.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// Its purpose, and how to read its results.
    pub analysis: String,
    /// Limits for all groups.
    pub limits: Limits,
    /// The groups, in file order.
    pub groups: Vec<Group>,
    /// The groups of schedules, in file order.
    pub schedules: Vec<ScheduleGroup>,
    /// The expected heights.
    pub expect: Vec<Expectation>,
    /// Names of the embedded suites whose groups and expectations it includes.
    include: Vec<String>,
    file: String,
    text: String,
}

/// Limits of a suite.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// `mip/*` planners run on workloads with at most this many buffers.
    pub mip_max_buffers: usize,
    /// Timed runs of a cell.
    pub samples: u32,
    /// A cell whose first run takes longer than this, in seconds, is timed once.
    pub single_above: f64,
    /// Whether each cell runs in its own process, so that its peak memory is unaffected by other cells. Default: quick
    /// planners share a process on small workloads.
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
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Files with traces, relative to the suite's file; patterns with `*`, `?`, `[...]` and `**`. See
    /// [`Suite::open_files`].
    #[serde(default)]
    pub files: Vec<String>,
    /// The alignment of the files' traces, as [`FileOptions::align`](crate::FileOptions::align).
    #[serde(default)]
    pub align: Option<Alignment>,
    /// The trace to take from a file that contains several.
    #[serde(default)]
    pub part: Option<String>,
    /// Values of dynamic dimensions of the files, by name.
    #[serde(default)]
    pub dims: BTreeMap<String, NonZeroU64>,
    /// Whether the files' permissions to overwrite a buffer in place count. Default: yes.
    #[serde(default)]
    pub in_place: Option<bool>,
    /// Patterns over planner keys.
    #[serde(default)]
    pub planners: Vec<String>,
    /// Patterns over the keys of excluded planners.
    #[serde(default)]
    pub except: Vec<String>,
    /// Patterns over keys of online allocators.
    #[serde(default)]
    pub allocators: Vec<String>,
    /// Seconds per cell; `None` for the harness's default.
    #[serde(default)]
    pub time_limit: Option<f64>,
    /// Several limits in seconds, with a cell for each; instead of `time_limit`.
    #[serde(default)]
    pub time_limits: Vec<f64>,
    /// Workloads with more buffers are left out.
    #[serde(default)]
    pub max_buffers: Option<usize>,
    /// Capacities in bytes, with a cell for each; if empty, the height is minimised.
    #[serde(default)]
    pub capacities: Vec<u64>,
    /// Numbers of threads, with a cell for each; single-threaded planners have one cell. If empty, the harness's
    /// default.
    #[serde(default)]
    pub threads: Vec<NonZeroUsize>,
    /// Repetitions of each cell; `None` for the harness's default.
    #[serde(default)]
    pub repetitions: Option<NonZeroU32>,
    /// Excludes planners that search, and others on workloads larger than they are practical for.
    #[serde(default)]
    pub quick: bool,
}

impl Group {
    /// The limits of the cells for one planner on one workload.
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

/// Each value, or a single `None` without values.
fn optional<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().copied().map(Some).collect() }
}

/// The limits of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CellLimits {
    time_limit: Option<Duration>,
    capacity: Option<u64>,
    threads: Option<NonZeroUsize>,
}

/// An expected height.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Expectation {
    /// The workload's key.
    pub workload: String,
    /// The planner's key.
    pub planner: String,
    /// The height in bytes.
    pub height: u64,
}

/// The cells of a suite.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Selection {
    /// The cells, by group, workload and planner.
    pub picks: Vec<Pick>,
    /// One sentence for each omission, with the reason.
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
    /// The time limit of the cell; `None` for the harness's default.
    pub time_limit: Option<Duration>,
    /// The capacity in bytes that a plan has to fit; `None` if the height is minimised.
    pub capacity: Option<u64>,
    /// Threads that the planner may use; `None` for the harness's default.
    pub threads: Option<NonZeroUsize>,
    /// Repetitions; `None` for the harness's default.
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
    /// No suite has this name.
    #[error("there is no suite `{name}`{}", did_you_mean(nearest))]
    Unknown {
        /// The given name.
        name: String,
        /// Similar names.
        nearest: Vec<String>,
    },
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The file is invalid.
    #[error("{file}:{line}: {reason}")]
    Bad {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The error.
        reason: String,
    },
    /// A file with a trace that the suite names cannot be read.
    #[error(transparent)]
    File(#[from] ExternalError),
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
    schedule: Vec<ScheduleGroup>,
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
        // Suites that include others come after the included ones.
        let (plain, composed): (Vec<_>, Vec<_>) = files(&SUITES)
            .into_iter()
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

/// The files of a folder and of those in it.
fn files(folder: &'static Dir<'static>) -> Vec<&'static File<'static>> {
    folder.files().chain(folder.dirs().flat_map(files)).collect()
}

impl Suite {
    /// An embedded suite by its name, or one in a file (a name with `/` or ending in `.toml`).
    ///
    /// # Errors
    ///
    /// [`SuiteError`]: the suite does not exist (with similar names), or the file is invalid.
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
    /// [`SuiteError`]: why the file cannot be read, or the error in it with its line.
    pub fn read(path: &Path) -> Result<Self, SuiteError> {
        let file = path.display().to_string();
        let input = fs::File::open(path).map_err(|source| SuiteError::Io { file: file.clone(), source })?;
        let text = read_document(&file, input, InputLimits::default()).map_err(|error| SuiteError::Bad {
            file: file.clone(),
            line: usize::try_from(error.line()).unwrap_or(usize::MAX),
            reason: error.reason().to_owned(),
        })?;
        parse(&file, &text, builtin())
    }

    /// The cells over the workloads of a catalog and the given planners. `is_quick` decides whether a planner is quick
    /// for a number of buffers: groups for quick planners have no other cells.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] for an unknown key, or a pattern that matches no workload. A pattern for missing public
    /// instances only gives a notice.
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
            let workloads = self.workloads(group, catalog, &keys, &mut selection.notices)?;
            // Only the workloads of planned cells are inspected.
            for workload in workloads.into_iter().filter(|_| !chosen.is_empty()) {
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

    /// Rejects names of planners that match nothing, and expectations without a cell in the suite: a misspelt suite
    /// would test nothing. `picks` are all cells of the suite. Names may refer to `absent` planners, which this build
    /// or machine lacks, to `external/*`, and to missing public instances.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] with the line and similar names.
    pub fn check(
        &self,
        catalog: &Catalog,
        planners: &[String],
        absent: &[&str],
        picks: &[Pick],
    ) -> Result<(), SuiteError> {
        let known: Vec<&str> = planners.iter().map(String::as_str).chain(absent.iter().copied()).collect();
        let patterns = self.groups.iter().flat_map(|group| group.planners.iter().chain(&group.except));
        for pattern in patterns {
            if !pattern.starts_with(EXTERNAL) && !known.iter().any(|key| glob(pattern, key)) {
                let near = nearest(pattern, known.iter().copied());
                let reason = format!("there is no planner `{pattern}`{}", did_you_mean(&near));
                return Err(self.wrong(pattern, reason));
            }
        }
        let missing = |known: &Expectation| {
            !picks.iter().any(|pick| pick.workload == known.workload && pick.planner == known.planner)
        };
        for expectation in self.expect.iter().filter(|known| missing(known)) {
            if let Some(reason) = why_missing(expectation, catalog, &known, absent) {
                return Err(self.at(&|text| line_of(text, expectation), reason));
            }
        }
        Ok(())
    }

    /// The given online allocators over the workloads of a catalog: by workload in suite order, then in the order of
    /// the keys; each pair once.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] for a pattern that matches no allocator; otherwise like [`Suite::select`].
    pub fn baselines(&self, catalog: &Catalog, allocators: &[&str]) -> Result<Vec<Baseline>, SuiteError> {
        let keys = catalog.keys();
        let (mut baselines, mut known, mut notices) = (Vec::new(), BTreeSet::new(), Vec::new());
        for group in self.groups.iter().filter(|group| !group.allocators.is_empty()) {
            let chosen = self.matching("allocator", &group.allocators, allocators)?;
            for workload in self.workloads(group, catalog, &keys, &mut notices)? {
                if let Some(most) = group.max_buffers {
                    let buffers = catalog.buffers(&workload).map_err(|error| self.bad(&workload, &error))?;
                    if buffers > most {
                        continue;
                    }
                }
                for &at in &chosen {
                    let baseline =
                        Baseline { workload: workload.clone(), allocator: allocators[at].to_owned() };
                    if known.insert(baseline.clone()) {
                        baselines.push(baseline);
                    }
                }
            }
        }
        Ok(baselines)
    }

    fn planners(&self, group: &Group, planners: &[String], notices: &mut Vec<String>) -> Vec<String> {
        for pattern in &group.planners {
            if planners.iter().any(|planner| glob(pattern, planner)) {
                continue;
            }
            if pattern.starts_with(EXTERNAL) {
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
            let matching: Vec<&String> = keys.iter().filter(|key| selects(pattern, key)).collect();
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

    /// An error at the line of the file that contains `what`.
    fn bad(&self, what: &str, error: &WorkloadError) -> SuiteError {
        self.wrong(what, error.to_string())
    }

    fn wrong(&self, what: &str, reason: String) -> SuiteError {
        let quoted = format!("\"{what}\"");
        let named = |text: &str| {
            let position = |part: &str| text.lines().position(|line| line.contains(part));
            position(&quoted).or_else(|| position(what)).map(|index| index + 1)
        };
        self.at(&named, reason)
    }

    /// An error at the line that `find` finds in the text of this suite or of an included one; otherwise at the first
    /// line.
    fn at(&self, find: &dyn Fn(&str) -> Option<usize>, reason: String) -> SuiteError {
        let (file, line) = self.place(find).unwrap_or((&self.file, 1));
        SuiteError::Bad { file: file.to_owned(), line, reason }
    }

    fn place(&self, find: &dyn Fn(&str) -> Option<usize>) -> Option<(&str, usize)> {
        if let Some(line) = find(&self.text) {
            return Some((&self.file, line));
        }
        let mut included = builtin().iter().filter(|suite| self.include.contains(&suite.name));
        included.find_map(|suite| suite.place(find))
    }
}

/// The line of an expectation in the text of a suite.
fn line_of(text: &str, expectation: &Expectation) -> Option<usize> {
    const HEAD: &str = "[[expect]]";
    let names = [&expectation.workload, &expectation.planner].map(|name| format!("\"{name}\""));
    let lines: Vec<&str> = text.lines().collect();
    let is_it = |&start: &usize| {
        let own = lines[start + 1..].iter().take_while(|line| !line.trim_start().starts_with('['));
        let text: String = own.copied().collect();
        lines[start].trim() == HEAD && names.iter().all(|name| text.contains(name.as_str()))
    };
    (0..lines.len()).find(is_it).map(|start| start + 1)
}

/// Why a suite has no cell for an expectation; `None` if the cell is left out because the planner or public instances
/// are missing.
fn why_missing(
    Expectation { workload, planner, .. }: &Expectation,
    catalog: &Catalog,
    known: &[&str],
    absent: &[&str],
) -> Option<String> {
    if planner.starts_with(EXTERNAL) || absent.contains(&planner.as_str()) {
        return None;
    }
    if !known.contains(&planner.as_str()) {
        let near = nearest(planner, known.iter().copied());
        return Some(format!("an expectation of `{planner}`, which is no planner{}", did_you_mean(&near)));
    }
    if catalog.describe(workload).is_none() {
        let error = catalog.unknown(workload);
        let is_absent = matches!(error, WorkloadError::Absent { .. });
        return (!is_absent).then(|| format!("an expectation: {error}"));
    }
    Some(format!("this `[[expect]]` is never checked: no group runs `{planner}` on `{workload}`"))
}

fn parse(file: &str, text: &str, known: &[Suite]) -> Result<Suite, SuiteError> {
    let bad = |at: usize, reason: String| {
        let line = 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        SuiteError::Bad { file: file.to_owned(), line, reason }
    };
    let raw: RawSuite = toml::from_str(text).map_err(|error| {
        bad(error.span().map_or(0, |span| span.start), error.message().replace('\n', " "))
    })?;
    let RawSuite { name, analysis, include, limits, group: mut groups, schedule: mut schedules, mut expect } =
        raw;
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
    if let Some((field, fault)) = schedules.iter().find_map(ScheduleGroup::fault) {
        return Err(bad(place(field), fault));
    }
    for other in &include {
        let Some(suite) = known.iter().find(|suite| suite.name == *other) else {
            let near = nearest(other, known.iter().map(|suite| suite.name.as_str()));
            return Err(bad(place(other), format!("there is no suite `{other}`{}", did_you_mean(&near))));
        };
        groups.extend(suite.groups.iter().cloned());
        schedules.extend(suite.schedules.iter().cloned());
        expect.extend(suite.expect.iter().cloned());
    }
    if groups.is_empty() && schedules.is_empty() {
        return Err(bad(0, "the suite has neither a [[group]] nor a [[schedule]]".to_owned()));
    }
    if let Some((what, fault)) = groups.iter().find_map(Group::fault) {
        return Err(bad(place(what), fault.to_owned()));
    }
    let (file, text) = (file.to_owned(), text.to_owned());
    Ok(Suite { name, analysis, limits, groups, schedules, expect, include, file, text })
}

#[cfg(test)]
mod tests;
