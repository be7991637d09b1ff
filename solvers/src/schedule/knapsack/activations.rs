//! The activations that may be saved between the passes, and the fates of maps if some of them are.
//!
//! A saved activation stays from the forward to the backward pass. Every other map is dropped after its last forward
//! pass. If a backward pass needs it, it is computed again from what is there, and then stays for later readers.

use std::cmp::Reverse;

use planlab_dsa::Bytes;
use planlab_graph::{MapId, SchedulingProblem, TrainingNet};

use crate::schedule::fates::{Fate, Fates, forward_stage};

/// An activation that may be saved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activation {
    /// Its size.
    pub bytes: Bytes,
    /// Seconds of the function that makes it, which are spared if it is saved.
    pub seconds: f64,
}

impl Activation {
    /// A map, with the forward pass of its own function alone: 0 seconds for an input of the net.
    pub(super) fn from_map(problem: &SchedulingProblem, map: MapId) -> Self {
        let producer = problem.net.producer_of(map);
        let seconds = producer.map_or(0.0, |id| problem.times.forward()[id.index()]);
        Self { bytes: problem.net.map(map).bytes, seconds }
    }
}

/// The bytes of all activations.
pub(super) fn total_bytes(activations: &[Activation]) -> u64 {
    activations.iter().map(|activation| activation.bytes.get()).sum()
}

/// The bytes of the saved activations.
pub(super) fn saved_bytes(activations: &[Activation], saved: &[bool]) -> u64 {
    let saved = activations.iter().zip(saved).filter(|&(_, &is_saved)| is_saved);
    saved.map(|(activation, _)| activation.bytes.get()).sum()
}

/// The maps of a net among which a budget chooses: those that a function makes and a backward pass reads, largest first.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    maps: Vec<MapId>,
    pub(super) activations: Vec<Activation>,
}

impl Candidates {
    pub(super) fn new(problem: &SchedulingProblem) -> Self {
        let net = &problem.net;
        let mut maps: Vec<MapId> = net.retained_maps().filter(|&map| net.has_gradient(map)).collect();
        maps.sort_by_key(|&map| Reverse(net.map(map).bytes));
        let activations = maps.iter().map(|&map| Activation::from_map(problem, map)).collect();
        Self { maps, activations }
    }

    /// The fates of all maps if some candidates are saved.
    pub(super) fn fates_with(&self, net: &TrainingNet, saved: &[bool]) -> Fates {
        let mut is_saved = vec![false; net.maps().len()];
        self.maps.iter().zip(saved).for_each(|(map, &saved)| is_saved[map.index()] = saved);
        drop_unsaved(net, &is_saved)
    }
}

/// The fates of all maps if those that are not saved are dropped after their last forward pass. Inputs of the net stay.
pub(super) fn drop_unsaved(net: &TrainingNet, is_saved: &[bool]) -> Fates {
    let mut fates = Fates::keep_all(net);
    let stages = fates.stages();
    for map in net.map_ids().filter(|map| !is_saved[map.index()]) {
        if let Some(producer) = net.producer_of(map) {
            let last = net.last_use(map).unwrap_or(producer);
            fates.set_fate(map, forward_stage(last), stages, Fate::Drop);
        }
    }
    fates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::fates::build_program;
    use crate::schedule::testing::{shortcut_problem, step_names};

    #[test]
    fn unsaved_map_is_recomputed_from_saved_ones() {
        let problem = shortcut_problem();
        let candidates = Candidates::new(&problem);
        assert_eq!(candidates.maps, [2, 4].map(MapId::from_index));
        let steps = |saved: [bool; 2]| {
            step_names(&build_program(&problem, &candidates.fates_with(&problem.net, &saved)).0)
        };
        assert_eq!(steps([true, true]), "F0 F1 F2 F3 F4 B4 B2 A2 B1 B0");
        assert_eq!(steps([true, false]), "F0 F1 F2 F3 F4 R2 R3 B4 B2 A2 B1 B0");
        assert_eq!(steps([false, true]), "F0 F1 F2 F3 F4 B4 R0 R1 B2 A2 B1 B0");
        // What the first recomputation makes stays for the second reader.
        assert_eq!(steps([false, false]), "F0 F1 F2 F3 F4 R0 R1 R2 R3 B4 B2 A2 B1 B0");
    }

    #[test]
    fn activation_costs_its_own_function_alone() {
        let problem = shortcut_problem();
        let sum = Activation::from_map(&problem, MapId::from_index(4));
        assert_eq!(sum, Activation { bytes: Bytes::new(256), seconds: 2.0 });
        let image = Activation::from_map(&problem, MapId::from_index(0));
        assert_eq!(image, Activation { bytes: Bytes::new(64), seconds: 0.0 });
    }
}
