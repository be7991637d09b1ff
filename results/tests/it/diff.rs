//! Tests what a diff finds and what it ignores: planted changes, equal sides, sides that cannot be compared.

use crate::common::row;
use planlab_dsa::{Scope, Stop};
use planlab_results::diff::{Diff, DiffOptions, Mismatch, Remark, Verdict};
use planlab_results::{Lane, Point, Record, Status};

const PLANNERS: [&str; 4] = ["best-fit", "bump", "first-fit/size", "greedy-by-size"];

/// SplitMix64.
struct Draw(u64);

impl Draw {
    /// A number between 0 and 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        f64::from(u32::try_from((word ^ (word >> 31)) >> 32).expect("32 bits")) / f64::from(u32::MAX)
    }

    /// A nearly normal number with standard deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }
}

/// The spread of times on a shared machine.
#[derive(Clone, Copy)]
struct Noise {
    /// Spread of samples within one process.
    sample: f64,
    /// Spread between processes.
    process: f64,
    /// One of this many samples takes half as long again.
    outlier: f64,
}

const VM: Noise = Noise { sample: 0.04, process: 0.03, outlier: 0.05 };

fn cell(planner: &str, workload: usize) -> Record {
    let mut record = row(&format!("{planner} {workload}"), 0);
    record.planner = planner.to_owned();
    record.workload = format!("synthetic/uniform/n{workload}/s0").into();
    record.instance = format!("{workload:064x}");
    (record.seed, record.height) = (0, Some(1000));
    (record.load, record.bound) = (900, 900);
    record
}

/// Rows of all planners on this many workloads with this many repetitions; times of one planner are multiplied.
fn side(seed: u64, (workloads, repetitions): (usize, u32), noise: Noise, slow: (&str, f64)) -> Vec<Record> {
    let mut draw = Draw(seed);
    let mut rows = Vec::new();
    for repetition in 0..repetitions {
        for workload in 1..=workloads {
            for planner in PLANNERS {
                let size = f64::from(u32::try_from(workload).expect("small"));
                let factor = if planner == slow.0 { slow.1 } else { 1.0 };
                let process = (noise.process * draw.normal()).exp();
                let mut sample = || {
                    let burst = if draw.share() < noise.outlier { 1.5 } else { 1.0 };
                    let time = 20_000.0 * size * factor * process * burst;
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
                    let whole = (time * (noise.sample * draw.normal()).exp()) as u64;
                    whole
                };
                let samples_ns: Vec<u64> = (0..5).map(|_| sample()).collect();
                let row = cell(planner, workload);
                rows.push(row.with(|row| (row.repetition, row.samples_ns) = (repetition, samples_ns)));
            }
        }
    }
    rows
}

fn diff(a: &[Record], b: &[Record]) -> Diff {
    Diff::new(a, b, &DiffOptions::default())
}

#[test]
fn a_planted_slowdown_of_a_fifth_is_found_and_only_there() {
    for (seed, shape) in [(1, (40, 1)), (2, (10, 10)), (3, (3, 20))] {
        let a = side(seed, shape, VM, ("", 1.0));
        let b = side(seed + 500, shape, VM, ("first-fit/size", 1.2));
        let forth = diff(&a, &b);
        assert!(forth.has_regression(), "{shape:?}");
        let planner = |diff: &Diff, label: &str| {
            diff.planners.iter().find(|planner| planner.label == label).expect("there").clone()
        };
        let slow = planner(&forth, "first-fit/size").times;
        if shape.0 >= 10 {
            assert_eq!(slow.verdict, Verdict::Worse, "{slow:?}");
        }
        assert!((slow.ratio.expect("times") - 1.2).abs() < 0.04, "{slow:?}");
        assert!(slow.interval.is_some_and(|interval| interval.low > 1.1 && interval.high < 1.3), "{slow:?}");
        assert!(forth.regressions().all(|change| change.cell.label == "first-fit/size"), "{shape:?}");
        for label in ["best-fit", "bump", "greedy-by-size"] {
            assert_eq!(planner(&forth, label).times.verdict, Verdict::Same, "{label}");
        }
        let back = diff(&b, &a);
        assert!(!back.has_regression(), "{shape:?}");
        assert!(
            back.changes.iter().all(|change| !change.is_better() || change.cell.label == "first-fit/size")
        );
    }
}

