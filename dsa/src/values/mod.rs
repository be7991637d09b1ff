//! Numbers with units, steps, clocks, and how they are written.

mod clock;
pub mod letter;
mod live_range;
mod load;
mod metrics;
mod named;
mod text;
mod units;

pub use clock::Clock;
pub use live_range::{EmptyLiveRange, LiveRange};
pub use load::{Load, LoadCurve};
pub use metrics::{fragmentation, gap};
pub use text::{is_unprintable, printable_line, printable_text};
pub use units::{Address, Alignment, ArenaId, BufferId, Bytes, Offset, Step, Stream};
