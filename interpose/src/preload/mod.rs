//! What the machine needs of a process, and `malloc` and its kin as symbols.
//!
//! Rules of this room, as it runs inside of `malloc`:
//!
//! - Its own memory comes from [`heap`], which never goes through the symbols.
//! - A thread finds its state by a pthread key, as thread-local variables of a library may be made by `malloc`.
//! - It holds no lock, but that of `record`, which is taken before a fork and given back after it. What threads share
//!   are atomic words; a child of a fork has them as they were.
//! - A thread that comes in again (from a signal handler) finds itself busy, and is handed through.

mod check;
#[cfg(feature = "cuda")]
mod cuda;
mod heap;
mod process;
mod real;
mod record;
mod report;
mod segments;
mod settings;
mod symbols;
mod thread;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap;
