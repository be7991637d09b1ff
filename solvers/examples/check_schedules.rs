//! Runs every scheduler on every net that it reads, on three machines, and has what comes of it validated.
//!
//! ```sh
//! cargo run -p planlab-workloads --example training_nets -- 1 16 64 |
//!     cargo run -p planlab-solvers --example check_schedules -- 300
//! ```
//!
//! The argument is how many simulations each scheduler may do. Where a net fits the machine as it is, the capacity is
//! three fifths of what it takes, so that something has to go. Ends with 1 if a schedule is invalid or a scheduler fails.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

mod nets;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::stdin;
use std::process::ExitCode;

use planlab_dsa::Bytes;
use planlab_graph::{
    Machine, ScheduleBudget, Scheduler, SchedulingProblem, TrainingNet, execute_scheduler, validate,
};
use planlab_solvers::schedule::{Class, Lab, Policy, Prefetch, schedulers};

const MACHINES: [&str; 3] = ["x86-pcie3", "power9-nvlink2", "h100-pcie5"];

/// A net on a machine, in less memory than it takes.
fn problem(net: TrainingNet, machine: Machine) -> SchedulingProblem {
    let problem = SchedulingProblem::new(net, machine);
    let lab = Lab::new(&problem, Policy::Discard, Prefetch::AsRoomPermits);
    let peak = lab.peak(&lab.all(Class::Keep)).get();
    if peak > problem.capacity.get() {
        return problem;
    }
    let base = problem.base().get();
    problem.with_capacity(Bytes::new(base + (peak - base) / 5 * 3))
}

/// What came of the runs of a scheduler.
#[derive(Clone, Copy, Default)]
struct Counts {
    valid: u32,
    out_of_memory: u32,
    wrong: u32,
}

fn check(problem: &SchedulingProblem, scheduler: &dyn Scheduler, work: u64, counts: &mut Counts) {
    let budget = ScheduleBudget { work: Some(work), ..ScheduleBudget::default() };
    let outcome = execute_scheduler(scheduler, problem, budget, 0);
    let complaint = match (&outcome.end, &outcome.best) {
        (Err(error), _) => Some(error.to_string()),
        (Ok(_), None) => {
            counts.out_of_memory += 1;
            None
        }
        (Ok(_), Some(best)) => match validate(problem, best.schedule(), None) {
            Err(violation) => Some(violation.to_string()),
            Ok(_) if best.live_peak() > problem.capacity => Some("above the capacity".to_owned()),
            Ok(_) => {
                counts.valid += 1;
                None
            }
        },
    };
    if let Some(complaint) = complaint {
        counts.wrong += 1;
        let net = &problem.net;
        let (key, machine) = (scheduler.descriptor().key, &problem.machine.name);
        eprintln!("{} b{} on {machine}, {key}: {complaint}", net.name(), net.batch());
    }
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let work = std::env::args().nth(1).map_or(Ok(2000), |work| work.parse())?;
    let mut counts = BTreeMap::<String, Counts>::new();
    let mut count = 0;
    for net in nets::read(stdin().lock()) {
        let net = net?;
        count += 1;
        for name in MACHINES {
            let machine = Machine::built_in(name).ok_or("no such machine")?;
            let problem = problem(net.clone(), machine);
            for scheduler in schedulers() {
                let key = scheduler.descriptor().key.into_owned();
                check(&problem, &scheduler, work, counts.entry(key).or_default());
            }
        }
    }
    let mut total = Counts::default();
    println!("{:<26} {:>6} {:>6} {:>6}", "scheduler", "valid", "no fit", "wrong");
    for (key, of) in &counts {
        println!("{key:<26} {:>6} {:>6} {:>6}", of.valid, of.out_of_memory, of.wrong);
        total.valid += of.valid;
        total.out_of_memory += of.out_of_memory;
        total.wrong += of.wrong;
    }
    println!("{:<26} {:>6} {:>6} {:>6}", "all", total.valid, total.out_of_memory, total.wrong);
    println!("{count} nets with their batches, {} machines, {work} simulations each", MACHINES.len());
    Ok(if total.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
