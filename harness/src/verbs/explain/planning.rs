//! The plans that an explanation rests on.

use std::path::Path;

use planlab_dsa::{Instance, Labels, Plan, VerifiedPlan};
use planlab_results::Record;
use planlab_workloads::Trace;
use planlab_workloads::formats::write_trace;

use crate::cli::ExplainArgs;
use crate::inputs::network::source_file;
use crate::kinds::placement::{Cell, Runner, Samples, Subject};
use crate::shell::exit::Failure;
use crate::shell::signals::cancel_token;
use crate::verbs::view;

/// How plans are made.
pub(super) struct Planning<'a> {
    pub(super) args: &'a ExplainArgs,
    pub(super) name: &'a str,
    pub(super) scratch: &'a Path,
}

/// The best plan that was found.
pub(super) struct Best {
    pub(super) row: Record,
    /// Of the plan, if one was found.
    pub(super) height: Option<u64>,
    #[cfg_attr(not(feature = "reports"), expect(dead_code, reason = "for the page"))]
    pub(super) plan: Option<Plan>,
}

impl Planning<'_> {
    /// Plans an instance in a process of its own, as `plan` does it; with a capacity it ends at the first plan that fits.
    pub(super) fn plan_best(&self, instance: &Instance, capacity: Option<u64>) -> Result<Best, Failure> {
        let path = self.scratch.join("explained.csv");
        // Planners see no labels.
        let trace = Trace::new(instance.clone(), Labels::from_numbers(instance.len()));
        std::fs::write(&path, write_trace(&trace))?;
        // The copy is a plain trace, whatever the file is; a name like `s.pickle` would say something else.
        let mut source = source_file(&format!("{}.csv", self.name), path);
        source.pins = instance.buffers().iter().any(|buffer| buffer.pin.is_some());
        let cell = Cell { target: capacity, ..Cell::of(&source, &self.args.planner, &self.args.limits) };
        let digest = instance.digest();
        let subject = Subject { source: &source, instance, digest, hints: None };
        let runner = Runner::new(cancel_token(), Samples::ONCE)?;
        let (judged, row) = runner.run_alone(&subject, &cell)?;
        let plan = judged.plan.filter(|_| view::counts_plan(&row));
        let height = plan.as_ref().map(|plan| plan.height().get());
        Ok(Best { height, plan: plan.map(VerifiedPlan::into_plan), row })
    }
}

impl Best {
    /// The height, if it is no more than a capacity.
    pub(super) fn height_within(&self, capacity: u64) -> Option<u64> {
        self.height.filter(|&height| height <= capacity)
    }

    /// What every plan needs, if that is proved to be more than a capacity.
    pub(super) fn bound_beyond(&self, capacity: u64) -> Option<u64> {
        let is_lie = self.row.status.is_lie();
        Some(self.row.bound).filter(|&bound| bound > capacity && !is_lie)
    }
}
