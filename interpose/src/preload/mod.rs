//! The library's symbols (`malloc` and its kin), and what the machine needs from a process.
//!
//! Rules for this code, because it runs inside of `malloc`:
//!
//! - Its own memory comes from [`heap`], which never goes through the symbols.
//! - A thread finds its state by a pthread key, because the first use of a library's thread-local variable may call
//!   `malloc`.
//! - It holds no lock except that of `record`, which is taken before a fork and released after it. Threads share
//!   atomic words; the child of a fork inherits them unchanged.
//! - If a thread enters again (from a signal handler), its state is busy and the real allocator serves it. So it does
//!   on a small stack for signals.
//! - Once the program has forbidden itself system calls (`system::is_frozen`), the library makes no system call.

#[cfg(feature = "cuda")]
mod devices;
mod ending;
mod heap;
mod loading;
mod record;
mod report;
mod segments;
mod settings;
mod symbols;
mod system;
mod threads;

#[global_allocator]
static HEAP: heap::Heap = heap::Heap;