#[test]
fn single_cells_are_found_where_processes_are_repeated() {
    let a = side(5, (3, 20), VM, ("", 1.0));
    let b = side(6, (3, 20), VM, ("bump", 1.2));
    let found: Vec<String> = diff(&a, &b).regressions().map(|change| change.cell.to_string()).collect();
    assert_eq!(found, [1, 2, 3].map(|n| format!("bump on synthetic/uniform/n{n}/s0")), "all three, no other");
}

/// A shared machine. The time of a run depends on the runs before it, on the load of the minute, which affects long
/// runs more than short ones, and on a random part without an upper limit.
struct Machine {
    draw: Draw,
    drift: f64,
    /// The slowdown of runs in this burst, and its remaining number of runs.
    burst: (f64, u32),
    now_ns: u64,
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self { draw: Draw(seed), drift: 0.0, burst: (1.0, 0), now_ns: 0 }
    }

    /// Heavy-tailed: few draws lie far out.
    fn tail(&mut self) -> f64 {
        let away = 0.1 + self.draw.share();
        self.draw.normal() / away.sqrt()
    }

    fn step(&mut self) {
        self.now_ns += 1;
        self.drift = 0.97 * self.drift + 0.01 * self.tail();
        if self.burst.1 > 0 {
            self.burst.1 -= 1;
        } else if self.draw.share() < 0.02 {
            let length = 4.0 / (0.04 + self.draw.share());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let runs = length as u32;
            self.burst = (1.0 + 2.0 * self.draw.share(), runs);
        } else {
            self.burst.0 = 1.0;
        }
    }

    /// The time in nanoseconds of a run that takes `idle_ns` on an idle machine.
    fn time(&mut self, idle_ns: f64) -> u64 {
        self.step();
        let load = if idle_ns > 1e6 { self.burst.0 } else { 1.0 + (self.burst.0 - 1.0) / 20.0 };
        let own = (0.02 * self.tail()).exp();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far below 2^53")]
        let time = (idle_ns * load * own * self.drift.exp()) as u64;
        time
    }
}

const SUITE: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const WORKLOADS: usize = 7;

/// Plays one side's next repetition on a workload.
fn turn(machine: &mut Machine, workload: usize, repetition: u32, slow: (&str, f64), rows: &mut Vec<Record>) {
    for (at, planner) in SUITE.into_iter().enumerate() {
        let factor = if planner == slow.0 { slow.1 } else { 1.0 };
        let exponent = f64::from(u32::try_from(workload + at % 4).expect("small"));
        let idle_ns = factor * 5_000.0 * 3.0_f64.powf(exponent / 1.5);
        let started_ns = machine.now_ns;
        let samples_ns = vec![machine.time(idle_ns)];
        rows.push(cell(planner, workload).with(|row| {
            (row.repetition, row.samples_ns, row.started_ns) = (repetition, samples_ns, started_ns);
        }));
    }
}

/// Both sides of a suite in turns, as measured by `diff --interleave`.
fn in_turns(seed: u64, slow: (&str, f64)) -> (Vec<Record>, Vec<Record>) {
    let (mut machine, mut a, mut b) = (Machine::new(seed), Vec::new(), Vec::new());
    for repetition in 0..5 {
        for workload in 1..=WORKLOADS {
            let is_a_first = (repetition as usize + workload).is_multiple_of(2);
            if is_a_first {
                turn(&mut machine, workload, repetition, ("", 1.0), &mut a);
            }
            turn(&mut machine, workload, repetition, slow, &mut b);
            if !is_a_first {
                turn(&mut machine, workload, repetition, ("", 1.0), &mut a);
            }
        }
    }
    (a, b)
}

/// Two benches of a suite, one after the other, with each cell once.
fn one_after_the_other(seed: u64, slow: (&str, f64)) -> (Vec<Record>, Vec<Record>) {
    let (mut machine, mut a, mut b) = (Machine::new(seed), Vec::new(), Vec::new());
    for (side, slow) in [(&mut a, ("", 1.0)), (&mut b, slow)] {
        machine.now_ns += 1000;
        (1..=WORKLOADS).for_each(|workload| turn(&mut machine, workload, 0, slow, side));
    }
    (a, b)
}

fn verdicts(diff: &Diff) -> Vec<String> {
    let cells = diff.changes.iter().filter(|change| change.is_worse() || change.is_better());
    let planners = diff.planners.iter().filter(|planner| planner.times.verdict != Verdict::Same);
    let cells = cells.map(|change| format!("{} {:?}", change.cell, change.time));
    cells.chain(planners.map(|planner| format!("{} {:?}", planner.label, planner.times))).collect()
}

