//! Everything at once: greedy orders, bounds, then exact and local search side by side.
//!
//! 1. The hints, if there are any; then a first look at the requested capacity, if there is one.
//! 2. Every greedy planner, the quickest and then the best ones first, each on any free thread. If there are many
//!    buffers, the quickest planner that supports the instance gives a first plan.
//! 3. The quick [bounds](crate::bounds); if a plan is above one by less than the alignment, other buffers on top.
//! 4. [Exact] and [local](crate::placement::search) search in turns, on every thread. One turn in four is local (one in
//!    eight if there are few buffers); on odd threads twice as many are. Local search takes over lower plans of other
//!    threads at once, on odd threads when it restarts.
//! 5. Between these turns, [block building](crate::placement::search::BlockBuilding), which finds packings without
//!    waste. It goes on if some course joined half of the buffers, more seldom with each course that it has to give up.
//!    If there are many buffers, it gets as much work as exact search, during a long restart of that too, and begins;
//!    odd threads are its own then.
//!
//! If buffers may be handed over, or a window stays in use during a pause, the exact search for these takes the place of
//! 4 and 5: on merged buffers, by precedences, and local over orders.
//!
//! All share one incumbent and one bound; the run ends as soon as the gap is closed.
//!
//! # References
//!
//! 1. B. A. Huberman, R. M. Lukose and T. Hogg, *An economics approach to hard computational problems*,
//!    Science 275, 1997, doi:10.1126/science.275.5296.51 (portfolios).
//!
//! # Complexity
//!
//! Anytime; 2 to 20 s for the greedy planners on 1,000,000 buffers.

use std::sync::atomic::{AtomicUsize, Ordering};

use planlab_dsa::{
    Budget, Bytes, Descriptor, Guarantee, Halt, Instance, Outcome, Plan, Planner, Run, Scope, Stop, execute,
};

use super::top_padding;
use crate::arenas::{has_arenas, plan_each_arena};
use crate::bounds::{self, Effort};
use crate::demands::has_windows;
use crate::placement::Order;
use crate::placement::baseline::Bump;
use crate::placement::exact::minimise::{Minimiser, Task, look_at_capacity};
use crate::placement::exact::{self, Exact};
use crate::placement::greedy::{Fit, GreedyByBreadth, GreedyBySize};
use crate::placement::order::by_offset;
use crate::placement::search::{BlockSearch, LnsTurns, Search, from_incumbent, in_order};
use crate::placement::sharing::SharedObjectsInOrder;
use crate::placement::skyline::BestFit;
use crate::placement::start_from_hints::offer_hints;
use crate::team::{EndsWith, RunOver, run_team};

/// The default planner: combines all others' incumbents and bounds; key `portfolio`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Portfolio;

/// The portfolio's outcome, or that of `best-fit` without a time limit if the time was too short for any plan.
///
/// A busy machine may take a caller's whole time before the first plan is made; `best-fit` is the quickest that keeps to
/// every alignment.
#[must_use]
pub fn plan_in_any_case(instance: &Instance, budget: Budget) -> Outcome<'_> {
    let unlimited = Budget { wall: None, ..budget.clone() };
    let outcome = execute(&Portfolio, instance, budget, 0);
    if outcome.best.is_none() && outcome.end == Ok(Stop::Deadline) {
        return execute(&BestFit, instance, unlimited, 0);
    }
    outcome
}

/// Below this number of buffers, threads do not pay.
const FEW: usize = 500;
/// From this number of buffers on, a greedy plan takes so long that a quicker one comes first.
const MANY: usize = 10_000;
/// The most buffers for exact search, not counting those that can be set aside.
const MOST_EXACT: usize = 20_000;

