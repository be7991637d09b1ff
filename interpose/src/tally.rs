//! What happened, as counts that another thread may read at any time.

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

    /// Adds to it. Only its owner does.
    pub fn add(&self, more: u64) {
        // No read-modify-write: nobody else writes.
        self.0.store(self.get().wrapping_add(more), Ordering::Relaxed);
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// What it is.
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
            /// Nothing happened yet.
            #[must_use]
            pub const fn new() -> Self {
                Self { $($field: Count::new(),)* }
            }

            /// Nothing happened since now.
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
    /// What became of the requests of a thread. Every request counts once, under what served it or why no plan did.
    Tally {
        /// Requests of at least the least size.
        requests,
        /// Bytes of them.
        bytes,
        /// Requests that a plan served.
        planned,
        /// Bytes of them.
        planned_bytes,
        /// Missed: no plan was there for what came, as before a period is found, and between rounds.
        unplanned,
        /// Missed: the plan leaves it to the real allocator, as its block outlives the round or is resized.
        outliving,
        /// Missed: a block of an earlier round was still in use when the round began.
        late,
        /// Missed: it has another size or alignment than the plan's next request. After a few in a row the rest of the round
        /// is `departed`.
        other_size,
        /// Missed: a block that should have been free was in use. The rest of the round is `departed`.
        other_order,
        /// Missed: it came after a departure, in the same round.
        departed,
        /// Missed: the program asked for it inside the allocator itself (from a signal handler).
        reentrant,
        /// Rounds that went to their end as planned.
        rounds,
        /// Rounds that left the plan.
        departures,
        /// Planned blocks that another thread freed.
        foreign_frees,
        /// Frees of addresses in the arena at which nothing was live.
        wrong_frees,
        /// Plans that were made.
        plans,
        /// Rounds for which no plan was made: too small, or no room.
        refused,
        /// Nanoseconds in the allocator, by samples.
        nanoseconds,
    }
}

counts! {
    /// A plan, and how it fared.
    PlanTally {
        /// Requests of the round.
        requests,
        /// Those that the plan serves.
        planned,
        /// Bytes that the plan needs.
        height,
        /// Bytes that no plan can do without.
        load,
        /// Bytes, a proven bound on the height.
        bound,
        /// Nanoseconds of planning.
        planning_ns,
        /// Rounds that went to their end as planned.
        rounds,
        /// Rounds that left it.
        departures,
        /// Page faults of a round before it was planned, in thousandths.
        faults_before_milli,
    }
}

counts! {
    /// The memory of a device.
    DeviceTally {
        /// How often the driver was asked for memory and gave it.
        device_allocations,
        /// How often memory went back to it.
        device_releases,
        /// Bytes held of the device.
        reserved,
        /// The most that were held.
        reserved_peak,
        /// Bytes of the blocks in use, rounded up.
        used,
        /// The most that were in use.
        used_peak,
        /// Requests for which there was no room.
        out_of_memory,
        /// Plans whose memory went back because others needed it.
        evictions,
        /// Requests while a graph was captured: their memory is never handed out again.
        captured,
        /// Frees of blocks that other streams used: their own stream waits for those.
        ordered,
        /// Blocks that are never handed out again, as that wait could not be had.
        kept,
        /// Frees of addresses at which nothing was live.
        wrong_frees,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_names() {
        let tally = Tally::new();
        tally.planned.add(2);
        tally.planned.add(3);
        let planned = tally.all().into_iter().find(|(name, _)| *name == "planned");
        assert_eq!(planned.map(|(_, count)| count.get()), Some(5));
    }
}
