//! Replays on the host: one child process for each contender, number of threads and repetition.
//!
//! Options of an allocator and counters of memory hold for a process, and a contender that crashes costs its row
//! alone. The parent plans, shuffles the turns, watches the time and makes the rows; the child plays.

pub(crate) mod child;
pub(crate) mod contender;
pub(crate) mod device;
pub(crate) mod protocol;
pub(crate) mod row;
pub(crate) mod saboteur;
pub(crate) mod subject;
pub(crate) mod supervisor;
pub(crate) mod table;

pub(crate) use contender::Contender;
