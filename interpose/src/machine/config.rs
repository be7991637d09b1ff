//! The machine's settings.

use planlab_dsa::Bytes;

use crate::calls::Proof;

/// The machine's settings.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Smaller requests are not the machine's concern. At least 64 bytes; default: 4096.
    pub least_size: u64,
    /// The proof that a period needs.
    pub proof: Proof,
    /// Rounds with fewer transient bytes live at once are not planned. Default: 131,072, because from that size on
    /// glibc asks the kernel for each block.
    pub least_load: Bytes,
    /// The most plans that a thread keeps. Default: 16.
    pub most_plans: usize,
    /// Whether rounds go from one [`mark_round`](super::Machine::mark_round) to the next. Default: no, they are found.
    pub marks: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            least_size: 4096,
            proof: Proof::default(),
            least_load: Bytes::new(128 << 10),
            most_plans: 16,
            marks: false,
        }
    }
}
