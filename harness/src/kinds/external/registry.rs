//! The external planners of one file, which a process reads once.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;

use super::entry::{self, Entry};
use super::planner::External;
use crate::process::adopt_orphans;
use crate::shell::exit::Failure;
use crate::shell::output::print_note;

/// The default file.
const DEFAULT: &str = "planners.toml";

/// The planners of one file.
#[derive(Debug, Default)]
struct Registry {
    file: Option<PathBuf>,
    entries: Vec<Entry>,
    /// Keys whose program is missing, with the reason.
    absent: Vec<(String, String)>,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Reads the named file, else `planners.toml` in the current folder if it exists.
///
/// # Errors
///
/// The first mistake in the file, with its line. A missing program is not an error: its key is absent.
pub(crate) fn load(named: Option<&Path>) -> Result<(), Failure> {
    let default = || Some(PathBuf::from(DEFAULT)).filter(|path| path.is_file());
    let file = named.map(Path::to_owned).or_else(default);
    let registry = file.as_deref().map(Registry::read).transpose()?.unwrap_or_default();
    // Programs of others may start processes that outlive them.
    if !registry.entries.is_empty()
        && let Err(error) = adopt_orphans()
    {
        print_note(&format!("what external planners leave running cannot be ended: {error}"));
    }
    // Read once for each process: a second call keeps the first result.
    let _ = REGISTRY.set(registry);
    Ok(())
}

impl Registry {
    fn read(path: &Path) -> Result<Self, Failure> {
        let path = std::path::absolute(path)?;
        let (mut entries, mut absent) = (Vec::new(), Vec::new());
        for entry in entry::read_entries(&path)? {
            match entry.missing_program() {
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

/// The path of the file, for children; an empty path if no file was read.
pub(crate) fn file() -> &'static Path {
    registry().file.as_deref().unwrap_or(Path::new("/dev/null"))
}

/// Whether a file of external planners was read.
pub(crate) fn has_file() -> bool {
    registry().file.is_some()
}

/// All planners whose program exists, in the file's order.
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

/// The planner of that key. Its files go to a folder in `room`, which the caller removes if this process dies.
pub(crate) fn find(key: &str, room: Option<&Path>) -> Option<External> {
    let entry = entries().iter().find(|entry| entry.key == key)?;
    Some(External::new(entry, room.map(Path::to_owned)))
}

/// Why a planner in the file cannot run.
pub(crate) fn absent(key: &str) -> Option<&'static str> {
    registry().absent.iter().find(|(absent, _)| absent == key).map(|(_, reason)| reason.as_str())
}

/// Every planner in the file that cannot run, with the reason.
pub(crate) fn all_absent() -> &'static [(String, String)] {
    &registry().absent
}
