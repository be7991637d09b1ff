//! The memory that a propagation of a net takes: without reuse, with the framework's pool, and planned.

use std::collections::BTreeMap;

use planlab_results::{NetParts, WorkloadKey};

use crate::data::natural::natural;
use crate::data::nets::parts::{PoolTotals, net_of};
use crate::data::papers::paper::Quantity;
use crate::data::planners::model::Model;
use crate::data::replays::{Case, Replays};
use crate::format::as_real;

#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) model: &'a Model,
    pub(crate) replays: &'a Replays,
    pub(crate) totals: &'a PoolTotals,
    /// The planner whose plans count if profile-guided allocation was not played.
    pub(crate) baseline: &'a str,
    /// The sum of sizes by workload, for workloads without a total of their own.
    pub(crate) sums: &'a BTreeMap<usize, u64>,
}

/// The memory of a net's propagation in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Net<'a> {
    pub(crate) workload: &'a WorkloadKey,
    pub(crate) key: NetParts<'a>,
    /// Bytes kept over all iterations: parameters, and in training also their gradients and the optimizer's state.
    pub(crate) kept: Option<u64>,
    /// Bytes without any reuse.
    pub(crate) network_wise: Option<u64>,
    /// Bytes that the framework's own pool reserves over propagations.
    pub(crate) pool: Option<u64>,
    /// The number of these propagations.
    pub(crate) propagations: usize,
    /// Bytes that it holds at the end of a whole process, including kept ones.
    pub(crate) process: Option<u64>,
    pub(crate) planned: Option<u64>,
    /// Whether an allocator was played on it.
    pub(crate) is_played: bool,
    /// The most requested bytes at once.
    pub(crate) requested: u64,
}

impl Net<'_> {
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.kept.unwrap_or(0)
    }

    /// Bytes that the pool holds, including kept ones.
    pub(crate) fn pool_total(&self) -> Option<u64> {
        self.process.or_else(|| Some(self.kept_bytes() + self.pool?))
    }

    pub(crate) fn planned_total(&self) -> Option<u64> {
        Some(self.kept_bytes() + self.planned?)
    }

    pub(crate) fn network_wise_total(&self) -> Option<u64> {
        Some(self.kept_bytes() + self.network_wise?)
    }

    /// The moment at which the pool was measured.
    pub(crate) fn pool_from(&self) -> String {
        match (self.process, self.pool) {
            (Some(_), _) => "a process".to_owned(),
            (None, Some(_)) if self.propagations == 1 => "1 propagation".to_owned(),
            (None, Some(_)) => format!("{} propagations", self.propagations),
            (None, None) => String::new(),
        }
    }

    /// The share of the pool's bytes that the plan saves.
    pub(crate) fn share_saved(&self) -> Option<f64> {
        saved_share(self.pool_total()?, self.planned_total()?)
    }

    /// The same without kept bytes.
    pub(crate) fn propagation_reduction(&self) -> Option<f64> {
        saved_share(self.pool?, self.planned?)
    }

    /// A figure that corresponds to one of the paper; the paper's figures include kept bytes.
    pub(crate) fn comparable_figure(&self, quantity: Quantity, nets: &[Net<'_>]) -> Option<f64> {
        self.kept?;
        match quantity {
            Quantity::NetworkWise => self.network_wise_total().map(as_real),
            Quantity::Pool => self.pool_total().map(as_real),
            Quantity::Reduction => self.share_saved(),
            Quantity::PoolOverAlexnet => {
                let alexnet = NetParts { net: "alexnet", ..self.key };
                let alexnet = nets.iter().find(|net| net.key == alexnet && net.kept.is_some())?;
                Some(as_real(self.pool_total()?) / as_real(alexnet.pool_total()?.max(1)))
            }
            // Figures over several nets, and times, are on other pages.
            Quantity::GreatestReduction | Quantity::SpeedUp => None,
        }
    }
}

fn saved_share(before: u64, after: u64) -> Option<f64> {
    (before > 0).then(|| 1.0 - as_real(after) / as_real(before))
}

