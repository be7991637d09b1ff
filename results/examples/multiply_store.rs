//! Makes a large store from a real one: copies its rows as other seeds and repetitions of the same cells.
//! `cargo run --release --package planlab-results --example multiply_store -- STORE ROWS OUT`.

use std::path::{Path, PathBuf};

use planlab_results::{Record, Store, StoreError, read_records};

/// Rows per shard.
const SHARD: usize = 50_000;
/// Copies of a cell under one seed before the next seed.
const REPETITIONS: u32 = 5;

fn main() -> Result<(), StoreError> {
    let mut words = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(from), Some(rows), Some(into)) = (words.next(), words.next(), words.next()) else {
        usage();
    };
    let Some(rows) = rows.to_str().and_then(|text| text.parse().ok()) else { usage() };
    multiply(&from, rows, &into)
}

#[expect(clippy::print_stderr, reason = "a program, not a library")]
fn usage() -> ! {
    eprintln!("usage: multiply_store STORE ROWS OUT");
    std::process::exit(2)
}

fn multiply(from: &Path, wanted: usize, into: &Path) -> Result<(), StoreError> {
    let rows = read_records(from)?;
    assert!(!rows.is_empty(), "{} has no rows", from.display());
    let most = rows.iter().map(|row| row.repetition).max().unwrap_or(0) + 1;
    let mut written = 0;
    let mut shard = Vec::with_capacity(SHARD);
    for copy in 0.. {
        for row in &rows {
            if written == wanted {
                return put(into, &mut shard);
            }
            shard.push(copied(row, copy, most));
            written += 1;
            if shard.len() == SHARD {
                put(into, &mut shard)?;
            }
        }
    }
    Ok(())
}

/// A copy of a row, as another seed or a later repetition of the same cell would look.
fn copied(row: &Record, copy: u32, most: u32) -> Record {
    let mut row = row.clone();
    let (seed, repetition) = (copy / REPETITIONS, copy % REPETITIONS);
    row.repetition += repetition * most;
    row.seed = row.seed.wrapping_add(u64::from(seed));
    row.started_ns += u64::from(copy);
    // Another seed has another digest.
    row.cell = format!("{seed:08x}{}", &row.cell[row.cell.len().min(8)..]);
    // Times differ between runs.
    row.samples_ns.iter_mut().for_each(|sample| *sample += u64::from(copy));
    row
}

/// Adds a shard through its own store, so that at most one is in memory.
fn put(into: &Path, rows: &mut Vec<Record>) -> Result<(), StoreError> {
    let shards = into.join("shards");
    std::fs::create_dir_all(&shards).expect("the folder can be made");
    let number = std::fs::read_dir(&shards).expect("it was made").count() + 1;
    let part = tempfile::tempdir_in(into).expect("a folder can be made in it");
    let mut store = Store::open(part.path().join("part"))?;
    store.append_all(rows)?;
    rows.clear();
    if let Some(shard) = store.compact()? {
        let name = shard.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
        let (_, digest) = name.expect("a shard has a number and a digest");
        std::fs::rename(&shard, shards.join(format!("{number:06}-{digest}"))).expect("one file system");
    }
    Ok(())
}
