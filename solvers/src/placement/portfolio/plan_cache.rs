//! Plans kept by the digest of their problem: one for all batch sizes of a net that grows with the batch.
//!
//! An entry is a plan of a [canonical form](Canonical), under a key made of the form's digest and of the planner's name
//! and version. The entry also records the effort: a plan found in one second does not answer a request that allows a
//! minute.
//!
//! Entries are not trusted, since they may come from a file that anybody could have changed: the plan is verified each
//! time it is read. Bounds are not kept, since they could not be checked.
//!
//! # Complexity
//!
//! One verification to look a plan up, two to keep one.

use std::collections::BTreeMap;

use planlab_dsa::{Digest, Plan, VerifiedPlan};
use serde::{Deserialize, Serialize};

use super::canonical::Canonical;

/// The effort spent on a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// The limit of wall time, in nanoseconds; `None`: no limit.
    pub wall_ns: Option<u64>,
    /// The limit of work; `None`: no limit.
    pub work: Option<u64>,
    /// Whether the planner finished before it reached a limit.
    pub finished: bool,
}

impl Effort {
    /// No effort: for a run stopped by something other than its limits.
    pub const NONE: Self = Self { wall_ns: Some(0), work: Some(0), finished: false };

    /// Whether a run with the limits `asked` could not do better.
    #[must_use]
    pub fn covers_limits(self, asked: Self) -> bool {
        let is_enough = |spent: Option<u64>, asked: Option<u64>| match (spent, asked) {
            (None, _) => true,
            (Some(spent), Some(asked)) => asked <= spent,
            (Some(_), None) => false,
        };
        self.finished || is_enough(self.wall_ns, asked.wall_ns) && is_enough(self.work, asked.work)
    }
}

/// A cached plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedPlan {
    /// The plan, in units of the canonical form.
    pub plan: Plan,
    /// The effort spent on it.
    pub effort: Effort,
}

/// Plans by the digest of their problem.
///
/// ```
/// use planlab_dsa::{Buffer, Bytes, Instance, LiveRange, Offset, Plan};
/// use planlab_solvers::placement::{Canonical, Effort, PlanCache};
///
/// let net = |batch: u64| {
///     let buffers = [(8 * batch, 0, 2), (4 * batch, 1, 3)].map(|(size, start, end)| {
///         Buffer::new(Bytes::new(size), LiveRange::new(start, end).expect("not empty"))
///     });
///     Instance::from_buffers(buffers.to_vec()).expect("valid")
/// };
/// let (small, large) = (net(32), net(64));
/// let (small, large) = (Canonical::from_instance(&small), Canonical::from_instance(&large));
/// let key = PlanCache::cache_key(&small, "my-planner", "1");
/// let mut cache = PlanCache::default();
/// let plan = small.original().verify(Plan::from_offsets([0, 256].map(Offset::new)))?;
/// cache.keep_lower(key, &small, &plan, Effort::default());
/// let (found, _) = cache.get(PlanCache::cache_key(&large, "my-planner", "1"), &large).ok_or("nothing")?;
/// assert_eq!(found.offsets(), [0, 512].map(Offset::new));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PlanCache {
    entries: BTreeMap<Digest, CachedPlan>,
}

impl PlanCache {
    /// The key of a form's plans by one planner. It leaves out seed, threads and limits: only the height of a plan
    /// counts.
    #[must_use]
    pub fn cache_key(form: &Canonical<'_>, planner: &str, version: &str) -> Digest {
        Digest::of_bytes(format!("plan cache 1\n{}\n{planner}\n{version}", form.digest()).as_bytes())
    }

    /// Inserts an entry unchanged, for example from a file; replaces an older one.
    pub fn insert(&mut self, key: Digest, entry: CachedPlan) {
        self.entries.insert(key, entry);
    }

