//! The request to play a round on a device, and the log of its turns.

use std::time::Duration;

use planlab_dsa::Plan;
use planlab_replay::Performance;
use planlab_replay::cuda::{DeviceInfo, Protocol};
use serde::{Deserialize, Serialize};

use crate::cli::Device;

/// A request to play contenders in turns on one device, in one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DeviceRequest {
    pub(super) device: Device,
    pub(super) contenders: Vec<Player>,
    pub(super) protocol: Protocol,
    /// The time of an operation in nanoseconds, if all take the same.
    pub(super) operation_ns: Option<u64>,
    /// Device memory left to the contenders, in bytes.
    pub(super) capacity: Option<u64>,
    /// The time limit of the process.
    pub(super) limit: Duration,
}

/// A contender of the request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Player {
    pub(super) key: String,
    pub(super) plan: Option<Plan>,
}

/// The turns of a process so far. This is the answer of a child; the mailbox keeps it for the parent of a child that
/// dies, with the figures apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnLog {
    /// The device that is played on.
    pub(super) device: Option<DeviceInfo>,
    /// The figures of the contenders that had a turn, by their places in the request.
    pub(super) figures: Vec<Option<Performance>>,
    /// The contender in a turn.
    pub(super) current: Option<usize>,
    /// What the device did not take back after all turns.
    pub(super) lost: Option<String>,
}

impl TurnLog {
    /// Settles the turns of a child that died with `contenders` in its request. Those that ended a turn keep it, and
    /// the one in a turn gets the figures `failed`. If the time was over instead, that one plays again, provided
    /// another had a turn before. At least one contender has figures then; those without play again.
    pub(super) fn settle_death(mut self, contenders: usize, is_late: bool, failed: &Performance) -> Self {
        self.figures.resize(contenders, None);
        let has_turns = self.figures.iter().any(Option::is_some);
        match self.current.filter(|&place| place < contenders) {
            Some(place) if !(is_late && has_turns) => self.figures[place] = Some(failed.clone()),
            None if !has_turns => self.figures.fill(Some(failed.clone())),
            _ => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use planlab_replay::End;

    use super::*;

    /// How each of three contenders ended, if that is certain.
    fn ends(ended: &[usize], current: Option<usize>, is_late: bool) -> Vec<Option<End>> {
        let mut log = TurnLog { figures: vec![None; 3], current, ..TurnLog::default() };
        ended.iter().for_each(|&place| log.figures[place] = Some(Performance::default()));
        let failed = Performance::without_measurements(End::Failed, String::new());
        let settled = log.settle_death(3, is_late, &failed);
        settled.figures.iter().map(|one| one.as_ref().map(|one| one.status)).collect()
    }

    #[test]
    fn a_death_costs_who_was_in_a_turn() {
        let (complete, failed) = (Some(End::Complete), Some(End::Failed));
        assert_eq!(ends(&[1], Some(0), false), [failed, complete, None]);
        assert_eq!(ends(&[1], Some(0), true), [None, complete, None]);
        assert_eq!(ends(&[], Some(1), true), [None, failed, None]);
        assert_eq!(ends(&[1], None, false), [None, complete, None]);
        assert_eq!(ends(&[], None, false), [failed; 3]);
        assert_eq!(ends(&[1], Some(1), false), [None, failed, None], "not its earlier round");
        let unkept = TurnLog::default().settle_death(2, false, &Performance::default());
        assert_eq!(unkept.figures, vec![Some(Performance::default()); 2]);
    }
}
