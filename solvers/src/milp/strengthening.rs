//! What is added to the published model.

use crate::pairs::{Reductions, switches};

switches! {
    /// The ways in which the model is made stronger than the published one; all sound: none changes the optimum.
    Strengthening {
        /// Whether W is replaced, in each row, by the least number that suffices there, and pairs with one
        /// possible order are given it. Default: yes.
        tight_big_m, with_tight_big_m;
        /// Whether bytes are divided by the common divisor of all sizes. Default: yes.
        scale, with_scale;
        /// Whether the height is a whole number of units, so that a solver cuts off everything above the next
        /// lower one. Default: yes.
        whole_height, with_whole_height;
        /// Whether, at the fullest sections, a buffer lies above the sum of all that lies below it there, and
        /// the height above the sum of all that lies above it. Default: yes.
        stacks, with_stacks;
    }
}

impl Strengthening {
    pub(super) const fn reductions(self) -> Reductions {
        let Self { scale, drop_settled, peel, split, symmetry, .. } = self;
        Reductions { scale, drop_settled, peel, split, symmetry }
    }
}
