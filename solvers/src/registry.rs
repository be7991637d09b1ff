//! Every planner by its key.

use std::sync::LazyLock;

use planlab_dsa::Planner;

use crate::placement::approximation::{Boxing, Gergov, Shelves};
use crate::placement::baseline::Bump;
use crate::placement::exact::Exact;
use crate::placement::flow::MincostFlow;
use crate::placement::greedy::{
    Executorch, ExecutorchClosest, Fit, GreedyByBreadth, GreedyBySize, OneFlow, OneFlowInsertion,
    OneFlowOrder, Somas, TfliteArena, TflmGreedy, Tvm, Xla,
};
use crate::placement::search::{Annealing, BlockBuilding, HillClimbTvm, HillClimbVela, Lns, Tabu};
use crate::placement::sharing::{
    Means, MxnetSharing, PatentFreeList, SharedObjects, SharedObjectsInOrder, SharedObjectsSizeDistance,
};
use crate::placement::skyline::{BestFit, BestFitReference};
use crate::placement::{Order, Portfolio, Scaled};

/// A digest of the sources of this crate and of the contract: the version of every planner here. 64 hexadecimal digits;
/// equal for equal sources.
pub const SOURCE_DIGEST: &str = env!("PLANLAB_SOURCE_DIGEST");

type Planners = Vec<Box<dyn Planner>>;

/// The name of a family, and its planners.
type Family = (&'static str, fn() -> Planners);

/// Planners of a family; none if they need a feature that this build lacks.
macro_rules! planners {
    ($feature:literal: $($planner:expr),+) => {{
        #[cfg(feature = $feature)]
        {
            planners![$($planner),+]
        }
        #[cfg(not(feature = $feature))]
        {
            Vec::new()
        }
    }};
    ($($planner:expr),+ $(,)?) => {
        vec![$(Box::new($planner) as Box<dyn Planner>),+]
    };
}

/// Every planner, by family, in the order in which lists show them. A family is a folder or a file of this crate.
const FAMILIES: &[Family] = &[
    ("baseline", || planners![Bump]),
    ("greedy", || {
        let mut all: Planners = Vec::new();
        all.extend(Order::ALL.map(|order| Box::new(Fit::first_fit(order)) as Box<dyn Planner>));
        all.extend(Order::ALL.map(|order| Box::new(Fit::best_gap(order)) as Box<dyn Planner>));
        all.extend(planners![GreedyBySize, GreedyByBreadth]);
        all.extend(planners![Somas::many_objects(), Somas::single_object()]);
        all.extend(planners![Somas::lower_of_both(), Somas::best_as_published()]);
        all.extend(oneflow_planners());
        all.extend(planners![
            TfliteArena::default(),
            TflmGreedy,
            Tvm::by_size(),
            Tvm::by_conflicts(),
            Xla::by_lifetime(),
            Xla::by_size(),
            Xla::lower_of_both(),
            Executorch::default(),
            ExecutorchClosest::default(),
        ]);
        all
    }),
    ("skyline", || planners![BestFit, BestFitReference]),
    ("sharing", || {
        planners![
            SharedObjects::by_size(),
            SharedObjects::by_breadth(),
            SharedObjectsInOrder,
            SharedObjectsSizeDistance,
            MxnetSharing::default(),
            MxnetSharing::default().with_means(Means::InPlace),
            MxnetSharing::default().with_means(Means::Sharing),
            MxnetSharing::default().with_whole_bytes(true),
            PatentFreeList,
        ]
    }),
    ("flow", || planners![MincostFlow]),
    ("approximation", || {
        planners![
            Gergov::default(),
            Gergov::default().with_squeeze(true),
            Boxing::default().with_shelves(Shelves::Rows),
            Boxing::default().with_shelves(Shelves::Classes),
        ]
    }),
    ("search", || planners![HillClimbTvm, HillClimbVela, Annealing, Tabu, Lns, BlockBuilding]),
    ("exact", || planners![Exact]),
    ("portfolio", || planners![Portfolio, Scaled::default()]),
    ("milp", || planners!["mip": crate::milp::Mip::with_cbc(), crate::milp::Mip::with_highs()]),
    ("cp", || planners!["cp": crate::cp::CpPumpkin::default()]),
];

/// Every order with every insertion, and the lowest of all; then those that use volumes, as published.
fn oneflow_planners() -> Planners {
    let one = OneFlow::new;
    let each =
        OneFlowOrder::ALL.into_iter().flat_map(|order| OneFlowInsertion::ALL.map(|rule| one(order, rule)));
    let by_volume = OneFlowInsertion::ALL.map(|rule| one(OneFlowOrder::MemVolumeFirst, rule));
    let published = by_volume.into_iter().chain([OneFlow::lowest_of_all()]);
    let published = published.map(|planner| planner.with_truncated_volume(true));
    let all = each.chain([OneFlow::lowest_of_all()]).chain(published);
    all.map(|planner| Box::new(planner) as Box<dyn Planner>).collect()
}

/// The planners that need a feature of this crate: family, key, and whether this build includes it.
const OPTIONAL: [(&str, &str, bool); 3] = [
    ("milp", "mip/cbc", cfg!(feature = "mip")),
    ("milp", "mip/highs", cfg!(feature = "mip")),
    ("cp", "cp/pumpkin", cfg!(feature = "cp")),
];

/// The keys of each family, in its order.
static KEYS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let keys =
        |planners: Planners| planners.iter().map(|planner| planner.descriptor().key.into_owned()).collect();
    FAMILIES.iter().map(|(_, planners)| keys(planners())).collect()
});

