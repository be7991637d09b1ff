//! The planner, with either solver.

use planlab_dsa::{Descriptor, Guarantee, Halt, Honours, Planner, Run};

use super::search::{Solver, plan_with};
use super::{Strengthening, cbc, highs};
use crate::arenas::{has_arenas, plan_each_arena};

/// What the planner supports with either solver.
const HONOURS: Honours =
    Honours { pins: true, pauses: true, alignment: true, arenas: true, apart: true, ..Honours::NONE };

/// The most buffers for which a solver has a chance.
const PRACTICAL: u32 = 300;

/// The big-M model, given to a solver; keys `mip/cbc` and `mip/highs`.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::milp::{Mip, Strengthening};
///
/// let buffers = [(4, 0, 2), (8, 1, 3), (4, 2, 4)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let cbc = Mip::with_cbc().with_strengthening(Strengthening::default().with_symmetry(false));
/// assert!(execute(&cbc, &instance, Budget::default(), 0).is_optimal());
/// let highs = Mip::with_highs().with_strengthening(Strengthening::all(false));
/// assert!(execute(&highs, &instance, Budget::default(), 0).is_optimal());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mip {
    key: &'static str,
    summary: &'static str,
    reference: &'static str,
    solve: Solver,
    strengthening: Strengthening,
}

impl Mip {
    /// Uses CBC, key `mip/cbc`.
    #[must_use]
    pub const fn with_cbc() -> Self {
        Self {
            key: "mip/cbc",
            summary: "mixed-integer program (big-M), solved by CBC",
            reference: "Sekiyama et al. 2018, arXiv:1804.10001; COIN-OR CBC",
            solve: cbc::solve_with_cbc,
            strengthening: Strengthening::all(true),
        }
    }

    /// Uses HiGHS, key `mip/highs`.
    #[must_use]
    pub const fn with_highs() -> Self {
        Self {
            key: "mip/highs",
            summary: "mixed-integer program (big-M), solved by HiGHS",
            reference: "Sekiyama et al. 2018, arXiv:1804.10001; Huangfu and Hall 2018 (HiGHS)",
            solve: highs::solve_with_highs,
            strengthening: Strengthening::all(true),
        }
    }

    /// Uses other additions to the model. Default: all.
    #[must_use]
    pub const fn with_strengthening(mut self, strengthening: Strengthening) -> Self {
        self.strengthening = strengthening;
        self
    }
}

impl Planner for Mip {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: self.key.into(),
            summary: self.summary.into(),
            guarantee: Guarantee::Exact,
            honours: HONOURS,
            randomized: false,
            reference: self.reference,
            complexity: "exponential",
            practical: Some(PRACTICAL),
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        plan_with(run, self.strengthening, self.solve)
    }
}
