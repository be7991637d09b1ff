//! What is added to the plain model.

use crate::pairs::{Reductions, switches};

switches! {
    /// The ways in which the model and its search are made stronger than a disjunction for every two buffers;
    /// all sound: none changes the optimum.
    Switches {
        /// Whether all that is in use in a section is a resource that one buffer has at a time, on which edges
        /// are found. Default: yes.
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
