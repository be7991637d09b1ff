//! Plays an order on the memory of its contender, unless it makes no sense.

use planlab_dsa::performance::Work;
use planlab_dsa::{NO_OPERATIONS, Simulated};

use super::backing::HostBacking;
use super::conductor::conduct_threads;
use super::memory::{EmptyLoop, Online};
use super::order::{BuildAllocator, Contender, Order};
use super::report::Report;
use super::{clock, mallocs};
use crate::planned::Planned;

/// Plays the contender of an order.
pub(super) fn play(order: &Order<'_>) -> Report {
    if let Some(reason) = obstacle(order) {
        return Report::from_absence(reason);
    }
    let backing = || order.capacity.map_or_else(HostBacking::new, HostBacking::with_capacity);
    match order.contender {
        Contender::Plan(plan) => {
            conduct_threads(order, || Ok(Online::new(backing(), |backing| Planned::new(plan, backing))?))
        }
        Contender::Online(build) => {
            conduct_threads(order, || Online::new(backing(), |backing| Ok(build(backing))))
        }
        Contender::Malloc(malloc) => mallocs::play(malloc, order),
        Contender::EmptyLoop => conduct_threads(order, || Ok(EmptyLoop::default())),
    }
}

/// Why an order cannot be played at all.
fn obstacle(order: &Order<'_>) -> Option<String> {
    let threads = u64::from(order.threads.get());
    let most = order.sequences.iter().map(|sequence| sequence.peak_bytes().get()).max().unwrap_or(0);
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
            let available = clock::available_memory().filter(|&available| needed > available)?;
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
