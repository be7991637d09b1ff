//! Activations and nets for tests.

use planlab_dsa::Bytes;
use planlab_graph::{FunctionKind, SchedulingProblem, Times};

use super::Activation;
use crate::schedule::testing::{chain_net, shortcut_problem};

/// Activations of these bytes and seconds.
pub(super) fn activations(items: &[(u64, f64)]) -> Vec<Activation> {
    items.iter().map(|&(bytes, seconds)| Activation { bytes: Bytes::new(bytes), seconds }).collect()
}

/// A chain of convolutions with these seconds for each pass: an image of 64 bytes, then maps of 256. The backward pass
/// of each reads its input. There are no parameters.
pub(super) fn chain_problem(seconds: &[f64]) -> SchedulingProblem {
    let bytes: Vec<u64> = std::iter::once(64).chain(seconds.iter().map(|_| 256)).collect();
    let net = chain_net(&bytes, FunctionKind::Convolution, false);
    let machine = shortcut_problem().machine;
    let times = Times::from_measured(&machine, &net, seconds.to_vec(), seconds.to_vec()).expect("times");
    SchedulingProblem::new(net, machine).with_times(times)
}
