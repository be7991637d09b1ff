//! The digest of rows.

use planlab_dsa::Digest;
use serde::Serialize;

/// A digest of rows in any order.
pub(crate) fn digest<R: Serialize>(rows: impl IntoIterator<Item = R>) -> String {
    let lines = rows.into_iter().map(|row| serde_json::to_string(&row).unwrap_or_default());
    let mut lines: Vec<String> = lines.collect();
    lines.sort_unstable();
    Digest::of_bytes(lines.join("\n").as_bytes()).short_text()
}
