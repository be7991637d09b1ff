//! Plays one repetition: a process in which all contenders take turns, and another for those left if it dies.

use std::io;
use std::process::Command;

use planlab_dsa::{CancelToken, Digest};
use planlab_replay::Performance;
use planlab_replay::cuda::{DeviceInfo, Protocol};

use super::protocol::{Player, Reply, Request};
use crate::cli::{Device, ReplayArgs};
use crate::inputs::Source;
use crate::kinds::pool::Contender;
use crate::kinds::pool::environment::{PRELOAD, clear_allocators};
use crate::kinds::pool::row::performance_of_death;
use crate::process::{Death, hidden_command, talk_to_child};
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
    pub(super) fn play_round(&self, cancel: &CancelToken) -> Result<Option<Played>, Failure> {
        let mut device = unknown_device(self.args.device);
        let mut all: Vec<Option<Performance>> = vec![None; self.contenders.len()];
        loop {
            let left: Vec<usize> = (0..all.len()).filter(|&index| all[index].is_none()).collect();
            if left.is_empty() {
                return Ok(Some((device, all.into_iter().flatten().collect())));
            }
            let request = self.round_request(&left);
            let limit = self.args.time_limit;
            let talk = talk_to_child(child()?, &request, limit, cancel)?;
            if cancel.is_cancelled() {
                return Ok(None);
            }
            let mut heard = Heard::from_answer(&talk.answer, left.len());
            if let Some(reason) = heard.refusal.take() {
                return Err(Failure::from_usage(reason));
            }
            device = heard.device.take().unwrap_or(device);
            let lost = heard.lost.take();
            let ended = heard.settle_answers(talk.killed.as_ref() == Some(&Death::Timeout), || {
                performance_of_death(&talk.death_of_child(), &talk.stderr, limit)
            });
            for (index, one) in left.into_iter().zip(ended) {
                all[index] = one.map(|performance| with_lost(performance, lost.as_deref()));
            }
        }
    }

    /// The request for the contenders left; each process has an order of its own.
    fn round_request(&self, left: &[usize]) -> Request {
        let player = |&index: &usize| {
            let contender = &self.contenders[index];
            Player { key: contender.key.clone(), plan: contender.plan.clone() }
        };
        let protocol = self.settings.protocol;
        Request {
            sources: self.sources.to_vec(),
            parent: std::process::id(),
            device: self.args.device,
            contenders: left.iter().map(player).collect(),
            protocol: Protocol { seed: protocol.seed.wrapping_add(self.repetition.into()), ..protocol },
            operation_ns: self.settings.operation_ns,
            capacity: self.settings.capacity,
        }
    }
}

/// A child's answers until its end.
#[derive(Clone, Debug, Default)]
struct Heard {
    /// The reason why nothing can be played.
    refusal: Option<String>,
    device: Option<DeviceInfo>,
    /// What the device did not take back after all turns.
    lost: Option<String>,
    /// The figures of the contenders that had a turn, by their places in the request.
    ended: Vec<Option<Performance>>,
    /// The contender in a turn when the answer ended.
    at_work: Option<usize>,
    is_done: bool,
}

impl Heard {
    /// Reads an answer up to its first invalid line; the last line of a child that died may be cut.
    fn from_answer(answer: &[u8], contenders: usize) -> Self {
        let mut heard = Self { ended: vec![None; contenders], ..Self::default() };
        let lines = answer.split(|&byte| byte == b'\n');
        for reply in lines.map_while(|line| serde_json::from_slice::<Reply>(line).ok()) {
            match reply {
                Reply::Unreadable { reason } | Reply::Unavailable { reason } => heard.refusal = Some(reason),
                Reply::Device(device) => heard.device = Some(device),
                Reply::Begins { contender } => heard.at_work = Some(contender),
                Reply::Ended { contender, performance } => {
                    heard.at_work = None;
                    if let Some(one) = heard.ended.get_mut(contender) {
                        *one = Some(*performance);
                    }
                }
                // Contenders without a turn play in the next process.
                Reply::Broken { .. } => {}
                Reply::Lost { reason } => heard.lost = Some(reason),
                Reply::Done => heard.is_done = true,
            }
        }
        heard
    }

