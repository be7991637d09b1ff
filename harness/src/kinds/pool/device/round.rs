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

/// The turns of a process with this many contenders, whether it answered or died. An answer without figures counts as a
/// death, so that the contenders left become fewer with each process.
fn settle_turns(cell: CellEnd<DeviceReplay>, contenders: usize, limit: Duration) -> Result<TurnLog, Failure> {
    let (turns, death) = match cell.end {
        Ok(Ok(turns)) if turns.figures.iter().any(Option::is_some) => return Ok(turns),
        Ok(Ok(turns)) => (turns, Death::BadOutput("no contender had a turn".to_owned())),
        Ok(Err(reason)) | Err(Death::Unreadable(reason)) => return Err(Failure::from_usage(reason)),
        Err(death) => (cell.kept, death),
    };
    let failed = performance_of_death(&death, &cell.stderr_tail, limit);
    Ok(turns.settle_death(contenders, death == Death::Timeout, &failed))
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

    fn log(ended: &[usize], current: Option<usize>) -> TurnLog {
        let mut log = TurnLog { figures: vec![None; 2], current, ..TurnLog::default() };
        ended.iter().for_each(|&place| log.figures[place] = Some(Performance::default()));
        log
    }

    /// How each of two contenders ended and why, if that is certain.
    fn settle(
        end: Result<Result<TurnLog, String>, Death>,
        kept: TurnLog,
    ) -> Result<Vec<Option<(End, String)>>, String> {
        let stderr_tail = String::new();
        let cell: CellEnd<DeviceReplay> =
            CellEnd { end, kept, stderr_tail, ran_out_of_memory: false, interrupted: false };
        let settled =
            settle_turns(cell, 2, Duration::from_secs(2)).map_err(|failure| failure.full_message())?;
        Ok(settled.figures.into_iter().map(|one| one.map(|one| (one.status, one.reason))).collect())
    }

    #[test]
    fn refusal_of_a_child_ends_the_round() {
        for end in [Ok(Err("no device".to_owned())), Err(Death::Unreadable("no device".to_owned()))] {
            assert_eq!(settle(end, log(&[0], None)), Err("no device".to_owned()));
        }
    }

    #[test]
    fn each_process_decides_on_a_contender() {
        let complete = Some((End::Complete, String::new()));
        let failed = |reason: &str| Some((End::Failed, reason.to_owned()));
        assert_eq!(settle(Ok(Ok(log(&[1], None))), log(&[0], None)), Ok(vec![None, complete.clone()]));
        assert_eq!(
            settle(Ok(Ok(log(&[], None))), log(&[], None)),
            Ok(vec![failed("no contender had a turn"); 2])
        );
        let late = |kept| settle(Err(Death::Timeout), kept);
        assert_eq!(late(log(&[], Some(0))), Ok(vec![failed("killed after 2.000 s"), None]));
        assert_eq!(late(log(&[1], Some(0))), Ok(vec![None, complete.clone()]));
        let died = settle(Err(Death::Signal(6)), log(&[1], Some(0)));
        assert_eq!(died, Ok(vec![failed("signal 6"), complete]));
    }

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
