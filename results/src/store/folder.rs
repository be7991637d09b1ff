//! Whether a folder is a store, and who may write to it.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use planlab_files::first_foreign;

use crate::StoreError;
use crate::files::{Manifest, manifest};
use crate::rows::{FrameworkRun, RowKind as _, ShardedKind as _, each_kind};

/// Whether a folder is a store that keeps the instances and plans that its rows name. Curated records contain only
/// rows: neither a manifest nor folders of instances and plans.
#[must_use]
pub fn keeps_plans(dir: impl AsRef<Path>) -> bool {
    let dir = dir.as_ref();
    [manifest::manifest_path(dir), dir.join("instances"), dir.join("plans")].iter().any(|path| path.exists())
}

/// Refuses a folder that has contents but no results: it serves another purpose.
pub(crate) fn refuse_foreign(dir: &Path) -> Result<(), StoreError> {
    // In this order: another writer that begins a store meanwhile first creates a file that identifies it.
    match first_foreign(dir, &BTreeSet::new()).map_err(StoreError::from_io("read", dir))? {
        Some(file) if !is_store(dir) => Err(StoreError::NotAStore { path: dir.to_path_buf(), file }),
        _ => Ok(()),
    }
}

/// Refuses a folder that does not exist or has no results.
pub(crate) fn require_store(dir: &Path) -> Result<(), StoreError> {
    std::fs::read_dir(dir).map_err(StoreError::from_io("read", dir))?;
    if is_store(dir) { Ok(()) } else { Err(StoreError::NoResults { path: dir.to_path_buf() }) }
}

/// Whether a folder has results, or had them.
fn is_store(dir: &Path) -> bool {
    let has = |name: &str| dir.join(name).exists();
    let has_manifest = || match Manifest::read_if_there(dir) {
        Ok(manifest) => manifest.is_some(),
        // Other programs also use this file name.
        Err(_) => has("instances") || has("plans"),
    };
    each_kind!(R => has(R::JOURNAL) || has(R::SHARDS)).contains(&true)
        || has(FrameworkRun::JOURNAL)
        || has_manifest()
}

pub(crate) fn lock(path: &Path) -> Result<File, StoreError> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(StoreError::from_io("open for writing", path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only for the message: if the name is unreadable, it stays empty.
            let _ = file.read_to_string(&mut holder);
            return Err(StoreError::Locked { path: path.to_path_buf(), holder: holder.trim().to_owned() });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::from_io("lock", path)(error)),
    }
    name_holder(&mut file).map_err(StoreError::from_io("write", path))?;
    Ok(file)
}

/// A lock file begins with this word; any other content belongs to another program.
const HOLDER: &str = "process ";

fn name_holder(file: &mut File) -> std::io::Result<()> {
    let mut there = String::new();
    (&*file).take(1 << 10).read_to_string(&mut there)?;
    if !there.is_empty() && !there.starts_with(HOLDER) {
        return Err(std::io::Error::other("it is no lock of planlab; name another folder"));
    }
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{HOLDER}{}", std::process::id())
}