/// The pool of the framework from which a workload was recorded.
pub(crate) fn own_pool(route: &str) -> &'static str {
    match route {
        // Models follow Chainer's rules.
        "chainer" | "model" => "cupy2rc1-pool",
        _ => "pytorch-caching",
    }
}

/// The nets on which an allocator was played over simulated memory, and those that only have plans.
pub(crate) fn collect_nets(from: Sources<'_>) -> Vec<Net<'_>> {
    let played = from.replays.simulated_cases().map(|case| &case.summary_row().workload);
    let mut workloads: Vec<&WorkloadKey> =
        played.chain(from.model.workloads.iter().map(|workload| &workload.key)).collect();
    workloads.sort_unstable_by(|a, b| natural(a, b));
    workloads.dedup();
    workloads.into_iter().filter_map(|workload| build_net(from, workload)).collect()
}

fn build_net<'a>(from: Sources<'a>, workload: &'a WorkloadKey) -> Option<Net<'a>> {
    let key = net_of(workload)?;
    let pool = own_pool(key.route);
    let served = |contender: &str| from.replays.served_case(workload, contender);
    let held = |contender: &str| served(contender).map(|case| case.summary_row().performance.reserved_peak);
    let mut simulated = from.replays.simulated_cases();
    let played = simulated.find(|case| case.summary_row().workload == *workload).map(Case::summary_row);
    let number = from.model.workload_of(workload);
    let totals = from.totals.get(workload.as_str()).copied().unwrap_or_default();
    let load = number.map(|number| from.model.workloads[number].load);
    let sum = || number.and_then(|number| from.sums.get(&number).copied());
    // What was played is never mixed with what is only known.
    let known = |bytes: Option<u64>| bytes.filter(|_| played.is_none());
    Some(Net {
        workload,
        kept: totals.parameters.or_else(|| played?.retained),
        network_wise: held("network-wise").or_else(|| known(totals.network_wise.or_else(sum))),
        pool: held(pool).or_else(|| known(totals.pool)),
        propagations: served(pool).map_or(0, Case::looked_at),
        process: process_of(from.replays, &key, pool),
        planned: planned_bytes(from, workload),
        is_played: played.is_some(),
        requested: played.map(|row| row.requested_peak).or(load)?,
        key,
    })
}

/// The bytes that the pool held after a whole process of the net at this batch; only for nets in training.
fn process_of(replays: &Replays, key: &NetParts<'_>, pool: &str) -> Option<u64> {
    // A variant is one of several different iterations.
    if key.mode != "train" || key.variant.is_some() {
        return None;
    }
    let process = format!("{}/{}/process/b{}", key.route, key.net, key.batch);
    replays.served_case(&process, pool).map(|case| case.summary_row().performance.reserved_peak)
}

/// The steady state of profile-guided allocation; if it was not played, the height of the baseline's plan, or of the
/// best one.
fn planned_bytes(from: Sources<'_>, workload: &str) -> Option<u64> {
    let settled = from.replays.served_case(workload, "profile-guided").and_then(Case::settled_bytes);
    settled.or_else(|| {
        let (model, workload) = (from.model, from.model.workload_of(workload)?);
        match model.planner_of(from.baseline) {
            Some(planner) => model.height_on(planner, workload),
            None => model.best_cell(workload)?.height,
        }
    })
}

/// For each net: its largest batch in training, or in inference, for which the pool and a plan are known; the greatest
/// saving first.
pub(crate) fn largest_savings<'n, 'a>(nets: &'n [Net<'a>]) -> Vec<&'n Net<'a>> {
    let mut largest: BTreeMap<(&str, &str), &Net<'_>> = BTreeMap::new();
    let rank = |net: &Net<'_>| (net.key.mode == "train", net.key.batch, net.key.variant.is_none());
    for net in nets.iter().filter(|net| net.is_played && net.share_saved().is_some()) {
        let known = largest.entry((net.key.route, net.key.net)).or_insert(net);
        if rank(net) > rank(known) {
            *known = net;
        }
    }
    let mut savings: Vec<&Net<'_>> = largest.into_values().collect();
    let saved = |net: &Net<'_>| net.share_saved().unwrap_or(0.0);
    savings.sort_by(|a, b| saved(b).total_cmp(&saved(a)));
    savings
}
