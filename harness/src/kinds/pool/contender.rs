//! Contenders of a replay: plans and allocators, by key.

use std::ffi::OsStr;
use std::path::Path;

use planlab_dsa::{Backing, Digest, OnlineAllocator, Plan};
use planlab_replay::host::Malloc;
use planlab_solvers::online;

use super::saboteurs;
use crate::cells::sabotage;
use crate::shell::exit::Failure;
use crate::shell::keys::matching;

/// The contender that hands out no memory.
pub(crate) const EMPTY_LOOP: &str = "empty-loop";
/// The contender that serves from a plan.
pub(crate) const PLAN: &str = "plan";

/// A contender, as a row names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contender {
    /// `plan`, or the key of an allocator.
    pub(crate) key: String,
    /// The planner, if one of ours made the plan.
    pub(crate) planner: Option<String>,
    /// The name of a plan from a file.
    pub(crate) file: Option<String>,
    /// The plan that `plan` plays.
    pub(crate) plan: Option<Plan>,
}

impl Contender {
    pub(crate) fn from_allocator(key: &str) -> Self {
        let is_best_fit = matches!(key, "profile-guided" | "profile-guided/kinds");
        let planner = is_best_fit.then(|| "best-fit".to_owned());
        Self { key: key.to_owned(), planner, file: None, plan: None }
    }

    /// The plan that a planner made.
    pub(crate) fn from_plan(planner: &str, plan: Plan) -> Self {
        Self { key: PLAN.to_owned(), planner: Some(planner.to_owned()), file: None, plan: Some(plan) }
    }

    /// A plan from a file, by its name.
    pub(crate) fn plan_file(name: String, plan: Plan) -> Self {
        Self { key: PLAN.to_owned(), planner: None, file: Some(name), plan: Some(plan) }
    }

    /// The name in rows: the key, for a plan from a file with the file's name (`plan:NAME`).
    pub(crate) fn row_key(&self) -> String {
        match &self.file {
            Some(name) => format!("{}:{name}", self.key),
            None => self.key.clone(),
        }
    }

    /// The digest of the plan.
    pub(crate) fn plan_digest(&self) -> Option<String> {
        self.plan.as_ref().map(|plan| Digest::of_plan(plan).to_string())
    }

    /// The name for human readers: `plan (portfolio)`, `plan:NAME`.
    pub(crate) fn name(&self) -> String {
        match (&self.planner, &self.plan) {
            (Some(planner), Some(_)) => format!("{} ({planner})", self.key),
            _ => self.row_key(),
        }
    }
}

/// The name of each of several files: its stem, or the argument if another file has the same stem.
pub(crate) fn file_names(files: &[String]) -> Vec<String> {
    let stem = |file: &String| match file.as_str() {
        "-" => "stdin".to_owned(),
        path => Path::new(path).file_stem().and_then(OsStr::to_str).unwrap_or(path).to_owned(),
    };
    let stems: Vec<String> = files.iter().map(stem).collect();
    let is_alone = |name: &String| stems.iter().filter(|other| *other == name).count() == 1;
    let name = |(file, stem): (&String, &String)| {
        let name = if is_alone(stem) { stem } else { file };
        name.clone()
    };
    files.iter().zip(&stems).map(name).collect()
}

/// The keys of all allocators that the host can play.
fn keys() -> Vec<&'static str> {
    let mut keys = online::keys();
    keys.extend(Malloc::ALL.map(Malloc::name));
    keys.push(EMPTY_LOOP);
    keys.extend(sabotage::enabled(&saboteurs::KEYS));
    keys
}

/// The allocators that one of the globs matches; a glob without a match is an error.
pub(crate) fn matching_allocators(globs: &[String]) -> Result<Vec<Contender>, Failure> {
    let wanted = matching("there is no allocator", globs, keys())?;
    Ok(wanted.into_iter().map(Contender::from_allocator).collect())
}

/// The process allocator (glibc, jemalloc, ...) with that key.
pub(crate) fn find_malloc(key: &str) -> Option<Malloc> {
    Malloc::ALL.into_iter().find(|malloc| malloc.name() == key)
}

/// Builds the online allocator of a key that [`matching_allocators`] returned.
pub(super) fn build_allocator(key: &str, backing: Box<dyn Backing>) -> Box<dyn OnlineAllocator> {
    match sabotage::find(&saboteurs::KEYS, key) {
        Some(key) => saboteurs::build(key, backing),
        None => online::find_allocator(key).expect("a key that was found").build(backing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_that_tell_them_apart() {
        let of = |files: &[&str]| file_names(&files.iter().map(|&file| file.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["a/tight.csv", "loose.plan.csv", "-"]), ["tight", "loose.plan", "stdin"]);
        assert_eq!(of(&["a/tight.csv", "b/tight.csv", "c.csv"]), ["a/tight.csv", "b/tight.csv", "c"]);
        let plan = Contender::plan_file("tight".to_owned(), Plan::default());
        assert_eq!((plan.row_key().as_str(), plan.name().as_str()), ("plan:tight", "plan:tight"));
        let plan = Contender::from_plan("best-fit", Plan::default());
        assert_eq!((plan.row_key().as_str(), plan.name().as_str()), ("plan", "plan (best-fit)"));
    }

    #[test]
    fn globs_name_pools_and_mallocs_alike() {
        let keys = |globs: &[&str]| {
            let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
            matching_allocators(&globs).map(|found| found.into_iter().map(|one| one.key).collect::<Vec<_>>())
        };
        let found = keys(&["jemalloc*", "tlsf"]).expect("they are there");
        assert_eq!(found, ["tlsf", "jemalloc", "jemalloc/oversize-1m", "jemalloc/one-arena"]);
        let failure = keys(&["jemaloc"]).expect_err("there is none");
        assert!(failure.full_message().contains("jemalloc"), "{}", failure.full_message());
    }
}
