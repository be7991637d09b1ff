//! What all kinds of rows are asked for: groups and a digest.

use planlab_dsa::Digest;
pub(crate) use planlab_results::group_by;
use serde::Serialize;

/// A digest of rows in any order.
pub(crate) fn digest<R: Serialize>(rows: impl IntoIterator<Item = R>) -> String {
    let lines = rows.into_iter().map(|row| serde_json::to_string(&row).unwrap_or_default());
    let mut lines: Vec<String> = lines.collect();
    lines.sort_unstable();
    Digest::of_bytes(lines.join("\n").as_bytes()).short_text()
}
