//! Schedules as events of engines: their data, how they run, and where their buffers lie.

mod placing;
mod schedule;
mod timeline;

pub use schedule::{
    BufferIds, Completions, Content, Engine, Event, EventId, Schedule, ScheduledBuffer, Task,
};
pub use timeline::{Span, Stuck, Timeline, simulate_schedule};
