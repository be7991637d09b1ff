//! A suite: its text, its groups, and the errors in it.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use super::group::Group;
use super::schedule_group::ScheduleGroup;
use crate::external::ExternalError;
use crate::formats::{InputLimits, read_document};
use crate::glob::matches_glob;
use crate::nearest::{did_you_mean, nearest};
use crate::recorded::embedded_files;

static SUITES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/suites");

/// Which planners run on which workloads.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// Its purpose, and how to read its results.
    pub analysis: String,
    /// Names of the embedded suites whose groups and expectations it includes.
    #[serde(default)]
    include: Vec<String>,
    /// Limits for all groups.
    #[serde(default)]
    pub limits: Limits,
    /// The groups, in file order.
    #[serde(default, rename = "group")]
    pub groups: Vec<Group>,
    /// The groups of schedules, in file order.
    #[serde(default, rename = "schedule")]
    pub schedules: Vec<ScheduleGroup>,
    /// The expected heights.
    #[serde(default)]
    pub expect: Vec<Expectation>,
    #[serde(skip)]
    pub(super) file: String,
    #[serde(skip)]
    pub(super) text: String,
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

/// Why a suite cannot be used.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// No suite has this name.
    #[error("there is no suite `{name}`{}", did_you_mean(nearest))]
    Unknown { name: String, nearest: Vec<String> },
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Io { file: String, source: io::Error },
    /// The file is invalid at a line, from 1.
    #[error("{file}:{line}: {reason}")]
    Bad { file: String, line: usize, reason: String },
    /// A file with a trace that the suite names cannot be read.
    #[error(transparent)]
    File(#[from] ExternalError),
}

/// The embedded suites.
#[must_use]
pub fn builtin() -> &'static [Suite] {
    static ALL: OnceLock<Vec<Suite>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all = Vec::new();
        // Suites that include others come after the included ones.
        let (plain, composed): (Vec<_>, Vec<_>) = embedded_files(&SUITES)
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

impl Suite {
    /// An embedded suite by its name, or one in a file (a name with `/` or ending in `.toml`).
    ///
    /// # Errors
    ///
    /// [`SuiteError`]: the suite does not exist (with similar names), or the file is invalid.
    pub fn find_suite(name: &str) -> Result<Self, SuiteError> {
        if let Some(suite) = builtin().iter().find(|suite| suite.name == name) {
            return Ok(suite.clone());
        }
        if name.contains('/') || name.ends_with(".toml") {
            return Self::read_suite(Path::new(name));
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
    pub fn read_suite(path: &Path) -> Result<Self, SuiteError> {
        let file = path.display().to_string();
        let input = fs::File::open(path).map_err(|source| SuiteError::Io { file: file.clone(), source })?;
        let text = read_document(&file, input, InputLimits::default()).map_err(|error| SuiteError::Bad {
            file: file.clone(),
            line: usize::try_from(error.line()).unwrap_or(usize::MAX),
            reason: error.reason().to_owned(),
        })?;
        parse(&file, &text, builtin())
    }

    /// An error at the line of the file that contains `what`.
    pub(super) fn error_at_text(&self, what: &str, reason: String) -> SuiteError {
        let quoted = format!("\"{what}\"");
        let named = |text: &str| {
            let position = |part: &str| text.lines().position(|line| line.contains(part));
            position(&quoted).or_else(|| position(what)).map(|index| index + 1)
        };
        self.error_at_line(&named, reason)
    }

    /// The indices of the names that match one of the patterns, ascending.
    pub(super) fn matching_indices(
        &self,
        what: &str,
        patterns: &[String],
        names: &[&str],
    ) -> Result<Vec<usize>, SuiteError> {
        for pattern in patterns {
            if !names.iter().any(|name| matches_glob(pattern, name)) {
                let near = nearest(pattern, names.iter().copied());
                return Err(self.error_at_text(
                    pattern,
                    format!("there is no {what} `{pattern}`{}", did_you_mean(&near)),
                ));
            }
        }
        let fits = |&at: &usize| patterns.iter().any(|pattern| matches_glob(pattern, names[at]));
        Ok((0..names.len()).filter(fits).collect())
    }

    /// An error at the line that `find` finds in the text of this suite or of an included one; otherwise at the first
    /// line.
    pub(super) fn error_at_line(&self, find: &dyn Fn(&str) -> Option<usize>, reason: String) -> SuiteError {
        let (file, line) = self.find_place(find).unwrap_or((&self.file, 1));
        SuiteError::Bad { file: file.to_owned(), line, reason }
    }

    fn find_place(&self, find: &dyn Fn(&str) -> Option<usize>) -> Option<(&str, usize)> {
        if let Some(line) = find(&self.text) {
            return Some((&self.file, line));
        }
        let mut included = builtin().iter().filter(|suite| self.include.contains(&suite.name));
        included.find_map(|suite| suite.find_place(find))
    }
}

pub(super) fn parse(file: &str, text: &str, known: &[Suite]) -> Result<Suite, SuiteError> {
    let bad = |at: usize, reason: String| {
        let line = 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        SuiteError::Bad { file: file.to_owned(), line, reason }
    };
    let mut suite: Suite = toml::from_str(text).map_err(|error| {
        bad(error.span().map_or(0, |span| span.start), error.message().replace('\n', " "))
    })?;
    let place = |what: &str| text.find(what).unwrap_or(0);
    let groups = &suite.groups;
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
    if let Some((field, fault)) = suite.schedules.iter().find_map(ScheduleGroup::find_fault) {
        return Err(bad(place(field), fault));
    }
    for other in &suite.include {
        let Some(included) = known.iter().find(|suite| suite.name == *other) else {
            let near = nearest(other, known.iter().map(|suite| suite.name.as_str()));
            return Err(bad(place(other), format!("there is no suite `{other}`{}", did_you_mean(&near))));
        };
        suite.groups.extend(included.groups.iter().cloned());
        suite.schedules.extend(included.schedules.iter().cloned());
        suite.expect.extend(included.expect.iter().cloned());
    }
    if suite.groups.is_empty() && suite.schedules.is_empty() {
        return Err(bad(0, "the suite has neither a [[group]] nor a [[schedule]]".to_owned()));
    }
    if let Some((what, fault)) = suite.groups.iter().find_map(Group::find_fault) {
        return Err(bad(place(what), fault.to_owned()));
    }
    (suite.file, suite.text) = (file.to_owned(), text.to_owned());
    Ok(suite)
}