impl Planner for Portfolio {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "portfolio".into(),
            summary: "greedy orders, bounds, then exact and local search, with one incumbent and one bound"
                .into(),
            guarantee: Guarantee::Exact,
            honours: Exact.descriptor().honours,
            randomized: true,
            reference: "B. A. Huberman, R. M. Lukose and T. Hogg, An economics approach to hard computational problems, Science 275, 1997",
            complexity: "anytime",
            practical: None,
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        offer_hints(run)?;
        look_at_capacity(run)?;
        let instance = run.instance();
        try_greedy(run)?;
        bounds::raise_bounds(run, Effort::Quick)?;
        top_padding::lower_by_padding(self, run)?;
        let hands_over = run.scope() == Scope::Any && !instance.in_place().is_empty();
        if hands_over || has_windows(instance) {
            return exact::search_from_incumbent(run);
        }
        let task = Task::new(run).filter(|task| task.movable_buffers() <= MOST_EXACT);
        let stack = task.as_ref().map_or(0, Task::stack_bytes);
        run_team(run, stack, EndsWith::First, |run, number, over| work(run, task.as_ref(), number, over))
    }
}

/// Runs the greedy planners, each on any free thread.
fn try_greedy(run: &mut Run<'_>) -> Result<(), Halt> {
    let instance = run.instance();
    let takes =
        |planner: &dyn Planner| planner.descriptor().honours.first_refused_feature(instance).is_none();
    let quickest = quickest().into_iter().find(|planner| instance.len() >= MANY && takes(planner));
    let greedy = greedy().into_iter().filter(|planner| takes(planner));
    let greedy: Vec<_> = quickest.into_iter().chain(greedy).collect();
    let next = AtomicUsize::new(0);
    let take = |run: &mut Run<'_>| -> Result<(), Halt> {
        while let Some(planner) = greedy.get(next.fetch_add(1, Ordering::Relaxed)) {
            planner.plan(run)?;
        }
        Ok(())
    };
    if run.threads().get() == 1 || instance.len() < FEW {
        return take(run);
    }
    run_team(run, 0, EndsWith::All, |run, _, over| {
        over.check_over()?;
        take(run)
    })
}

/// The planners with the soonest plan, even if a high one: for 1,000,000 buffers in a quarter of the time of `best-fit`
/// or less (`results/records/2026-11-21-2-core-vm-scale`).
fn quickest() -> [Box<dyn Planner>; 2] {
    [Box::new(SharedObjectsInOrder), Box::new(Bump)]
}

/// Every greedy planner. First come those that together find the lowest greedy plan of every recorded net, in the order
/// of the number of nets that each adds; then the rest, the quicker rule first.
fn greedy() -> Vec<Box<dyn Planner>> {
    let fit = |order| Box::new(Fit::first_fit(order)) as Box<dyn Planner>;
    let gap = |order| Box::new(Fit::best_gap(order)) as Box<dyn Planner>;
    let mut all = vec![Box::new(BestFit) as Box<dyn Planner>, fit(Order::Size), gap(Order::Load)];
    all.extend([gap(Order::Start), Box::new(GreedyByBreadth), gap(Order::Sections)]);
    all.extend([fit(Order::End), gap(Order::Size), gap(Order::Overlaps)]);
    all.extend([Order::Load, Order::Sections, Order::Overlaps, Order::Width, Order::Area].map(fit));
    all.extend([fit(Order::Input), fit(Order::Start), Box::new(GreedyBySize)]);
    all.extend([Order::Width, Order::Area, Order::Input, Order::End].map(gap));
    all
}

fn work(run: &mut Run<'_>, task: Option<&Task>, number: usize, over: &RunOver<'_>) -> Result<(), Halt> {
    let mut exact = task.map(|task| Minimiser::new(run, task, number)).transpose()?;
    let mut local = Local::new(run, number)?;
    let mut building = Building::new(run, number);
    for turn in 1_u64.. {
        over.check_over()?;
        building.take_turn(run, turn, exact.as_ref().map_or(0, Minimiser::work_done), over)?;
        let every = if run.instance().len() < FEW { 8 } else { 4 };
        let is_local = turn.is_multiple_of(if number % 2 == 1 { every / 2 } else { every });
        let goes_on = match (&mut exact, &mut local) {
            (None, None) if building.search.is_some() => true,
            (None, None) => return Ok(()),
            (Some(exact), Some(local)) if !is_local => {
                let goes_on = exact.turn_beside(run, over, &mut |run, work| building.catch_up(run, work))?;
                if let Some(plan) = exact.take_plan() {
                    local.go_on_from(run, &plan)?;
                }
                goes_on
            }
            (Some(exact), None) => {
                exact.turn_beside(run, over, &mut |run, work| building.catch_up(run, work))?
            }
            (_, Some(search)) => {
                if !search.run_turn(run)? {
                    // It has no move left; the others may have.
                    local = None;
                }
                true
            }
        };
        if !goes_on {
            return Ok(());
        }
    }
    Ok(())
}

