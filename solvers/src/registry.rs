//! Every planner by its key.

use planlab_dsa::Planner;

#[cfg(feature = "cp")]
use crate::cp::CpPumpkin;
#[cfg(feature = "mip")]
use crate::milp::{MipCbc, MipHighs};
use crate::placement::approximation::{Boxing, Gergov, Shelves};
use crate::placement::baseline::Bump;
use crate::placement::exact::Exact;
use crate::placement::flow::MincostFlow;
use crate::placement::greedy::{
    BestFitGap, Executorch, ExecutorchClosest, FirstFit, GreedyByBreadth, GreedyBySize, OneFlow, Somas,
    TfliteArena, TflmGreedy, Tvm, Xla,
};
use crate::placement::search::{Annealing, HillClimbTvm, HillClimbVela, Lns, Tabu};
use crate::placement::sharing::{
    MxnetSharing, PatentFreeList, SharedObjectsByBreadth, SharedObjectsBySize, SharedObjectsInOrder,
    SharedObjectsSizeDistance,
};
use crate::placement::skyline::{BestFit, BestFitReference};
use crate::placement::{Order, Portfolio, Scaled};

/// A digest of the sources of this crate and of the contract: the version of every planner here. 64
/// hexadecimal digits; the same for the same sources.
pub const SOURCE_DIGEST: &str = env!("PLANLAB_SOURCE_DIGEST");

/// Keys of planners that there are, and that this build was made without.
#[must_use]
pub fn absent() -> Vec<&'static str> {
    let mut absent = Vec::new();
    if !cfg!(feature = "mip") {
        absent.extend(["mip/cbc", "mip/highs"]);
    }
    if !cfg!(feature = "cp") {
        absent.push("cp/pumpkin");
    }
    absent
}

/// One planner for each key, in the order in which lists show them.
///
/// ```
/// let keys: Vec<_> = planlab_solvers::registry().iter().map(|p| p.descriptor().key).collect();
/// assert!(keys.contains(&"first-fit/size".into()));
/// ```
#[must_use]
pub fn registry() -> Vec<Box<dyn Planner>> {
    let mut all: Vec<Box<dyn Planner>> = vec![Box::new(Bump)];
    all.extend(Order::ALL.map(|order| Box::new(FirstFit::new(order)) as Box<dyn Planner>));
    all.extend(Order::ALL.map(|order| Box::new(BestFitGap::new(order)) as Box<dyn Planner>));
    all.push(Box::new(GreedyBySize));
    all.push(Box::new(GreedyByBreadth));
    all.extend([Box::new(Somas::many_objects()) as Box<dyn Planner>, Box::new(Somas::single_object())]);
    all.extend([Box::new(Somas::best()) as Box<dyn Planner>, Box::new(Somas::best_as_published())]);
    let oneflow = OneFlow::all().chain(OneFlow::published());
    all.extend(oneflow.map(|planner| Box::new(planner) as Box<dyn Planner>));
    all.extend([Box::new(TfliteArena::default()) as Box<dyn Planner>, Box::new(TflmGreedy)]);
    all.extend([Tvm::by_size(), Tvm::by_conflicts()].map(|tvm| Box::new(tvm) as Box<dyn Planner>));
    all.extend([Xla::temporal(), Xla::spatial(), Xla::best()].map(|xla| Box::new(xla) as Box<dyn Planner>));
    all.push(Box::new(Executorch::default()));
    all.push(Box::new(ExecutorchClosest::default()));
    all.push(Box::new(BestFit));
    all.push(Box::new(BestFitReference));
    all.push(Box::new(SharedObjectsBySize));
    all.push(Box::new(SharedObjectsByBreadth));
    all.push(Box::new(SharedObjectsInOrder));
    all.push(Box::new(SharedObjectsSizeDistance));
    all.extend(
        [false, true].map(|published| {
            Box::new(MxnetSharing::default().with_whole_bytes(published)) as Box<dyn Planner>
        }),
    );
    all.push(Box::new(PatentFreeList));
    all.push(Box::new(MincostFlow));
    all.extend([false, true].map(|yes| Box::new(Gergov::default().with_squeeze(yes)) as Box<dyn Planner>));
    all.extend(
        [Shelves::Rows, Shelves::Classes]
            .map(|shelves| Box::new(Boxing::default().with_shelves(shelves)) as Box<dyn Planner>),
    );
    all.push(Box::new(HillClimbTvm));
    all.push(Box::new(HillClimbVela::default()));
    all.push(Box::new(Annealing::default()));
    all.push(Box::new(Tabu));
    all.push(Box::new(Lns));
    all.push(Box::new(Exact::default()));
    all.push(Box::new(Portfolio));
    all.push(Box::new(Scaled::default()));
    #[cfg(feature = "mip")]
    all.extend([Box::new(MipCbc::default()) as Box<dyn Planner>, Box::new(MipHighs::default())]);
    #[cfg(feature = "cp")]
    all.push(Box::new(CpPumpkin::default()));
    all
}

/// The planner of a key, or `None`.
///
/// ```
/// assert!(planlab_solvers::planner("bump").is_some());
/// assert!(planlab_solvers::planner("bmup").is_none());
/// ```
#[must_use]
pub fn planner(key: &str) -> Option<Box<dyn Planner>> {
    registry().into_iter().find(|planner| planner.descriptor().key == key)
}

/// The keys of the [`registry`], in its order.
#[must_use]
pub fn keys() -> Vec<String> {
    registry().iter().map(|planner| planner.descriptor().key.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_are_unique_and_found() {
        let keys = keys();
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        for key in &keys {
            assert_eq!(planner(key).expect("in the registry").descriptor().key, key.as_str());
        }
    }

    #[test]
    fn the_digest_is_64_hexadecimal_digits() {
        assert_eq!(SOURCE_DIGEST.len(), 64);
        assert!(SOURCE_DIGEST.chars().all(|c| c.is_ascii_hexdigit()));
    }
}
