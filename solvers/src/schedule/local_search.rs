//! Simulated annealing over the classes of maps, judged by the simulator, among schedules whose buffers have offsets
//! inside the capacity.
//!
//! A state is a class for each map, rules that turn classes into a schedule (a policy for recomputed maps, and when
//! copies in start), and the *room*: the bytes that may be in use at once. The room is less than the capacity if buffers
//! leave gaps between them. A change moves a map to another class, exchanges the classes of two maps, or changes the
//! room or the rules. It is judged by the simulated time. It is refused unless the default allocator's best fit, or else
//! first fit by area, finds offsets that end below the capacity.
//!
//! A schedule of a quick scheduler or of PoocH counts as it is if the portfolio of planners finds offsets that fit. Each
//! scheduler gets at most a tenth of the time or the work that is left, and cheap ones come first. The search starts from
//! the best of their classes, each in the largest room found that leaves enough for its gaps. The heat, relative to the
//! time at the start, falls geometrically.
//!
//! # References
//!
//! 1. S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi: Optimization by simulated annealing. Science 220(4598), 1983.
//!    doi:10.1126/science.220.4598.671.
//! 2. Y. Ito et al.: Profiling based Out-of-core Hybrid Method for Large Neural Networks. PPoPP 2019.
//!    doi:10.1145/3293883.3298790. The start, and how classes become a schedule.
//!
//! # Complexity
//!
//! 100 simulations for each of n maps, at most 10,000, after the starts, and a packing for each change that the heat
//! accepts: O(n) and O(n g log n) for g gaps. Anytime.

use planlab_dsa::Bytes;
use planlab_graph::{MapId, Schedule, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor, Verified};
use rand::RngExt;

use super::bound::claim_lp_bound;
use super::classes::{Class, Classes, Lab, Policy};
use super::packing::{draw_slack, is_faster, offer_packed, offer_verified, pack_draft};
use super::pooch::recompute_what_costs_less;
use super::program::Prefetch;
use super::quick::{budgeted_searches, cheap_quick_schedulers_first};
use super::starts::consult_schedulers;
use super::swap_opt::keep_what_fits;

const KEY: &str = "local-search";
/// The heat at the first and at the last change, as parts of the time of the start.
const HOT: f64 = 0.01;
const COLD: f64 = 1e-4;
/// The number of rooms in which a start is tried.
const ROOMS: u32 = 8;
/// The largest change of the room, as a part of the capacity.
const ROOM_STEP: f64 = 0.02;

/// The ways to start copies in; each is tried with each policy for recomputed maps.
const PREFETCHES: [Prefetch; 3] = [Prefetch::AsRoomPermits, Prefetch::OneAhead, Prefetch::WithConvolution];

/// Annealing from the best quick schedule, with offsets; key `local-search`.
#[derive(Clone, Copy, Debug)]
pub struct LocalSearch {
    per_map: u32,
    most: u32,
}

impl Default for LocalSearch {
    fn default() -> Self {
        Self { per_map: 100, most: 10_000 }
    }
}

impl LocalSearch {
    /// The number of changes to try: `per_map` for each map, and at most `most`. Default: 100 and 10,000. With 0 the
    /// start is the result.
    #[must_use]
    pub const fn with_changes(mut self, per_map: u32, most: u32) -> Self {
        (self.per_map, self.most) = (per_map, most);
        self
    }
}

impl Scheduler for LocalSearch {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: KEY.into(),
            summary: "anneals the best of the quick schedules; all offsets are inside the capacity".into(),
            randomized: true,
            reference: "Kirkpatrick et al. 1983; Ito et al. 2019",
            complexity: "100 n simulations, at most 10,000; anytime",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let problem = run.problem();
        let of = |prefetch| Policy::ALL.map(|policy| Lab::new(problem, policy, prefetch));
        let labs = PREFETCHES.map(of).into_iter().flatten().collect::<Vec<_>>();
        claim_lp_bound(run)?;
        let maps = labs[0].classified_maps().collect();
        let mut search = ClassSearch { labs, maps, capacity: problem.capacity, run, best: None };
        search.offer_initial()?;
        search.anneal_classes(self)
    }
}

#[derive(Clone, Debug)]
struct State {
    classes: Classes,
    /// The number of the lab whose rules apply.
    rules: usize,
    room: Bytes,
}

/// The result for a state.
enum Judged {
    /// It has offsets, and takes this many seconds.
    Placed(f64),
    /// It takes at least as long as the limit.
    Slow,
    /// It runs, but its offsets take this many bytes.
    TooHigh(Bytes),
    /// It does not run.
    Impossible,
}

