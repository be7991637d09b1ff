//! The additions to the plain model, each a switch.

use crate::pairs::{Reductions, switches};

switches! {
    /// Additions that make the model and its search stronger than a disjunction for every two buffers; all are sound:
    /// none changes the optimum.
    Switches {
        /// Whether the buffers in use in a section share a resource that one buffer holds at a time, on which edges are
        /// found. Default: yes.
        sections, with_sections;
        /// Whether heights between bound and plan are tried, so that the bound rises before the optimum is
        /// known. Default: yes.
        probe, with_probe;
    }
}

impl Switches {
    pub(super) const fn reductions(self) -> Reductions {
        let Self { drop_settled, peel, split, symmetry, .. } = self;
        Reductions { scale: true, drop_settled, peel, split, symmetry }
    }
}
