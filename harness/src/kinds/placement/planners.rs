//! Finds planners by key, including saboteurs if they are enabled.

use planlab_dsa::{Descriptor, Guarantee, Honours, Planner};
use planlab_workloads::matches_glob as glob_matches;

use super::saboteurs;
use crate::cells::sabotage;
use crate::kinds::external;
use crate::shell::exit::Failure;
use crate::shell::keys::unknown;
use crate::shell::output::print_note;

/// The planner with that key.
pub(crate) fn find(key: &str) -> Result<Box<dyn Planner>, Failure> {
    if let Some(planner) = saboteurs::planner(key).or_else(|| planlab_solvers::find_planner(key)) {
        #[cfg(feature = "debug-checks")]
        let planner = super::slowdown::plant_slowdown(planner);
        return Ok(planner);
    }
    if let Some(planner) = external::find(key, None) {
        return Ok(Box::new(planner));
    }
    if let Some(reason) = external::absent(key) {
        return Err(Failure::from_usage(format!("`{key}` cannot run: {reason}")));
    }
    if key.starts_with(external::PREFIX) && !external::has_file() {
        let reason = "no file names external planners (--planners FILE, docs/external-planners.md)";
        return Err(Failure::from_usage(format!("there is no planner `{key}`: {reason}")));
    }
    let keys = keys();
    let absent = external::all_absent().iter().map(|(key, _)| key.as_str());
    Err(unknown("there is no planner", key, keys.iter().map(String::as_str).chain(absent)))
}

/// The descriptor of the planner with that key.
pub(crate) fn descriptor(key: &str) -> Option<Descriptor> {
    planlab_solvers::find_planner(key).map(|planner| planner.descriptor()).or_else(|| {
        let entry = external::entries().iter().find(|entry| entry.key == key)?;
        Some(external::descriptor(entry))
    })
}

/// What the planner with that key honours; nothing if there is no such planner.
pub(crate) fn honours(key: &str) -> Honours {
    descriptor(key).map(|descriptor| descriptor.honours).unwrap_or_default()
}

/// Whether a planner does not search (a search takes all of its time limit) and is practical for this many buffers.
pub(crate) fn is_quick_for(descriptor: &Descriptor, buffers: usize) -> bool {
    descriptor.guarantee != Guarantee::Exact
        && !descriptor.randomized
        && is_practical_for(descriptor, buffers)
}

/// Whether a planner is practical for this many buffers.
pub(crate) fn is_practical_for(descriptor: &Descriptor, buffers: usize) -> bool {
    descriptor.practical.is_none_or(|most| buffers <= most as usize)
}

/// All keys, in the registry's order, then external ones.
pub(crate) fn keys() -> Vec<String> {
    let mut keys: Vec<String> = descriptors().into_iter().map(|d| d.key.into_owned()).collect();
    keys.extend(external::entries().iter().map(|entry| entry.key.clone()));
    keys.extend(sabotage::enabled(&saboteurs::KEYS).map(str::to_owned));
    keys
}

/// Known keys that cannot run here: planners left out of this build, and external ones whose program is missing.
pub(crate) fn absent() -> Vec<&'static str> {
    let external = external::all_absent().iter().map(|(key, _)| key.as_str());
    planlab_solvers::absent_keys().into_iter().chain(external).collect()
}

/// Descriptors of our own planners, in the registry's order.
pub(crate) fn descriptors() -> Vec<Descriptor> {
    planlab_solvers::registry().iter().map(Planner::descriptor).collect()
}

/// The keys that one of the globs matches, in the registry's order.
///
/// A glob without a match is an error: it is a misspelt key, or names only missing programs.
pub(crate) fn matching(globs: &[String]) -> Result<Vec<String>, Failure> {
    let keys = keys();
    for glob in globs {
        let absent = external::all_absent().iter().filter(|(key, _)| glob_matches(glob, key));
        let absent: Vec<String> =
            absent.map(|(key, reason)| format!("`{key}` cannot run: {reason}")).collect();
        if keys.iter().any(|key| glob_matches(glob, key)) {
            absent.iter().for_each(|text| print_note(text));
        } else if absent.is_empty() {
            find(glob)?;
        } else {
            return Err(Failure::from_usage(absent.join("; ")));
        }
    }
    Ok(keys.into_iter().filter(|key| globs.iter().any(|glob| glob_matches(glob, key))).collect())
}
