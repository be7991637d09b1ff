//! Puts buffers with much padding on top, where padding costs nothing.
//!
//! Below the topmost buffer, every aligned buffer takes a whole multiple of the alignment. So a plan that is above the
//! [bound of rounded sizes](crate::bounds) by less than the alignment has the wrong buffers on top. At each step whose
//! rounded sizes exceed the bound, one with enough padding has to be there. They are chosen in the order of time, each
//! as long-lived as possible, and pinned below the bound; the portfolio places the rest.
//!
//! ```text
//!   alignment 8      |  8  |            +---+
//!                    +-----+            | 3 |
//!                    | 3 ..|     ->     +---+-+
//!                    +-----+            |  8  |
//!              height 16                +-----+ 11, the bound
//! ```
//!
//! # Complexity
//!
//! O(k n log n) for n buffers and k on top, then a limited search.

use std::cmp::Reverse;

use planlab_dsa::{
    Buffer, BufferId, Bytes, Event, Halt, Instance, Offset, Plan, Planner, Run, Scope,
    greatest_common_divisor,
};

use crate::nested::{Share, Then, run_nested};

/// Units of work for each buffer of the search for the rest.
const WORK_PER_BUFFER: u64 = 2_000;
/// The most buffers that are tried for a step, the longest-lived first.
const MOST_TRIED: usize = 64;
/// The most buffers that are put on top.
const MOST_TOPS: usize = 64;

/// Steps `[start, end)` at which the rounded sizes exceed the bound by `excess` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tight {
    start: u32,
    end: u32,
    excess: u64,
}

/// Tries to lower an incumbent that is less than the common alignment above the bound; `planner` places what is not on
/// top.
pub(crate) fn lower_by_padding(planner: &dyn Planner, run: &mut Run<'_>) -> Result<(), Halt> {
    let instance = run.instance();
    let align =
        instance.buffers().iter().fold(0, |all, buffer| greatest_common_divisor(all, buffer.align.get()));
    let bound = run.bound().best_claim(Scope::NoHandOver).value.get();
    let is_near = |height: Bytes| bound < height.get() && height.get() - bound < align;
    if run.scope() != Scope::NoHandOver || !is_plain(instance) || !run.height_to_beat().is_some_and(is_near) {
        return Ok(());
    }
    run.tick(instance.len() as u64)?;
    let tight = tight_steps(instance, align, bound);
    let Some(tops) = topmost_buffers(run, align, &tight)? else { return Ok(()) };
    let Some(pinned) = pin_tops(instance, &tops, bound) else { return Ok(()) };
    let work = WORK_PER_BUFFER.saturating_mul(instance.len() as u64);
    let all = Share::all_remaining(run);
    let work = all.work.map_or(work, |left| left.min(work));
    let share = Share { work: Some(work), target: Some(Bytes::new(bound)), ..all };
    run_nested(run, planner, &pinned, share, |run, event| {
        if let Event::Incumbent(plan) = event {
            run.offer(Plan::from_offsets(plan.offsets().to_vec()))?;
        }
        Ok(Then::GoOn)
    })?;
    Ok(())
}

/// Whether nothing but lives, sizes and alignments restricts a plan.
fn is_plain(instance: &Instance) -> bool {
    let is_plain = |buffer: &Buffer| buffer.pin.is_none() && buffer.pauses.is_empty();
    instance.keep_apart_pairs().is_empty() && instance.buffers().iter().all(is_plain)
}

fn top_padding_of(buffer: &Buffer, align: u64) -> u64 {
    buffer.size.get().wrapping_neg() % align
}

/// The steps whose rounded sizes exceed the bound, in their order. Sizes that do not fit 64 bits exceed nothing.
fn tight_steps(instance: &Instance, align: u64, bound: u64) -> Vec<Tight> {
    let changes = instance.buffers().iter().flat_map(|buffer| {
        let rounded = buffer.size.get().saturating_add(top_padding_of(buffer, align));
        [(buffer.live.end().get(), false, rounded), (buffer.live.start().get(), true, rounded)]
    });
    let mut changes: Vec<(u32, bool, u64)> = changes.collect();
    changes.sort_unstable();
    let (mut sum, mut tight) = (0_u64, Vec::new());
    for (at, &(start, begins, rounded)) in changes.iter().enumerate() {
        sum = if begins { sum.saturating_add(rounded) } else { sum.saturating_sub(rounded) };
        let end = changes.get(at + 1).map_or(start, |next| next.0);
        if sum > bound && start < end {
            tight.push(Tight { start, end, excess: sum - bound });
        }
    }
    tight
}