struct ClassSearch<'r, 'p> {
    /// All pairs of rules; the first, one for each policy, start copies in as early as there is room.
    labs: Vec<Lab<'p>>,
    maps: Vec<MapId>,
    capacity: Bytes,
    run: &'r mut ScheduleRun<'p>,
    /// The fastest state that is placed: the start of the annealing.
    best: Option<(f64, State)>,
}

impl ClassSearch<'_, '_> {
    fn offer_initial(&mut self) -> Result<(), ScheduleHalt> {
        for class in [Class::Keep, Class::Swap] {
            self.fit_classes(&self.labs[0].all_in_class(class), 0)?;
        }
        self.start_with_schedulers(&cheap_quick_schedulers_first())?;
        self.start_with_pooch()?;
        self.start_with_schedulers(&budgeted_searches())
    }

    /// Offers what other schedulers find, each in a part of the work or time that is left, and its classes by all rules.
    fn start_with_schedulers(&mut self, schedulers: &[Box<dyn Scheduler>]) -> Result<(), ScheduleHalt> {
        for offer in consult_schedulers(self.run, KEY, schedulers)? {
            offer_verified(self.run, KEY, &offer)?;
            self.start_with_offer(&offer)?;
        }
        Ok(())
    }

    /// The classes of a schedule by all rules, if that is faster than what was found so far.
    fn start_with_offer(&mut self, offer: &Verified) -> Result<(), ScheduleHalt> {
        if self.best.as_ref().is_some_and(|&(best, _)| best <= offer.seconds()) {
            return Ok(());
        }
        let classes = Classes::from_schedule(&self.run.problem().net, offer.schedule());
        (0..self.labs.len()).try_for_each(|rules| self.fit_classes(&classes, rules))
    }

    /// A classification in less and less room until the offsets fit: a schedule after a few simulations.
    fn fit_classes(&mut self, classes: &Classes, rules: usize) -> Result<(), ScheduleHalt> {
        let mut room = self.capacity;
        for _ in 0..ROOMS {
            let limit = self.best.as_ref().map_or(f64::INFINITY, |&(best, _)| best);
            let state = State { classes: classes.clone(), rules, room };
            let Judged::TooHigh(height) = self.judge_state(state, limit)? else { break };
            room = self.less_room(room, height);
        }
        Ok(())
    }

    /// PoocH's classifications, in less and less room until the offsets fit. All policies have the whole room before any
    /// has less: on a large net the time may end first.
    fn start_with_pooch(&mut self) -> Result<(), ScheduleHalt> {
        let mut rooms = [Some(self.capacity); Policy::ALL.len()];
        for _ in 0..ROOMS {
            for (rules, room) in rooms.iter_mut().enumerate() {
                if let Some(known) = *room {
                    *room = self.classify_as_pooch(rules, known)?;
                }
            }
        }
        Ok(())
    }

    /// Judges PoocH's classification in a room. Returns a smaller room if the offsets take more than there is.
    fn classify_as_pooch(&mut self, rules: usize, room: Bytes) -> Result<Option<Bytes>, ScheduleHalt> {
        let lab = self.labs[rules].clone().with_room(room);
        let mut classes = lab.all_in_class(Class::Swap);
        keep_what_fits(&lab, self.run, &mut classes)?;
        let state = State { classes: classes.clone(), rules, room };
        if let Judged::Impossible = self.judge_state(state, f64::INFINITY)? {
            return Ok(None);
        }
        recompute_what_costs_less(&lab, self.run, &mut classes)?;
        let state = State { classes, rules, room };
        let Judged::TooHigh(height) = self.judge_state(state.clone(), f64::INFINITY)? else {
            return Ok(None);
        };
        if let Ok((draft, timeline)) = lab.run_draft(&state.classes) {
            offer_packed(self.run, KEY, &draft, &timeline)?;
        }
        Ok(Some(self.less_room(room, height)))
    }

    /// The largest room that leaves enough for the gaps, if they shrink with it.
    fn less_room(&self, room: Bytes, height: Bytes) -> Bytes {
        let base = self.run.problem().base().get();
        let above = |bytes: Bytes| bytes.get().saturating_sub(base) as f64;
        let part = above(self.capacity) / above(height).max(1.0);
        round_bytes(base as f64 + above(room) * part.min(0.995))
    }

    fn anneal_classes(&mut self, config: &LocalSearch) -> Result<(), ScheduleHalt> {
        let Some((start, mut state)) = self.best.clone() else { return Ok(()) };
        let maps = u32::try_from(self.maps.len()).unwrap_or(u32::MAX);
        let changes = config.per_map.saturating_mul(maps).min(config.most);
        let mut seconds = start;
        for change in 0..changes {
            let progress = f64::from(change) / f64::from(changes);
            let heat = start * HOT * (COLD / HOT).powf(progress);
            let slack = draw_slack(self.run.rng(), heat);
            let changed = self.change_state(&state);
            if let Judged::Placed(taken) = self.judge_state(changed.clone(), seconds + slack)? {
                (seconds, state) = (taken, changed);
            }
        }
        Ok(())
    }

