//! The input of the arguments: one arena at a time, without hand-overs.
//!
//! If every buffer that may overwrite another loses its first step, a plan with hand-overs becomes a plan without: a
//! bound on the shortened instance is a bound on every plan. The height over several arenas is the sum of theirs, and
//! so is the bound.

use std::borrow::Cow;

use planlab_dsa::{Buffer, BufferId, Instance, KeepApart, LiveRange, Pause, Scope};

use crate::arenas::has_arenas;

/// A scope, and the instances used for it: for each arena, an instance of one arena without permissions or a capacity.
pub(super) struct View<'i> {
    pub(super) scope: Scope,
    pub(super) arenas: Vec<Cow<'i, Instance>>,
}

/// The views of an instance: one if there are no permissions, otherwise one for each scope. A scope without any plan
/// (pins that need a hand-over) is left out.
pub(super) fn instance_views(instance: &Instance) -> Vec<View<'_>> {
    if instance.in_place().is_empty() {
        return vec![View { scope: Scope::Any, arenas: arenas_alone(Cow::Borrowed(instance)) }];
    }
    let both = [
        (Scope::Any, shorten_hand_overs(instance)),
        (Scope::NoHandOver, change_buffers(instance, |_, b| Some(b.clone()))),
    ];
    let view = |(scope, changed): (Scope, Option<Instance>)| {
        Some(View { scope, arenas: arenas_alone(Cow::Owned(changed?)) })
    };
    both.into_iter().filter_map(view).collect()
}

fn arenas_alone(instance: Cow<'_, Instance>) -> Vec<Cow<'_, Instance>> {
    if has_arenas(&instance) {
        return instance.split_arenas().into_iter().map(|part| Cow::Owned(part.instance)).collect();
    }
    vec![instance]
}

/// The instance in which each buffer that may overwrite another begins a step later.
fn shorten_hand_overs(instance: &Instance) -> Option<Instance> {
    let mut is_output = vec![false; instance.len()];
    instance.in_place().iter().for_each(|pair| is_output[pair.output.index()] = true);
    change_buffers(instance, |id, buffer| {
        if is_output[id.index()] { without_first_step(buffer) } else { Some(buffer.clone()) }
    })
}

/// The instance with changed buffers and without permissions; `None` if that has no plan.
fn change_buffers(
    instance: &Instance,
    change: impl Fn(BufferId, &Buffer) -> Option<Buffer>,
) -> Option<Instance> {
    let mut new = vec![None; instance.len()];
    let mut kept = Vec::new();
    for (id, buffer) in instance.ids().zip(instance.buffers()) {
        if let Some(buffer) = change(id, buffer) {
            new[id.index()] = Some(BufferId::from_index(kept.len()));
            kept.push(buffer);
        }
    }
    let pair = |pair: &KeepApart| {
        Some(KeepApart { first: new[pair.first.index()]?, second: new[pair.second.index()]? })
    };
    let apart: Vec<KeepApart> = instance.keep_apart_pairs().iter().filter_map(pair).collect();
    Instance::builder().buffers(kept).apart(apart).arenas(instance.arenas().to_vec()).build().ok()
}

/// The buffer without its first step, at which all of it is in use.
fn without_first_step(buffer: &Buffer) -> Option<Buffer> {
    clip_to_steps(buffer, LiveRange::new(buffer.live.start().get() + 1, buffer.live.end().get()).ok()?)
}

pub(super) fn clip_to_steps(buffer: &Buffer, steps: LiveRange) -> Option<Buffer> {
    let live = buffer.live.intersection(steps)?;
    let inside = |pause: &Pause| {
        pause.steps.intersection(live).map(|steps| Pause { steps, window: pause.window.clone() })
    };
    let pauses: Vec<Pause> = buffer.pauses.iter().filter_map(inside).collect();
    Some(Buffer { live, pauses: pauses.into(), ..buffer.clone() })
}

/// The sets of buffers that are in use together, as ascending rows, in step order; none is contained in the one before
/// or after it. `None` if they have more than `most` members in total.
pub(super) fn live_sections(instance: &Instance, most: usize) -> Option<Vec<Vec<u32>>> {
    let mut events = Vec::with_capacity(2 * instance.len());
    for (row, buffer) in (0_u32..).zip(instance.buffers()) {
        for piece in buffer.active_pieces() {
            events.push((piece.steps.start().get(), true, row));
            events.push((piece.steps.end().get(), false, row));
        }
    }
    // Ends come before starts of the same step.
    events.sort_unstable();
    let (mut live, mut all, mut members) = (std::collections::BTreeSet::new(), Vec::new(), 0);
    let mut grew = false;
    for (_, begins, row) in events {
        if begins {
            live.insert(row);
            grew = true;
        } else {
            // A buffer that continues when its window changes was in use before.
            if grew {
                members += live.len();
                if members > most {
                    return None;
                }
                all.push(live.iter().copied().collect());
            }
            grew = false;
            live.remove(&row);
        }
    }
    Some(all)
}

/// A step of each section, ascending, and the bytes in use then.
pub(super) fn section_crests<'b>(buffers: impl Iterator<Item = &'b Buffer>) -> Vec<(u32, u64)> {
    let mut events = Vec::new();
    for piece in buffers.flat_map(Buffer::active_pieces) {
        events.push((piece.steps.start().get(), true, piece.bytes()));
        events.push((piece.steps.end().get(), false, piece.bytes()));
    }
    events.sort_unstable();
    let (mut all, mut load, mut grew) = (Vec::new(), 0, None);
    for (step, begins, bytes) in events {
        if begins {
            load += bytes;
            grew = Some(step);
        } else {
            all.extend(grew.take().map(|since| (since, load)));
            load -= bytes;
        }
    }
    all
}
