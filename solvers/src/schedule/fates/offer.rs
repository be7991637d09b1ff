//! Offers the schedule of some fates.

use planlab_graph::{Schedule, ScheduleHalt, ScheduleRun};

use super::{Fates, build_program};
use crate::schedule::program::{Prefetch, draft_schedule};

/// Offers the schedule of some fates under a key, or reports why it does not fit. Copies in start as early as there is
/// room. Errors are as of [`ScheduleRun::tick`] and [`ScheduleRun::offer`].
pub(in crate::schedule) fn offer_fates(
    run: &mut ScheduleRun<'_>,
    key: &str,
    fates: &Fates,
) -> Result<(), ScheduleHalt> {
    run.tick(1)?;
    let problem = run.problem();
    let (program, _) = build_program(problem, fates);
    match draft_schedule(problem, program, Prefetch::AsRoomPermits, problem.capacity) {
        Ok(draft) => run.offer(Schedule { scheduler: key.to_owned(), ..draft }),
        Err(reason) => {
            run.fall_short(reason.to_string());
            Ok(())
        }
    }
}
