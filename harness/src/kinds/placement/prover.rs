//! Computes lower bounds as a planner, to use a planner's clock and limits.

use std::sync::{Mutex, PoisonError};

use planlab_dsa::{Descriptor, Halt, Honours, Planner, Run};
use planlab_solvers::bounds;

/// A planner that makes no plan and only proves bounds.
#[derive(Default)]
pub(crate) struct Prover {
    steps: Mutex<Vec<bounds::Step>>,
}

impl Prover {
    /// The methods of proof that were tried, in order.
    pub(crate) fn into_steps(self) -> Vec<bounds::Step> {
        self.steps.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Planner for Prover {
    fn descriptor(&self) -> Descriptor {
        let honours = Honours {
            in_place: true,
            pins: true,
            pauses: true,
            alignment: true,
            arenas: true,
            apart: true,
            ..Honours::default()
        };
        Descriptor {
            key: "bounds".into(),
            summary: "lower bounds alone".into(),
            honours,
            reference: "planlab_solvers::bounds",
            complexity: "that of each argument",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        bounds::prove_bounds(run, bounds::Effort::Thorough, &mut |step| {
            self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
        })
    }
}
