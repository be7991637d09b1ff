//! The schedules from which searches start: those of quick schedulers.
//!
//! Each scheduler gets a part of the work that is left, or of the time if work is not limited. If it is, the time is not
//! divided: what a scheduler finds would depend on the clock. So schedulers count the work of their own loops, too, by a
//! [`WorkMeter`](super::work::WorkMeter).

use planlab_graph::{ScheduleHalt, ScheduleRun, Scheduler, Verified};

use super::packing::offer_verified;
use super::quick::starting_schedulers;

/// A scheduler gets one of this many equal parts of the work or of the time that is left.
const PARTS: u32 = 10;

/// Consults quick schedulers and those for chains, cheap ones first, as [`consult_schedulers`] does.
pub(super) fn consult_quick_schedulers(
    run: &mut ScheduleRun<'_>,
    key: &str,
) -> Result<Vec<Verified>, ScheduleHalt> {
    consult_schedulers(run, key, &starting_schedulers())
}

/// Consults schedulers in turn, and offers under a key what fits with its offsets. Returns all their schedules, the fastest
/// first. Errors are as of [`ScheduleRun::consult_scheduler_within`] and [`ScheduleRun::offer`].
pub(super) fn consult_schedulers(
    run: &mut ScheduleRun<'_>,
    key: &str,
    schedulers: &[Box<dyn Scheduler>],
) -> Result<Vec<Verified>, ScheduleHalt> {
    let capacity = run.problem().capacity;
    let mut offers = Vec::new();
    for scheduler in schedulers {
        let (found, end) = run.consult_scheduler_within(scheduler, PARTS);
        for offer in found.iter().filter(|offer| offer.height() <= capacity) {
            offer_verified(run, key, offer)?;
        }
        offers.extend(found);
        end?;
    }
    offers.sort_by(|one, other| {
        one.seconds().total_cmp(&other.seconds()).then(one.height().cmp(&other.height()))
    });
    Ok(offers)
}

#[cfg(test)]
mod tests {
    use planlab_dsa::Stop;
    use planlab_graph::{ScheduleBudget, SchedulerDescriptor, execute_scheduler};

    use super::*;
    use crate::schedule::InCore;
    use crate::schedule::testing::chain_problem;

    struct Endless;

    impl Scheduler for Endless {
        fn descriptor(&self) -> SchedulerDescriptor {
            SchedulerDescriptor { key: "endless".into(), ..SchedulerDescriptor::default() }
        }

        fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
            loop {
                run.tick(1)?;
            }
        }
    }

    /// Consults an endless scheduler, and then one that keeps everything.
    struct Consultant;

    impl Scheduler for Consultant {
        fn descriptor(&self) -> SchedulerDescriptor {
            SchedulerDescriptor { key: "consultant".into(), ..SchedulerDescriptor::default() }
        }

        fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
            let schedulers: [Box<dyn Scheduler>; 2] = [Box::new(Endless), Box::new(InCore)];
            consult_schedulers(run, "consultant", &schedulers).map(|_| ())
        }
    }

    #[test]
    fn endless_scheduler_leaves_work_to_the_next() {
        let budget = ScheduleBudget { work: Some(1_000), ..ScheduleBudget::default() };
        let outcome = execute_scheduler(&Consultant, &chain_problem(&[1; 4]), budget, 0);
        assert_eq!(outcome.end, Ok(Stop::Proved));
        assert_eq!(outcome.best.map(|best| best.seconds()), Some(6.0));
        // A tenth, and the tick that ends it.
        assert!((101..120).contains(&outcome.work), "{} units of work", outcome.work);
    }
}
