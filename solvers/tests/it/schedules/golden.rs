//! Tests ResNet-50 on V100 machines: every row of the expected results in a deep run, otherwise one of three.

use planlab_dsa::Stop;
use planlab_dsa::testing::is_deep_run;
use planlab_graph::{
    Machine, ScheduleBudget, ScheduleOutcome, Scheduler, SchedulingProblem, execute_scheduler,
};
use planlab_solvers::schedule::{
    Class, Classes, Counts, InCore, Lab, Policy, Pooch, Prefetch, SuperNeurons, SwapAll, SwapOpt,
    find_scheduler,
};
use serde::Deserialize;

use super::nets::{fixture, resnet50, resnet50_on};

#[derive(Deserialize)]
struct Expected {
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    policy: Policy,
    bw: f64,
    batch: u64,
    incore_unlimited: f64,
    incore_fits: bool,
    incore_peak: f64,
    swap_all_nosched: f64,
    swap_all: f64,
    swap_opt: f64,
    swap_opt_counts: [u32; 3],
    pooch: f64,
    pooch_counts: [u32; 3],
    pooch_class: String,
    superneurons: f64,
    sn_counts: [u32; 3],
    sn_fail: Option<String>,
}

fn problem(row: &Row) -> SchedulingProblem {
    let machine = Machine::built_in("x86-pcie3").expect("built in").with_link(row.bw);
    SchedulingProblem::new(resnet50(row.batch), machine)
}

/// What a scheduler gives without limits.
pub(super) fn run(problem: &SchedulingProblem, scheduler: &dyn Scheduler) -> ScheduleOutcome {
    let outcome = execute_scheduler(scheduler, problem, ScheduleBudget::default(), 0);
    assert!(outcome.end.is_ok(), "{}: {:?}", scheduler.descriptor().key, outcome.end);
    outcome
}

/// Images per second, rounded as in the fixture; 0 without a schedule.
fn speed(problem: &SchedulingProblem, outcome: &ScheduleOutcome) -> f64 {
    outcome.best.as_ref().map_or(0.0, |best| problem.images_per_second(best.seconds()))
}

/// The classes of a schedule's maps.
pub(super) fn classes(problem: &SchedulingProblem, outcome: &ScheduleOutcome) -> Option<Classes> {
    Some(Classes::from_schedule(&problem.net, outcome.best.as_ref()?.schedule()))
}

fn counts([keep, swap, recompute]: [u32; 3]) -> Counts {
    Counts { keep, swap, recompute }
}

fn close(ours: f64, expected: f64, what: &str, row: &Row) {
    let name = format!("{what} of {} at {} bytes/s, batch {}", row.policy, row.bw, row.batch);
    assert!((ours - expected).abs() < 0.0051, "{name}: {ours:.3}, expected {expected}");
}

fn check(row: &Row) {
    let problem = problem(row);
    let in_core = run(&problem, &InCore);
    assert_eq!(in_core.best.is_some(), row.incore_fits);
    let lab = Lab::new(&problem, row.policy, Prefetch::AsRoomPermits);
    assert_eq!(lab.classified_maps().count(), 105);
    assert_eq!(lab.peak_bytes(&lab.all_in_class(Class::Keep)).get() as f64, row.incore_peak);
    let unlimited = problem.clone().with_capacity(lab.peak_bytes(&lab.all_in_class(Class::Keep)));
    let unlimited_run = run(&unlimited, &InCore);
    assert_eq!(unlimited_run.end, Ok(Stop::Proved));
    close(speed(&unlimited, &unlimited_run), row.incore_unlimited, "in-core", row);
    let swapped = |scheduler: SwapAll| speed(&problem, &run(&problem, &scheduler));
    close(swapped(SwapAll::one_step_ahead()), row.swap_all_nosched, "unscheduled", row);
    close(swapped(SwapAll::with_prefetch()), row.swap_all, "swap-all", row);
    check_classified(row, &problem, &lab, &SwapOpt, (row.swap_opt, row.swap_opt_counts));
    let letters =
        check_classified(row, &problem, &lab, &Pooch::new(row.policy), (row.pooch, row.pooch_counts));
    assert_eq!(letters.as_deref(), Some(&row.pooch_class[..]), "batch {} at {}", row.batch, row.bw);
    let superneurons = SuperNeurons::default().with_policy(row.policy);
    check_classified(row, &problem, &lab, &superneurons, (row.superneurons, row.sn_counts));
    if let Some(fail) = &row.sn_fail {
        let shortfall = run(&problem, &superneurons).shortfall.expect("a reason");
        let [keep, swap, recompute] = row.sn_counts;
        let said = format!("({keep} kept, {swap} swapped, {recompute} recomputed)");
        assert!(shortfall.starts_with("out of memory") && shortfall.ends_with(&said), "{shortfall}");
        let peak =
            shortfall.split_once(" back, ").and_then(|(_, rest)| rest.split_once(' ')).expect("a peak").0;
        let peak: f64 = peak.parse().expect("bytes");
        assert_eq!(format!("sn swap-in peak {:.2}", peak / 1e9), *fail);
    }
}

fn check_classified(
    row: &Row,
    problem: &SchedulingProblem,
    lab: &Lab<'_>,
    scheduler: &dyn Scheduler,
    (seconds, wanted): (f64, [u32; 3]),
) -> Option<String> {
    let outcome = run(problem, scheduler);
    let key = scheduler.descriptor().key.into_owned();
    close(speed(problem, &outcome), seconds, &key, row);
    let classes = classes(problem, &outcome)?;
    let Row { batch, bw, .. } = row;
    assert_eq!(lab.count_classes(&classes), counts(wanted), "{key}, batch {batch} at {bw} bytes/s");
    Some(lab.class_letters(&classes))
}

fn rows(policy: Policy, bw: f64) -> Vec<Row> {
    let expected: Expected =
        serde_json::from_str(&fixture("pooch_expected.json.zst")).expect("the expected results");
    let rows: Vec<_> = expected.rows.into_iter().filter(|row| row.policy == policy && row.bw == bw).collect();
    assert_eq!(rows.len(), 9, "{policy} at {bw}");
    rows
}

/// Checks all rows in a deep run, otherwise every third one from row `from` on.
fn check_rows(rows: &[Row], from: usize) {
    let (from, step) = if is_deep_run() { (0, 1) } else { (from, 3) };
    rows[from..].iter().step_by(step).for_each(check);
}

macro_rules! rows {
    ($($name:ident: $policy:ident at $bw:literal from $from:literal,)*) => {
        $(#[test]
        fn $name() {
            check_rows(&rows(Policy::$policy, $bw), $from);
        })*
    };
}

rows! {
    discard_at_12: Discard at 12e9 from 0,
    discard_at_16: Discard at 16e9 from 1,
    discard_at_54: Discard at 54e9 from 2,
    discard_at_75: Discard at 75e9 from 0,
    retain_at_12: Retain at 12e9 from 1,
    retain_at_16: Retain at 16e9 from 2,
    retain_at_54: Retain at 54e9 from 0,
    retain_at_75: Retain at 75e9 from 1,
}

#[test]
fn a_whole_search_takes_a_few_thousand_simulations() {
    let problem = resnet50_on("x86-pcie3", 640);
    for key in ["pooch/discard", "pooch/retain", "pooch/discard/budgeted"] {
        let outcome = run(&problem, &find_scheduler(key).expect("there"));
        assert!((100..10_000).contains(&outcome.work), "{key}: {}", outcome.work);
    }
}
