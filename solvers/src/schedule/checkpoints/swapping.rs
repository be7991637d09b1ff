//! Swaps checkpoints whose copies hide: those unused for longer than the way to the host and back takes.
//!
//! A trial run of the plan, with all its checkpoints kept, shows when each is used. A checkpoint is swapped if
//!
//! ```text
//! start of the next use - end of the previous use >= bytes / rate out + bytes / rate in
//! ```
//!
//! Here the previous use is the last one of the forward pass, and the next one the first after it: the backward pass of
//! a function, or the recomputation of another map. The rest is kept.
//!
//! # References
//!
//! 1. A Chinese patent on training with checkpoints and a free list (Zhejiang), its claims on swapping: whether the
//!    time between two uses hides the copies.
//!
//! # Complexity
//!
//! A simulation, O(n).
//!
//! # Deviations from the claims
//!
//! None. The rule looks at each map alone: copies that hide individually may still wait for each other on the link.

use planlab_graph::{Content, Engine, Schedule, Task, Timeline, simulate_schedule};

use crate::schedule::classes::{Class, Classes, Lab};

/// The same classes, but kept maps whose copies hide are swapped.
pub(super) fn swap_what_hides(lab: &Lab<'_>, mut classes: Classes) -> Classes {
    let draft = lab.draft_unbounded(&classes);
    // Compute events alone, with any amount of memory, never wait.
    let Ok(timeline) = simulate_schedule(&draft, None) else { return classes };
    let gaps = map_gaps(lab.problem().net.maps().len(), &draft, &timeline);
    let machine = &lab.problem().machine;
    for map in lab.classified_maps() {
        let bytes = lab.problem().net.map(map).bytes;
        let copies = machine.out_seconds(bytes) + machine.in_seconds(bytes);
        let hides = gaps[map.index()].is_some_and(|gap| gap >= copies);
        if hides && classes.class_of(map) == Class::Keep {
            classes.set_class(map, Class::Swap);
        }
    }
    classes
}

/// For each map: the seconds from the end of its last use in the forward pass to the start of the first one after;
/// `None` unless there are both.
fn map_gaps(maps: usize, schedule: &Schedule, timeline: &Timeline) -> Vec<Option<f64>> {
    let mut uses: Vec<(Option<f64>, Option<f64>)> = vec![(None, None); maps];
    for (event, span) in schedule.events_of(Engine::Compute).iter().zip(timeline.spans_of(Engine::Compute)) {
        for &buffer in event.reads.iter().chain(&event.writes) {
            let Content::Map(map) = schedule.buffer(buffer).content else { continue };
            let (previous, next) = &mut uses[map.index()];
            if matches!(event.task, Task::Forward(_)) {
                *previous = Some(span.end);
            } else {
                next.get_or_insert(span.start);
            }
        }
    }
    uses.into_iter().map(|(previous, next)| Some(next? - previous?)).collect()
}

#[cfg(test)]
mod tests {
    use planlab_graph::MapId;

    use super::*;
    use crate::schedule::classes::Policy;
    use crate::schedule::program::Prefetch;
    use crate::schedule::testing::shortcut_problem;

    /// The maps that are swapped if `recomputed` are recomputed and the link has `link` bytes per second in each
    /// direction.
    fn swapped(recomputed: &[usize], link: f64) -> Vec<usize> {
        let mut problem = shortcut_problem();
        problem.machine = problem.machine.with_link(link);
        let lab = Lab::new(&problem, Policy::Retain, Prefetch::AsRoomPermits);
        let mut classes = lab.all_in_class(Class::Keep);
        recomputed.iter().for_each(|&map| classes.set_class(MapId::from_index(map), Class::Recompute));
        let classes = swap_what_hides(&lab, classes);
        lab.classified_maps().filter(|&map| classes.class_of(map) == Class::Swap).map(MapId::index).collect()
    }

    #[test]
    fn a_map_is_swapped_if_its_way_there_and_back_is_no_longer_than_the_gap() {
        // F0 F1 F2 F3 F4 B4 B2 A2 B1 B0, 2 seconds each except 3 for the sum A2: the image rests from 2 to 19, the relu
        // from 8 to 12, the sum of maps from 10 to 10.
        assert_eq!(swapped(&[], 128.0), [0, 2]);
        assert_eq!(swapped(&[], 127.0), [0]);
        assert_eq!(swapped(&[], 2.0 * 64.0 / 17.0), [0]);
        assert_eq!(swapped(&[], 2.0 * 64.0 / 17.1), [0_usize; 0]);
    }

    #[test]
    fn a_recomputation_is_a_use() {
        // F0 .. F4 R2 R3 B4 ..: the relu is read again at 10, after it rested from 8.
        assert_eq!(swapped(&[4], 256.0), [0, 2]);
        assert_eq!(swapped(&[4], 255.0), [0]);
    }
}
