//! OneFlow: four orders, each with first fit or with compact insertion.
//!
//! The registers of a memory chain are placed one by one. *Non-compact*: each at the lowest free offset. *Compact*:
//! each in the gap that suits it best, which may be too small; then everything that begins at its end or above rises by
//! the missing bytes. `oneflow/best` takes the lowest of all eight plans. OneFlow itself takes
//! `oneflow/mem-size-first-non-compact` unless it is set to try them all.
//!
//! # References
//!
//! 1. OneFlow, `oneflow/core/job/intra_job_mem_sharing_util.{h,cpp}`,
//!    <https://github.com/Oneflow-Inc/oneflow>.
//!
//! # Complexity
//!
//! Non-compact as `first-fit/*`. Compact O(n (k log k + sqrt n)) if k live ranges overlap one; the published loops are
//! quadratic.
//!
//! # Deviations from the published code
//!
//! - Ties, whose order the published code leaves to its hash table, go to the lower id.
//! - *Default: repaired.* A volume is size times lifetime. The published code divides it by 1000 and rounds down. So
//!   small registers are sorted by size only, and the order depends on the unit. [`OneFlow::with_truncated_volume`] is
//!   the published rule; with an order by volume its key ends in `/published`.
//! - The published choice compares the sizes of the memory blocks. A compact block can be higher than the highest end
//!   in it: a buffer that begins below a gap's end and reaches above all others does not rise. Here heights are
//!   compared. The gap up to the top is measured to the top of the block, as published.
//! - The optional rearrangement of the chosen plan (`MemoryShareStrategy`, off by default) is left out.
//! - Compact insertion honours alignment, arenas and kept-apart pairs. Lifts are multiples of all alignments; if no
//!   such multiple fits in 64 bits, nothing rises. It cannot honour pins. Non-compact insertion honours the same as
//!   first fit.

mod compact;
mod lifted;

use std::cmp::Reverse;

use planlab_dsa::{Buffer, BufferId, Descriptor, Halt, Instance, Planner, Run};

use self::compact::place_compactly;
use super::HONOURS;
use super::placer::{Rule, place_in_order};
use crate::placement::order::sort_by;

planlab_dsa::named_enum! {
    /// The order of the registers, named and listed as in the published code; ties go to the lower id.
    pub enum Order {
        /// Largest first, then the earliest start.
        MemSizeFirst = "mem-size-first",
        /// Longest lifetime first, then the earliest start.
        LifetimeFirst = "lifetime-first",
        /// Latest start first, then the latest end.
        TimeLine = "time-line",
        /// Largest size times lifetime first, then the largest.
        MemVolumeFirst = "mem-volume-first",
    }
}

impl Order {
    const fn words(self) -> &'static str {
        match self {
            Self::MemSizeFirst => "largest first",
            Self::LifetimeFirst => "longest lifetime first",
            Self::TimeLine => "latest start first",
            Self::MemVolumeFirst => "largest size times lifetime first",
        }
    }

    /// The ids of all buffers in this order; O(n log n).
    #[must_use]
    pub fn sort_buffers(self, instance: &Instance) -> Vec<BufferId> {
        self.with_volumes_in(1, instance)
    }

    fn with_volumes_in(self, unit: u128, instance: &Instance) -> Vec<BufferId> {
        let start = |buffer: &Buffer| buffer.live.start();
        let volume = |buffer: &Buffer| u128::from(buffer.size.get()) * u128::from(buffer.live.width()) / unit;
        match self {
            Self::MemSizeFirst => sort_by(instance, |buffer| (Reverse(buffer.size), start(buffer))),
            Self::LifetimeFirst => sort_by(instance, |buffer| (Reverse(buffer.live.width()), start(buffer))),
            Self::TimeLine => sort_by(instance, |buffer| Reverse((start(buffer), buffer.live.end()))),
            Self::MemVolumeFirst => sort_by(instance, |buffer| Reverse((volume(buffer), buffer.size))),
        }
    }
}

planlab_dsa::named_enum! {
    /// The rule for placing a register among those placed before, listed as in the published code.
    pub enum Insertion {
        /// Into the gap that suits best, even if it is too small.
        Compact = "compact",
        /// At the lowest free offset.
        NonCompact = "non-compact",
    }
}

impl Insertion {
    const fn words(self) -> &'static str {
        match self {
            Self::Compact => {
                "smallest sufficient gap, else the one that lacks least, and what is above rises"
            }
            Self::NonCompact => "lowest free offset",
        }
    }
}