/// A buffer with enough padding for each of these steps, no two of them live at once. `None` if some step has no such buffer.
fn topmost_buffers(run: &mut Run<'_>, align: u64, tight: &[Tight]) -> Result<Option<Vec<BufferId>>, Halt> {
    let instance = run.instance();
    let (mut chosen, mut free, mut at) = (Vec::new(), 0, 0);
    while let Some(next) = tight.get(at) {
        if chosen.len() == MOST_TOPS {
            return Ok(None);
        }
        run.tick(instance.len() as u64)?;
        let is_near = |id: &BufferId| {
            let buffer = instance.buffer(*id);
            let (start, end) = (buffer.live.start().get(), buffer.live.end().get());
            free <= start
                && start <= next.start
                && next.end <= end
                && top_padding_of(buffer, align) >= next.excess
        };
        let mut near: Vec<BufferId> = instance.ids().filter(is_near).collect();
        near.sort_unstable_by_key(|&id| Reverse((instance.buffer(id).live.end(), id)));
        let mut longest = None;
        for id in near.into_iter().take(MOST_TRIED) {
            let buffer = instance.buffer(id);
            let end = buffer.live.end().get();
            let covered = tight[at..].iter().take_while(|steps| steps.start < end);
            let enough =
                covered.clone().take_while(|steps| steps.excess <= top_padding_of(buffer, align)).count();
            run.tick(enough as u64)?;
            if covered.count() == enough {
                longest = Some(id);
                break;
            }
        }
        let Some(top) = longest else { return Ok(None) };
        free = instance.buffer(top).live.end().get();
        at += tight[at..].iter().take_while(|steps| steps.start < free).count();
        chosen.push(top);
    }
    Ok((!chosen.is_empty()).then_some(chosen))
}

/// The instance with these buffers as far up as they end below the bound.
fn pin_tops(instance: &Instance, tops: &[BufferId], bound: u64) -> Option<Instance> {
    let mut buffers = instance.buffers().to_vec();
    for top in tops {
        let buffer = &mut buffers[top.index()];
        let highest = bound.checked_sub(buffer.size.get())?;
        buffer.pin = Some(Offset::new(highest - highest % buffer.align.get()));
    }
    Instance::from_buffers(buffers).ok()
}

#[cfg(test)]
mod tests {
    use planlab_dsa::{Budget, execute};

    use super::*;
    use crate::placement::greedy::Fit;
    use crate::placement::testing::{self, scripted};
    use crate::placement::{Order, Portfolio};

    const FIT: Fit = Fit::first_fit(Order::Input);

    fn aligned(rows: &[(u64, u32, u32)]) -> Instance {
        let buffers = rows.iter().map(|&(size, start, end)| testing::aligned(size, start, end, 8));
        Instance::from_buffers(buffers.collect()).expect("valid")
    }

    /// First fit in the order of the buffers, then the tops.
    fn fit_and_lower() -> impl Planner {
        scripted(FIT.descriptor(), |run| {
            FIT.plan(run)?;
            lower_by_padding(&Portfolio, run)
        })
    }

    #[test]
    fn padding_goes_to_the_top() {
        // The small ones are at the bottom; both fullest steps need one of them on top.
        let instance = aligned(&[(3, 0, 2), (8, 0, 2), (8, 0, 5)]);
        let outcome = execute(&fit_and_lower(), &instance, Budget::default(), 0);
        assert_eq!(outcome.height(), Some(Bytes::new(19)));
        assert!(outcome.is_optimal());
    }

    #[test]
    fn each_full_step_has_a_top_of_its_own() {
        let instance = aligned(&[(3, 0, 2), (8, 0, 5), (4, 3, 5), (8, 0, 5)]);
        let tight = tight_steps(&instance, 8, 20);
        assert_eq!(tight, [Tight { start: 0, end: 2, excess: 4 }, Tight { start: 3, end: 5, excess: 4 }]);
        let outcome = execute(&fit_and_lower(), &instance, Budget::default(), 0);
        assert_eq!(outcome.height(), Some(Bytes::new(20)));
        assert!(outcome.is_optimal());
    }

    #[test]
    fn a_step_without_enough_padding_has_no_top() {
        let planner = scripted(FIT.descriptor(), |run| {
            let tight = |excess| [Tight { start: 0, end: 2, excess }];
            assert_eq!(topmost_buffers(run, 8, &tight(5))?, Some(vec![BufferId::new(0)]));
            assert_eq!(topmost_buffers(run, 8, &tight(6))?, None);
            FIT.plan(run)
        });
        let instance = aligned(&[(3, 0, 2), (8, 0, 2)]);
        assert!(execute(&planner, &instance, Budget::default(), 0).end.is_ok());
    }
}
