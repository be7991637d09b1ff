//! Compares the update rules of the patent's search for checkpoints on every net that it reads: the thresholds of each
//! of the four rules, and the memory of the best plan, by the free list and with offsets. Prints a CSV line for each
//! net and rule, and a summary on stderr.
//!
//! ```sh
//! cargo run -p planlab-workloads --example training_nets -- 32 |
//!     cargo run -p planlab-solvers --example compare_checkpoints -- articulation
//! ```
//!
//! The argument chooses which maps may be checkpoints: `articulation` (points) or `scored`.
//!
//! | column | what |
//! |---|---|
//! | `net`, `batch` | the net |
//! | `rule` | how a plan gives the next threshold |
//! | `maps`, `candidates` | feature maps that can be recomputed; those of them that may be checkpoints |
//! | `thresholds` | of each round, in bytes |
//! | `threshold`, `checkpoints` | of the plan with the least memory by the free list |
//! | `kept` | bytes by the free list with everything kept |
//! | `free_list` | bytes of that plan by the free list |
//! | `load` | the most bytes of it that are live at once |
//! | `offsets` | bytes of it with offsets, which the validator has seen |
//! | `time` | seconds of an iteration over those with everything kept, by the roofline of a V100 |
//!
//! Bytes are those of feature maps and gradients; parameters and workspaces are left out.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

mod nets;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::stdin;

use planlab_dsa::Bytes;
use planlab_graph::{Machine, ScheduleError, SchedulingProblem, Verified};
use planlab_solvers::schedule::checkpoints::{
    Candidates, CheckpointNet, Cut, Patent, Round, Thresholds, Update,
};

const MACHINE: &str = "x86-pcie3";
const COLUMNS: &str =
    "net,batch,rule,maps,candidates,thresholds,threshold,checkpoints,kept,free_list,load,offsets,time";

/// The result of one rule.
struct Row {
    rounds: Vec<Round>,
    best: Round,
    packed: Verified,
}

/// A net, with the data shared by the rules.
struct Comparison<'p> {
    problem: &'p SchedulingProblem,
    net: CheckpointNet<'p>,
    /// With everything kept: the bytes of the free list, and the seconds.
    kept: (Bytes, f64),
}

impl<'p> Comparison<'p> {
    fn new(problem: &'p SchedulingProblem, candidates: Candidates) -> Result<Self, ScheduleError> {
        let net = CheckpointNet::new(problem, candidates);
        let all = Cut { kept: (0..net.items().len()).collect(), ..Cut::default() };
        let kept = (net.free_list(&all)?, net.pack_schedule(&all)?.seconds());
        Ok(Self { problem, net, kept })
    }

    fn run(&self, rule: Update) -> Result<Row, Box<dyn Error>> {
        let search = Patent::default().with_update(rule);
        let rounds = search.search(self.net.items(), |cut| self.net.free_list(cut).map(Bytes::get))?;
        let best = Patent::choose_round(&rounds).ok_or("no round")?.clone();
        let packed = self.net.pack_schedule(&best.cut)?;
        Ok(Row { rounds, best, packed })
    }

    /// Bytes without parameters and workspace.
    fn own(&self, bytes: Bytes) -> u64 {
        bytes.get() - self.problem.base().get()
    }

    fn print(&self, rule: Update, row: &Row) {
        let net = &self.problem.net;
        let (maps, items) = (self.net.items().len(), self.net.items());
        let candidates = items.iter().filter(|item| item.is_candidate).count();
        let thresholds: Vec<_> = row.rounds.iter().map(|round| format!("{:.0}", round.threshold)).collect();
        println!(
            "{},{},{},{maps},{candidates},{},{:.0},{},{},{},{},{},{:.4}",
            net.name(),
            net.batch(),
            rule,
            thresholds.join(";"),
            row.best.threshold,
            row.best.cut.kept.len(),
            self.own(self.kept.0),
            self.own(Bytes::new(row.best.cost)),
            self.own(row.packed.live_peak()),
            self.own(row.packed.height()),
            row.packed.seconds() / self.kept.1,
        );
    }
}

/// Sums of logarithms, for geometric means over nets.
#[derive(Default)]
struct Summary {
    nets: u32,
    /// Nets on which no rule needs fewer bytes by the free list.
    least: u32,
    free_list_over_kept: f64,
    offsets_over_free_list: f64,
    offsets_over_load: f64,
    time: f64,
}

impl Summary {
    fn add(&mut self, comparison: &Comparison<'_>, row: &Row, least: u64) {
        let own = |bytes| comparison.own(bytes) as f64;
        let (free_list, offsets) = (own(Bytes::new(row.best.cost)), own(row.packed.height()));
        self.nets += 1;
        self.least += u32::from(row.best.cost == least);
        self.free_list_over_kept += (free_list / own(comparison.kept.0)).ln();
        self.offsets_over_free_list += (offsets / free_list).ln();
        self.offsets_over_load += (offsets / own(row.packed.live_peak())).ln();
        self.time += (row.packed.seconds() / comparison.kept.1).ln();
    }

    fn print(&self, rule: &str) {
        let mean = |sum: f64| (sum / f64::from(self.nets)).exp();
        eprintln!(
            "{rule:<9} {:>4} {:>5} {:>16.4} {:>19.4} {:>12.4} {:>6.4}",
            self.nets,
            self.least,
            mean(self.free_list_over_kept),
            mean(self.offsets_over_free_list),
            mean(self.offsets_over_load),
            mean(self.time),
        );
    }
}

fn candidates() -> Result<Candidates, String> {
    let Some(name) = std::env::args().nth(1) else { return Ok(Candidates::default()) };
    let found = Candidates::ALL.into_iter().find(|candidates| candidates.name() == name);
    found.ok_or_else(|| format!("candidates are `articulation` or `scored`, not `{name}`"))
}

fn main() -> Result<(), Box<dyn Error>> {
    let candidates = candidates()?;
    let machine = Machine::built_in(MACHINE).ok_or("no such machine")?;
    let mut summaries = BTreeMap::<&str, Summary>::new();
    println!("{COLUMNS}");
    for net in nets::read(stdin().lock(), &machine)? {
        // This measures the memory of a plan, not whether it fits.
        let problem = SchedulingProblem::new(net, machine.clone()).with_capacity(Bytes::new(u64::MAX));
        let comparison = Comparison::new(&problem, candidates)?;
        let rows: Vec<Row> =
            Update::ALL.into_iter().map(|rule| comparison.run(rule)).collect::<Result<_, _>>()?;
        let least = rows.iter().map(|row| row.best.cost).min().unwrap_or(0);
        for (rule, row) in Update::ALL.into_iter().zip(&rows) {
            comparison.print(rule, row);
            summaries.entry(rule.name()).or_default().add(&comparison, row, least);
        }
    }
    eprintln!("rule      nets least free list / kept offsets / free list offsets/load   time");
    summaries.iter().for_each(|(rule, summary)| summary.print(rule));
    Ok(())
}
