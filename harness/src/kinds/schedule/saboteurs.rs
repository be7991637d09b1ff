//! Schedulers that break their contract, for the tests of isolation. They exist only if the environment sets
//! `PLANLAB_SABOTEURS=1`.

use std::io;

use planlab_dsa::Stop;
use planlab_graph::{
    ScheduleBound, ScheduleEvidence, ScheduleHalt, ScheduleRun, Scheduler, SchedulerDescriptor,
};
use planlab_solvers::schedule::SwapAll;

use super::messages::Answer;
use crate::cells::sabotage;

/// The keys of all saboteurs.
pub(super) const KEYS: [&str; 9] = [
    "saboteur/crash",
    "saboteur/hang",
    "saboteur/eat-memory",
    "saboteur/shorten-a-copy",
    "saboteur/lie-about-time",
    "saboteur/lie-about-bound",
    "saboteur/lie-about-memory",
    "saboteur/lie-without-a-proof",
    "saboteur/lie-about-a-search",
];

/// The saboteur of that name, if saboteurs are enabled.
pub(super) fn scheduler(key: &str) -> Option<Box<dyn Scheduler>> {
    sabotage::find(&KEYS, key).map(|key| Box::new(Saboteur { key }) as Box<dyn Scheduler>)
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
        "saboteur/lie-about-memory" => answer.run.stop = Some(Stop::Infeasible),
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

    fn searches_all_schedules(&self) -> bool {
        self.key == "saboteur/lie-about-a-search"
    }

    fn schedule(&self, run: &mut ScheduleRun<'_>) -> Result<(), ScheduleHalt> {
        let honest = SwapAll::with_prefetch();
        match self.key {
            "saboteur/crash" => std::process::abort(),
            "saboteur/hang" => {
                honest.schedule(run)?;
                sabotage::hang()
            }
            "saboteur/eat-memory" => sabotage::eat_memory(),
            "saboteur/lie-without-a-proof" | "saboteur/lie-about-a-search" => Err(run.claim_infeasible()),
            _ => honest.schedule(run),
        }
    }
}
