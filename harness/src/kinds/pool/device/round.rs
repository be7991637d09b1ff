//! Plays one repetition: a process in which all contenders take turns, and another for those left if it dies.

use std::time::Duration;

use planlab_dsa::Digest;
use planlab_replay::Performance;
use planlab_replay::cuda::{DeviceInfo, Protocol};

use super::child::DeviceReplay;
use super::messages::{DeviceRequest, Player, TurnLog};
use crate::cells::{CellEnd, Order, Supervisor};
use crate::cli::{Device, ReplayArgs};
use crate::inputs::Source;
use crate::kinds::pool::Contender;
use crate::kinds::pool::row::performance_of_death;
use crate::process::Death;
use crate::shell::exit::Failure;

/// The settings of a replay on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) protocol: Protocol,
    /// The time of every operation in nanoseconds, if all take the same.
    pub(super) operation_ns: Option<u64>,
    /// Digest of the operations' times in the traces, if these are played.
    pub(super) recorded: Option<Digest>,
    pub(super) capacity: Option<u64>,
}

/// The contenders and settings of a repetition.
pub(super) struct Round<'a> {
    pub(super) supervisor: &'a Supervisor,
    pub(super) args: &'a ReplayArgs,
    pub(super) sources: &'a [Source],
    pub(super) contenders: &'a [Contender],
    pub(super) settings: &'a Settings,
    pub(super) repetition: u32,
}

/// The device, and the figures of each contender.
type Played = (DeviceInfo, Vec<Performance>);

impl Round<'_> {
    /// Plays all contenders; `None` if that was interrupted.
    ///
    /// # Errors
    ///
    /// If no child can be started, a trace cannot be read or the device is missing.
    pub(super) fn play_round(&self) -> Result<Option<Played>, Failure> {
        let source = self.sources.to_vec();
        let mut device = unknown_device(self.args.device);
        let mut all: Vec<Option<Performance>> = vec![None; self.contenders.len()];
        loop {
            let left: Vec<usize> = (0..all.len()).filter(|&index| all[index].is_none()).collect();
            if left.is_empty() {
                return Ok(Some((device, all.into_iter().flatten().collect())));
            }
            let order =
                Order { source: &source, cells: &[self.round_request(&left)], memory: None, core: None };
            let cell = self.supervisor.run::<DeviceReplay>(&order)?.pop();
            let Some(cell) = cell.filter(|cell| !cell.interrupted) else { return Ok(None) };
            let turns = settle_turns(cell, left.len(), self.args.time_limit)?;
            device = turns.device.unwrap_or(device);
            for (index, one) in left.into_iter().zip(turns.figures) {
                all[index] = one.map(|performance| with_lost(performance, turns.lost.as_deref()));
            }
        }
    }

    /// The request for the contenders left; each process has an order of its own.
    fn round_request(&self, left: &[usize]) -> DeviceRequest {
        let player = |&index: &usize| {
            let contender = &self.contenders[index];
            Player { key: contender.key.clone(), plan: contender.plan.clone() }
        };
        let protocol = self.settings.protocol;
        DeviceRequest {
            device: self.args.device,
            contenders: left.iter().map(player).collect(),
            protocol: Protocol { seed: protocol.seed.wrapping_add(self.repetition.into()), ..protocol },
            operation_ns: self.settings.operation_ns,
            capacity: self.settings.capacity,
            limit: self.args.time_limit,
        }
    }
}

/// The turns of a process with this many contenders, whether it answered or died.
fn settle_turns(cell: CellEnd<DeviceReplay>, contenders: usize, limit: Duration) -> Result<TurnLog, Failure> {
    match cell.end {
        Ok(Ok(turns)) => Ok(turns),
        Ok(Err(reason)) | Err(Death::Unreadable(reason)) => Err(Failure::from_usage(reason)),
        Err(death) => {
            let failed = performance_of_death(&death, &cell.stderr_tail, limit);
            Ok(cell.kept.settle_death(contenders, death == Death::Timeout, &failed))
        }
    }
}

/// Adds to the reason what the device did not take back after all turns. That spoils no figure, but every row of the
/// process mentions it.
fn with_lost(mut performance: Performance, lost: Option<&str>) -> Performance {
    if let Some(lost) = lost {
        let before = if performance.reason.is_empty() { "" } else { "; " };
        performance.reason += &format!("{before}the device did not take all back in the end: {lost}");
    }
    performance
}

/// A device whose process died before it could name it.
fn unknown_device(device: Device) -> DeviceInfo {
    let (key, is_simulated) = match device {
        Device::Cuda(ordinal) => (format!("cuda:{ordinal}"), false),
        Device::Host | Device::Simulated(_) => ("simulated-cuda".to_owned(), true),
    };
    DeviceInfo { key, name: "not known: its process ended".to_owned(), is_simulated, l2_bytes: None }
}

#[cfg(test)]
mod tests {
    use planlab_replay::End;

    use super::*;

    #[test]
    fn what_is_lost_in_the_end_stands_in_every_row() {
        let says = "the device did not take all back in the end: cuStreamDestroy: lost";
        let of = |end, reason: &str| {
            let played = Performance::without_measurements(end, reason.to_owned());
            let told = with_lost(played, Some("cuStreamDestroy: lost"));
            (told.status, told.reason)
        };
        assert_eq!(of(End::Complete, ""), (End::Complete, says.to_owned()));
        assert_eq!(of(End::OutOfMemory, "no room"), (End::OutOfMemory, format!("no room; {says}")));
        let complete = Performance::default();
        assert_eq!(with_lost(complete, None).reason, "");
    }
}
