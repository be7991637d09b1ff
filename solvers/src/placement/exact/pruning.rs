//! The pruning rules of the search, each with a switch.
//!
//! The effect of each on MiniMalloc's instances A to K at capacity 1048576 (external corpus): `exact` on one thread of
//! a virtual machine with 2 cores, one run each, at most 6 s. The geometric mean counts 6 s for a run without an
//! answer.
//!
//! | without | mean seconds | no answer |
//! |---|---|---|
//! | (all on) | 0.028 | |
//! | `sections` | 6.0 | all 11 |
//! | `forced` | 0.111 | F |
//! | `settled` | 0.030 | |
//! | `floating` | 0.026 | |
//! | `twins` | 0.026 | |
//! | `parts` | 0.085 | E I |
//! | `ranks` | 0.063 | I |
//! | `memo` | 0.034 | |
//! | `peel` | 0.028 | (too few buffers for it) |
//!
//! Differences below a fifth are chance. The last rules pay if there is more to refute (`memo`), more identical items
//! (`twins`), or many items far from the peak (`peel`).

/// The ways in which the exact search prunes; all on by default, all sound: none changes what it proves.
#[expect(clippy::struct_excessive_bools, reason = "a table of independent switches")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruning {
    /// In each section, above every offset, the items that may not start below it must fit.
    pub sections: bool,
    /// An item whose skip would overfill a section is placed first.
    pub forced: bool,
    /// An item that pushes nothing up is placed without a second branch.
    pub settled: bool,
    /// All skipped items rise at once with what they have to rest on, not only the lowest.
    pub floating: bool,
    /// Identical items lie in the order of their ids.
    pub twins: bool,
    /// Sections that no unplaced item links are searched one after the other.
    pub parts: bool,
    /// A part that splits off is ranked again.
    pub ranks: bool,
    /// States that failed are not searched again.
    pub memo: bool,
    /// Items that have a place whatever the others do are set aside.
    pub peel: bool,
}

impl Default for Pruning {
    fn default() -> Self {
        Self::all(true)
    }
}

impl Pruning {
    /// The number of switches.
    pub const COUNT: u32 = 9;

    /// Everything on, or everything off (plain search).
    #[must_use]
    pub const fn all(on: bool) -> Self {
        Self {
            sections: on,
            forced: on,
            settled: on,
            floating: on,
            twins: on,
            parts: on,
            ranks: on,
            memo: on,
            peel: on,
        }
    }

    /// The switches from the bits of `bits`, the lowest bit for the first field.
    #[must_use]
    pub fn from_bits(bits: u32) -> Self {
        let on = |at: u32| bits >> at & 1 == 1;
        Self {
            sections: on(0),
            forced: on(1),
            settled: on(2),
            floating: on(3),
            twins: on(4),
            parts: on(5),
            ranks: on(6),
            memo: on(7),
            peel: on(8),
        }
    }
}