/// Units of work of one turn of local search.
const TURN: u64 = 50_000;

/// Local search that continues from the current incumbent.
struct Local {
    search: LnsTurns,
    /// The height to beat when it last took over a plan.
    known: Option<Bytes>,
    /// Whether it takes over lower plans of other threads at once, not only in its next course.
    follows: bool,
    course: u64,
}

impl Local {
    /// `None` if there is no plan to begin with.
    fn new(run: &mut Run<'_>, number: usize) -> Result<Option<Self>, Halt> {
        let Some(start) = from_incumbent(run)? else { return Ok(None) };
        let search = LnsTurns::new(run, &start)?;
        let (known, follows) = (run.height_to_beat(), number.is_multiple_of(2));
        Ok(search.map(|search| Self { course: search.course, search, known, follows }))
    }

    fn go_on_from(&mut self, run: &mut Run<'_>, plan: &Plan) -> Result<(), Halt> {
        let start = in_order(run, by_offset(&plan.offsets))?;
        self.search.adopt_start(run, &start)
    }

    fn run_turn(&mut self, run: &mut Run<'_>) -> Result<bool, Halt> {
        let (height, course) = (run.height_to_beat(), self.search.course);
        let is_lower = height < self.known && height < Some(self.search.lowest_height());
        let restarted = std::mem::replace(&mut self.course, course) != course;
        if is_lower && (self.follows || restarted) {
            self.known = height;
            if let Some(start) = from_incumbent(run)? {
                self.search.adopt_start(run, &start)?;
            }
        }
        self.search.run_turn(run, TURN)
    }
}

/// Units of work of the first turn of block building. Each is twice as long as the one before, up to
/// `BUILDING_PER_BUFFER` units for each buffer: the turns of exact search grow with their number, too.
const FIRST_BUILDING: u64 = 20_000;
const GROWTH: u64 = 2;
const BUILDING_PER_BUFFER: u64 = 10_000;
/// From `FEW` buffers on, it works at least as much as exact search; this is what a unit of the latter counts.
const WORK_PER_UNIT: u64 = 16;
/// From this number of buffers on, a single dive of exact search may take seconds. So building goes first, with these units
/// of work for each buffer: the first blocks, and then, on odd threads, what usually leaves few. Until `COURSES` were in
/// vain, it has odd threads for itself.
const LARGE: usize = 2_000;
const FIRST_BLOCKS: u64 = 100;
const FEW_BLOCKS: u64 = 5_000;
/// Courses in vain before block building waits twice as many turns of the others, and how often that happens.
const COURSES: u64 = 4;
const DOUBLINGS: u64 = 4;

/// Block building between the turns of the other searches.
struct Building {
    search: Option<BlockSearch>,
    is_large: bool,
    is_odd: bool,
    /// The next turn before which it is due, and its units of work.
    next: u64,
    units: u64,
}

impl Building {
    fn new(run: &mut Run<'_>, number: usize) -> Self {
        let (is_large, is_odd) = (run.instance().len() >= LARGE, number % 2 == 1);
        let next = if is_large || is_odd { 1 } else { 2 };
        Self { search: BlockSearch::new(run), is_large, is_odd, next, units: FIRST_BUILDING }
    }

    /// Whether it goes before all others.
    fn goes_first(&self) -> bool {
        self.is_large && self.search.as_ref().is_some_and(|search| search.courses < COURSES)
    }

    /// How often its waiting time was doubled.
    fn doubling_count(&self) -> u64 {
        self.search.as_ref().map_or(0, |search| (search.courses / COURSES).min(DOUBLINGS))
    }

    /// The units of work that it lacks beside exact search with work `exact`.
    fn work_behind(&self, run: &Run<'_>, exact: u64) -> u64 {
        let Some(search) = &self.search else { return 0 };
        let share =
            if run.instance().len() >= FEW { (WORK_PER_UNIT * exact) >> self.doubling_count() } else { 0 };
        share.saturating_sub(search.work_done())
    }