#[test]
fn equal_builds_on_a_busy_machine_have_no_verdict() {
    for seed in 0..100 {
        let sides = [in_turns(seed, ("", 1.0)), one_after_the_other(seed, ("", 1.0))];
        for (a, b) in sides {
            let diff = diff(&a, &b);
            assert_eq!(diff.changes.len(), SUITE.len() * WORKLOADS);
            assert_eq!(verdicts(&diff), [] as [&str; 0], "seed {seed}");
            assert!(!diff.has_regression());
        }
    }
}

#[test]
fn a_slowdown_of_a_fifth_is_found_on_a_busy_machine_in_turns() {
    let found = |seed: u64, factor: f64, verdict: Verdict| {
        let (a, b) = in_turns(seed, ("c", factor));
        let diff = diff(&a, &b);
        assert!(verdicts(&diff).iter().all(|text| text.starts_with('c')), "{:?}", verdicts(&diff));
        let planner = diff.planners.iter().find(|planner| planner.label == "c").expect("there");
        planner.times.verdict == verdict
    };
    let slower = (0..20).filter(|&seed| found(seed, 1.2, Verdict::Worse)).count();
    let faster = (0..20).filter(|&seed| found(seed, 1.0 / 1.2, Verdict::Better)).count();
    assert!(slower >= 18 && faster >= 18, "{slower} and {faster} of 20");
}

#[test]
fn a_slowdown_is_found_between_runs_one_after_the_other() {
    let found = |seed: u64, factor: f64| {
        let (a, b) = one_after_the_other(seed, ("c", factor));
        let diff = diff(&a, &b);
        assert!(verdicts(&diff).iter().all(|text| text.starts_with('c')), "{:?}", verdicts(&diff));
        diff.has_regression()
    };
    let half = (0..40).filter(|&seed| found(seed, 1.5)).count();
    let fifth = (0..40).filter(|&seed| found(seed, 1.2)).count();
    assert!(half >= 30 && fifth >= 10, "{half} and {fifth} of 40");
}

fn one(change: impl Fn(&mut Record)) -> Diff {
    let a = cell("best-fit", 1);
    let mut b = a.clone();
    change(&mut b);
    diff(&[a], &[b])
}

#[test]
fn heights_and_statuses_count_and_bounds_are_shown() {
    let same = one(|_| ());
    assert!(!same.has_regression() && !same.changes[0].is_changed());
    let higher = one(|row| row.height = Some(1001));
    assert!(higher.has_regression());
    assert_eq!(higher.changes[0].height_verdict, Verdict::Worse);
    let lower = one(|row| row.height = Some(999));
    assert!(!lower.has_regression() && lower.changes[0].is_better());
    for (status, verdict) in [
        (Status::Optimal, Verdict::Better),
        (Status::Timeout, Verdict::Worse),
        (Status::Crashed, Verdict::Worse),
        (Status::InvalidOverlap, Verdict::Worse),
    ] {
        let diff = one(|row| row.status = status);
        assert_eq!(diff.changes[0].status_verdict, verdict, "{status:?}");
        assert_eq!(diff.has_regression(), verdict == Verdict::Worse, "{status:?}");
    }
    let bound = one(|row| row.bound = 950);
    assert!(bound.changes[0].is_changed() && !bound.has_regression());
}

#[test]
fn what_a_time_limit_cut_is_not_held_against_a_build() {
    let cut = |row: &mut Record| row.stop = Some(Stop::Deadline);
    let higher = one(|row| {
        cut(row);
        row.height = Some(1100);
    });
    assert_eq!(higher.changes[0].height_verdict, Verdict::Undecided);
    assert!(!higher.has_regression());
    // A plan found at the last moment may be missed by chance; one found in the first second may not.
    for (found, verdict) in [(9_000_000_000, Verdict::Undecided), (1_000_000, Verdict::Worse)] {
        let mut a = cell("lns", 1);
        a.trajectory = vec![Point { elapsed_ns: found, height: Some(1000), bound: 900 }];
        cut(&mut a);
        let b = a.clone().with(|row| (row.status, row.height) = (Status::Timeout, None));
        assert_eq!(diff(&[a], &[b]).changes[0].status_verdict, verdict, "{found}");
    }
    // Repetitions that lie apart are not chance.
    let side = |height: u64| -> Vec<Record> {
        let cell = |repetition| {
            cell("lns", 1).with(|row| {
                row.repetition = repetition;
                row.height = Some(height + u64::from(repetition));
                row.stop = Some(Stop::Deadline);
            })
        };
        (0..5).map(cell).collect()
    };
    assert_eq!(diff(&side(1000), &side(1009)).changes[0].height_verdict, Verdict::Worse);
    assert_eq!(diff(&side(1000), &side(1008)).changes[0].height_verdict, Verdict::Undecided);
    assert!(diff(&side(1000), &side(1009)).changes[0].time.is_none(), "the times are the limit's");
    // If the sides were measured one after the other, the machine may have cut one short.
    let later: Vec<Record> = side(1009).into_iter().map(|row| row.with(|row| row.started_ns = 9)).collect();
    assert_eq!(diff(&side(1000), &later).changes[0].height_verdict, Verdict::Undecided);
}

