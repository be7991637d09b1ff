//! Keys that a command line names, by globs or one by one.

use planlab_workloads::{did_you_mean, matches_glob, nearest};

use crate::shell::exit::Failure;

/// The keys that one of the globs matches, in their own order. A glob without a match is an error, whose text begins with
/// `lack`: `there is no allocator`.
pub(crate) fn matching<K: AsRef<str>>(lack: &str, globs: &[String], keys: Vec<K>) -> Result<Vec<K>, Failure> {
    let is_unknown = |wanted: &&String| !keys.iter().any(|key| matches_glob(wanted, key.as_ref()));
    if let Some(wanted) = globs.iter().find(is_unknown) {
        return Err(unknown(lack, wanted, keys.iter().map(AsRef::as_ref)));
    }
    Ok(keys.into_iter().filter(|key| globs.iter().any(|wanted| matches_glob(wanted, key.as_ref()))).collect())
}

/// The error for a key that is not among these, with the nearest ones.
pub(crate) fn unknown<'k>(lack: &str, key: &str, keys: impl IntoIterator<Item = &'k str>) -> Failure {
    Failure::from_usage(format!("{lack} `{key}`{}", did_you_mean(&nearest(key, keys))))
}