    /// The plan for the original instance of the form, and the effort spent on it. `None` if there is no entry, or if
    /// its plan is not valid.
    #[must_use]
    pub fn get<'i>(&self, key: Digest, form: &Canonical<'i>) -> Option<(VerifiedPlan<'i>, Effort)> {
        let CachedPlan { plan, effort } = self.entries.get(&key)?;
        let plan = form.original().verify(form.enlarge_plan(plan)).ok()?;
        Some((plan, *effort))
    }

    /// Keeps the lower of the given plan and the cached one, with the larger effort. Returns the entry if it has
    /// changed.
    pub fn keep_lower(
        &mut self,
        key: Digest,
        form: &Canonical<'_>,
        plan: &VerifiedPlan<'_>,
        effort: Effort,
    ) -> Option<&CachedPlan> {
        let (is_lower, known) = match self.get(key, form) {
            Some((old, known)) => (plan.height() < old.height(), known),
            None => (true, Effort::NONE),
        };
        let is_more = !known.covers_limits(effort);
        if !is_lower && !is_more {
            return None;
        }
        let effort = if is_more { effort } else { known };
        let plan = match self.entries.remove(&key) {
            Some(old) if !is_lower => old.plan,
            _ => form.reduce_plan(plan),
        };
        self.entries.insert(key, CachedPlan { plan, effort });
        self.entries.get(&key)
    }
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Instance, Offset};

    use super::*;
    use crate::placement::testing;

    fn instance(unit: u64) -> Instance {
        testing::test_instance(&[(4 * unit, 0, 2), (4 * unit, 1, 3), (4 * unit, 2, 4)])
    }

    fn plan(instance: &Instance, offsets: [u64; 3]) -> VerifiedPlan<'_> {
        instance.verify(Plan::from_offsets(offsets.map(Offset::new))).expect("valid")
    }

    fn seconds(seconds: u64) -> Effort {
        Effort { wall_ns: Some(seconds * 1_000_000_000), ..Effort::default() }
    }

    #[test]
    fn the_lower_plan_and_the_larger_effort_stay() {
        let instance = instance(8);
        let form = Canonical::from_instance(&instance);
        let key = PlanCache::cache_key(&form, "p", "1");
        let mut cache = PlanCache::default();
        let (high, low) = (plan(&instance, [0, 32, 64]), plan(&instance, [0, 32, 0]));
        let mut keep = |plan: &VerifiedPlan<'_>, effort| {
            let changed = cache.keep_lower(key, &form, plan, effort).is_some();
            let (kept, effort) = cache.get(key, &form).expect("kept");
            (changed, kept.height().get(), effort)
        };
        assert_eq!(keep(&high, seconds(5)), (true, 96, seconds(5)));
        assert_eq!(keep(&high, seconds(5)), (false, 96, seconds(5)));
        assert_eq!(keep(&low, seconds(1)), (true, 64, seconds(5)));
        assert_eq!(keep(&high, seconds(9)), (true, 64, seconds(9)));
        assert_eq!(keep(&high, Effort::NONE), (false, 64, seconds(9)));
    }

    #[test]
    fn an_entry_that_is_no_plan_is_as_good_as_none() {
        let instance = instance(1);
        let form = Canonical::from_instance(&instance);
        let key = PlanCache::cache_key(&form, "p", "1");
        let mut cache = PlanCache::default();
        let good = plan(&instance, [0, 4, 0]);
        for offsets in [vec![0, 0, 0], vec![0], vec![], vec![0, u64::MAX, 4]] {
            let offsets: Vec<Offset> = offsets.into_iter().map(Offset::new).collect();
            cache.insert(key, CachedPlan { plan: Plan::from_offsets(offsets), effort: Effort::default() });
            assert!(cache.get(key, &form).is_none());
            assert!(cache.keep_lower(key, &form, &good, Effort::NONE).is_some());
            assert_eq!(cache.get(key, &form), Some((good.clone(), Effort::NONE)));
        }
    }

    #[test]
    fn an_effort_covers_what_is_not_more() {
        let unlimited = Effort::default();
        assert!(unlimited.covers_limits(seconds(9)) && !seconds(9).covers_limits(unlimited));
        assert!(seconds(2).covers_limits(seconds(1)) && !seconds(1).covers_limits(seconds(2)));
        let work = |work| Effort { work: Some(work), ..Effort::default() };
        assert!(
            work(2).covers_limits(work(2))
                && !work(1).covers_limits(work(2))
                && !work(1).covers_limits(seconds(1))
        );
        assert!(Effort { finished: true, ..Effort::NONE }.covers_limits(unlimited));
        assert!(!Effort::NONE.covers_limits(seconds(1)));
    }

    #[test]
    fn keys_tell_planners_and_versions_apart() {
        let instance = instance(1);
        let form = Canonical::from_instance(&instance);
        let keys = [("p", "1"), ("p", "2"), ("q", "1")].map(|(p, v)| PlanCache::cache_key(&form, p, v));
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
    }
}