#[test]
fn a_new_time_out_counts_where_the_other_side_was_well_below_the_limit() {
    // The limit is 10 s. Cells without an answer are not repeated: side B has one row.
    let verdict = |seconds: &[u64], answered: usize| {
        let row = |(at, &seconds): (usize, &u64)| {
            cell("exact", 1).with(|row| {
                row.repetition = u32::try_from(at).expect("few");
                row.status = if at < answered { Status::Optimal } else { Status::Timeout };
                row.samples_ns = vec![seconds * 1_000_000_000];
            })
        };
        let a: Vec<Record> = seconds.iter().enumerate().map(row).collect();
        let b = cell("exact", 1)
            .with(|row| (row.status, row.height, row.samples_ns) = (Status::Timeout, None, Vec::new()));
        let (forth, back) = (diff(&a, std::slice::from_ref(&b)), diff(std::slice::from_ref(&b), &a));
        let verdicts = (forth.changes[0].status_verdict, back.changes[0].status_verdict);
        assert_eq!(forth.has_regression(), verdicts.0 == Verdict::Worse);
        assert!(!back.has_regression(), "{verdicts:?}");
        verdicts
    };
    let (certain, open) = ((Verdict::Worse, Verdict::Better), (Verdict::Undecided, Verdict::Undecided));
    assert_eq!(verdict(&[1], 1), certain);
    assert_eq!(verdict(&[2], 1), open, "a busy machine may make ten of two seconds");
    assert_eq!(verdict(&[2, 1, 2, 2, 1], 5), certain, "five runs of at most 2 s are no luck");
    assert_eq!(verdict(&[2, 1, 2, 2, 3], 5), open, "one was nearer to the limit");
    assert_eq!(verdict(&[1, 1, 1, 1, 1], 4), open, "one had no answer either");
}

#[test]
fn a_planners_heights_are_judged_on_settled_cells_alone() {
    let side = |height: u64, repetitions: u32, stop: Stop| -> Vec<Record> {
        let row = |(workload, repetition): (usize, u32)| {
            cell("lns", workload).with(|row| {
                row.repetition = repetition;
                row.height = Some(height + u64::from(repetition));
                row.stop = Some(stop);
            })
        };
        (1..=20).flat_map(|workload| (0..repetitions).map(move |at| (workload, at))).map(row).collect()
    };
    let heights = |repetitions, stop: Stop| {
        let diff = diff(&side(1000, repetitions, stop), &side(1002, repetitions, stop));
        assert_eq!(diff.planners.len(), 1);
        diff.planners[0].heights
    };
    let cut = heights(1, Stop::Deadline);
    assert_eq!((cut.cells, cut.settled, cut.undecided), (20, 0, 20));
    assert_eq!((cut.ratio, cut.verdict), (None, Verdict::Same), "one cut run of each says nothing");
    let repeated = heights(5, Stop::Deadline);
    assert_eq!((repeated.settled, repeated.undecided, repeated.verdict), (20, 20, Verdict::Worse));
    let finished = heights(1, Stop::Finished);
    assert_eq!((finished.settled, finished.worse, finished.verdict), (20, 20, Verdict::Worse));
}

