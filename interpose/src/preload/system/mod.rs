//! The C library, the allocator and the kernel below the library's symbols.

mod calls;
pub(super) mod kernel;
mod memory;
pub(super) mod next;
mod raw;
pub(super) mod real;

pub(super) use calls::{freeze, is_frozen, keeping_errno, refuse, say, usage};
pub(super) use memory::{PAGE, map, map_aligned, unmap, word};
pub(super) use raw::system_call;
