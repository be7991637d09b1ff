//! Keeps plans in a folder for later runs (`plan --cache`).
//!
//! There is one file for each key, written whole or not at all. A plan from a file is verified like any other, and made
//! again if it is damaged or false.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use planlab_dsa::{Digest, Instance, Offset, Scope, Stop, VerifiedPlan};
use planlab_solvers::placement::{CachedPlan, Canonical, Effort, PlanCache};
use planlab_workloads::formats::{read_document, save_file};
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::judge::{Judgement, judge_found};
use super::planners;
use crate::inputs::{self, Hints};
use crate::shell::exit::{Failure, InFile};
use crate::shell::output::print_note;
use crate::shell::quantity::as_nanoseconds;

/// The version of the file format.
const VERSION: u32 = 1;

/// The content of a file of the folder.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    version: u32,
    /// For human readers.
    planner: String,
    /// The digest of the instance in canonical form; for human readers.
    form: String,
    #[serde(flatten)]
    cached: CachedPlan,
}

/// The kept plans of one instance by one planner.
pub(crate) struct Shelf<'i> {
    form: Canonical<'i>,
    key: Digest,
    planner: String,
    path: PathBuf,
    plans: PlanCache,
    asked: Effort,
    target: Option<u64>,
}

impl<'i> Shelf<'i> {
    /// Opens the folder for a cell, and creates it if it is missing.
    pub(crate) fn open_folder(folder: &Path, cell: &Cell, instance: &'i Instance) -> Result<Self, Failure> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let form = Canonical::from_instance(instance);
        let key = PlanCache::cache_key(&form, &cell.planner, &cell.planner_version());
        let path = folder.join(format!("{key}.json"));
        let mut plans = PlanCache::default();
        if let Some(cached) = read_entry(&path)? {
            plans.insert(key, cached);
            if plans.get(key, &form).is_none() {
                print_note(&format!("{}: not a plan of this trace; a new one is made", path.display()));
            }
        }
        let asked = Effort { wall_ns: cell.wall.map(as_nanoseconds), work: cell.work, finished: false };
        Ok(Self { form, key, planner: cell.planner.clone(), path, plans, asked, target: cell.target })
    }

    /// The kept plan, if it is an answer: it had at least the requested effort, or it fits the requested capacity.
    pub(crate) fn kept_answer(&self) -> Option<Judgement<'i>> {
        self.judge_kept(|plan, effort| match self.target {
            Some(target) => plan.height().get() <= target,
            None => effort.covers_limits(self.asked),
        })
    }

    /// The kept plan, if it is lower than the run's.
    pub(crate) fn lower_than(&self, found: &Judgement<'_>) -> Option<Judgement<'i>> {
        self.judge_kept(|plan, _| found.height().is_none_or(|height| plan.height() < height))
    }

    /// The kept plan, if it is wanted.
    fn judge_kept(&self, is_wanted: impl Fn(&VerifiedPlan<'i>, Effort) -> bool) -> Option<Judgement<'i>> {
        let before = Instant::now();
        let (plan, effort) = self.plans.get(self.key, &self.form)?;
        let permits = !plan.instance().in_place().is_empty();
        let hands_over = permits && planners::honours(&self.planner).in_place;
        let scope = if hands_over { Scope::Any } else { Scope::NoHandOver };
        is_wanted(&plan, effort).then(|| judge_found(plan, scope, as_nanoseconds(before.elapsed())))
    }

    /// The kept plan as a start for a run with more effort.
    pub(crate) fn kept_hints(&self) -> Option<Hints> {
        let (plan, _) = self.plans.get(self.key, &self.form)?;
        let offsets: Vec<Option<Offset>> = plan.offsets().iter().copied().map(Some).collect();
        Some(offsets.into())
    }

    /// Keeps the lower of the run's plan and the kept one, with the larger effort.
    pub(crate) fn keep_plan(&mut self, plan: &VerifiedPlan<'_>, stop: Option<Stop>) -> Result<(), Failure> {
        let effort = match stop {
            Some(Stop::Finished | Stop::Proved) => Effort { finished: true, ..self.asked },
            Some(Stop::Deadline | Stop::WorkLimit) => self.asked,
            _ => Effort::NONE,
        };
        let Some(cached) = self.plans.keep_lower(self.key, &self.form, plan, effort) else { return Ok(()) };
        let entry = Entry {
            version: VERSION,
            planner: self.planner.clone(),
            form: self.form.digest().to_string(),
            cached: cached.clone(),
        };
        Ok(save_file(&self.path, &serde_json::to_vec(&entry)?)?)
    }
}

/// The plan in a file; `None` if the file is missing or not readable as an entry.
fn read_entry(path: &Path) -> Result<Option<CachedPlan>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let name = path.display().to_string();
    let file = fs::File::open(path).with_context(|| InFile(name.clone()))?;
    let refuse = |reason: &dyn Display| {
        print_note(&format!("{reason}; a new one is made"));
        Ok(None)
    };
    let text = match read_document(&name, file, inputs::input_limits()) {
        Ok(text) => text,
        Err(error) => return refuse(&error),
    };
    match serde_json::from_str::<Entry>(&text) {
        Ok(entry) if entry.version == VERSION => Ok(Some(entry.cached)),
        Ok(entry) => refuse(&format!("{name}: version {} is not known", entry.version)),
        Err(error) => refuse(&format!("{name}: {error}")),
    }
}
