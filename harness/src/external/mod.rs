//! External planners: programs of other people, described in a `planners.toml`, that run beside ours.
//!
//! ```text
//!   planlab ──> child process ──> exec-external ══> the program      (══> the same process)
//!                 External::plan      dies with its parent
//! ```
//!
//! A plan of theirs goes through the verifier like any other, a bound of theirs is a claim. See
//! `docs/external-planners.md`.

mod entry;
pub(crate) mod launch;
mod planner;
mod program;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

pub(crate) use entry::Entry;
pub(crate) use planner::{External, Fate, Report, descriptor};

use crate::shell::exit::Failure;

/// What every key of an external planner begins with.
pub(crate) const PREFIX: &str = "external/";
/// The file that is read where none is named.
const DEFAULT: &str = "planners.toml";

/// The planners of one file.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    file: Option<PathBuf>,
    entries: Vec<Entry>,
    /// Keys whose program is not there, and why.
    absent: Vec<(String, String)>,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Reads the file that is named, else `planners.toml` in the current folder where there is one.
///
/// # Errors
///
/// What is wrong with the file, by line. A program that is not there is no error: its key is absent.
pub(crate) fn load(named: Option<&Path>) -> Result<(), Failure> {
    let default = || Some(PathBuf::from(DEFAULT)).filter(|path| path.is_file());
    let file = named.map(Path::to_owned).or_else(default);
    let registry = match file {
        Some(path) => Registry::read(&path)?,
        None => Registry::default(),
    };
    // Read once for each process: a second call finds the first one's.
    let _ = REGISTRY.set(registry);
    Ok(())
}

impl Registry {
    fn read(path: &Path) -> Result<Self, Failure> {
        let path = std::path::absolute(path)?;
        let (mut entries, mut absent) = (Vec::new(), Vec::new());
        for entry in entry::read(&path)? {
            match entry.missing() {
                Some(reason) => absent.push((entry.key, reason)),
                None => entries.push(entry),
            }
        }
        Ok(Self { file: Some(path), entries, absent })
    }
}

fn registry() -> &'static Registry {
    static NONE: Registry = Registry { file: None, entries: Vec::new(), absent: Vec::new() };
    REGISTRY.get().unwrap_or(&NONE)
}

/// The file, for children; an empty one where there is none.
pub(crate) fn file() -> &'static Path {
    registry().file.as_deref().unwrap_or(Path::new("/dev/null"))
}

/// Whether a file of external planners was read.
pub(crate) fn has_file() -> bool {
    registry().file.is_some()
}

/// All planners whose program is there, in the file's order.
pub(crate) fn entries() -> &'static [Entry] {
    &registry().entries
}

/// Asks the programs of these keys for their versions, all at once: each may take seconds.
pub(crate) fn ask_versions(is_wanted: impl Fn(&str) -> bool) {
    thread::scope(|scope| {
        for entry in entries().iter().filter(|entry| is_wanted(&entry.key)) {
            scope.spawn(|| entry.version());
        }
    });
}

/// The planner of that key.
pub(crate) fn find(key: &str) -> Option<External> {
    entries().iter().find(|entry| entry.key == key).map(External::new)
}

/// Why a planner that the file names cannot run.
pub(crate) fn absent(key: &str) -> Option<&'static str> {
    registry().absent.iter().find(|(absent, _)| absent == key).map(|(_, reason)| reason.as_str())
}

/// Every planner that the file names and that cannot run, with the reason.
pub(crate) fn all_absent() -> &'static [(String, String)] {
    &registry().absent
}
