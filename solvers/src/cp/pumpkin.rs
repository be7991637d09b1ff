//! The constraint planner, its options and its key.

use planlab_dsa::{Descriptor, Guarantee, Halt, Honours, Planner, Run};

use super::Switches;
use super::search::solve_draft;
use crate::arenas::{has_arenas, plan_each_arena};
use crate::pairs::follow_course;
use crate::placement::greedy::HONOURS;

/// Placement as a constraint problem, solved by Pumpkin; key `cp/pumpkin`.
///
/// ```
/// use planlab_dsa::{execute, Budget, Buffer, Bytes, Instance, LiveRange};
/// use planlab_solvers::cp::{CpPumpkin, Switches};
///
/// let buffers = [(4, 0, 2), (8, 1, 3), (4, 2, 4)].map(|(size, start, end)| {
///     Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
/// });
/// let instance = Instance::from_buffers(buffers.to_vec())?;
/// let pumpkin = CpPumpkin::default().with_switches(Switches::default().with_symmetry(false));
/// let outcome = execute(&pumpkin, &instance, Budget::default(), 0);
/// assert!(outcome.is_optimal());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CpPumpkin {
    switches: Switches,
}

impl CpPumpkin {
    /// Uses other additions to the model. Default: all.
    #[must_use]
    pub const fn with_switches(mut self, switches: Switches) -> Self {
        self.switches = switches;
        self
    }
}

impl Planner for CpPumpkin {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "cp/pumpkin".into(),
            summary: "constraints with lazy clause generation, solved by Pumpkin".into(),
            guarantee: Guarantee::Exact,
            honours: Honours { in_place: false, ..HONOURS },
            randomized: false,
            reference: "Flippo et al. 2024, doi:10.4230/LIPIcs.CP.2024.11 (Pumpkin)",
            complexity: "exponential",
            practical: Some(400),
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        follow_course(run, self.switches.reductions(), |run, course, draft| {
            solve_draft(run, course, draft, self.switches)
        })
    }
}
