//! The additions to the published model, each a switch.

use crate::pairs::{Reductions, switches};

switches! {
    /// Additions that make the model stronger than the published one; all are sound: none changes the optimum.
    Strengthening {
        /// Whether each row replaces W by the least sufficient number, and pairs with only one possible order get it.
        /// Default: yes.
        tight_big_m, with_tight_big_m;
        /// Whether bytes are divided by the common divisor of all sizes. Default: yes.
        scale, with_scale;
        /// Whether the height is a whole number of units, so that a solver cuts off everything above the next lower
        /// one. Default: yes.
        whole_height, with_whole_height;
        /// Whether, at the fullest sections, a buffer lies above the sum of all that lies below it there, and the
        /// height above the sum of all that lies above the buffer. Default: yes.
        stacks, with_stacks;
    }
}

impl Strengthening {
    pub(super) const fn reductions(self) -> Reductions {
        let Self { scale, drop_settled, peel, split, symmetry, .. } = self;
        Reductions { scale, drop_settled, peel, split, symmetry }
    }
}
