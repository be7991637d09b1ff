//! The fields of a row that depend neither on its cell nor on its end.

use planlab_results::Provenance;

use crate::process::limits::Mechanism;

/// A row's fields besides the verdict.
pub(crate) struct RowContext<'a> {
    pub(crate) suite: &'a str,
    pub(crate) mechanism: Mechanism,
    pub(crate) started_ns: u64,
    pub(crate) provenance: Provenance,
}
