//! Larger instances with in-place permissions: some hand-overs are decided first, then the rest is searched.
//!
//! A buffer that takes the whole place of another is one with it: the two become a single buffer that
//! lives as long as both. So a set of hand-overs between buffers of equal size leaves an instance without
//! permissions, and every plan of that is one of the whole. Three sets take turns: those of the incumbent,
//! as many as fit together by size, and none at all.
//!
//! # Deviations from the paper
//!
//! Which hand-overs to use is a guess: plans of a set prove nothing of other sets, and the bound stays that
//! on plans with hand-overs. Hand-overs into part of a place are left to the greedy planners and to the
//! search by precedences.

use planlab_dsa::{Buffer, BufferId, Halt, InPlace, Instance, LiveRange, Plan, Run};

use super::minimise::{Minimiser, Task};
use super::precedence;
use super::pruning::Pruning;
use crate::team::team;

/// Few enough buffers and permissions to try every set of them.
const FEW: (usize, usize) = (14, 10);

/// Searches for plans with hand-overs until the run is over.
pub(super) fn minimise(run: &mut Run<'_>, pruning: Pruning) -> Result<(), Halt> {
    let instance = run.instance();
    if (instance.len(), instance.in_place().len()) <= FEW || instance.len() <= FEW.0 {
        return precedence::minimise(run);
    }
    let of_incumbent = run.best().map(|best| best.in_place().to_vec()).unwrap_or_default();
    let sets = [matching(instance, instance.in_place()), matching(instance, &of_incumbent)];
    let mut merges: Vec<Merge> = sets.iter().filter_map(|pairs| Merge::new(instance, pairs)).collect();
    merges.dedup_by(|a, b| a.pairs == b.pairs);
    let mut tasks: Vec<Task> = merges.into_iter().filter_map(|merge| Task::merged(merge, pruning)).collect();
    tasks.extend(Task::new(run, pruning));
    if tasks.is_empty() {
        return precedence::minimise(run);
    }
    let stack = tasks.iter().map(Task::stack).max().unwrap_or(0);
    team(run, stack, |run, number, over| {
        let mut searches = Vec::new();
        for task in &tasks {
            searches.push(Minimiser::new(run, task, number)?);
        }
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for search in &mut searches {
                goes_on |= search.turn(run, over)?;
            }
        }
        Ok(())
    })
}

/// Hand-overs of a whole place that can be used together, the largest first.
fn matching(instance: &Instance, permissions: &[InPlace]) -> Vec<InPlace> {
    let mut pairs: Vec<InPlace> =
        permissions.iter().copied().filter(|&pair| is_whole(instance, pair)).collect();
    pairs.sort_by_key(|pair| (std::cmp::Reverse(instance.buffer(pair.output).size), *pair));
    let (mut gives, mut takes) = (vec![false; instance.len()], vec![false; instance.len()]);
    pairs.retain(|pair| {
        let (input, output) = (pair.input.index(), pair.output.index());
        let is_free = !gives[input] && !takes[output];
        if is_free {
            (gives[input], takes[output]) = (true, true);
        }
        is_free
    });
    pairs
}

/// Whether two buffers can become one.
fn is_whole(instance: &Instance, pair: InPlace) -> bool {
    let (input, output) = (instance.buffer(pair.input), instance.buffer(pair.output));
    let is_plain = |buffer: &Buffer, id: BufferId| {
        let is_apart = instance.apart().iter().any(|pair| pair.first == id || pair.second == id);
        buffer.pauses.is_empty() && buffer.pin.is_none() && !is_apart
    };
    // A buffer of one step would begin and end where another does: a circle could close.
    input.size == output.size
        && input.align == output.align
        && input.live.start() < output.live.start()
        && is_plain(input, pair.input)
        && is_plain(output, pair.output)
}

/// An instance in which buffers that hand their whole place over are one.
pub(super) struct Merge {
    pub(super) instance: Instance,
    /// The merged buffer that each buffer has become a part of.
    part_of: Vec<usize>,
    pairs: Vec<InPlace>,
}

impl Merge {
    /// `None` where nothing is merged.
    fn new(instance: &Instance, pairs: &[InPlace]) -> Option<Self> {
        if pairs.is_empty() {
            return None;
        }
        let mut giver = vec![None; instance.len()];
        pairs.iter().for_each(|pair| giver[pair.output.index()] = Some(pair.input.index()));
        let mut by_start: Vec<usize> = (0..instance.len()).collect();
        by_start.sort_by_key(|&at| (instance.buffers()[at].live.start(), at));
        let mut part_of = vec![0; instance.len()];
        let mut buffers: Vec<Buffer> = Vec::new();
        for at in by_start {
            let buffer = &instance.buffers()[at];
            part_of[at] = giver[at].map_or(buffers.len(), |giver: usize| part_of[giver]);
            match buffers.get_mut(part_of[at]) {
                Some(merged) => {
                    let (start, end) =
                        (merged.live.start().get(), buffer.live.end().max(merged.live.end()).get());
                    merged.live = LiveRange::new(start, end).ok()?;
                }
                None => buffers.push(buffer.clone()),
            }
        }
        let number = |id: BufferId| BufferId::from_index(part_of[id.index()]);
        let apart = instance
            .apart()
            .iter()
            .map(|pair| planlab_dsa::KeepApart { first: number(pair.first), second: number(pair.second) });
        let merged = Instance::builder().buffers(buffers).apart(apart).build().ok()?;
        Some(Self { instance: merged, part_of, pairs: pairs.to_vec() })
    }

    /// A plan of the merged instance as one of the whole.
    pub(super) fn whole(&self, plan: &Plan) -> Plan {
        let offsets: Vec<_> = self.part_of.iter().map(|&part| plan.offsets[part]).collect();
        Plan { offsets, in_place: self.pairs.clone() }
    }
}
