//! Larger instances with in-place permissions or windows: decides first what the search does not support.
//!
//! A buffer that takes the whole place of another is merged with it: the two become a single buffer that lives as long
//! as both. A buffer with a window in use is treated as in use as a whole. So a set of hand-overs between buffers of
//! equal size gives an instance without permissions and windows, and each of its plans is a plan of the original. Three
//! sets take turns: as many hand-overs as fit together, the largest first; those of the incumbent; and the empty set.
//!
//! Once nothing lower is left in any of the three, and not before, others follow. With few buffers, the first worker looks
//! for a proof by precedences, in turns with [local search over orders](crate::placement::search::orders), which also
//! finds hand-overs into a part of a place, and the room that windows leave. Otherwise local search takes turns with other
//! sets: those that fit together if the permissions are taken in a random order and some are left out. A set of the first
//! three that is neither refuted nor beaten keeps the search until the limit.
//!
//! The choice is a guess: a refuted capacity proves nothing for other sets, and the bound does not change. So the search
//! ends by itself only with a proof.
//!
//! # References
//!
//! 1. T. Chen, B. Xu, C. Zhang and C. Guestrin, *Training deep nets with sublinear memory cost*, 2016,
//!    arXiv:1604.06174, section 3 (operations in place).
//!
//! # Complexity
//!
//! That of the search, for each of three instances.

use planlab_dsa::{BufferId, Halt, InPlace, Instance, Run, Scope};
use rand::RngExt;
use rand::seq::SliceRandom;

use super::merge::Merge;
use super::minimise::{Minimiser, Task};
use super::precedence;
use crate::demands::is_kept_apart;
use crate::placement::search::OrderSearch;
use crate::team::{EndsWith, RunOver, run_team};

/// Up to this many buffers and permissions, every set of permissions is tried.
const FEW: (usize, usize) = (14, 10);
/// The most buffers for which precedences are tried as a last resort.
const MOST_BY_PRECEDENCE: usize = 64;

/// Units of work of a turn of the search by precedences, and buffers placed in one of local search beside it.
const TURN: u64 = 20_000;
/// Turns with a random set of hand-overs before the next one.
const TURNS_OF_A_SET: u32 = 16;
/// Of this many permissions, a random set leaves one out.
const SKIPPED_ONE_IN: u32 = 8;

/// Searches until the run is over. Returns if nothing can move, or if there is no plan.
pub(super) fn minimise_hand_overs(run: &mut Run<'_>) -> Result<(), Halt> {
    let instance = run.instance();
    if instance.len() <= FEW.0 && instance.in_place().len() <= FEW.1 {
        return precedence::minimise_by_precedence(run, &mut |_, _| Ok(()));
    }
    let tasks = hand_over_tasks(run)?;
    let stack = tasks.iter().map(Task::stack_bytes).max().unwrap_or(0);
    run_team(run, stack, EndsWith::All, |run, number, over| {
        minimise_all(run, &tasks, number, over)?;
        let mut local = OrderSearch::new(run)?;
        if number == 0 && instance.len() <= MOST_BY_PRECEDENCE {
            prove_beside(run, local.as_mut(), over)?;
        }
        let random = RandomSets { pairs: whole_pairs(run), stack };
        local.map_or(Ok(()), |local| search_random_sets(run, local, &random, number, over))
    })
}

/// Searches in each of the sets until nothing lower is left in any.
fn minimise_all(run: &mut Run<'_>, tasks: &[Task], number: usize, over: &RunOver<'_>) -> Result<(), Halt> {
    let mut searches = Vec::new();
    for task in tasks {
        searches.push(Minimiser::new(run, task, number)?);
    }
    let mut goes_on = true;
    while goes_on {
        goes_on = false;
        for search in &mut searches {
            goes_on |= search.run_turn(run, over)?;
        }
    }
    Ok(())
}

/// The search by precedences, in turns with local search.
fn prove_beside(
    run: &mut Run<'_>,
    mut local: Option<&mut OrderSearch>,
    over: &RunOver<'_>,
) -> Result<(), Halt> {
    let mut next = TURN;
    precedence::minimise_by_precedence(run, &mut |run, work| {
        over.check_over()?;
        if work < next {
            return Ok(());
        }
        next = work + TURN;
        local.as_mut().map_or(Ok(()), |local| local.run_turn(run, TURN))
    })
}

