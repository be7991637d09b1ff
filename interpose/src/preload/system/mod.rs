//! The C library, the allocator and the kernel below the library's symbols.

mod calls;
pub(super) mod frozen;
pub(super) mod kernel;
mod memory;
pub(super) mod next;
mod raw;
pub(super) mod real;

pub(super) use calls::{keeping_errno, refuse, say, usage};
pub(super) use frozen::is_frozen;
pub(super) use memory::{PAGE, map, map_aligned, unmap, word};
pub(super) use raw::system_call;
