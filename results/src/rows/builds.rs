//! Groups rows of cells that several builds measured.

use std::collections::BTreeMap;

use super::placement::Record;

/// The rows by `key` and repetition; if several builds share a key, only the rows of the build that ran last.
pub fn latest_builds<'r, K: Ord>(
    rows: impl IntoIterator<Item = &'r Record>,
    key: impl Fn(&Record) -> K,
) -> BTreeMap<K, Vec<&'r Record>> {
    let mut builds: BTreeMap<K, BTreeMap<&str, Vec<&Record>>> = BTreeMap::new();
    for row in rows {
        builds.entry(key(row)).or_default().entry(&row.cell).or_default().push(row);
    }
    let latest = |(key, builds): (K, BTreeMap<&str, Vec<&'r Record>>)| {
        let last = |rows: &Vec<&Record>| rows.iter().map(|row| row.started_ns).max();
        let mut rows = builds.into_values().max_by_key(last)?;
        rows.sort_by_key(|row| row.repetition);
        Some((key, rows))
    };
    builds.into_iter().filter_map(latest).collect()
}