    fn change_state(&mut self, state: &State) -> State {
        let mut state = state.clone();
        match self.run.rng().random_range(0..20) {
            0..10 => self.reclassify_map(&mut state),
            10..17 => self.exchange_maps(&mut state),
            17..19 => {
                let step = self.run.rng().random_range(-ROOM_STEP..ROOM_STEP);
                let room = state.room.get() as f64 + step * self.capacity.get() as f64;
                state.room = round_bytes(room).min(self.capacity);
            }
            _ => state.rules = self.run.rng().random_range(0..Policy::ALL.len()),
        }
        state
    }

    fn any_map(&mut self) -> MapId {
        let place = self.run.rng().random_range(0..self.maps.len());
        self.maps[place]
    }

    fn put_class(&self, state: &mut State, map: MapId, class: Class) {
        let is_possible = class != Class::Recompute || self.labs[0].can_recompute(map);
        state.classes.set_class(map, if is_possible { class } else { Class::Swap });
    }

    fn reclassify_map(&mut self, state: &mut State) {
        let map = self.any_map();
        let others = match state.classes.class_of(map) {
            Class::Keep => [Class::Swap, Class::Recompute],
            Class::Swap => [Class::Keep, Class::Recompute],
            Class::Recompute => [Class::Keep, Class::Swap],
        };
        let class = others[self.run.rng().random_range(0..2)];
        self.put_class(state, map, class);
    }

    fn exchange_maps(&mut self, state: &mut State) {
        let (first, second) = (self.any_map(), self.any_map());
        let (one, other) = (state.classes.class_of(first), state.classes.class_of(second));
        self.put_class(state, first, other);
        self.put_class(state, second, one);
    }

    /// Simulates a state, and packs it if it takes less than `limit`; offers it if it is the fastest so far.
    fn judge_state(&mut self, state: State, limit: f64) -> Result<Judged, ScheduleHalt> {
        self.run.tick(1)?;
        let lab = &self.labs[state.rules];
        let (draft, timeline) = match lab.run_within(&state.classes, state.room) {
            Ok(found) => found,
            Err(reason) => {
                if self.best.is_none() {
                    self.run.fall_short(format!("{reason} ({})", lab.count_classes(&state.classes)));
                }
                return Ok(Judged::Impossible);
            }
        };
        let seconds = timeline.seconds;
        if seconds >= limit {
            return Ok(Judged::Slow);
        }
        match pack_draft(&draft, &timeline, self.capacity) {
            Ok(offsets) => {
                if self.best.as_ref().is_none_or(|&(best, _)| seconds < best) {
                    self.best = Some((seconds, state));
                    if is_faster(self.run, seconds) {
                        let placed = draft.with_offsets(&timeline, &offsets);
                        self.run.offer(Schedule { scheduler: KEY.to_owned(), ..placed })?;
                    }
                }
                Ok(Judged::Placed(seconds))
            }
            Err(height) => {
                if self.best.is_none() {
                    let counts = lab.count_classes(&state.classes);
                    let capacity = self.capacity;
                    self.run.fall_short(format!(
                        "out of memory: the offsets take {height} of {capacity} bytes ({counts})"
                    ));
                }
                Ok(Judged::TooHigh(height))
            }
        }
    }
}

/// The whole bytes of a computed size.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes are not negative, and saturate"
)]
fn round_bytes(size: f64) -> Bytes {
    Bytes::new(size.max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use planlab_graph::{ScheduleBudget, SchedulingProblem, execute_scheduler};

    use super::*;
    use crate::schedule::testing::shortcut_problem;

    fn best(problem: &SchedulingProblem, search: &LocalSearch) -> Option<planlab_graph::Verified> {
        let outcome = execute_scheduler(search, problem, ScheduleBudget::default(), 1);
        assert!(outcome.end.is_ok(), "{:?}", outcome.end);
        outcome.best
    }

    #[test]
    fn offsets_fit_and_the_start_is_the_least_that_is_found() {
        let problem = shortcut_problem();
        let mut found = 0;
        for capacity in (800..1400).step_by(32) {
            let problem = problem.clone().with_capacity(Bytes::new(capacity));
            let start = best(&problem, &LocalSearch::default().with_changes(0, 0));
            let end = best(&problem, &LocalSearch::default());
            assert_eq!(start.is_some(), end.is_some());
            let (Some(start), Some(end)) = (start, end) else { continue };
            assert!(end.seconds() <= start.seconds(), "{capacity}");
            assert!(end.height() <= problem.capacity && start.height() <= problem.capacity, "{capacity}");
            found += 1;
        }
        assert!(found > 10, "only {found}");
    }
}
