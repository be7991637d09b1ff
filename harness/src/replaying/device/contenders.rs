//! Who can be played on a device.

use planlab_dsa::VerifiedPlan;
use planlab_replay::cuda::shuffled;
use planlab_solvers::online;
use planlab_workloads::{Trace, glob, nearest};

use crate::exit::Failure;
use crate::planners::suggestion;
use crate::replaying::contender::PLAN;
use crate::replaying::{Contender, saboteur};

/// The plan with its buffers moved.
pub(super) const SHUFFLED: &str = "plan/shuffled";
/// A graph of kernels at planned addresses.
pub(super) const GRAPH_PLAN: &str = "cuda-graph/plan";

/// What comes with the driver, and by which name.
pub(super) const DRIVER: [&str; 4] =
    ["cuda-malloc", "cuda-malloc-async/keep", "cuda-malloc-async/release", "cuda-graph/async"];

fn keys() -> Vec<&'static str> {
    let mut keys = vec![SHUFFLED, GRAPH_PLAN];
    keys.extend(DRIVER);
    keys.extend(online::keys());
    keys.extend(saboteur::keys());
    keys
}

/// The keys that one of the globs matches; one that matches nothing is an error.
fn wanted(globs: &[String]) -> Result<Vec<&'static str>, Failure> {
    let keys = keys();
    for wanted in globs {
        if !keys.iter().any(|key| glob(wanted, key)) {
            let near = nearest(wanted, keys.iter().copied());
            let says = format!("a device has no contender `{wanted}`{}", suggestion(&near));
            return Err(Failure::usage(says));
        }
    }
    Ok(keys.into_iter().filter(|key| globs.iter().any(|wanted| glob(wanted, key))).collect())
}

/// The plans, what is made of them, and the allocators that the globs match.
pub(super) fn contenders(
    plans: Vec<Contender>,
    globs: &[String],
    trace: &Trace,
    seed: u64,
) -> Result<Vec<Contender>, Failure> {
    let keys = wanted(globs)?;
    let mut contenders = plans.clone();
    for key in keys {
        if key != SHUFFLED && key != GRAPH_PLAN {
            contenders.push(Contender::allocator(key));
            continue;
        }
        if plans.is_empty() {
            let is_meant = globs.iter().any(|wanted| wanted == key);
            if is_meant {
                return Err(Failure::usage(format!("`{key}` needs a plan: --plan or --planner")));
            }
        }
        contenders.extend(plans.iter().filter_map(|plan| derived(key, plan, trace, seed)));
    }
    Ok(contenders)
}

/// What a key makes of a plan; a plan that cannot be shuffled has no shuffled twin.
fn derived(key: &str, contender: &Contender, trace: &Trace, seed: u64) -> Option<Contender> {
    let plan = contender.plan.clone()?;
    let plan = match key {
        SHUFFLED => shuffled(&trace.instance.verify(plan).ok()?, seed).map(VerifiedPlan::into_plan)?,
        _ => plan,
    };
    Some(Contender { key: key.to_owned(), planner: contender.planner.clone(), plan: Some(plan) })
}

/// Whether it plays from a plan.
pub(super) fn is_planned(key: &str) -> bool {
    [PLAN, SHUFFLED, GRAPH_PLAN].contains(&key)
}
