//! The C library, the allocator and the kernel below the library's symbols.

pub(super) mod calls;
pub(super) mod frozen;
pub(super) mod kernel;
pub(super) mod memory;
pub(super) mod next;
pub(super) mod raw;
pub(super) mod real;
