//! What searches share: offsets of drafts inside the capacity, offers, and how much worse a state may be.

use planlab_dsa::{Budget, Bytes, Offset, execute};
use planlab_graph::{Schedule, ScheduleHalt, ScheduleRun, Timeline, Verified};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::placement::greedy::Fit;
use crate::placement::{Order, Portfolio};

/// Units of work of the portfolio.
const PACKING_WORK: u64 = 500_000;

/// Offsets, from the base, that end below the capacity; else the memory that the lowest ones take, the base included.
pub(super) fn pack_draft(
    draft: &Schedule,
    timeline: &Timeline,
    capacity: Bytes,
) -> Result<Vec<Offset>, Bytes> {
    let base = draft.base.get();
    let room = capacity.get().saturating_sub(base);
    let offsets = draft.best_fit(timeline);
    let ends = draft.buffers.iter().zip(&offsets).map(|(buffer, offset)| offset.get() + buffer.bytes.get());
    let mut least = ends.max().unwrap_or(0);
    if least <= room {
        return Ok(offsets);
    }
    if let Ok(instance) = draft.placement_problem(timeline) {
        let budget = Budget { target: Some(Bytes::new(room)), ..Budget::default() };
        if let Some(plan) = execute(&Fit::first_fit(Order::Area), &instance, budget, 0).best {
            if plan.height().get() <= room {
                return Ok(plan.offsets().to_vec());
            }
            least = least.min(plan.height().get());
        }
    }
    Err(Bytes::new(base.saturating_add(least)))
}

/// Offsets of a schedule, from the base, that end below the capacity, by the portfolio of planners within the time of the
/// run.
fn pack_tightly(run: &ScheduleRun<'_>, draft: &Schedule, timeline: &Timeline) -> Option<Vec<Offset>> {
    let room = Bytes::new(run.problem().capacity.get().saturating_sub(draft.base.get()));
    let wall = run.remaining_time();
    let budget = Budget { target: Some(room), work: Some(PACKING_WORK), wall, ..Budget::default() };
    let instance = draft.placement_problem(timeline).ok()?;
    let plan = execute(&Portfolio, &instance, budget, 0).best?;
    (plan.height() <= room).then(|| plan.offsets().to_vec())
}

/// Offsets of a schedule as of [`pack_draft`], or else as of [`pack_tightly`].
pub(super) fn pack_offsets(
    run: &ScheduleRun<'_>,
    draft: &Schedule,
    timeline: &Timeline,
) -> Result<Vec<Offset>, Bytes> {
    let quick = pack_draft(draft, timeline, run.problem().capacity);
    quick.or_else(|height| pack_tightly(run, draft, timeline).ok_or(height))
}

/// Whether a schedule of this many seconds is faster than all that are offered.
pub(super) fn is_faster(run: &ScheduleRun<'_>, seconds: f64) -> bool {
    run.best_schedule().is_none_or(|best| seconds < best.seconds())
}

/// Offers a schedule under a key if it is faster than all others and the portfolio of planners finds offsets that fit.
pub(super) fn offer_packed(
    run: &mut ScheduleRun<'_>,
    key: &str,
    draft: &Schedule,
    timeline: &Timeline,
) -> Result<(), ScheduleHalt> {
    if !is_faster(run, timeline.seconds) {
        return Ok(());
    }
    let Some(offsets) = pack_tightly(run, draft, timeline) else { return Ok(()) };
    let placed = draft.clone().with_offsets(timeline, &offsets);
    run.offer(Schedule { scheduler: key.to_owned(), ..placed })
}

/// Offers a schedule of another scheduler under a key, if it is faster than all others and offsets fit.
pub(super) fn offer_verified(
    run: &mut ScheduleRun<'_>,
    key: &str,
    offer: &Verified,
) -> Result<(), ScheduleHalt> {
    if offer.height() > run.problem().capacity {
        return offer_packed(run, key, offer.schedule(), offer.timeline());
    }
    if !is_faster(run, offer.seconds()) {
        return Ok(());
    }
    run.offer(Schedule { scheduler: key.to_owned(), ..offer.schedule().clone() })
}

/// The seconds by which an annealing accepts a worse state at a heat in seconds: exponentially distributed.
pub(super) fn draw_slack(rng: &mut ChaCha8Rng, heat: f64) -> f64 {
    -heat * rng.random::<f64>().max(f64::MIN_POSITIVE).ln()
}
