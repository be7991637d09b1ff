//! The largest batch that would fit.

use std::num::NonZeroU64;

use planlab_dsa::Labels;
use planlab_replay::End;
use planlab_results::Status;
use planlab_workloads::Trace;
use planlab_workloads::batch::Scaling;
use planlab_workloads::formats::import::Framework;

use super::planning::Planning;
use crate::kinds::pool::simulated::{Order, Stream, matching, play_stream};
use crate::shell::exit::Failure;
use crate::verbs::fit::{Fit, largest_fitting};

/// The largest batch that is tried.
const MOST: u64 = 1 << 20;
/// The online allocator that does as PyTorch's.
const POOL: &str = "pytorch-caching";

/// How large the batch of a recording could be.
pub(super) struct Largest {
    /// The batch that was recorded.
    pub(super) recorded: u64,
    pub(super) capacity: u64,
    /// Buffers that keep their size, and their bytes.
    pub(super) kept: (usize, u64),
    /// The largest batch whose plan was found to fit, and the plan's height.
    pub(super) planned: Option<(u64, u64)>,
    /// The smallest batch that is shown not to fit, and what it needs at least; `None` if all fit that are tried.
    pub(super) refuted: Option<(u64, u64)>,
    /// The largest batch that a pool like PyTorch's serves, by simulation; only for recordings of its pool.
    pub(super) pool: Option<(&'static str, Fit)>,
}

/// The search.
struct BatchSearch<'a> {
    scaling: Scaling<'a>,
    recorded: NonZeroU64,
    capacity: u64,
    planning: &'a Planning<'a>,
    planned: Option<(u64, u64)>,
    refuted: Option<(u64, u64)>,
}

impl Largest {
    pub(super) fn find_batch(
        trace: &Trace,
        framework: &Framework,
        planning: &Planning<'_>,
        (recorded, capacity): (NonZeroU64, u64),
    ) -> Result<Self, Failure> {
        let scaling = Scaling::from_trace(trace, framework);
        let kept = scaling.kept_buffers();
        let mut search = BatchSearch { scaling, recorded, capacity, planning, planned: None, refuted: None };
        let most = search.by_load()?;
        search.by_plans(most)?;
        let is_pool = framework.name == "PyTorch" && !framework.segments.is_empty();
        let pool = if is_pool { Some((POOL, search.by_pool(most)?)) } else { None };
        let BatchSearch { planned, refuted, .. } = search;
        Ok(Self { recorded: recorded.get(), capacity, kept, planned, refuted, pool })
    }
}

impl BatchSearch<'_> {
    /// The load at a batch; `None` if it does not fit 64 bits.
    fn load_at(&self, batch: u64) -> Option<u64> {
        Some(self.scaling.instance_at(self.recorded, batch).ok()?.load().bytes.get())
    }

    /// The largest batch whose load fits: no larger one has a plan.
    fn by_load(&mut self) -> Result<u64, Failure> {
        let fits = |batch| Ok(Some(self.load_at(batch).is_some_and(|load| load <= self.capacity)));
        let most = match largest_fitting((0..=MOST.ilog2()).map(|bit| 1 << bit), fits)? {
            Fit::Most(batch) => batch,
            Fit::All(batch) => return Ok(batch),
            Fit::None | Fit::Unknown => 0,
        };
        self.refuted = Some((most + 1, self.load_at(most + 1).unwrap_or(u64::MAX)));
        Ok(most)
    }

    /// The largest batch up to `most` that has a plan. That is nearly always `most`, so the search begins there.
    fn by_plans(&mut self, most: u64) -> Result<(), Failure> {
        if most == 0 || self.has_plan(most)? != Some(false) {
            return Ok(());
        }
        // A half, three quarters, seven eighths, ...
        let closer = (1..=most.ilog2()).map(|bit| most - (most >> bit)).filter(|&batch| batch > 1);
        let points = std::iter::once(1).chain(closer).filter(|&batch| batch < most).chain([most]);
        largest_fitting(points, |batch| if batch == most { Ok(Some(false)) } else { self.has_plan(batch) })?;
        Ok(())
    }

    fn has_plan(&mut self, batch: u64) -> Result<Option<bool>, Failure> {
        let Ok(instance) = self.scaling.instance_at(self.recorded, batch) else { return Ok(Some(false)) };
        let best = self.planning.plan_best(&instance, Some(self.capacity))?;
        if best.row.status == Status::Interrupted {
            return Ok(None);
        }
        if let Some(needed) = best.bound_beyond(self.capacity) {
            self.refuted = self.refuted.filter(|&(known, _)| known < batch).or(Some((batch, needed)));
        }
        let Some(height) = best.height_within(self.capacity) else { return Ok(Some(false)) };
        self.planned = self.planned.filter(|&(known, _)| known > batch).or(Some((batch, height)));
        Ok(Some(true))
    }

    /// The largest batch up to `most` that a pool serves within the capacity.
    fn by_pool(&self, most: u64) -> Result<Fit, Failure> {
        let entries = matching(&[POOL.to_owned()])?;
        let serves = |batch: u64| {
            let Ok(instance) = self.scaling.instance_at(self.recorded, batch) else { return Ok(Some(false)) };
            let labels = Labels::from_numbers(instance.len());
            let stream = Stream::new(&[(self.planning.name.to_owned(), Trace::new(instance, labels))], None);
            let order = Order { rounds: 1, timed: 0, capacity: Some(self.capacity) };
            Ok(entries
                .first()
                .map(|entry| play_stream(entry, &stream, order).performance.status == End::Complete))
        };
        let powers = (0..64).map(|bit| 1 << bit).take_while(|&batch| batch < most);
        largest_fitting(powers.chain((most > 0).then_some(most)), serves)
    }
}
