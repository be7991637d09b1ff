//! Offers the schedules of plans, fastest first, until one has offsets inside the capacity.

use planlab_graph::{Schedule, ScheduleHalt, ScheduleRun, SchedulingProblem, Timeline, simulate_schedule};

use super::chain::Chain;
use super::sequence::ChainPlan;
use crate::schedule::fates::build_program;
use crate::schedule::packing::{is_faster, pack_draft, pack_offsets};
use crate::schedule::program::{Prefetch, draft_schedule};

/// The schedules of a list that may fit by bytes but not with their offsets before the rest of the list is left.
const UNPLACED: u32 = 8;

/// The most buffers of a schedule for which the portfolio of planners looks for offsets.
const TIGHTLY_PACKED: usize = 400;

/// The plans of a chain that a scheduler offers under its key.
pub(super) struct PlanOffers<'c> {
    key: &'static str,
    chain: &'c Chain,
    /// The fastest schedule that fits by bytes, but not with its offsets, and its seconds.
    unplaced: Option<(f64, Schedule)>,
}

/// Offers the first plan of a list that fits with its offsets, or else the fastest that fits by bytes. Errors and the order
/// of the plans are as of [`PlanOffers::offer_first_fit`].
pub(super) fn offer_plans(
    run: &mut ScheduleRun<'_>,
    key: &'static str,
    chain: &Chain,
    plans: impl Iterator<Item = ChainPlan>,
) -> Result<(), ScheduleHalt> {
    let mut offers = PlanOffers::new(key, chain);
    let end = offers.offer_first_fit(run, plans);
    offers.offer_unplaced(run)?;
    end
}

impl<'c> PlanOffers<'c> {
    pub(super) const fn new(key: &'static str, chain: &'c Chain) -> Self {
        Self { key, chain, unplaced: None }
    }

    /// Offers the first plan of a list that fits with its offsets. Later plans are slower and take less memory. Errors are as
    /// of [`ScheduleRun::tick`] and [`ScheduleRun::offer`].
    pub(super) fn offer_first_fit(
        &mut self,
        run: &mut ScheduleRun<'_>,
        plans: impl Iterator<Item = ChainPlan>,
    ) -> Result<(), ScheduleHalt> {
        match self.find_first_fit(run, plans)? {
            Some(placed) => run.offer(Schedule { scheduler: self.key.to_owned(), ..placed }),
            None => Ok(()),
        }
    }

    /// Offers the fastest schedule that fits by bytes, if there is no other. Errors are as of [`ScheduleRun::offer`].
    pub(super) fn offer_unplaced(self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        match self.unplaced {
            Some((_, draft)) if run.best_schedule().is_none() => {
                run.offer(Schedule { scheduler: self.key.to_owned(), ..draft })
            }
            _ => Ok(()),
        }
    }

    /// The first schedule that fits with its offsets, if it is faster than what was offered.
    fn find_first_fit(
        &mut self,
        run: &mut ScheduleRun<'_>,
        plans: impl Iterator<Item = ChainPlan>,
    ) -> Result<Option<Schedule>, ScheduleHalt> {
        let problem = run.problem();
        let (mut before, mut tried) = (None, 0);
        for plan in plans {
            if before.as_ref() == Some(&plan) {
                continue;
            }
            run.tick(1)?;
            match draft_plan(problem, self.chain, &plan) {
                Ok((_, timeline)) if !is_faster(run, timeline.seconds) => return Ok(None),
                Ok((draft, timeline)) => {
                    let packed = if draft.buffers.len() <= TIGHTLY_PACKED {
                        pack_offsets(run, &draft, &timeline)
                    } else {
                        pack_draft(&draft, &timeline, problem.capacity)
                    };
                    if let Ok(offsets) = packed {
                        return Ok(Some(draft.with_offsets(&timeline, &offsets)));
                    }
                    if self.unplaced.as_ref().is_none_or(|(seconds, _)| timeline.seconds < *seconds) {
                        self.unplaced = Some((timeline.seconds, draft));
                    }
                    tried += 1;
                    if tried >= UNPLACED {
                        return Ok(None);
                    }
                }
                Err(reason) => run.fall_short(reason),
            }
            before = Some(plan);
        }
        Ok(None)
    }
}

/// The draft of a plan and its run, or the reason why it does not fit.
fn draft_plan(
    problem: &SchedulingProblem,
    chain: &Chain,
    plan: &ChainPlan,
) -> Result<(Schedule, Timeline), String> {
    let (program, _) = build_program(problem, &plan.to_fates(problem, chain));
    let draft = draft_schedule(problem, program, Prefetch::AsRoomPermits, problem.capacity);
    let draft = draft.map_err(|reason| reason.to_string())?;
    let timeline = simulate_schedule(&draft, Some(problem.capacity));
    let timeline = timeline.map_err(|stuck| format!("out of memory: {stuck}"))?;
    Ok((draft, timeline))
}