    /// The final figures of each contender; `None` if it has to play again. Those that ended a turn keep it, and the
    /// one in a turn when the child died has failed. If the time was over instead, that one plays again too, provided
    /// another had a turn before. At least one contender is final.
    fn settle_answers(mut self, is_late: bool, failed: impl Fn() -> Performance) -> Vec<Option<Performance>> {
        let has_turns = self.ended.iter().any(Option::is_some);
        match self.at_work.filter(|&place| !self.is_done && place < self.ended.len()) {
            Some(_) if is_late && has_turns => {}
            Some(place) => self.ended[place] = Some(failed()),
            None if has_turns && !self.is_done => {}
            None => {
                for one in &mut self.ended {
                    one.get_or_insert_with(&failed);
                }
            }
        }
        self.ended
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

fn child() -> io::Result<Command> {
    let mut command = hidden_command("run-device-replay")?;
    clear_allocators(&mut command, Some(PRELOAD));
    Ok(command)
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

    fn answer(replies: &[Reply]) -> Vec<u8> {
        let line = |reply: &Reply| serde_json::to_string(reply).expect("plain data") + "\n";
        replies.iter().map(line).collect::<String>().into_bytes()
    }

    fn ended(contender: usize) -> Reply {
        Reply::Ended { contender, performance: Box::default() }
    }

    /// How each of three ended, if that is certain.
    fn ends(replies: &[Reply], is_late: bool) -> Vec<Option<End>> {
        let mut answer = answer(replies);
        answer.extend(b"{\"ended\": {\"contender\": 2, \"perf");
        let failed = || Performance::without_measurements(End::Failed, String::new());
        let settled = Heard::from_answer(&answer, 3).settle_answers(is_late, failed);
        settled.iter().map(|one| one.as_ref().map(|one| one.status)).collect()
    }

    #[test]
    fn a_death_costs_who_was_in_a_turn() {
        let (complete, failed) = (Some(End::Complete), Some(End::Failed));
        let begins = |contender| Reply::Begins { contender };
        assert_eq!(ends(&[begins(1), ended(1), begins(0)], false), [failed, complete, None]);
        assert_eq!(ends(&[begins(1), ended(1), begins(0)], true), [None, complete, None]);
        assert_eq!(ends(&[begins(1)], true), [None, failed, None]);
        assert_eq!(ends(&[begins(1), ended(1)], false), [None, complete, None]);
        assert_eq!(ends(&[begins(1), ended(1), Reply::Done], false), [failed, complete, failed]);
        assert_eq!(ends(&[], false), [failed; 3]);
        let broken = Reply::Broken { reason: "error 700".to_owned() };
        assert_eq!(ends(&[begins(1), ended(1), broken], false), [None, complete, None]);
        assert_eq!(ends(&[ended(1), begins(1)], false), [None, failed, None], "not its earlier round");
    }

    #[test]
    fn what_is_lost_in_the_end_stands_in_every_row() {
        let lost = Reply::Lost { reason: "cuStreamDestroy: lost".to_owned() };
        let heard = Heard::from_answer(&answer(&[ended(0), lost, Reply::Done]), 1);
        assert!(heard.is_done);
        let says = "the device did not take all back in the end: cuStreamDestroy: lost";
        let of = |end, reason: &str| {
            let played = Performance::without_measurements(end, reason.to_owned());
            let told = with_lost(played, heard.lost.as_deref());
            (told.status, told.reason)
        };
        assert_eq!(of(End::Complete, ""), (End::Complete, says.to_owned()));
        assert_eq!(of(End::OutOfMemory, "no room"), (End::OutOfMemory, format!("no room; {says}")));
        let complete = Performance::default();
        assert_eq!(with_lost(complete, None).reason, "");
    }

    #[test]
    fn a_device_that_is_not_there_is_a_refusal() {
        let refusal = Reply::Unavailable { reason: "none".to_owned() };
        let heard = Heard::from_answer(&answer(&[refusal]), 1);
        assert_eq!(heard.refusal.as_deref(), Some("none"));
    }
}
