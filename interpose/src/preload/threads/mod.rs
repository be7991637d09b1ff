//! The threads of the program: each has a machine, and the process is the ground that it stands on.

pub(super) mod key;
pub(super) mod plans;
pub(super) mod process;
pub(super) mod thread;
