//! The environment of a child that plays an allocator.

use std::process::Command;

/// Prefixes of variables that change or replace allocators. Children have none of them, except those of their
/// contender.
const ALLOCATOR_VARIABLES: [&str; 4] = ["MIMALLOC_", "MALLOC_", "GLIBC_TUNABLES", PRELOAD];
/// Replaces an allocator on the host, and loads memory checkers on a device.
pub(super) const PRELOAD: &str = "LD_PRELOAD";

/// Removes the variables that change allocators from the environment of a child, except one.
pub(super) fn clear_allocators(command: &mut Command, kept: Option<&str>) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_str().unwrap_or_default();
        if kept != Some(text) && ALLOCATOR_VARIABLES.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
}