/// The memory sharing of OneFlow; keys `oneflow/mem-size-first-compact`, `oneflow/mem-size-first-non-compact`, ..., and
/// `oneflow/best`; those that use volumes also with `/published`.
#[derive(Clone, Copy, Debug)]
pub struct OneFlow {
    /// `None`: all combinations.
    one: Option<(Order, Insertion)>,
    truncates: bool,
}

impl OneFlow {
    /// One order with one kind of insertion.
    #[must_use]
    pub const fn new(order: Order, insertion: Insertion) -> Self {
        Self { one: Some((order, insertion)), truncates: false }
    }

    /// The lowest plan of all combinations.
    #[must_use]
    pub const fn lowest_of_all() -> Self {
        Self { one: None, truncates: false }
    }

    /// Whether volumes are divided by 1000 and rounded down; then the key ends in `/published`. Default: no; the
    /// published code does.
    #[must_use]
    pub const fn with_truncated_volume(mut self, yes: bool) -> Self {
        self.truncates = yes;
        self
    }

    fn place_in_order(&self, run: &mut Run<'_>, order: Order, insertion: Insertion) -> Result<(), Halt> {
        let order = order.with_volumes_in(if self.truncates { 1000 } else { 1 }, run.instance());
        let plan = match insertion {
            Insertion::Compact => place_compactly(run, &order)?,
            Insertion::NonCompact => place_in_order(run, &order, Rule::FirstFit)?,
        };
        plan.map_or(Ok(()), |plan| run.offer(plan))
    }
}

impl Planner for OneFlow {
    fn descriptor(&self) -> Descriptor {
        let (key, summary) = match self.one {
            Some((order, insertion)) => (
                format!("oneflow/{order}-{insertion}"),
                format!("{}, {}, ties by id", insertion.words(), order.words()),
            ),
            None => ("oneflow/best".into(), "the lowest of four orders, each compact and not".into()),
        };
        let (key, summary): (String, String) = if self.truncates {
            (key + "/published", summary + "; volumes in whole thousands")
        } else {
            (key, summary)
        };
        let compact = self.one.is_none_or(|(_, insertion)| insertion == Insertion::Compact);
        Descriptor {
            key: key.into(),
            summary: summary.into(),
            honours: if compact { compact::HONOURS } else { HONOURS },
            reference: "OneFlow, intra_job_mem_sharing_util.cpp",
            complexity: if compact {
                "n (k log k + sqrt n) for k overlaps"
            } else {
                "n log^2 n on dense plans"
            },
            practical: compact.then(|| if self.one.is_some() { 100_000 } else { 50_000 }),
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if let Some((order, insertion)) = self.one {
            return self.place_in_order(run, order, insertion);
        }
        for insertion in Insertion::ALL {
            for order in Order::ALL {
                self.place_in_order(run, order, insertion)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::testing;

    fn instance() -> Instance {
        let rows = [(4, 0, 3), (4, 1, 9), (7, 2, 3), (4, 0, 4), (2, 2, 6)];
        testing::test_instance(&rows)
    }

    #[test]
    fn each_order_puts_its_key_first_and_ties_by_id() {
        let order = |order: Order, unit: u128| -> Vec<u32> {
            order.with_volumes_in(unit, &instance()).into_iter().map(BufferId::get).collect()
        };
        assert_eq!(order(Order::MemSizeFirst, 1), [2, 0, 3, 1, 4]);
        assert_eq!(order(Order::LifetimeFirst, 1), [1, 3, 4, 0, 2]);
        assert_eq!(order(Order::TimeLine, 1), [4, 2, 1, 3, 0]);
        // Volumes: 12 32 7 16 8; divided by 1000 they are all the same.
        assert_eq!(order(Order::MemVolumeFirst, 1), [1, 3, 0, 4, 2]);
        assert_eq!(order(Order::MemVolumeFirst, 1000), [2, 0, 1, 3, 4]);
    }

    #[test]
    fn what_volumes_decide_is_there_as_published() {
        let is_published = |key: &String| key.starts_with("oneflow/") && key.ends_with("/published");
        let keys: Vec<String> = crate::keys().into_iter().filter(is_published).collect();
        let expected = ["mem-volume-first-compact", "mem-volume-first-non-compact", "best"];
        assert_eq!(keys, expected.map(|name| format!("oneflow/{name}/published")));
        let plans = [false, true].map(|yes| {
            let by_volume = OneFlow::new(Order::MemVolumeFirst, Insertion::NonCompact);
            testing::planned_offsets(&by_volume.with_truncated_volume(yes), &instance())
        });
        assert_ne!(plans[0], plans[1]);
    }
}
