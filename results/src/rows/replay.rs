//! One row of a replay: the cost of serving a workload's requests, by an online allocator or from a plan, on simulated,
//! host or device memory.

use planlab_dsa::performance::{End, Performance, Work};
use serde::{Deserialize, Serialize};

use super::row::{Row, RowKind, ShardedKind, run_table};

/// The version of the row; raised when a column changes its meaning.
pub const REPLAY_SCHEMA: u32 = 1;

/// A row of a contender on a workload.
pub type ReplayRow = Row<ReplayRun>;

run_table! {
    /// One process: one contender on one workload. Files store the fields of its [`Performance`] alongside its own.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ReplayRun {
        ..workload,
        /// The keys of the propagations in order, if they are not all of `workload`.
        pub sequence: Vec<String>,
        /// Only calls before this step were played; `None` for the whole trace.
        pub until: Option<u32> = None,
        /// Digest of the instance; with several instances, a digest of their digests.
        pub instance: String,
        /// Requests of one propagation, or of the whole sequence if there is one.
        pub requests: u64,
        /// The most requested bytes live at once.
        pub requested_peak: u64,
        /// Bytes that live from before the propagation until after it (parameters, say); no other figure includes them.
        pub retained: Option<u64>,
        /// `plan`, `profile-guided`, `cupy2rc1-pool`, `glibc`, `jemalloc/oversize-1m`, `cuda-malloc-async/keep`, ...;
        /// `plan:NAME` for a plan from a file.
        pub contender: String,
        /// The planner's key, for contenders with a plan.
        pub planner: Option<String>,
        /// Digest of the plan.
        pub plan: Option<String>,
        /// `simulated`, `host`, `cuda:0`, `simulated-cuda` (a substitute for a GPU in tests; its times are
        /// meaningless).
        pub device: String,
        /// The device's name and driver; empty on the host.
        pub device_name: String,
        /// Bytes of the device's L2 cache, if the device reports them.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub l2_bytes: Option<u64> = None,
        /// What is done with the memory.
        pub work: Work,
        /// The number of threads. Each plays the whole sequence, with its own arena or pool if the contender has them.
        pub threads: u32,
        /// The limit of reserved bytes, if any.
        pub capacity: Option<u64>,
        /// The measurements.
        #[serde(flatten)]
        pub performance: Performance,
        /// Bytes that kernels wrote and read in one propagation, or in the whole sequence if there is one.
        pub touched_bytes: Option<u64> = None,
    }
}

impl ReplayRow {
    /// Whether all bytes live at once fit in the device's L2 cache, so that the memory behind the cache does not limit
    /// the kernels. `false` if the size of the cache is not known.
    #[must_use]
    pub fn fits_cache(&self) -> bool {
        self.l2_bytes.is_some_and(|l2_bytes| self.requested_peak <= l2_bytes)
    }
}

impl RowKind for ReplayRun {
    const KNOWN: u32 = REPLAY_SCHEMA;
    const NAME: &'static str = "replays";
    const JOURNAL: &'static str = "replays.jsonl";

    fn worth(&self) -> u8 {
        match self.performance.status {
            End::Corrupt => 3,
            End::Complete | End::OutOfMemory => 2,
            End::Failed => 1,
            End::Unavailable => 0,
        }
    }
}

impl ShardedKind for ReplayRun {
    const SHARDS: &'static str = "replays";
}
