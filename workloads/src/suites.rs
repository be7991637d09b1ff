//! Suites: which planners run on which workloads, as data.
//!
//! A suite is a TOML file with a `name`, an `analysis` that says what it is for, and groups of workloads,
//! planners and limits; it may include others, and state heights that are known.
//!
//! ```
//! use planlab_workloads::suites::Suite;
//!
//! let text = r#"
//! name = "mine"
//! analysis = "Whether best fit stays at the load."
//! [[group]]
//! workloads = ["chainer/alexnet/*"]
//! planners = ["best-fit*"]
//! time_limit = "5s"
//! "#;
//! assert_eq!(Suite::parse("mine.toml", text)?.name, "mine");
//! # Ok::<(), planlab_workloads::suites::SuiteError>(())
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use include_dir::{Dir, include_dir};
use serde::{Deserialize, Deserializer};

use crate::{Catalog, did_you_mean, nearest};

static SUITES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/suites");

/// A named set of cells.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Suite {
    /// Its name on the command line.
    pub name: String,
    /// What it is for.
    pub analysis: String,
    /// Suites whose groups and expectations are part of it.
    #[serde(default)]
    pub include: Vec<String>,
    /// Workloads with their planners.
    #[serde(default)]
    pub group: Vec<Group>,
    /// Heights that are known.
    #[serde(default)]
    pub expect: Vec<Expectation>,
}

/// Some workloads with the planners that run on them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Group {
    /// Globs over workload keys; a synthetic key without a star need not be in any list.
    pub workloads: Vec<String>,
    /// Globs over planner keys.
    pub planners: Vec<String>,
    /// Globs over planner keys that are left out.
    #[serde(default)]
    pub except: Vec<String>,
    /// Wall limit of a cell. Default: the caller's.
    #[serde(default, deserialize_with = "time_limit")]
    pub time_limit: Option<Duration>,
    /// Workloads with more buffers are left out. Default: none are.
    pub max_buffers: Option<usize>,
    /// The group is left out, with a notice, where its workloads are not there (an external corpus).
    #[serde(default)]
    pub external: bool,
}

/// A height that is known, in bytes.
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

/// A planner that a suite may pick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its key.
    pub key: String,
    /// The most buffers that it is of use for; `None`: any number.
    pub practical: Option<u32>,
}

/// One planner on one workload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pick {
    /// The workload's key.
    pub workload: String,
    /// The planner's key.
    pub planner: String,
    /// Wall limit, where the suite has one.
    pub time_limit: Option<Duration>,
}

/// What a suite comes to with the workloads and planners that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// The cells, each once.
    pub picks: Vec<Pick>,
    /// What was left out, and why.
    pub notices: Vec<String>,
}

/// Why a suite cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// No such suite.
    #[error("there is no suite `{name}`{}", did_you_mean(.near))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        near: Vec<String>,
    },
    /// A file that cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file that is not a suite.
    #[error("{file}:{line}: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A pattern that nothing matches.
    #[error("suite `{suite}`: no {what} matches `{pattern}`{}", did_you_mean(.near))]
    Unmatched {
        /// The suite.
        suite: String,
        /// `workload` or `planner`.
        what: &'static str,
        /// The pattern.
        pattern: String,
        /// What may have been meant.
        near: Vec<String>,
    },
    /// A workload that cannot be read.
    #[error("suite `{suite}`: {reason}")]
    Workload {
        /// The suite.
        suite: String,
        /// Why.
        reason: String,
    },
}

/// The suites of the repository, by name.
///
/// # Panics
///
/// If one of the embedded files is malformed; a test reads them all.
#[must_use]
pub fn builtin() -> Vec<Suite> {
    let mut suites: Vec<Suite> = SUITES
        .files()
        .map(|file| {
            let text = file.contents_utf8().expect("suites are text");
            Suite::parse(&file.path().display().to_string(), text).unwrap_or_else(|error| panic!("{error}"))
        })
        .collect();
    suites.sort_by(|a, b| a.name.cmp(&b.name));
    suites
}

/// The synthetic workloads that the suites of the repository name.
pub(crate) fn synthetic_keys() -> Vec<String> {
    let named = builtin().into_iter().flat_map(|suite| suite.group).flat_map(|group| group.workloads);
    named.filter(|key| key.starts_with("synthetic/") && !key.contains('*')).collect()
}

impl Suite {
    /// The suite of that name, or in that file (a name with a slash, or that ends in `.toml`), with what
    /// it includes.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] where there is none, or where it is malformed.
    pub fn find(name: &str) -> Result<Self, SuiteError> {
        let suite = if name.contains('/') || Path::new(name).extension().is_some_and(|end| end == "toml") {
            Self::read(Path::new(name))?
        } else {
            named(name)?
        };
        suite.with_included()
    }

