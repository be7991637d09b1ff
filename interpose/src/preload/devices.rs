//! The GPUs of the process, for the symbols that request their memory.
//!
//! The driver is looked up at the first request. Nothing is given back to the driver when the process ends, because the
//! driver may be gone by then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};

use planlab_replay::cuda::{SharedDevice, SimulatedStreams, open_shared};

use super::settings::{Settings, settings};
use super::system::say;
use super::threads::key;
use crate::device::{Devices, Heap, HeapConfig};

static DEVICES: OnceLock<Devices> = OnceLock::new();
/// The child of a fork cannot use a GPU, and a thread that does not exist there may hold a lock.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Called in the child of a fork.
pub(super) fn after_fork() {
    IS_CHILD.store(true, Ordering::Relaxed);
}

/// The devices, after the first request.
pub(super) fn known() -> Option<&'static Devices> {
    DEVICES.get().filter(|_| !IS_CHILD.load(Ordering::Relaxed))
}

/// The devices; `None` in the child of a fork, and before the library is set up.
pub(super) fn devices() -> Option<&'static Devices> {
    let settings = settings().filter(|_| !IS_CHILD.load(Ordering::Relaxed))?;
    Some(DEVICES.get_or_init(|| open(settings)))
}

fn open(settings: &'static Settings) -> Devices {
    let planning = settings.record.is_none().then(|| settings.planning(key::hand_through_all));
    let config = HeapConfig { machine: settings.of_devices, planning };
    let simulated = settings.simulated;
    let open = move |number| match simulated {
        Some(bytes) => Ok(Arc::new(SimulatedStreams::new(bytes)) as Arc<dyn SharedDevice>),
        None => open_shared(number),
    };
    Devices::new(open, config, say)
}

/// Ends a round and begins the next.
pub(super) fn mark() {
    known().into_iter().for_each(Devices::mark_round);
}

/// The open devices that no thread is using just now.
pub(super) fn idle_heaps() -> impl Iterator<Item = MutexGuard<'static, Heap>> {
    known().into_iter().flat_map(Devices::idle_heaps)
}
