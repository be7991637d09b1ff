//! The allocators that processes use.

#[cfg(target_env = "gnu")]
mod glibc;
#[cfg(feature = "mallocs")]
mod jemalloc;
#[cfg(feature = "mallocs")]
mod mimalloc;

use super::conductor::{Obstacle, conduct_threads};
use super::memory::Memory;
use super::order::{Malloc, Order};
use super::report::Report;

/// Plays a contender whose options are in force, and reports the options.
fn with_options<M: Memory>(
    order: &Order<'_>,
    options: Result<String, String>,
    build: impl Fn() -> Result<M, String> + Sync,
) -> Report {
    match options {
        Ok(options) => Report { options, ..conduct_threads(order, || build().map_err(Obstacle::from)) },
        Err(reason) => Report::from_absence(reason),
    }
}

/// Plays an allocator of processes, if it is in this build and its options are in force.
pub(super) fn play(malloc: Malloc, order: &Order<'_>) -> Report {
    match malloc {
        #[cfg(target_env = "gnu")]
        Malloc::Glibc => with_options(order, Ok(glibc::version_text()), || Ok(glibc::Glibc)),
        #[cfg(feature = "mallocs")]
        Malloc::Jemalloc => with_options(order, jemalloc::options_in_force(8 << 20), jemalloc::Jemalloc::new),
        #[cfg(feature = "mallocs")]
        Malloc::JemallocOversize => {
            with_options(order, jemalloc::options_in_force(1 << 20), jemalloc::Jemalloc::new)
        }
        #[cfg(feature = "mallocs")]
        Malloc::JemallocOneArena => {
            with_options(order, jemalloc::OneArena::options_in_force(), jemalloc::OneArena::new)
        }
        #[cfg(feature = "mallocs")]
        Malloc::Mimalloc => with_options(order, Ok(mimalloc::version_text()), || Ok(mimalloc::Mimalloc)),
        #[cfg(not(all(target_env = "gnu", feature = "mallocs")))]
        absent => Report::from_absence(format!("`{}` is not in this build", absent.name())),
    }
}