#[test]
fn a_proof_that_a_plan_of_the_other_side_refutes_is_a_contradiction() {
    let proof = |row: &mut Record| (row.status, row.height, row.bound) = (Status::Optimal, Some(1100), 1100);
    let optimal_above = one(proof);
    assert_eq!(optimal_above.changes[0].status_verdict, Verdict::Contradiction);
    assert!(optimal_above.has_regression() && optimal_above.contradictions().count() == 1);
    assert_eq!(optimal_above.planners[0].contradictions, 1);
    assert!(!optimal_above.changes[0].is_better());
    let (a, mut b) = (cell("best-fit", 1), cell("best-fit", 1));
    proof(&mut b);
    let found = |a: &Record, b: &Record| {
        diff(std::slice::from_ref(a), std::slice::from_ref(b)).contradictions().count()
    };
    assert_eq!(found(&b, &a), 1, "whichever side it is");
    // A bound on plans without hand-overs does not apply to a plan with them; a bound on any plan does.
    let with_hand_overs = a.with(|row| row.hand_overs = 1);
    assert_eq!(found(&with_hand_overs, &b), 0);
    b.bound_scope = Scope::Any;
    assert_eq!(found(&with_hand_overs, &b), 1);
    let infeasible = one(|row| (row.status, row.height) = (Status::Infeasible, None));
    assert_eq!(infeasible.contradictions().count(), 1);
    // A proof that no plan without hand-overs fits does not refute a plan with them either.
    let mut no_plan = cell("best-fit", 1).with(|row| (row.status, row.height) = (Status::Infeasible, None));
    assert_eq!(found(&with_hand_overs, &no_plan), 0);
    no_plan.bound_scope = Scope::Any;
    assert_eq!(found(&with_hand_overs, &no_plan), 1);
    let false_by_itself = one(|row| (row.status, row.bound) = (Status::BoundRefuted, 1100));
    assert_eq!(false_by_itself.changes[0].status_verdict, Verdict::Worse);
}

#[test]
fn other_seeds_and_other_contents_are_other_cells() {
    let seed = one(|row| row.seed = 1);
    assert_eq!((seed.changes.len(), seed.only_a.len(), seed.only_b.len()), (0, 1, 1));
    let content = one(|row| row.instance = "cd".repeat(32));
    assert_eq!((content.changes.len(), content.only_a.len(), content.only_b.len()), (0, 1, 1));
    let version = one(|row| {
        row.planner_version = "another".to_owned();
        row.cell = "another".to_owned();
        row.workload = "another/name".into();
    });
    assert_eq!((version.changes.len(), version.only_a.len()), (1, 0));
}

#[test]
fn the_build_that_ran_last_counts() {
    let old = cell("best-fit", 1).with(|row| row.height = Some(2000));
    let new = cell("best-fit", 1).with(|row| (row.cell, row.started_ns) = ("new".to_owned(), 99));
    let diff = diff(&[old, new], &[cell("best-fit", 1)]);
    assert_eq!((diff.changes.len(), diff.changes[0].height.a), (1, Some(1000)));
}

#[test]
fn hosts_flags_and_limits_are_compared() {
    assert!(one(|_| ()).mismatches.is_empty());
    let host = one(|row| row.provenance.host = "elsewhere".to_owned());
    assert!(matches!(host.mismatches.as_slice(), [Mismatch::Hosts(_)]), "{:?}", host.mismatches);
    let flags = one(|row| row.provenance.flags = "debug opt-level=0".to_owned());
    assert!(matches!(flags.mismatches.as_slice(), [Mismatch::Flags(_)]), "{:?}", flags.mismatches);
    let (a, mut b) = (cell("best-fit", 1), cell("best-fit", 1));
    b.wall_limit_ns = Some(1);
    let (a, b) = ([a], [b]);
    let strict = diff(&a, &b);
    assert!(matches!(strict.mismatches.as_slice(), [Mismatch::Limits { cells: 1, .. }]));
    assert_eq!((strict.changes.len(), strict.only_a.len()), (0, 0));
    let mut options = DiffOptions::default();
    options.across_limits = true;
    assert_eq!(Diff::new(&a, &b, &options).changes.len(), 1);
}

#[test]
fn remarks_name_what_weakens_a_comparison() {
    let late = one(|row| row.started_ns = 100);
    assert!(late.remarks.contains(&Remark::NotInTurns), "{:?}", late.remarks);
    let few = one(|row| row.samples_ns = vec![900]);
    assert!(few.remarks.contains(&Remark::FewRepetitions { cells: 1 }), "{:?}", few.remarks);
    let beside = one(|row| row.lane = Lane::Quality);
    assert!(beside.remarks.contains(&Remark::Beside { cells: 1 }) && beside.changes[0].time.is_none());
    let mut options = DiffOptions::default();
    options.judge_times = false;
    let none = ("", 1.0);
    let (a, b) = (side(1, (10, 5), VM, none), side(2, (10, 5), VM, ("bump", 2.0)));
    let shown = Diff::new(&a, &b, &options);
    assert!(!shown.has_regression() && shown.remarks.contains(&Remark::TimesNotJudged));
    assert!(shown.changes.iter().any(|change| change.time.is_some_and(|time| time.ratio > 1.5)));
}