/// Keys of existing planners that this build does not include.
#[must_use]
pub fn absent_keys() -> Vec<&'static str> {
    OPTIONAL.into_iter().filter(|&(.., is_included)| !is_included).map(|(_, key, _)| key).collect()
}

/// One planner for each key, in the order in which lists show them.
///
/// ```
/// let keys: Vec<_> = planlab_solvers::registry().iter().map(|p| p.descriptor().key).collect();
/// assert!(keys.contains(&"first-fit/size".into()));
/// ```
#[must_use]
pub fn registry() -> Vec<Box<dyn Planner>> {
    FAMILIES.iter().flat_map(|(_, planners)| planners()).collect()
}

/// The planner of a key, or `None`.
///
/// ```
/// assert!(planlab_solvers::find_planner("bump").is_some());
/// assert!(planlab_solvers::find_planner("bmup").is_none());
/// ```
#[must_use]
pub fn find_planner(key: &str) -> Option<Box<dyn Planner>> {
    FAMILIES.iter().zip(&*KEYS).find_map(|((_, planners), keys)| {
        let place = keys.iter().position(|other| other == key)?;
        planners().into_iter().nth(place)
    })
}

/// The family of the planner of a key: `greedy`, `exact`, ...; `None` if there is no such planner.
///
/// ```
/// assert_eq!(planlab_solvers::family("best-fit"), Some("skyline"));
/// ```
#[must_use]
pub fn family(key: &str) -> Option<&'static str> {
    let has_it = |(_, keys): &(_, &Vec<String>)| keys.iter().any(|other| other == key);
    let found = FAMILIES.iter().zip(&*KEYS).find(has_it).map(|((family, _), _)| *family);
    found.or_else(|| OPTIONAL.into_iter().find(|(_, other, _)| *other == key).map(|(family, ..)| family))
}

/// The keys of the [`registry`], in its order.
#[must_use]
pub fn keys() -> Vec<String> {
    KEYS.concat()
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
            assert_eq!(find_planner(key).expect("in the registry").descriptor().key, key.as_str());
        }
        for (family_name, key, is_included) in OPTIONAL {
            assert_eq!(
                (family(key), keys.iter().any(|other| other == key)),
                (Some(family_name), is_included)
            );
        }
    }

    #[test]
    fn the_digest_is_64_hexadecimal_digits() {
        assert_eq!(SOURCE_DIGEST.len(), 64);
        assert!(SOURCE_DIGEST.chars().all(|c| c.is_ascii_hexdigit()));
    }
}
