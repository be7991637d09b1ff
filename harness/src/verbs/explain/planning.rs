//! The plans that an explanation rests on.

use std::path::Path;

use planlab_dsa::{Bytes, Instance, Labels, Plan, VerifiedPlan};
use planlab_results::{Record, Status};
use planlab_workloads::Trace;
use planlab_workloads::formats::write_trace;

use crate::cli::ExplainArgs;
use crate::inputs::network::source_file;
use crate::kinds::placement::{Cell, Judgement, Runner, Samples, Subject, record};
use crate::shell::clock::now_ns;
use crate::shell::exit::{Exit, Failure};
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
        let context = runner.supervisor().context("", 1, now_ns());
        let judged = runner.run(&subject, std::slice::from_ref(&cell), None)?.pop();
        let judged = judged.ok_or_else(|| Failure::new(Exit::Incomplete, "the child has no answer"))?;
        let row = record(&cell, &subject, &judged, None, context);
        let height = counting_height(&row, &judged);
        let plan = judged.plan.filter(|_| height.is_some()).map(VerifiedPlan::into_plan);
        Ok(Best { height, plan, row })
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

    pub(super) fn exit_code(&self) -> Exit {
        match self.row.status {
            Status::Interrupted => Exit::Interrupted,
            status if status.is_lie() => Exit::Invalid,
            _ if self.height.is_some() => Exit::Complete,
            _ => Exit::Incomplete,
        }
    }
}

/// The height of a plan that counts.
fn counting_height(row: &Record, judged: &Judgement<'_>) -> Option<u64> {
    let counts = matches!(row.status, Status::Optimal | Status::Feasible) || view::left_a_plan(row);
    judged.plan.as_ref().filter(|_| counts).map(VerifiedPlan::height).map(Bytes::get)
}
