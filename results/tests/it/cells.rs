//! Compares leaderboards, gaps and heights with loops over a store's cells, and with results by hand.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::Stop;
use planlab_results::queries::{CellRow, Cells, HeightPairs, Leader, PENALTY_GAP, Tables};
use planlab_results::{Lane, Record, Status};

use crate::common::row;
use crate::queries::curated;

fn cells(rows: &[Record]) -> Cells {
    Tables::of_records(rows).and_then(|tables| tables.cells(str::cmp)).expect("cells")
}

/// A planner's cell on a workload with a bound of 100.
fn cell(planner: &str, workload: &str, height: u64) -> Record {
    row(&format!("{planner} {workload}"), 0).with(|row| {
        row.planner = planner.to_owned();
        row.workload = workload.into();
        row.instance = workload.to_owned();
        row.height = Some(height);
        row.status = if height == 100 { Status::Optimal } else { Status::Feasible };
        row.samples_ns = vec![height];
        row.seed = 0;
    })
}

/// The results of each planner on each workload, without a given capacity.
type Field<'c> = BTreeMap<usize, BTreeMap<usize, Vec<&'c CellRow>>>;

fn field<'c>(cells: impl Iterator<Item = &'c CellRow>) -> Field<'c> {
    let mut field = Field::new();
    for cell in cells.filter(|cell| cell.target_bytes.is_none()) {
        let workloads = field.entry(cell.planner_number).or_default();
        workloads.entry(cell.workload_number).or_default().push(cell);
    }
    field
}

fn answer_gap(cell: &CellRow) -> Option<f64> {
    cell.gap.filter(|_| cell.status.is_answer())
}

fn height(cells: &[&CellRow]) -> Option<u64> {
    let answers = cells.iter().filter(|cell| cell.status.is_answer());
    let mut heights: Vec<u64> = answers.filter_map(|cell| cell.height).collect();
    heights.sort_unstable();
    heights.get(heights.len().checked_sub(1)? / 2).copied()
}

/// The gap that a mean counts.
fn scored_gap(cell: &CellRow) -> Option<f64> {
    let lacks_answer = cell.status.lacks_answer();
    if lacks_answer { Some(PENALTY_GAP) } else { answer_gap(cell).map(|gap| gap.min(PENALTY_GAP)) }
}

fn scored_time(cell: &CellRow) -> Option<f64> {
    match cell.status.lacks_answer() {
        true => cell.wall_limit_ns.filter(|_| cell.lane == Lane::Timing).map(|limit| limit as f64),
        false => cell.time_ns,
    }
}

fn assert_leader(leader: &Leader, workloads: &BTreeMap<usize, Vec<&CellRow>>) {
    let cells: Vec<&CellRow> = workloads.values().flatten().copied().collect();
    let counted = |keep: &dyn Fn(&CellRow) -> bool| cells.iter().filter(|cell| keep(cell)).count();
    assert_eq!((leader.workloads, leader.cells), (workloads.len(), cells.len()));
    assert_eq!(leader.answers, counted(&|cell| cell.status.is_answer()));
    assert_eq!(leader.optimal, counted(&|cell| answer_gap(cell).is_some_and(|gap| gap <= 0.0)));
    assert_eq!(leader.proved, counted(&|cell| cell.status == Status::Optimal));
    assert_eq!(leader.failures, counted(&|cell| cell.status.is_failure()));
    assert_eq!(leader.unanswered, counted(&|cell| cell.status.lacks_answer()));
    let gaps: Vec<f64> = cells.iter().filter_map(|cell| scored_gap(cell)).collect();
    assert_eq!(leader.scored_gaps, gaps);
    let times: Vec<f64> = cells.iter().filter_map(|cell| scored_time(cell)).collect();
    assert_eq!(leader.scored_times, times);
}