/// Local search and random sets of hand-overs in turns, until the run is over.
fn search_random_sets(
    run: &mut Run<'_>,
    mut local: OrderSearch,
    random: &RandomSets,
    number: usize,
    over: &RunOver<'_>,
) -> Result<(), Halt> {
    loop {
        over.check_over()?;
        local.run_turn(run, TURN)?;
        let Some(task) = random.draw_task(run)? else { continue };
        let mut search = Minimiser::new(run, &task, number)?;
        for _ in 0..TURNS_OF_A_SET {
            if !search.run_turn(run, over)? {
                break;
            }
        }
    }
}

/// Draws problems with random sets of hand-overs.
struct RandomSets {
    /// The permissions between whole buffers.
    pairs: Vec<InPlace>,
    /// Stack that a search may need, in bytes.
    stack: usize,
}

impl RandomSets {
    /// `None` if there are no such permissions, or the search does not support the problem.
    fn draw_task(&self, run: &mut Run<'_>) -> Result<Option<Task>, Halt> {
        let instance = run.instance();
        run.tick((self.pairs.len() + instance.len()) as u64)?;
        let mut pairs = self.pairs.clone();
        pairs.retain(|_| !run.rng().random_ratio(1, SKIPPED_ONE_IN));
        pairs.shuffle(run.rng());
        keep_compatible(instance, &mut pairs);
        if pairs.is_empty() {
            return Ok(None);
        }
        let task = Merge::new(instance, pairs).and_then(Task::from_merge);
        Ok(task.filter(|task| task.stack_bytes() <= self.stack))
    }
}

/// The permissions between buffers that can become one; none if the run uses none.
fn whole_pairs(run: &Run<'_>) -> Vec<InPlace> {
    let permissions = if run.scope() == Scope::Any { run.instance().in_place() } else { &[] };
    keep_whole(run.instance(), permissions)
}

fn hand_over_tasks(run: &mut Run<'_>) -> Result<Vec<Task>, Halt> {
    let instance = run.instance();
    let of_incumbent = run.best_plan()?.map(|best| best.in_place().to_vec()).unwrap_or_default();
    let of_incumbent = keep_whole(instance, &of_incumbent);
    let mut sets = vec![
        compatible_hand_overs(instance, whole_pairs(run)),
        compatible_hand_overs(instance, of_incumbent),
        Vec::new(),
    ];
    sets.dedup();
    let merge = |pairs: Vec<InPlace>| Merge::new(instance, pairs);
    Ok(sets.into_iter().filter_map(merge).filter_map(Task::from_merge).collect())
}

/// The hand-overs of these that can be used together, the largest first.
fn compatible_hand_overs(instance: &Instance, mut pairs: Vec<InPlace>) -> Vec<InPlace> {
    pairs.sort_by_key(|pair| (std::cmp::Reverse(instance.buffer(pair.output).size), *pair));
    keep_compatible(instance, &mut pairs);
    pairs
}

/// Leaves out each pair whose input or output one before it has.
fn keep_compatible(instance: &Instance, pairs: &mut Vec<InPlace>) {
    let (mut gives, mut takes) = (vec![false; instance.len()], vec![false; instance.len()]);
    pairs.retain(|pair| {
        let (input, output) = (pair.input.index(), pair.output.index());
        let is_free = !gives[input] && !takes[output];
        if is_free {
            (gives[input], takes[output]) = (true, true);
        }
        is_free
    });
}

/// The pairs of these whose buffers can become one.
fn keep_whole(instance: &Instance, pairs: &[InPlace]) -> Vec<InPlace> {
    let is_apart = is_kept_apart(instance);
    let is_plain = |id: BufferId| {
        let buffer = instance.buffer(id);
        buffer.pauses.is_empty() && buffer.pin.is_none() && !is_apart[id.index()]
    };
    let is_whole = |pair: &&InPlace| {
        let (input, output) = (instance.buffer(pair.input), instance.buffer(pair.output));
        input.size == output.size
            && input.align == output.align
            && input.live.start() < output.live.start()
            && is_plain(pair.input)
            && is_plain(pair.output)
    };
    pairs.iter().filter(is_whole).copied().collect()
}
