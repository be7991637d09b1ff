//! Counts of events that any thread may read at any time.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread writes and any thread reads.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Zero.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds to the count. Only its owner may call this.
    pub fn add(&self, more: u64) {
        // No read-modify-write, because nobody else writes.
        self.0.store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    /// Sets the count. Only its owner may call this.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The count's value.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counts {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: Count,)*
        }

        impl $name {
            /// All counts zero.
            #[must_use]
            pub const fn new() -> Self {
                Self { $($field: Count::new(),)* }
            }

            /// Sets all counts to zero.
            pub fn reset(&self) {
                $(self.$field.set(0);)*
            }

            /// The counts with their names.
            #[must_use]
            pub fn all(&self) -> Vec<(&'static str, &Count)> {
                vec![$((stringify!($field), &self.$field),)*]
            }
        }
    };
}

counts! {
    /// The requests of a thread by outcome. Every request counts once: as served by a plan, or by the reason why not.
    Tally {
        /// Requests of at least the least size.
        requests,
        /// The bytes of all these requests.
        bytes,
        /// Requests that a plan served.
        planned,
        /// The bytes of the planned requests.
        planned_bytes,
        /// Missed: there was no plan, as before a period is found, and between rounds.
        unplanned,
        /// Missed: the plan leaves it to the real allocator, because its block outlives the round or is resized.
        outliving,
        /// Missed: a block of an earlier round was still in use when the round began.
        late,
        /// Missed: its size or alignment differs from that of the plan's next request. After a few in a row the rest
        /// of the round counts as `departed`.
        other_size,
        /// Missed: a block that should have been free was in use. The rest of the round counts as `departed`.
        other_order,
        /// Missed: it came after a departure, in the same round.
        departed,
        /// Missed: the program made it inside the allocator itself (from a signal handler).
        reentrant,
        /// Rounds that ended as planned.
        rounds,
        /// Rounds that left the plan.
        departures,
        /// Planned blocks that another thread freed.
        foreign_frees,
        /// Frees of arena addresses at which no block was live.
        wrong_frees,
        /// Plans that were made.
        plans,
        /// Rounds without a plan: too small, or no memory.
        refused,
        /// Nanoseconds in the allocator, estimated from samples.
        nanoseconds,
    }
}

counts! {
    /// A plan and its results.
    PlanTally {
        /// Requests of the round.
        requests,
        /// Requests that the plan serves.
        planned,
        /// The sizes of the planned requests together, in bytes: what a round takes if no memory is used twice.
        bytes,
        /// The plan's height in bytes.
        height,
        /// The load in bytes; no plan needs less.
        load,
        /// A proven bound on the height, in bytes.
        bound,
        /// Nanoseconds of planning.
        planning_ns,
        /// Rounds that ended as planned.
        rounds,
        /// Rounds that left the plan.
        departures,
        /// Page faults per round before it was planned, in thousandths.
        faults_before_milli,
    }
}

counts! {
    /// The memory of a device.
    DeviceTally {
        /// How often the driver provided memory.
        device_allocations,
        /// How often memory went back to the driver.
        device_releases,
        /// Bytes held of the device.
        reserved,
        /// The most bytes held.
        reserved_peak,
        /// Bytes of the blocks in use, rounded up.
        used,
        /// The most bytes in use.
        used_peak,
        /// Requests for which there was no room.
        out_of_memory,
        /// Plans whose memory was given back for other requests.
        evictions,
        /// Requests during the capture of a graph: their memory is never handed out again.
        captured,
        /// Frees of blocks that other streams used, so their own stream had to wait for those.
        ordered,
        /// Blocks that are never handed out again, because that wait was not possible.
        kept,
        /// Frees of addresses at which no block was live.
        wrong_frees,
    }
}
