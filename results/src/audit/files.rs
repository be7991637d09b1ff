//! Checks that a store lost neither shards nor the ends of its journals.

use std::path::{Path, PathBuf};

use super::finding::{Fault, Finding};
use crate::StoreError;
use crate::files::{MissingShard, disk, journal, missing_shards};
use crate::rows::{FrameworkRun, RowKind, each_kind};

/// Finds shards that a store's manifest names but that are missing. For a store without rows, also checks whether it
/// once had some.
///
/// # Errors
///
/// [`StoreError`] if the folder or its manifest cannot be read.
pub fn audit_shards(dir: impl AsRef<Path>, has_rows: bool) -> Result<Vec<Finding>, StoreError> {
    let dir = dir.as_ref();
    let missing = missing_shards(dir)?.into_iter();
    let lost = |shard: MissingShard| Finding::new(Fault::MissingShard, shard.to_string());
    let mut findings: Vec<Finding> = missing.map(lost).collect();
    let count = |folder: &str| disk::list(&dir.join(folder), "parquet").map(|paths| paths.len());
    let (instances, plans) = (count("instances")?, count("plans")?);
    if findings.is_empty() && !has_rows && plans > 0 {
        let message = format!(
            "there are {instances} instances and {plans} plans, but no rows; the rows are lost or were set aside"
        );
        findings.push(Finding::new(Fault::NoRows, message));
    }
    Ok(findings)
}

/// Checks whether the last line of each journal is incomplete. A line may also be incomplete because a writer is
/// appending it right now.
///
/// # Errors
///
/// [`StoreError`] if a journal cannot be read.
pub fn audit_ends(dir: impl AsRef<Path>) -> Result<Vec<Finding>, StoreError> {
    let dir = dir.as_ref();
    let mut torn = each_kind!(R => torn_line::<R>(dir)?).to_vec();
    torn.push(torn_line::<FrameworkRun>(dir)?);
    let finding = |(path, line, bytes): (PathBuf, u64, u64)| {
        let path = path.display();
        let message =
            format!("{path}:{line}: the last line was cut short after {bytes} bytes, and its row is lost");
        Finding::new(Fault::TornLine, message)
    };
    Ok(torn.into_iter().flatten().map(finding).collect())
}

/// The journal of a kind of rows, its incomplete last line, if it has one, and the bytes left of it.
fn torn_line<R: RowKind>(dir: &Path) -> Result<Option<(PathBuf, u64, u64)>, StoreError> {
    let path = dir.join(R::JOURNAL);
    let torn = journal::read_journal::<R>(&path)?.torn;
    Ok(torn.map(|(line, bytes)| (path, line, bytes)))
}
