//! The machine and the build that a row was made on.

use serde::{Deserialize, Serialize};

use crate::columns::table;

table! {
    /// The machine and the build that a row was made on.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Provenance as "machine_" {
        /// A digest of CPU model, cores, memory and kernel: compare times only if it is equal.
        pub host: String,
        /// CPU model.
        pub cpu: String,
        /// Cores that the process may use.
        pub cores: u32,
        /// Kernel release.
        pub kernel: String,
        /// Frequency governor, or `unknown`.
        pub governor: String,
        /// `on`, `off` or `unknown`.
        pub turbo: String,
        /// One-minute load average when the cell started, in thousandths.
        pub load_average_milli: u64,
        /// Cells that ran at the same time, including this one.
        pub concurrency: u32,
        /// Commit that the binary was built from, or `unknown`.
        pub git_commit: String,
        /// Whether the tree had uncommitted changes.
        pub git_dirty: bool,
        /// Compiler.
        pub rustc: String,
        /// Profile and flags of the build.
        pub flags: String,
    }
}
