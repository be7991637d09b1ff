//! What is added to the plain model, each thing a switch.

use crate::pairs::Reductions;

/// The ways in which the model and its search are made stronger than a disjunction for every two buffers;
/// all sound: none changes the optimum.
#[expect(clippy::struct_excessive_bools, reason = "a table of independent switches")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    pub(super) load: bool,
    pub(super) drop_settled: bool,
    pub(super) peel: bool,
    pub(super) split: bool,
    pub(super) symmetry: bool,
    pub(super) sections: bool,
    pub(super) start: bool,
    pub(super) probe: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self::all(true)
    }
}

impl Switches {
    /// Everything on, or everything off: the plain model.
    #[must_use]
    pub const fn all(on: bool) -> Self {
        Self {
            load: on,
            drop_settled: on,
            peel: on,
            split: on,
            symmetry: on,
            sections: on,
            start: on,
            probe: on,
        }
    }

    /// Whether the height is held at or above the best bound known. Default: yes.
    #[must_use]
    pub const fn with_load(mut self, on: bool) -> Self {
        self.load = on;
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

    /// Whether all that is in use in a section is a resource that one buffer has at a time, on which edges
    /// are found. Default: yes.
    #[must_use]
    pub const fn with_sections(mut self, on: bool) -> Self {
        self.sections = on;
        self
    }

    /// Whether the search begins at the best plan known. Default: yes.
    #[must_use]
    pub const fn with_start(mut self, on: bool) -> Self {
        self.start = on;
        self
    }

    /// Whether heights between bound and plan are tried, so that the bound rises before the optimum is
    /// known. Default: yes.
    #[must_use]
    pub const fn with_probe(mut self, on: bool) -> Self {
        self.probe = on;
        self
    }

    pub(super) const fn reductions(self) -> Reductions {
        let Self { drop_settled, peel, split, symmetry, .. } = self;
        Reductions { scale: true, drop_settled, peel, split, symmetry }
    }
}