    fn read(path: &Path) -> Result<Self, SuiteError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| SuiteError::Unreadable { path: path.to_owned(), reason: error.to_string() })?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Reads a suite; `file` is its name in errors.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Malformed`] with the line.
    pub fn parse(file: &str, text: &str) -> Result<Self, SuiteError> {
        toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
            SuiteError::Malformed { file: file.to_owned(), line, reason: error.message().trim().to_owned() }
        })
    }

    fn with_included(mut self) -> Result<Self, SuiteError> {
        for name in std::mem::take(&mut self.include) {
            // An included suite includes no others: one level is all that is needed, and cannot go in circles.
            let other = named(&name)?;
            self.group.extend(other.group);
            self.expect.extend(other.expect);
        }
        Ok(self)
    }

    /// The cells of the suite.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Unmatched`] for a pattern that nothing matches, [`SuiteError::Workload`] for a
    /// workload whose size cannot be told.
    pub fn select(&self, catalog: &Catalog, planners: &[Candidate]) -> Result<Selection, SuiteError> {
        let keys = catalog.keys();
        let mut selection = Selection::default();
        for group in &self.group {
            let workloads = self.workloads(group, &keys, &mut selection.notices)?;
            let chosen = self.planners(group, planners)?;
            for workload in workloads {
                self.pick(group, &workload, &chosen, catalog, &mut selection.picks)?;
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        selection.picks.retain(|pick| seen.insert((pick.workload.clone(), pick.planner.clone())));
        Ok(selection)
    }

    fn workloads(&self, group: &Group, keys: &[String], notices: &mut Vec<String>) -> Result<Vec<String>, SuiteError> {
        let mut chosen = Vec::new();
        for pattern in &group.workloads {
            let matching: Vec<&String> = keys.iter().filter(|key| glob_matches(pattern, key)).collect();
            if !matching.is_empty() {
                chosen.extend(matching.into_iter().cloned());
            } else if !pattern.contains('*') && pattern.starts_with("synthetic/") {
                chosen.push(pattern.clone());
            } else if group.external {
                notices.push(format!("suite `{}`: no workload matches `{pattern}`, left out", self.name));
            } else {
                return Err(self.unmatched("workload", pattern, keys.iter().map(String::as_str)));
            }
        }
        Ok(chosen)
    }

    fn planners<'c>(&self, group: &Group, planners: &'c [Candidate]) -> Result<Vec<&'c Candidate>, SuiteError> {
        let matches = |globs: &[String], key: &str| globs.iter().any(|glob| glob_matches(glob, key));
        for pattern in &group.planners {
            // A planner may be missing from a lean build; only a pattern without any is a mistake.
            let is_optional = pattern.starts_with("mip/");
            if !is_optional && !planners.iter().any(|planner| glob_matches(pattern, &planner.key)) {
                return Err(self.unmatched("planner", pattern, planners.iter().map(|p| p.key.as_str())));
            }
        }
        let chosen = planners.iter().filter(|p| matches(&group.planners, &p.key) && !matches(&group.except, &p.key));
        Ok(chosen.collect())
    }

    fn pick(
        &self,
        group: &Group,
        workload: &str,
        planners: &[&Candidate],
        catalog: &Catalog,
        picks: &mut Vec<Pick>,
    ) -> Result<(), SuiteError> {
        let is_limited = group.max_buffers.is_some() || planners.iter().any(|planner| planner.practical.is_some());
        let buffers = if is_limited { self.size(workload, catalog)? } else { 0 };
        if group.max_buffers.is_some_and(|most| buffers > most) {
            return Ok(());
        }
        let fitting = planners.iter().filter(|p| p.practical.is_none_or(|most| buffers <= most as usize));
        picks.extend(fitting.map(|planner| Pick {
            workload: workload.to_owned(),
            planner: planner.key.clone(),
            time_limit: group.time_limit,
        }));
        Ok(())
    }

    fn size(&self, workload: &str, catalog: &Catalog) -> Result<usize, SuiteError> {
        catalog
            .buffers(workload)
            .map_err(|error| SuiteError::Workload { suite: self.name.clone(), reason: error.to_string() })
    }

    fn unmatched<'k>(&self, what: &'static str, pattern: &str, keys: impl Iterator<Item = &'k str>) -> SuiteError {
        let near = nearest(pattern, keys).into_iter().map(str::to_owned).collect();
        SuiteError::Unmatched { suite: self.name.clone(), what, pattern: pattern.to_owned(), near }
    }
}