    /// Builds during a restart of exact search, which may outlast the run if there are thousands of buffers; no sooner than
    /// it is behind by as much as the first blocks take.
    fn catch_up(&mut self, run: &mut Run<'_>, exact: u64) -> Result<(), Halt> {
        let behind = self.work_behind(run, exact);
        let is_due = self.is_large && behind >= FIRST_BLOCKS * run.instance().len() as u64;
        if is_due { self.build_blocks(run, behind) } else { Ok(()) }
    }

    /// Its turn, if it is due before this turn of the others; `exact` is the work of exact search so far.
    fn take_turn(
        &mut self,
        run: &mut Run<'_>,
        turn: u64,
        exact: u64,
        over: &RunOver<'_>,
    ) -> Result<(), Halt> {
        let behind = self.work_behind(run, exact);
        if self.search.is_none() || (turn < self.next && behind == 0) {
            return Ok(());
        }
        let count = run.instance().len() as u64;
        self.next = turn + (1 << self.doubling_count());
        if turn == 1 && self.is_large {
            self.build_blocks(run, FIRST_BLOCKS * count)?;
            if self.is_odd {
                self.build_blocks(run, FEW_BLOCKS * count)?;
            }
            while self.is_odd && self.goes_first() {
                over.check_over()?;
                self.build_blocks(run, BUILDING_PER_BUFFER * count)?;
            }
            return Ok(());
        }
        let units = self.units;
        self.units = (GROWTH * units).min((BUILDING_PER_BUFFER * count).max(FIRST_BUILDING));
        self.build_blocks(run, units.max(behind))
    }

    /// Builds for some units of work, and gives up if there is nothing more to find or no hope.
    fn build_blocks(&mut self, run: &mut Run<'_>, units: u64) -> Result<(), Halt> {
        let Some(search) = &mut self.search else { return Ok(()) };
        if !search.run_slice(run, units)? || !search.is_promising() {
            self.search = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::placement::testing::almost_tight;
    use crate::registry;
    use planlab_dsa::testing::guillotine_instance;

    #[test]
    fn many_buffers_have_a_plan_before_the_first_greedy_order_is_through() {
        let count = u32::try_from(MANY).expect("small");
        let (instance, _) = guillotine_instance(count, Bytes::new(1 << 30), 1);
        let work = Some(u64::try_from(2 * instance.len()).expect("small"));
        let outcome = |planner: &dyn Planner| {
            let budget = Budget { work, ..Budget::default() };
            execute(planner, &instance, budget, 0).height()
        };
        assert!(outcome(&Portfolio).is_some());
        assert_eq!(outcome(&BestFit), None, "the limit is too high to tell");
    }

    #[test]
    fn no_time_gives_a_plan_in_any_case() {
        let (instance, _) = guillotine_instance(1000, Bytes::new(1 << 30), 1);
        let budget = Budget { wall: Some(Duration::ZERO), ..Budget::default() };
        assert_eq!(execute(&Portfolio, &instance, budget.clone(), 0).height(), None);
        let height = plan_in_any_case(&instance, budget.clone()).height();
        assert_eq!(height, execute(&BestFit, &instance, Budget::default(), 0).height());
        let too_little = Budget { work: Some(0), ..budget };
        assert_eq!(plan_in_any_case(&instance, too_little).height(), None, "only time is granted");
    }

    #[test]
    fn blocks_are_built_during_a_long_restart() {
        let budget = Budget { work: Some(10_000_000), ..Budget::default() };
        assert!(execute(&Portfolio, &almost_tight(2_400, 3), budget, 0).is_optimal());
    }

    #[test]
    fn each_greedy_planner_is_tried_once() {
        let keys: Vec<_> = greedy().iter().map(|planner| planner.descriptor().key).collect();
        let tried: BTreeSet<_> = keys.iter().cloned().collect();
        assert_eq!(tried.len(), keys.len());
        let is_greedy = |key: &str| {
            key == "best-fit"
                || ["first-fit/", "best-fit-gap/", "greedy-by-"].iter().any(|start| key.starts_with(start))
        };
        let all = registry().iter().map(|planner| planner.descriptor().key).collect::<BTreeSet<_>>();
        assert_eq!(tried, all.into_iter().filter(|key| is_greedy(key)).collect());
    }
}
