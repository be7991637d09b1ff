//! The contenders of a replay on the host.

use planlab_dsa::performance::{End, Work};
use planlab_dsa::{Backing, NO_OPERATIONS, OnlineAllocator, Simulated, VerifiedPlan};

use super::backing::HostBacking;
use super::conductor::conduct;
use super::memory::{EmptyLoop, Memory, Online};
use super::report::Report;
use super::{Order, clock};
use crate::planned::{Planned, PlannedError};

/// Makes an online allocator over a backing; called once for each thread.
pub type BuildAllocator<'a> = &'a (dyn Fn(Box<dyn Backing>) -> Box<dyn OnlineAllocator> + Sync);

/// Who serves the requests.
#[derive(Clone, Copy)]
pub enum Contender<'a> {
    /// A plan of the trace.
    Plan(&'a VerifiedPlan<'a>),
    /// An online allocator over the host's memory.
    Online(BuildAllocator<'a>),
    /// An allocator that processes use.
    Malloc(Malloc),
    /// Nobody: measures the loop and the clock alone, which every other contender's times include. It hands out no
    /// memory, so it can only be played without work.
    EmptyLoop,
}

/// Allocators that processes use, shared by all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malloc {
    /// `malloc` of the C library.
    Glibc,
    /// jemalloc with its default options.
    Jemalloc,
    /// jemalloc with an arena of its own for 1 MiB and more, whose pages go back to the kernel at once.
    JemallocOversize,
    /// jemalloc with one arena for everything, no thread caches, and the default decay.
    JemallocOneArena,
    /// mimalloc with its default options.
    Mimalloc,
}

impl Malloc {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Glibc, Self::Jemalloc, Self::JemallocOversize, Self::JemallocOneArena, Self::Mimalloc];

    /// The stable key, such as `jemalloc/one-arena`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Jemalloc => "jemalloc",
            Self::JemallocOversize => "jemalloc/oversize-1m",
            Self::JemallocOneArena => "jemalloc/one-arena",
            Self::Mimalloc => "mimalloc",
        }
    }

    /// The environment variables that a process needs at its start to play this allocator.
    #[must_use]
    pub const fn environment(self) -> &'static [(&'static str, &'static str)] {
        /// jemalloc's TLS takes about 3 KiB; glibc keeps 512 bytes.
        const ROOM: (&str, &str) = ("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384");
        match self {
            Self::Jemalloc | Self::JemallocOneArena => &[ROOM],
            Self::JemallocOversize => &[ROOM, ("MALLOC_CONF", "oversize_threshold:1048576")],
            Self::Glibc | Self::Mimalloc => &[],
        }
    }
}

/// Plays the contender of an order.
pub(super) fn play(order: &Order<'_>) -> Report {
    if let Some(reason) = obstacle(order) {
        return Report::unavailable(reason);
    }
    let backing = || order.capacity.map_or_else(HostBacking::new, HostBacking::with_capacity);
    match order.contender {
        Contender::Plan(plan) => {
            conduct(order, || Ok(Online::new(backing(), |backing| Planned::new(plan, backing))?))
        }
        Contender::Online(build) => conduct(order, || Online::new(backing(), |backing| Ok(build(backing)))),
        Contender::Malloc(malloc) => play_malloc(malloc, order),
        Contender::EmptyLoop => conduct(order, || Ok(EmptyLoop::default())),
    }
}

/// Why a memory could not be made.
#[derive(Clone, Debug)]
pub(super) struct Obstacle {
    pub(super) end: End,
    pub(super) reason: String,
}

impl From<PlannedError> for Obstacle {
    fn from(error: PlannedError) -> Self {
        let end = match error {
            PlannedError::NoMemory { .. } => End::OutOfMemory,
            _ => End::Unavailable,
        };
        Self { end, reason: error.to_string() }
    }
}

impl From<String> for Obstacle {
    fn from(reason: String) -> Self {
        Self { end: End::Unavailable, reason }
    }
}

/// Why an order cannot be played at all.
fn obstacle(order: &Order<'_>) -> Option<String> {
    let threads = u64::from(order.threads.get());
    let most = order.sequences.iter().map(|sequence| sequence.peak().get()).max().unwrap_or(0);
    let needed = most.saturating_mul(threads);
    match (order.contender, order.work) {
        (_, work) if !work.is_for_host() => Some(format!("--work {work} is for devices")),
        (Contender::Plan(_), _) if order.sequences.len() > 1 => {
            Some("it is made for one propagation, and there are several".to_owned())
        }
        (Contender::EmptyLoop, Work::Pages | Work::Pattern) => {
            Some("the empty loop hands out no memory: --work none".to_owned())
        }
        (Contender::Malloc(_) | Contender::EmptyLoop, _) if order.capacity.is_some() => {
            Some("its memory cannot be limited".to_owned())
        }
        (Contender::Online(build), _) if lacks_operations(order, build) => Some(NO_OPERATIONS.to_owned()),
        (_, Work::Pages | Work::Pattern) => {
            let available = clock::available().filter(|&available| needed > available)?;
            Some(format!("{needed} bytes are live at once, {available} are available"))
        }
        _ => None,
    }
}

/// Whether the allocator needs the operation of each request and a sequence lacks it.
fn lacks_operations(order: &Order<'_>, build: BuildAllocator<'_>) -> bool {
    order.sequences.iter().any(|sequence| sequence.operations().is_none())
        && build(Box::new(Simulated::new())).wants_operations()
}

/// Plays a contender whose options are in force, and reports the options.
fn with_options<M: Memory>(
    order: &Order<'_>,
    options: Result<String, String>,
    build: impl Fn() -> Result<M, Obstacle> + Sync,
) -> Report {
    match options {
        Ok(options) => Report { options, ..conduct(order, build) },
        Err(reason) => Report::unavailable(reason),
    }
}

fn play_malloc(malloc: Malloc, order: &Order<'_>) -> Report {
    match malloc {
        #[cfg(target_env = "gnu")]
        Malloc::Glibc => with_options(order, Ok(super::glibc::options()), || Ok(super::glibc::Glibc)),
        #[cfg(feature = "mallocs")]
        Malloc::Jemalloc => with_options(order, super::jemalloc::options(8 << 20), || {
            super::jemalloc::Jemalloc::new().map_err(Obstacle::from)
        }),
        #[cfg(feature = "mallocs")]
        Malloc::JemallocOversize => with_options(order, super::jemalloc::options(1 << 20), || {
            super::jemalloc::Jemalloc::new().map_err(Obstacle::from)
        }),
        #[cfg(feature = "mallocs")]
        Malloc::JemallocOneArena => with_options(order, super::jemalloc::OneArena::options(), || {
            super::jemalloc::OneArena::new().map_err(Obstacle::from)
        }),
        #[cfg(feature = "mallocs")]
        Malloc::Mimalloc => {
            with_options(order, Ok(super::mimalloc::options()), || Ok(super::mimalloc::Mimalloc))
        }
        #[cfg(not(all(target_env = "gnu", feature = "mallocs")))]
        absent => Report::unavailable(format!("`{}` is not in this build", absent.key())),
    }
}