fn named(name: &str) -> Result<Suite, SuiteError> {
    let suites = builtin();
    if let Some(suite) = suites.iter().find(|suite| suite.name == name) {
        return Ok(suite.clone());
    }
    let near = nearest(name, suites.iter().map(|suite| suite.name.as_str()));
    Err(SuiteError::Unknown { name: name.to_owned(), near: near.into_iter().map(str::to_owned).collect() })
}

/// Whether `key` is what `glob` describes; `*` stands for any characters, slashes too.
///
/// ```
/// use planlab_workloads::suites::glob_matches;
/// assert!(glob_matches("chainer/*/train/*", "chainer/alexnet/train/b32"));
/// assert!(!glob_matches("best-fit", "best-fit/reference"));
/// ```
#[must_use]
pub fn glob_matches(glob: &str, key: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = key.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn time_limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let seconds: Option<f64> = text.strip_suffix('s').and_then(|number| number.parse().ok());
    let limit = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let limit = limit.filter(|limit| !limit.is_zero());
    limit.map(Some).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no time limit, like `10s`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<Candidate> {
        [("bump", None), ("best-fit", None), ("best-fit/reference", Some(100)), ("mip/cbc", Some(300))]
            .map(|(key, practical)| Candidate { key: key.to_owned(), practical })
            .to_vec()
    }

    fn parse(text: &str) -> Result<Suite, SuiteError> {
        Suite::parse("s.toml", &format!("name = \"s\"\nanalysis = \"a\"\n{text}"))
    }

    #[test]
    fn every_builtin_suite_selects_cells() {
        let catalog = Catalog::new(None);
        let all = [
            "bump", "first-fit/size", "first-fit/start", "first-fit/area", "best-fit-gap/size", "greedy-by-size", "greedy-by-breadth",
            "best-fit", "best-fit/reference", "mip/cbc", "mip/highs",
        ];
        let all = all.map(|key| Candidate { key: key.to_owned(), practical: None });
        for suite in builtin() {
            let found = Suite::find(&suite.name).expect("it is there");
            let selection = found.select(&catalog, &all).unwrap_or_else(|error| panic!("{error}"));
            let has_notice = !selection.notices.is_empty();
            assert!(suite.name == "public" && has_notice || !selection.picks.is_empty(), "{}", suite.name);
            assert!(suite.analysis.len() > 40, "{} does not say what it is for", suite.name);
        }
    }

    #[test]
    fn patterns_limits_and_sizes_select_cells() {
        let suite = parse(
            "[[group]]\nworkloads = [\"chainer/alexnet/infer/b1\", \"synthetic/uniform/n500/s9\"]\n\
             planners = [\"*\"]\nexcept = [\"bump\"]\ntime_limit = \"2.5s\"\nmax_buffers = 500\n",
        )
        .expect("a suite");
        let selection = suite.select(&Catalog::new(None), &candidates()).expect("cells");
        let picks: Vec<(&str, &str)> =
            selection.picks.iter().map(|pick| (pick.workload.as_str(), pick.planner.as_str())).collect();
        let (small, large) = ("chainer/alexnet/infer/b1", "synthetic/uniform/n500/s9");
        let expected =
            [(small, "best-fit"), (small, "best-fit/reference"), (small, "mip/cbc"), (large, "best-fit")];
        assert_eq!(picks, expected);
        assert!(selection.picks.iter().all(|pick| pick.time_limit == Some(Duration::from_millis(2500))));
    }

    #[test]
    fn mistakes_are_named() {
        let line = |text: &str| match parse(text) {
            Err(SuiteError::Malformed { line, .. }) => line,
            other => panic!("{other:?}"),
        };
        assert_eq!(line("[[group]]\nworkloads = [\"a\"]\nplanners = 3\n"), 5);
        assert_eq!(line("[[group]]\nworkloads = []\nplanners = []\ntime_limit = \"soon\"\n"), 6);
        let select = |text: &str| parse(text).expect("a suite").select(&Catalog::new(None), &candidates());
        let misspelt = select("[[group]]\nworkloads = [\"chainer/alexnet/infer/b1\"]\nplanners = [\"best-fti\"]\n");
        assert!(misspelt.expect_err("no such planner").to_string().contains("best-fit"));
        let missing = select("[[group]]\nworkloads = [\"nowhere/*\"]\nplanners = [\"*\"]\n");
        assert!(missing.expect_err("no such workload").to_string().contains("nowhere/*"));
        let left_out = select("[[group]]\nworkloads = [\"nowhere/*\"]\nplanners = [\"*\"]\nexternal = true\n");
        assert_eq!(left_out.expect("a notice").notices.len(), 1);
        let error = Suite::find("smok").expect_err("no such suite");
        assert!(error.to_string().contains("smoke"), "{error}");
    }
}
