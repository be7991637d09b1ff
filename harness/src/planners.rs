//! All planners by key, saboteurs included where they are let in.

use planlab_dsa::{Descriptor, Planner};
use planlab_workloads::{glob as glob_matches, nearest};

use crate::exit::Failure;
use crate::isolation::saboteur;

/// The planner of that key.
pub(crate) fn find(key: &str) -> Result<Box<dyn Planner>, Failure> {
    if let Some(planner) = saboteur::planner(key).or_else(|| planlab_solvers::planner(key)) {
        return Ok(planner);
    }
    let keys = keys();
    let near = nearest(key, keys.iter().map(String::as_str));
    Err(Failure::usage(format!("there is no planner `{key}`{}", suggestion(&near))))
}

/// `; did you mean a, b?`, or nothing.
pub(crate) fn suggestion(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}

/// All keys, in the registry's order.
pub(crate) fn keys() -> Vec<String> {
    let mut keys: Vec<String> = descriptors().into_iter().map(|d| d.key.into_owned()).collect();
    if saboteur::is_enabled() {
        keys.extend(saboteur::KEYS.map(str::to_owned));
    }
    keys
}

/// Descriptors of all planners, in the registry's order.
pub(crate) fn descriptors() -> Vec<Descriptor> {
    planlab_solvers::registry().iter().map(Planner::descriptor).collect()
}

/// The keys that one of the globs matches, in the registry's order.
///
/// A glob without a wildcard that matches nothing is an error: it is a misspelt key.
pub(crate) fn matching(globs: &[String]) -> Result<Vec<String>, Failure> {
    let keys = keys();
    for glob in globs {
        if !keys.iter().any(|key| glob_matches(glob, key)) {
            find(glob)?;
        }
    }
    Ok(keys.into_iter().filter(|key| globs.iter().any(|glob| glob_matches(glob, key))).collect())
}
