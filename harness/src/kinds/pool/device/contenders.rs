//! The contenders that a device can play.

use planlab_dsa::VerifiedPlan;
use planlab_replay::Work;
use planlab_replay::cuda::shuffle_plan;
use planlab_solvers::online;
use planlab_workloads::Trace;

use crate::cells::sabotage;
use crate::cli::ReplayArgs;
use crate::kinds::pool::contender::{EMPTY_LOOP, PLAN};
use crate::kinds::pool::{Contender, saboteurs};
use crate::shell::exit::Failure;
use crate::shell::keys::matching;
use crate::shell::output::print_note;

/// The plan with its buffers at other places.
pub(super) const SHUFFLED: &str = "plan/shuffled";
/// A graph of kernels at planned addresses.
pub(super) const GRAPH_PLAN: &str = "cuda-graph/plan";

/// The names of the driver's own allocators.
pub(super) const DRIVER: [&str; 4] =
    ["cuda-malloc", "cuda-malloc-async/keep", "cuda-malloc-async/release", "cuda-graph/async"];

fn keys() -> Vec<&'static str> {
    let mut keys = vec![SHUFFLED, GRAPH_PLAN];
    keys.extend(DRIVER);
    keys.push(EMPTY_LOOP);
    keys.extend(online::keys());
    keys.extend(sabotage::enabled(&saboteurs::KEYS));
    keys
}

/// The plans, contenders derived from them, and the allocators that the globs match. Matches of a glob that cannot be
/// played here are left out (a graph without kernels or of several traces, the empty loop with kernels). Keys that are
/// named in full stay.
pub(super) fn device_contenders(
    plans: &[Contender],
    args: &ReplayArgs,
    trace: &Trace,
) -> Result<Vec<Contender>, Failure> {
    let has_graphs = args.more.is_empty() && has_kernels(args);
    let mut contenders = plans.to_vec();
    for key in matching("a device has no contender", &args.allocators, keys())? {
        let is_named = args.allocators.iter().any(|wanted| wanted == key);
        let is_out_of_place = key.starts_with("cuda-graph/") && !has_graphs;
        if !is_named && (is_out_of_place || key == EMPTY_LOOP && has_kernels(args)) {
            continue;
        }
        if key != SHUFFLED && key != GRAPH_PLAN {
            contenders.push(Contender::from_allocator(key));
            continue;
        }
        if plans.is_empty() && is_named {
            return Err(Failure::from_usage(format!("`{key}` needs a plan: --plan or --planner")));
        }
        for plan in plans {
            match derived_contender(key, plan, trace, args.seed) {
                Some(made) => contenders.push(made),
                None if is_named => return Err(Failure::from_usage(plan_without(key, plan))),
                None => print_note(&plan_without(key, plan)),
            }
        }
    }
    Ok(contenders)
}

const fn has_kernels(args: &ReplayArgs) -> bool {
    matches!(args.work, Work::Kernels | Work::Operations)
}

fn plan_without(key: &str, plan: &Contender) -> String {
    format!("no `{key}` of {}: its buffers are not free to move", plan.name())
}

/// The contender that a key derives from a plan; `None` if the plan cannot be shuffled.
fn derived_contender(key: &str, contender: &Contender, trace: &Trace, seed: u64) -> Option<Contender> {
    let plan = contender.plan.clone()?;
    let plan = match key {
        SHUFFLED => shuffle_plan(&trace.instance.verify(plan).ok()?, seed).map(VerifiedPlan::into_plan)?,
        _ => plan,
    };
    let (planner, file) = (contender.planner.clone(), contender.file.clone());
    Some(Contender { key: key.to_owned(), planner, file, plan: Some(plan) })
}

/// Whether it plays from a plan.
pub(super) fn is_planned(key: &str) -> bool {
    [PLAN, SHUFFLED, GRAPH_PLAN].contains(&key)
}
