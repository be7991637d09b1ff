//! Tries classifications: the time and the memory that each takes.

use planlab_dsa::Bytes;
use planlab_graph::{
    MapId, Schedule, ScheduleHalt, ScheduleRun, SchedulingProblem, Stuck, Timeline, simulate_schedule,
};

use super::class::{Class, Classes, Counts, Policy};
use super::program::{Recipes, build_program};
use crate::schedule::program::{DoesNotFit, Prefetch, Program, draft_schedule, memory_by_step};

/// The most events of the compute engine for each function in a schedule that is offered.
const MOST_RUNS: usize = 64;

/// A problem, and the rules by which classifications of its maps become schedules.
#[derive(Clone, Debug)]
pub struct Lab<'p> {
    problem: &'p SchedulingProblem,
    recipes: Recipes,
    policy: Policy,
    prefetch: Prefetch,
    /// The memory that schedules may use: at most the problem's capacity.
    room: Bytes,
}

/// Why a classification gives no schedule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub enum Trial {
    /// It needs more memory than there is.
    DoesNotFit(#[from] DoesNotFit),
    /// Its events wait for each other, or for memory that is never freed.
    Stuck(#[from] Stuck),
}

impl<'p> Lab<'p> {
    /// Classifications of a problem's maps under a policy.
    #[must_use]
    pub fn new(problem: &'p SchedulingProblem, policy: Policy, prefetch: Prefetch) -> Self {
        Self { problem, recipes: Recipes::new(&problem.net), policy, prefetch, room: problem.capacity }
    }

    /// The same with another policy.
    #[must_use]
    pub(crate) const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Limits the bytes in use at once to `room`, at most the problem's capacity. The rest is for the gaps between
    /// buffers.
    #[must_use]
    pub fn with_room(mut self, room: Bytes) -> Self {
        self.room = room.min(self.problem.capacity);
        self
    }

    /// The problem.
    #[must_use]
    pub const fn problem(&self) -> &'p SchedulingProblem {
        self.problem
    }

    /// The maps that have a class, ascending: those that a backward pass reads.
    pub fn classified_maps(&self) -> impl DoubleEndedIterator<Item = MapId> {
        self.recipes.classified_maps()
    }

    /// Whether a function makes the map, so that it can be recomputed.
    ///
    /// # Panics
    ///
    /// If there is no such map.
    #[must_use]
    pub fn can_recompute(&self, map: MapId) -> bool {
        self.problem.net.producer_of(map).is_some()
    }

    /// For each map with a class: the seconds to recompute it alone from the nearest maps with a class.
    pub(crate) fn recompute_seconds(&self) -> Vec<(MapId, f64)> {
        self.recipes.recompute_seconds(self.problem)
    }

    /// All maps in one class.
    #[must_use]
    pub fn all_in_class(&self, class: Class) -> Classes {
        Classes::all_in_class(class, self.problem.net.maps().len())
    }

    /// The number of maps in each class.
    #[must_use]
    pub fn count_classes(&self, classes: &Classes) -> Counts {
        let mut counts = Counts::default();
        for map in self.classified_maps() {
            match classes.class_of(map) {
                Class::Keep => counts.keep += 1,
                Class::Swap => counts.swap += 1,
                Class::Recompute => counts.recompute += 1,
            }
        }
        counts
    }

    /// A letter for each map with a class, ascending.
    #[must_use]
    pub fn class_letters(&self, classes: &Classes) -> String {
        self.classified_maps().map(|map| classes.class_of(map).letter()).collect()
    }

    fn build_program(&self, classes: &Classes, vanished: Option<MapId>) -> Program {
        build_program(self.problem, &self.recipes, classes, self.policy, vanished)
    }

    /// The most bytes that a classification takes, without copies in; the base included.
    #[must_use]
    pub fn peak_bytes(&self, classes: &Classes) -> Bytes {
        most_bytes(&self.build_program(classes, None))
    }

    /// As [`Lab::peak_bytes`]; `None` if the classification recomputes too often for its schedule to be offered.
    pub(crate) fn peak_if_offered(&self, classes: &Classes) -> Option<Bytes> {
        let program = self.build_program(classes, None);
        (!self.has_too_many_runs(&program)).then(|| most_bytes(&program))
    }

    fn has_too_many_runs(&self, program: &Program) -> bool {
        program.compute_steps().len() > MOST_RUNS * self.problem.net.functions().len()
    }

    /// The draft of a classification, or the part that does not fit.
    pub fn draft_schedule(&self, classes: &Classes) -> Result<Schedule, DoesNotFit> {
        draft_schedule(self.problem, self.build_program(classes, None), self.prefetch, self.room)
    }

    /// A classification's draft and its timeline, or why it does not run.
    pub fn run_draft(&self, classes: &Classes) -> Result<(Schedule, Timeline), Trial> {
        self.run_without(classes, None, self.room)
    }

    /// As [`Lab::run_draft`] in another [room](Lab::with_room).
    pub(crate) fn run_within(&self, classes: &Classes, room: Bytes) -> Result<(Schedule, Timeline), Trial> {
        self.run_without(classes, None, room.min(self.problem.capacity))
    }

    /// As [`Lab::run_draft`], if `vanished` had no bytes.
    fn run_without(
        &self,
        classes: &Classes,
        vanished: Option<MapId>,
        room: Bytes,
    ) -> Result<(Schedule, Timeline), Trial> {
        self.run_program(self.build_program(classes, vanished), room)
    }

    fn run_program(&self, program: Program, room: Bytes) -> Result<(Schedule, Timeline), Trial> {
        let draft = draft_schedule(self.problem, program, self.prefetch, room)?;
        let timeline = simulate_schedule(&draft, Some(room))?;
        Ok((draft, timeline))
    }

    /// The seconds that a classification takes; `None` if it does not run.
    #[must_use]
    pub fn iteration_seconds(&self, classes: &Classes) -> Option<f64> {
        self.run_draft(classes).ok().map(|(_, timeline)| timeline.seconds)
    }

    /// The seconds that a classification would take if a map were kept and had no bytes; `None` if it does not run.
    #[must_use]
    pub fn seconds_with_free(&self, classes: &Classes, map: MapId) -> Option<f64> {
        let kept = classes.with_class(map, Class::Keep);
        self.run_without(&kept, Some(map), self.room).ok().map(|(_, timeline)| timeline.seconds)
    }

    /// A classification's compute events, without copies.
    pub(crate) fn draft_unbounded(&self, classes: &Classes) -> Schedule {
        self.build_program(classes, None).schedule
    }

    /// Offers a classification, or reports why there is no schedule of it. Errors are as of [`ScheduleRun::tick`] and
    /// [`ScheduleRun::offer`].
    pub fn offer_classes(
        &self,
        run: &mut ScheduleRun<'_>,
        classes: &Classes,
        key: &str,
    ) -> Result<(), ScheduleHalt> {
        run.tick(1)?;
        self.submit_classes(run, classes, key)
    }

    /// Searches from `classes` on and offers the result: the complete one, or the best so far if the run stops the
    /// search. Errors are those of the search, or as of [`Lab::offer_classes`].
    pub(crate) fn search_classes(
        &self,
        run: &mut ScheduleRun<'_>,
        classes: &mut Classes,
        key: &str,
        search: impl FnOnce(&mut ScheduleRun<'_>, &mut Classes) -> Result<(), ScheduleHalt>,
    ) -> Result<(), ScheduleHalt> {
        let end = search(run, classes);
        match end {
            Ok(()) => self.offer_classes(run, classes, key),
            Err(ScheduleHalt::Stop(_)) => self.submit_classes(run, classes, key).and(end),
            Err(ScheduleHalt::Error(_)) => end,
        }
    }

    /// As [`Lab::offer_classes`], but counts no work: works after the run is over, too.
    fn submit_classes(
        &self,
        run: &mut ScheduleRun<'_>,
        classes: &Classes,
        key: &str,
    ) -> Result<(), ScheduleHalt> {
        let program = self.build_program(classes, None);
        if self.has_too_many_runs(&program) {
            run.fall_short("too large: the recomputations are too many to place their buffers");
            return Ok(());
        }
        match self.run_program(program, self.room) {
            Ok((draft, _)) => run.offer(Schedule { scheduler: key.to_owned(), ..draft }),
            Err(reason) => {
                run.fall_short(format!("{} ({})", reason, self.count_classes(classes)));
                Ok(())
            }
        }
    }
}

/// The most bytes that a program takes at once, without copies in; the base included.
fn most_bytes(program: &Program) -> Bytes {
    Bytes::new(memory_by_step(program).into_iter().max().unwrap_or(0))
}
