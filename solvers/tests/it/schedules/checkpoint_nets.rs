//! Tests checkpoints of ResNet-50 as a net for schedulers: their memory, and which of them are swapped.

use planlab_dsa::Bytes;
use planlab_graph::{Content, Engine, MapId, SchedulingProblem, Task, Verified};
use planlab_solvers::schedule::checkpoints::{Candidates, CheckpointNet, Cut, Patent, Thresholds, Update};
use planlab_solvers::schedule::{Class, Classes, find_scheduler};

use super::golden::run;
use super::nets::resnet50_on;

/// A batch of 32 without a memory limit.
fn problem() -> SchedulingProblem {
    resnet50_on("x86-pcie3", 32).with_capacity(Bytes::new(u64::MAX))
}

fn everything(net: &CheckpointNet<'_>) -> Cut {
    Cut { kept: (0..net.items().len()).collect(), ..Cut::default() }
}

#[test]
fn plans_of_every_rule_take_less_with_offsets_than_by_the_free_list() {
    let problem = problem();
    for candidates in Candidates::ALL {
        let net = CheckpointNet::new(&problem, candidates);
        let kept = net.free_list(&everything(&net)).expect("there is room").get();
        for rule in Update::ALL {
            let search = Patent::default().with_update(rule);
            let rounds =
                search.search(net.items(), |cut| net.free_list(cut).map(Bytes::get)).expect("there is room");
            let best = Patent::choose_round(&rounds).expect("eight rounds");
            let packed = net.pack_schedule(&best.cut).expect("there is room");
            let what = format!("{candidates:?}, {rule:?}");
            assert!(5 * best.cost < 3 * kept, "{what}: {} of {kept}", best.cost);
            assert!(packed.height().get() < best.cost && packed.height() >= packed.live_peak(), "{what}");
            // Each function is recomputed once at most.
            let recomputed = packed.schedule().events_of(Engine::Compute).iter();
            let recomputed = recomputed.filter(|event| matches!(event.task, Task::Recompute(_))).count();
            assert!(recomputed > 0 && recomputed <= problem.net.functions().len(), "{what}");
        }
    }
}

#[test]
fn half_of_the_articulation_points_score_high() {
    let problem = problem();
    let marks = Candidates::ALL.map(|candidates| {
        let items = CheckpointNet::new(&problem, candidates).items().to_vec();
        items.into_iter().map(|item| item.is_candidate).collect::<Vec<_>>()
    });
    let count = |marks: &Vec<bool>| marks.iter().filter(|&&yes| yes).count();
    assert_eq!((count(&marks[0]), count(&marks[1])), (20, 10));
    assert!(marks[1].iter().zip(&marks[0]).all(|(&scored, &point)| point || !scored));
}

/// The time for which a map rests in a schedule without copies: from its last use in the forward pass to the first one
/// after.
fn rest(trial: &Verified, map: MapId) -> f64 {
    let (schedule, timeline) = (trial.schedule(), trial.timeline());
    let is_of_map = |id: &planlab_dsa::BufferId| schedule.buffer(*id).content == Content::Map(map);
    let uses: Vec<_> = schedule
        .events_of(Engine::Compute)
        .iter()
        .zip(timeline.spans_of(Engine::Compute))
        .filter(|(event, _)| event.reads.iter().chain(&event.writes).any(is_of_map))
        .collect();
    let turn = uses.partition_point(|(event, _)| matches!(event.task, Task::Forward(_)));
    uses[turn].1.start - uses[turn - 1].1.end
}

#[test]
fn checkpoints_are_swapped_whose_copies_hide_and_no_others() {
    let mut swaps = Vec::new();
    for (link, threshold) in
        [(54e9, 0.0), (12e9, 0.0), (2e9, 0.0), (5e8, 0.0), (5e7, 0.0), (2e9, 3e8), (5e8, 3e8)]
    {
        let mut problem = problem();
        problem.machine = problem.machine.with_link(link);
        let net = CheckpointNet::new(&problem, Candidates::Articulation);
        let cut = planlab_solvers::schedule::checkpoints::cut_items(net.items(), threshold);
        let (kept, swapped) = (net.classes_of(&cut), net.clone().with_swap(true).classes_of(&cut));
        let trial = net.pack_schedule(&cut).expect("there is room");
        let mut count = 0;
        for map in problem.net.retained_maps().filter(|&map| kept.class_of(map) == Class::Keep) {
            let bytes = problem.net.map(map).bytes;
            let copies = problem.machine.out_seconds(bytes) + problem.machine.in_seconds(bytes);
            let hides = rest(&trial, map) >= copies;
            let class = if hides { Class::Swap } else { Class::Keep };
            assert_eq!(swapped.class_of(map), class, "{link}, map {map}");
            count += u32::from(hides);
        }
        let is_recomputed = |classes: &Classes| {
            let maps = problem.net.retained_maps();
            maps.map(|map| classes.class_of(map) == Class::Recompute).collect::<Vec<_>>()
        };
        assert_eq!(is_recomputed(&kept), is_recomputed(&swapped));
        swaps.push(count);
    }
    // Of 21 checkpoints, the image included, a slower link swaps fewer; then of 7.
    assert_eq!(swaps, [19, 18, 13, 2, 0, 3, 1]);
}

#[test]
fn swapping_checkpoints_lets_a_larger_batch_fit() {
    let speed = |key: &str, batch| {
        let problem = resnet50_on("power9-nvlink2", batch);
        let best = run(&problem, &find_scheduler(key).expect("registered")).best?;
        Some(problem.images_per_second(best.seconds()).round())
    };
    assert_eq!((speed("checkpoints/patent", 512), speed("checkpoints/patent", 640)), (Some(249.0), None));
    let swap = "checkpoints/patent/swap";
    assert_eq!((speed(swap, 512), speed(swap, 640)), (Some(254.0), Some(254.0)));
}
