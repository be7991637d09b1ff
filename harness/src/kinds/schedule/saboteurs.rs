//! Schedulers that break their contract, for the tests of isolation. They exist only if the environment sets
//! `PLANLAB_SABOTEURS=1`.

use std::io;
use std::thread;
use std::time::Duration;

use planlab_graph::{
    ScheduleBound, ScheduleEvidence, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor,
};
use planlab_solvers::schedule::SwapAll;

use super::kind::Answer;
use crate::cells::sabotage;

/// The keys of all saboteurs.
pub(super) const KEYS: [&str; 6] = [
    "saboteur/crash",
    "saboteur/hang",
    "saboteur/eat-memory",
    "saboteur/shorten-a-copy",
    "saboteur/lie-about-time",
    "saboteur/lie-about-bound",
];

/// The keys, if saboteurs are enabled.
pub(super) fn keys() -> impl Iterator<Item = String> {
    KEYS.iter().filter(|_| sabotage::is_enabled()).map(|&key| key.to_owned())
}

/// The saboteur of that name, if saboteurs are enabled.
pub(super) fn scheduler(key: &str) -> Option<Box<dyn Scheduler>> {
    let key = KEYS.into_iter().find(|&known| known == key)?;
    sabotage::is_enabled().then(|| Box::new(Saboteur { key }) as Box<dyn Scheduler>)
}

/// Changes the answer or the schedule, as a child with corrupt memory might.
pub(super) fn tamper(key: &str, answer: &mut Answer, schedule: &mut Option<String>) -> io::Result<()> {
    if !sabotage::is_enabled() {
        return Ok(());
    }
    match key {
        "saboteur/lie-about-time" => answer.seconds = answer.seconds.map(|seconds| seconds / 2.0),
        "saboteur/shorten-a-copy" => {
            let text = schedule.clone().unwrap_or_default();
            let is_copy = |line: &&str| line.contains(r#""task":"copy-in""#);
            let Some(line) = text.lines().find(is_copy) else { return Ok(()) };
            let mut event: serde_json::Value = serde_json::from_str(line)?;
            event["seconds"] = 1e-9.into();
            *schedule = Some(text.replace(line, &event.to_string()));
        }
        "saboteur/lie-about-bound" => {
            answer.bound = ScheduleBound { seconds: 1e9, evidence: ScheduleEvidence::Lp };
        }
        _ => {}
    }
    Ok(())
}

struct Saboteur {
    key: &'static str,
}

impl Scheduler for Saboteur {
    fn descriptor(&self) -> SchedulerDescriptor {
        SchedulerDescriptor {
            key: self.key.into(),
            summary: "breaks its contract".into(),
            randomized: false,
            reference: "tests of isolation",
            complexity: "unbounded",
        }
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let honest = SwapAll::scheduled();
        match self.key {
            "saboteur/crash" => std::process::abort(),
            "saboteur/hang" => {
                honest.schedule(run)?;
                loop {
                    thread::sleep(Duration::from_secs(1));
                }
            }
            "saboteur/eat-memory" => {
                let mut hoard: Vec<Vec<u8>> = Vec::new();
                loop {
                    hoard.push(std::hint::black_box(vec![1; 16 << 20]));
                }
            }
            _ => honest.schedule(run),
        }
    }
}