/// Workloads on which every planner with at least half of them ran.
fn common(field: &Field<'_>) -> BTreeSet<usize> {
    let all: BTreeSet<usize> = field.values().flat_map(BTreeMap::keys).copied().collect();
    let broad: Vec<_> = field.values().filter(|own| 2 * own.len() >= all.len()).collect();
    all.into_iter()
        .filter(|workload| !broad.is_empty() && broad.iter().all(|own| own.contains_key(workload)))
        .collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a figure after another")]
fn the_figures_of_a_store_are_those_of_loops_over_its_cells() {
    let (_store, rows) = curated();
    let cells = cells(&rows);
    let all = cells.rows().expect("rows");
    let whole = field(all.iter());
    assert!(whole.len() > 5 && cells.statuses.values().sum::<u64>() == rows.len() as u64);
    let in_place: BTreeSet<usize> =
        all.iter().filter(|cell| cell.hand_overs > 0).map(|cell| cell.planner_number).collect();
    for (number, planner) in cells.planners.iter().enumerate() {
        assert!(!in_place.contains(&number) || planner.is_in_place);
    }

    let leaders = cells.planner_leaders().expect("leaders");
    assert!(leaders.iter().map(|leader| leader.planner_number).eq(whole.keys().copied()));
    leaders.iter().for_each(|leader| assert_leader(leader, &whole[&leader.planner_number]));

    let boards = cells.board_leaders().expect("boards");
    assert!(boards.len() > 1);
    for (board, leaders) in &boards {
        let is_of = |cell: &&CellRow| {
            let route = cell.workload.split('/').next();
            *cell.suite == *board.suite && board.route.as_deref().is_none_or(|own| route == Some(own))
        };
        let mut field = field(all.iter().filter(is_of));
        assert!(leaders.all.iter().map(|leader| leader.planner_number).eq(field.keys().copied()));
        leaders.all.iter().for_each(|leader| assert_leader(leader, &field[&leader.planner_number]));
        let common = common(&field);
        assert_eq!(leaders.common_workloads.len(), common.len());
        field.values_mut().for_each(|own| own.retain(|workload, _| common.contains(workload)));
        field.retain(|_, own| own.len() == common.len() && !common.is_empty());
        assert!(leaders.common.iter().map(|leader| leader.planner_number).eq(field.keys().copied()));
        leaders.common.iter().for_each(|leader| assert_leader(leader, &field[&leader.planner_number]));
    }

    let gaps = cells.planner_gaps().expect("gaps");
    assert!(gaps.is_sorted_by_key(|gap| (gap.workload_number, gap.planner_number)));
    assert_eq!(gaps.len(), whole.values().map(BTreeMap::len).sum::<usize>());
    for gap in gaps {
        let first = whole[&gap.planner_number][&gap.workload_number][0];
        let expected = (first.status, first.height, answer_gap(first));
        assert_eq!((gap.status, gap.height, gap.answer_gap), expected);
    }
    let groups = cells.gaps_by_group().expect("gaps");
    assert_eq!(groups.iter().map(|group| group.cells).sum::<usize>(), all.len());
    for group in groups {
        let is_of = |cell: &&CellRow| {
            let mut parts = cell.workload.splitn(3, '/');
            [parts.next(), parts.next()].map(Option::unwrap_or_default).join("/") == group.workload_group
        };
        let of = field(all.iter().filter(is_of)).remove(&group.planner_number).expect("cells");
        assert_eq!(group.cells, of.values().map(Vec::len).sum::<usize>());
        let expected: Vec<f64> = of.values().flatten().filter_map(|cell| scored_gap(cell)).collect();
        assert_eq!(group.scored_gaps, expected);
        let answers = of.values().flatten().filter(|cell| cell.status.is_answer());
        assert_eq!(group.answers, answers.count());
    }
    for of in cells.gaps_by_planner().expect("gaps") {
        let own = whole[&of.planner_number].values().flatten();
        let answered: Vec<_> =
            own.filter_map(|cell| Some((cell.workload.to_string(), answer_gap(cell)?))).collect();
        assert_eq!(of.workloads.into_iter().zip(of.gaps).collect::<Vec<_>>(), answered);
    }

    let heights = cells.planner_heights().expect("heights");
    assert!(heights.is_sorted_by_key(|of| (of.planner_number, of.workload_number)));
    for of in &heights {
        assert_eq!(of.height, height(&whole[&of.planner_number][&of.workload_number]));
    }
    let reference = heights[0].planner_number;
    for pairs in cells.compare_with(reference).expect("pairs") {
        let both = whole[&reference].iter().filter_map(|(workload, cells)| {
            Some((height(whole[&pairs.planner_number].get(workload)?)?, height(cells)?))
        });
        let both: (Vec<u64>, Vec<u64>) = both.filter(|&(a, b)| a > 0 && b > 0).unzip();
        assert_eq!((pairs.own, pairs.other), both);
    }
}

#[test]
fn a_leaderboard_by_hand() {
    let rows = [
        cell("a", "r/x/1", 100),
        cell("a", "r/x/2", 150),
        cell("a", "r/y/1", 120).with(|row| (row.status, row.height) = (Status::Crashed, None)),
        cell("b", "r/x/1", 110),
        cell("b", "r/x/2", 120),
        cell("b", "s/z/1", 130),
        cell("c", "r/x/1", 100).with(|row| row.target_bytes = Some(200)),
    ];
    let cells = cells(&rows);
    let leaders = cells.planner_leaders().expect("leaders");
    let [a, b] = leaders.as_slice() else { panic!("{leaders:?}") };
    assert_eq!((a.workloads, a.cells, a.answers, a.optimal, a.proved, a.failures), (3, 3, 2, 1, 1, 1));
    assert_eq!(a.scored_gaps, [0.0, 0.5, 1.0]);
    // The crash counts as a plan of twice the bound, and with its time limit.
    let mean = a.mean_gap();
    assert_eq!((a.unanswered, mean.count, mean.failures), (1, 3, 0));
    assert!((mean.mean.expect("gaps") - ((0.01_f64 * 0.51 * 1.01).cbrt() - 0.01)).abs() < 1e-12);
    assert_eq!(a.scored_times, [100.0, 150.0, 10e9]);
    assert_eq!((b.workloads, b.optimal, b.mean_time().failures), (3, 0, 0));

    let boards = cells.board_leaders().expect("boards");
    let routes: Vec<Option<&str>> = boards.iter().map(|(board, _)| board.route.as_deref()).collect();
    assert_eq!(routes, [None, Some("r"), Some("s")]);
    let (_, all) = &boards[0];
    // Both ran on x/1 and x/2.
    assert_eq!((all.common_workloads.len(), all.common.len()), (2, 2));
    let [a, b] = all.common.as_slice() else { panic!("{all:?}") };
    assert_eq!((a.scored_gaps.as_slice(), b.scored_gaps.len()), ([0.0, 0.5].as_slice(), 2));
    assert_eq!((boards[2].1.all.len(), boards[2].1.common_workloads.len()), (1, 1));
}

#[test]
fn a_cell_without_an_answer_counts_as_the_worst() {
    let ends = |planner: &str, status: Status| {
        cell(planner, "r/x/1", 0).with(|row| (row.status, row.height) = (status, None))
    };
    let rows = [
        cell("far", "r/x/1", 350),
        ends("late", Status::Timeout),
        ends("lost", Status::Unknown),
        ends("beside", Status::OutOfMemory).with(|row| row.lane = Lane::Quality),
        ends("endless", Status::Killed).with(|row| row.wall_limit_ns = None),
        ends("foreign", Status::Unsupported),
        ends("stopped", Status::Interrupted),
    ];
    let cells = cells(&rows);
    let leaders = cells.planner_leaders().expect("leaders");
    let of = |key: &str| {
        let is_it =
            |leader: &&Leader| cells.planners[leader.planner_number].label.split(' ').next() == Some(key);
        let leader = leaders.iter().find(is_it).expect("a planner");
        (leader.unanswered, leader.scored_gaps.clone(), leader.scored_times.clone())
    };
    assert_eq!(of("far").1, [1.0]);
    assert_eq!(of("late"), (1, vec![1.0], vec![10e9]));
    assert_eq!(of("lost"), of("late"));
    assert_eq!([of("beside"), of("endless")], [(1, vec![1.0], vec![]), (1, vec![1.0], vec![])]);
    assert_eq!([of("foreign"), of("stopped")], [(0, vec![], vec![]), (0, vec![], vec![])]);
}

/// The mean gap of the planner with the highest plan of a workload, if it answers there and if it fails there.
#[test]
fn the_worst_planner_gains_nothing_by_failing() {
    let mean = |worst: Record| {
        let rows = [cell("good", "r/x/1", 110), cell("worst", "r/x/2", 120), worst];
        let cells = cells(&rows);
        let leaders = cells.planner_leaders().expect("leaders");
        let worst = leaders.iter().find(|leader| leader.cells == 2).expect("a planner on two workloads");
        worst.mean_gap().mean.expect("gaps")
    };
    for height in [150, 250, 1000] {
        let answer = mean(cell("worst", "r/x/1", height));
        for status in [Status::Timeout, Status::Crashed, Status::Unknown] {
            let failure = cell("worst", "r/x/1", 0).with(|row| (row.status, row.height) = (status, None));
            assert!(mean(failure) >= answer, "{status:?} instead of {height}");
        }
    }
}

#[test]
fn heights_by_hand() {
    let seeds = [110, 140, 120].map(|height| {
        let seeded = cell("a", "r/x/1", height);
        seeded.with(|row| (row.seed, row.cell) = (height, height.to_string()))
    });
    let none = cell("b", "r/x/2", 0).with(|row| (row.status, row.height) = (Status::Timeout, None));
    let handing = cell("in-place", "r/x/1", 60).with(|row| row.hand_overs = 1);
    let rows: Vec<Record> =
        seeds.into_iter().chain([cell("a", "r/x/2", 200), cell("b", "r/x/1", 240), none, handing]).collect();
    let cells = cells(&rows);
    let heights: Vec<Option<u64>> =
        cells.planner_heights().expect("heights").iter().map(|height| height.height).collect();
    assert_eq!(heights, [Some(120), Some(200), Some(240), None, Some(60)]);
    let pairs = cells.compare_with(0).expect("pairs");
    // A planner that hands over is compared like any other.
    let pair = |of: &HeightPairs| (of.planner_number, of.own.clone(), of.other.clone());
    assert_eq!(
        pairs.iter().map(pair).collect::<Vec<_>>(),
        [(1, vec![240], vec![120]), (2, vec![60], vec![120])]
    );
}

#[test]
fn a_limit_is_part_of_the_name_where_it_made_a_difference() {
    let limited = |planner: &str, seconds: u64, stop| {
        cell(planner, "r/x/1", 110).with(|row| {
            row.wall_limit_ns = Some(seconds * 1_000_000_000);
            row.stop = Some(stop);
            row.cell = format!("{planner} {seconds}");
        })
    };
    let rows = [
        limited("cut", 1, Stop::Deadline),
        limited("cut", 10, Stop::Finished),
        limited("quick", 1, Stop::Finished),
        limited("quick", 10, Stop::Finished),
        cell("cut", "r/x/1", 105).with(|row| (row.wall_limit_ns, row.cell) = (None, "endless".to_owned())),
    ];
    let cells = cells(&rows);
    let labels: Vec<&str> = cells.planners.iter().map(|planner| planner.label.as_str()).collect();
    assert_eq!(labels, ["cut @ 1 s", "cut @ 10 s", "cut @ no limit", "quick"]);
    let numbers: Vec<usize> = cells.rows().expect("rows").iter().map(|cell| cell.planner_number).collect();
    assert_eq!(numbers, [2, 0, 1, 3, 3]);
}

#[test]
fn no_cells_no_lines() {
    let cells = cells(&[]);
    assert!(cells.rows().expect("rows").is_empty() && cells.planner_leaders().expect("leaders").is_empty());
    assert!(cells.board_leaders().expect("boards").is_empty());
    assert!(cells.planner_gaps().expect("gaps").is_empty());
    assert!(cells.gaps_by_group().expect("gaps").is_empty());
    assert!(cells.planner_heights().expect("heights").is_empty());
    assert!(cells.compare_with(0).expect("pairs").is_empty());
}
