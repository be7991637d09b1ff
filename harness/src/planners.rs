//! All planners by key, saboteurs included where they are let in.

use planlab_dsa::{Descriptor, Honours, Planner};
use planlab_workloads::{glob as glob_matches, nearest};

use crate::exit::Failure;
use crate::external;
use crate::isolation::saboteur;

/// The planner of that key.
pub(crate) fn find(key: &str) -> Result<Box<dyn Planner>, Failure> {
    if let Some(planner) = saboteur::planner(key).or_else(|| planlab_solvers::planner(key)) {
        return Ok(planner);
    }
    if let Some(planner) = external::find(key) {
        return Ok(Box::new(planner));
    }
    if let Some(reason) = external::absent(key) {
        return Err(Failure::usage(format!("`{key}` cannot run: {reason}")));
    }
    if key.starts_with(external::PREFIX) && external::entries().is_empty() {
        let reason = "no file names external planners (--planners FILE, docs/external-planners.md)";
        return Err(Failure::usage(format!("there is no planner `{key}`: {reason}")));
    }
    let keys = keys();
    let near = nearest(key, keys.iter().map(String::as_str));
    Err(Failure::usage(format!("there is no planner `{key}`{}", suggestion(&near))))
}

/// `; did you mean a, b?`, or nothing.
pub(crate) fn suggestion(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(", ")) }
}

/// What the planner of that key can do.
pub(crate) fn descriptor(key: &str) -> Option<Descriptor> {
    planlab_solvers::planner(key).map(|planner| planner.descriptor()).or_else(|| {
        let entry = external::entries().iter().find(|entry| entry.key == key)?;
        Some(external::descriptor(entry))
    })
}

/// What the planner of that key honours; nothing where there is none.
pub(crate) fn honours(key: &str) -> Honours {
    descriptor(key).map(|descriptor| descriptor.honours).unwrap_or_default()
}

/// All keys, in the registry's order, then external ones.
pub(crate) fn keys() -> Vec<String> {
    let mut keys: Vec<String> = descriptors().into_iter().map(|d| d.key.into_owned()).collect();
    keys.extend(external::entries().iter().map(|entry| entry.key.clone()));
    if saboteur::is_enabled() {
        keys.extend(saboteur::KEYS.map(str::to_owned));
    }
    keys
}

/// Descriptors of our own planners, in the registry's order.
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
