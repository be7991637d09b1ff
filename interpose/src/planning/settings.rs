//! How rounds are planned.

use std::path::Path;
use std::time::Duration;

use planlab_dsa::Bytes;

/// How rounds are planned.
#[derive(Clone, Copy, Debug)]
pub struct Planning {
    /// Rounds with fewer bytes live at once are not planned. Default: 131,072.
    pub least_load: Bytes,
    /// How long a plan may take. Default: 200 ms.
    pub patience: Duration,
    /// Called first in a thread that plans. Default: does nothing.
    pub prepare: fn(),
    /// The folder in which `planlab run` waits for rounds. Default: none, rounds are planned in a thread.
    pub launcher: Option<&'static Path>,
}

impl Default for Planning {
    fn default() -> Self {
        Self {
            least_load: Bytes::new(128 << 10),
            patience: Duration::from_millis(200),
            prepare: || {},
            launcher: None,
        }
    }
}
