//! What every verb needs from its environment: exit codes, stdout and stderr, files to write, signals, units.

pub(crate) mod clock;
pub(crate) mod exit;
pub(crate) mod keys;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod provenance;
pub(crate) mod quantity;
pub(crate) mod signals;
pub(crate) mod target;
pub(crate) mod text;

/// The version of the `--json` format.
pub(crate) const JSON_VERSION: u32 = 1;
