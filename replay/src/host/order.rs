//! What to play, who serves the requests, and for how long.

use std::num::NonZeroU32;
use std::time::Duration;

use planlab_dsa::performance::Work;
use planlab_dsa::{Backing, Bytes, OnlineAllocator, VerifiedPlan};

use crate::sequence::Sequence;

/// What to play, and how.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// Who serves the requests.
    pub contender: Contender<'a>,
    /// The calls of each propagation; several are played in turn, again and again.
    pub sequences: &'a [Sequence],
    /// What to do with each block; work that only a device does is refused.
    pub work: Work,
    /// The number of threads; each plays all sequences on its own plan or pool.
    pub threads: NonZeroU32,
    /// The most that each thread's plan or pool may reserve. Default: no limit.
    pub capacity: Option<Bytes>,
    /// How long to play.
    pub effort: Effort,
}

/// How long a replay runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Time for timed propagations; the times of single calls take half as much again. Default: 2 s.
    pub budget: Duration,
    /// Timed propagations, whatever time they take. Default: as many as fit the budget; 200 for several sequences or
    /// without a warm-up.
    pub iterations: Option<u32>,
    /// The least number of propagations before the timed ones. At 0, a new memory is made after the check, and each
    /// sample is one propagation from the first on. A process's malloc keeps what it cached during the check. Default:
    /// 50.
    pub warm_up: Option<u32>,
}

impl Default for Effort {
    fn default() -> Self {
        Self { budget: Duration::from_secs(2), iterations: None, warm_up: None }
    }
}

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

planlab_dsa::named_enum! {
    /// Allocators that processes use, shared by all threads, with their stable keys.
    pub enum Malloc {
        /// `malloc` of the C library.
        Glibc = "glibc",
        /// jemalloc with its default options.
        Jemalloc = "jemalloc",
        /// jemalloc with an arena of its own for 1 MiB and more, whose pages go back to the kernel at once.
        JemallocOversize = "jemalloc/oversize-1m",
        /// jemalloc with one arena for everything, no thread caches, and the default decay.
        JemallocOneArena = "jemalloc/one-arena",
        /// mimalloc with its default options.
        Mimalloc = "mimalloc",
    }
}

impl Malloc {
    /// The environment variables that a process needs at its start to play this allocator.
    #[must_use]
    pub const fn start_environment(self) -> &'static [(&'static str, &'static str)] {
        /// jemalloc's TLS takes about 3 KiB; glibc keeps 512 bytes.
        const ROOM: (&str, &str) = ("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384");
        match self {
            Self::Jemalloc | Self::JemallocOneArena => &[ROOM],
            Self::JemallocOversize => &[ROOM, ("MALLOC_CONF", "oversize_threshold:1048576")],
            Self::Glibc | Self::Mimalloc => &[],
        }
    }
}
