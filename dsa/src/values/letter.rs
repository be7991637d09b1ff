//! The layout of a letter: a placement problem that a process sends to `planlab run`, and the plan that comes back.
//!
//! A letter is a file in the launcher's folder: words of 64 bits in the machine's byte order. The process writes the head
//! and the buffers, and gives the file its final name, which begins with [`ROUND`]. The launcher writes the offsets, the
//! bound and its time, and the state last.
//!
//! ```text
//!   word   0      1      2                 3        4      5     then, per buffer                then, per buffer
//!          magic  state  time limit (ns)   buffers  bound  ns    size, begin, end, alignment     offset
//! ```

/// The first word.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"planlab1");
/// The index of the state.
pub const STATE: usize = 1;
/// The index of the time that the plan may take, in nanoseconds.
pub const TIME_LIMIT: usize = 2;
/// The index of the number of buffers.
pub const BUFFERS: usize = 3;
/// The index of the proven bound, in bytes.
pub const BOUND: usize = 4;
/// The index of the time that the plan took, in nanoseconds.
pub const TOOK: usize = 5;
/// The number of words before those of the buffers.
pub const HEAD: usize = 6;
/// The number of words that describe a buffer.
pub const WORDS_A_BUFFER: usize = 4;
/// The most buffers of a letter: the library keeps no more than twice as many calls of a round.
pub const MOST_BUFFERS: usize = 1 << 19;
/// The state without an answer yet.
pub const WAITS: u64 = 0;
/// The state with a plan.
pub const PLANNED: u64 = 1;
/// The state without a plan.
pub const UNPLANNED: u64 = 2;
/// The name of a letter begins so when it is whole.
pub const ROUND: &str = "round-";

/// Bytes of a letter with its answer.
#[must_use]
pub const fn letter_size(buffers: usize) -> usize {
    (HEAD + (WORDS_A_BUFFER + 1) * buffers) * size_of::<u64>()
}
