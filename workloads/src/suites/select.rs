//! The cells that a suite selects.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use super::group::{CellLimits, Group};
use super::suite::{Expectation, Suite, SuiteError};
use crate::catalog::{Catalog, WorkloadError};
use crate::glob::{is_glob, matches_glob};
use crate::nearest::{did_you_mean, nearest};
use crate::process::selects;

/// The prefix of the keys of external planners.
const EXTERNAL: &str = "external/";

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

impl Suite {
    /// The cells over the workloads of a catalog and the given planners. `is_quick` decides whether a planner is quick
    /// for a number of buffers: groups for quick planners have no other cells.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] for an unknown key, or a pattern that matches no workload. A pattern for missing public
    /// instances only gives a notice.
    pub fn select_cells(
        &self,
        catalog: &Catalog,
        planners: &[String],
        is_quick: impl Fn(&str, usize) -> bool,
    ) -> Result<Selection, SuiteError> {
        let keys = catalog.keys();
        let mut selection = Selection::default();
        let mut known = BTreeSet::new();
        for group in &self.groups {
            let chosen = self.group_planners(group, planners, &mut selection.notices);
            let workloads = self.group_workloads(group, catalog, &keys, &mut selection.notices)?;
            // Only the workloads of planned cells are inspected.
            for workload in workloads.into_iter().filter(|_| !chosen.is_empty()) {
                let buffers = catalog
                    .buffer_count(&workload)
                    .map_err(|error| self.error_at_text(&workload, error.to_string()))?;
                for planner in &chosen {
                    let large = planner.starts_with("mip/") && buffers > self.limits.mip_max_buffers;
                    let slow = group.quick && !is_quick(planner, buffers);
                    let fits = group.max_buffers.is_none_or(|most| buffers <= most) && !large && !slow;
                    for limits in group.cell_limits().into_iter().filter(|_| fits) {
                        let CellLimits { time_limit, capacity, threads } = limits;
                        let listed = time_limit.filter(|_| !group.time_limits.is_empty());
                        let key = (workload.clone(), planner.clone(), capacity, threads, listed);
                        if known.insert(key) {
                            let (workload, planner) = (workload.clone(), planner.clone());
                            let repetitions = group.repetitions;
                            let pick = Pick { workload, planner, time_limit, capacity, threads, repetitions };
                            selection.picks.push(pick);
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
    pub fn check_names(
        &self,
        catalog: &Catalog,
        planners: &[String],
        absent: &[&str],
        picks: &[Pick],
    ) -> Result<(), SuiteError> {
        let known: Vec<&str> = planners.iter().map(String::as_str).chain(absent.iter().copied()).collect();
        let patterns = self.groups.iter().flat_map(|group| group.planners.iter().chain(&group.except));
        for pattern in patterns {
            if !pattern.starts_with(EXTERNAL) && !known.iter().any(|key| matches_glob(pattern, key)) {
                let near = nearest(pattern, known.iter().copied());
                let reason = format!("there is no planner `{pattern}`{}", did_you_mean(&near));
                return Err(self.error_at_text(pattern, reason));
            }
        }
        let missing = |known: &Expectation| {
            !picks.iter().any(|pick| pick.workload == known.workload && pick.planner == known.planner)
        };
        for expectation in self.expect.iter().filter(|known| missing(known)) {
            if let Some(reason) = why_missing(expectation, catalog, &known, absent) {
                return Err(self.error_at_line(&|text| line_of(text, expectation), reason));
            }
        }
        Ok(())
    }

    /// The given online allocators over the workloads of a catalog: by workload in suite order, then in the order of
    /// the keys; each pair once.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Bad`] for a pattern that matches no allocator; otherwise like [`Suite::select_cells`].
    pub fn baseline_cells(
        &self,
        catalog: &Catalog,
        allocators: &[&str],
    ) -> Result<Vec<Baseline>, SuiteError> {
        let keys = catalog.keys();
        let (mut baselines, mut known, mut notices) = (Vec::new(), BTreeSet::new(), Vec::new());
        for group in self.groups.iter().filter(|group| !group.allocators.is_empty()) {
            let chosen = self.matching_indices("allocator", &group.allocators, allocators)?;
            for workload in self.group_workloads(group, catalog, &keys, &mut notices)? {
                if let Some(most) = group.max_buffers {
                    let buffers = catalog
                        .buffer_count(&workload)
                        .map_err(|error| self.error_at_text(&workload, error.to_string()))?;
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

    fn group_planners(&self, group: &Group, planners: &[String], notices: &mut Vec<String>) -> Vec<String> {
        for pattern in &group.planners {
            if planners.iter().any(|planner| matches_glob(pattern, planner)) {
                continue;
            }
            if pattern.starts_with(EXTERNAL) {
                notices.push(format!("`{pattern}` is not given (docs/external-planners.md): not run"));
            } else {
                let near = nearest(pattern, planners.iter().map(String::as_str));
                notices.push(format!("this build has no planner `{pattern}`{}", did_you_mean(&near)));
            }
        }
        let any = |patterns: &[String], planner: &str| {
            patterns.iter().any(|pattern| matches_glob(pattern, planner))
        };
        let wanted = |planner: &&String| any(&group.planners, planner) && !any(&group.except, planner);
        planners.iter().filter(wanted).cloned().collect()
    }

    fn group_workloads(
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
                match catalog.unknown_key(pattern) {
                    WorkloadError::Absent { notice, .. } => notices.push(notice),
                    error => return Err(self.error_at_text(pattern, error.to_string())),
                }
            }
        }
        Ok(chosen)
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
        let error = catalog.unknown_key(workload);
        let is_absent = matches!(error, WorkloadError::Absent { .. });
        return (!is_absent).then(|| format!("an expectation: {error}"));
    }
    Some(format!("this `[[expect]]` is never checked: no group runs `{planner}` on `{workload}`"))
}
