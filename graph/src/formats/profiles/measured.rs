//! A net as measured on a device: its maps and functions, and the seconds of both passes, at one batch.

use std::collections::BTreeSet;

use planlab_dsa::Bytes;

use crate::schedule::EXACT;
use crate::{
    FeatureMap, Function, Machine, MapId, NetError, SchedulingProblem, Times, TimesError, TrainingNet,
};

/// A net with measured times. At another batch than the measured one, sizes and times are proportional to it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredNet {
    batch: u64,
    parameters: u64,
    maps: Vec<FeatureMap>,
    functions: Vec<Function>,
    /// Seconds, by function.
    forward: Vec<f64>,
    backward: Vec<f64>,
}

/// A measured net that is no scheduling problem at a batch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The layers do not form a net.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A time is not possible.
    #[error(transparent)]
    Times(#[from] TimesError),
}

impl MeasuredNet {
    /// The net at a batch.
    ///
    /// # Errors
    ///
    /// [`NetError`] if the layers do not form a net.
    pub fn net_at_batch(&self, name: &str, batch: u64) -> Result<TrainingNet, NetError> {
        let scaled =
            |map: &FeatureMap| FeatureMap { bytes: self.scale_bytes(map.bytes, batch), ..map.clone() };
        let maps = self.maps.iter().map(scaled).collect();
        TrainingNet::new(name, batch, self.parameters, maps, self.functions.clone())
    }

    /// The times of [`MeasuredNet::net_at_batch`] at a batch; those of sums come from the machine.
    ///
    /// # Errors
    ///
    /// [`TimesError`] for another net.
    pub fn times_at_batch(&self, machine: &Machine, net: &TrainingNet) -> Result<Times, TimesError> {
        let scale = net.batch() as f64 / self.batch as f64;
        let [forward, backward] = [&self.forward, &self.backward]
            .map(|pass| pass.iter().map(|seconds| seconds * scale).collect::<Vec<_>>());
        Times::from_measured(machine, net, forward, backward)
    }

    /// One iteration at a batch with the measured times, in the machine's memory.
    ///
    /// # Errors
    ///
    /// [`ProfileError`] if the layers do not form a net, or a time is not possible at that batch.
    pub fn problem_at_batch(
        &self,
        name: &str,
        batch: u64,
        machine: Machine,
    ) -> Result<SchedulingProblem, ProfileError> {
        let net = self.net_at_batch(name, batch)?;
        let times = self.times_at_batch(&machine, &net)?;
        Ok(SchedulingProblem::new(net, machine).with_times(times))
    }

    /// Rounds down, but not to an empty map.
    fn scale_bytes(&self, bytes: Bytes, batch: u64) -> Bytes {
        let scaled = u128::from(bytes.get()) * u128::from(batch) / u128::from(self.batch);
        Bytes::new(u64::try_from(scaled).unwrap_or(u64::MAX)).max(bytes.min(Bytes::new(1)))
    }
}

/// What readers build a net with.
impl MeasuredNet {
    /// A net without functions, measured at a batch above 0.
    pub(super) const fn new(batch: u64) -> Self {
        Self {
            batch,
            parameters: 0,
            maps: Vec::new(),
            functions: Vec::new(),
            forward: Vec::new(),
            backward: Vec::new(),
        }
    }

    /// Adds parameters of 4 bytes each. The sum of any number of layers: what is too large has no room on any machine.
    pub(super) fn add_parameters(&mut self, bytes: u64) {
        self.parameters = self.parameters.saturating_add(bytes / 4);
    }

    /// Appends a map of this size at the measured batch, and returns its id.
    pub(super) fn add_map(&mut self, name: &str, bytes: u64) -> MapId {
        self.maps.push(FeatureMap { name: name.to_owned(), bytes: Bytes::new(bytes) });
        MapId::from_index(self.maps.len() - 1)
    }

    /// The size of a map at the measured batch in bytes.
    pub(super) fn map_bytes(&self, map: MapId) -> u64 {
        self.maps[map.index()].bytes.get()
    }

    /// Appends a function with the seconds of its passes.
    pub(super) fn add_function(&mut self, function: Function, forward: f64, backward: f64) {
        self.functions.push(function);
        self.forward.push(forward);
        self.backward.push(backward);
    }
}

/// The distinct items, in the order in which they come first.
pub(super) fn distinct<T: Copy + Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    items.filter(|&item| seen.insert(item)).collect()
}

/// Whether a number of bytes is not negative, and exact as a floating-point number if it is whole.
pub(super) fn is_size(bytes: f64) -> bool {
    (0.0..=EXACT as f64).contains(&bytes)
}

/// A size as whole bytes; part of a byte takes one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(super) fn round_up_bytes(bytes: f64) -> u64 {
    bytes.ceil() as u64
}
