//! What is added to the published model, each thing a switch.

use crate::pairs::Reductions;

/// The ways in which the model is made stronger than the published one; all on by default, all sound:
/// none changes the optimum.
#[expect(clippy::struct_excessive_bools, reason = "a table of independent switches")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strengthening {
    pub(super) load: bool,
    pub(super) tight_big_m: bool,
    pub(super) scale: bool,
    pub(super) drop_settled: bool,
    pub(super) peel: bool,
    pub(super) split: bool,
    pub(super) symmetry: bool,
    pub(super) start: bool,
    pub(super) whole_height: bool,
    pub(super) stacks: bool,
}

impl Default for Strengthening {
    fn default() -> Self {
        Self::all(true)
    }
}

impl Strengthening {
    /// Everything on, or everything off: the published model.
    #[must_use]
    pub const fn all(on: bool) -> Self {
        Self {
            load: on,
            tight_big_m: on,
            scale: on,
            drop_settled: on,
            peel: on,
            split: on,
            symmetry: on,
            start: on,
            whole_height: on,
            stacks: on,
        }
    }

    /// Whether the height is held at or above the best bound known. Default: yes.
    #[must_use]
    pub const fn with_load(mut self, on: bool) -> Self {
        self.load = on;
        self
    }

    /// Whether W is replaced, in each row, by the least number that suffices there, and pairs with one
    /// possible order are given it. Default: yes.
    #[must_use]
    pub const fn with_tight_big_m(mut self, on: bool) -> Self {
        self.tight_big_m = on;
        self
    }

    /// Whether bytes are divided by the common divisor of all sizes. Default: yes.
    #[must_use]
    pub const fn with_scale(mut self, on: bool) -> Self {
        self.scale = on;
        self
    }

    /// Whether buffers are left out that no chain of overlapping live ranges joins to one that ends above
    /// the best bound known. Default: yes.
    #[must_use]
    pub const fn with_drop_settled(mut self, on: bool) -> Self {
        self.drop_settled = on;
        self
    }

    /// Whether buffers are left out that find a place below the best bound known in every plan of the
    /// others: small ones with few neighbours. Default: yes.
    #[must_use]
    pub const fn with_peel(mut self, on: bool) -> Self {
        self.peel = on;
        self
    }

    /// Whether parts that no live range joins get models of their own. Default: yes.
    #[must_use]
    pub const fn with_split(mut self, on: bool) -> Self {
        self.split = on;
        self
    }

    /// Whether buffers that are alike lie in the order of their ids, and one of each plan and its mirror
    /// image is left out. Default: yes.
    #[must_use]
    pub const fn with_symmetry(mut self, on: bool) -> Self {
        self.symmetry = on;
        self
    }

    /// Whether the solver is given the best plan known to start from. Default: yes.
    #[must_use]
    pub const fn with_start(mut self, on: bool) -> Self {
        self.start = on;
        self
    }

    /// Whether the height is a whole number of units, so that a solver cuts off everything above the next
    /// lower one. Default: yes.
    #[must_use]
    pub const fn with_whole_height(mut self, on: bool) -> Self {
        self.whole_height = on;
        self
    }

    /// Whether, at the fullest sections, a buffer lies above the sum of all that lies below it there, and
    /// the height above the sum of all that lies above it. Default: yes.
    #[must_use]
    pub const fn with_stacks(mut self, on: bool) -> Self {
        self.stacks = on;
        self
    }

    pub(super) const fn reductions(self) -> Reductions {
        let Self { scale, drop_settled, peel, split, symmetry, .. } = self;
        Reductions { scale, drop_settled, peel, split, symmetry }
    }
}
