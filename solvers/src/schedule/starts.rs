//! The schedules from which searches start: those of quick schedulers.

use planlab_graph::{ScheduleHalt, ScheduleRun, Verified};

use super::packing::offer_verified;
use super::quick::starting_schedulers;

/// A scheduler gets one of this many equal parts of the work or of the time that is left.
const PARTS: u32 = 10;

/// Consults quick schedulers and those for chains, cheap ones first, and offers under a key what fits with its offsets.
/// Returns all their schedules, the fastest first. Errors are as of [`ScheduleRun::consult_scheduler_within`] and
/// [`ScheduleRun::offer`].
pub(super) fn consult_quick_schedulers(
    run: &mut ScheduleRun<'_>,
    key: &str,
) -> Result<Vec<Verified>, ScheduleHalt> {
    let capacity = run.problem().capacity;
    let mut offers = Vec::new();
    for scheduler in starting_schedulers() {
        let (found, end) = run.consult_scheduler_within(&scheduler, PARTS);
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
