//! Planners that break their contract, for the tests of isolation. They exist only if the environment sets
//! `PLANLAB_SABOTEURS=1`.

use planlab_dsa::{Bytes, Descriptor, Evidence, Halt, Honours, Offset, Plan, Planner, Run, Scope};

use super::messages::Answer;
use crate::cells::sabotage;

/// The keys of all saboteurs.
pub(crate) const KEYS: [&str; 8] = [
    "saboteur/crash",
    "saboteur/panic",
    "saboteur/hang",
    "saboteur/eat-memory",
    "saboteur/overlap",
    "saboteur/lie-about-height",
    "saboteur/lie-about-bound",
    "saboteur/claim-optimal",
];

/// The saboteur of that name, if saboteurs are enabled.
pub(crate) fn planner(key: &str) -> Option<Box<dyn Planner>> {
    sabotage::find(&KEYS, key).map(|key| Box::new(Saboteur { key }) as Box<dyn Planner>)
}

/// Changes the height to one that is not the plan's, as a child with corrupt memory might.
pub(crate) fn tamper(key: &str, answer: &mut Answer) {
    if key == "saboteur/lie-about-height" && sabotage::is_enabled() {
        answer.height = answer.height.map(|height| height / 2);
    }
}

struct Saboteur {
    key: &'static str,
}

impl Planner for Saboteur {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: self.key.into(),
            summary: "breaks its contract".into(),
            honours: Honours { alignment: true, pins: true, arenas: true, apart: true, ..Honours::default() },
            reference: "tests of isolation",
            complexity: "unbounded",
            ..Descriptor::default()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        match self.key {
            "saboteur/crash" => std::process::abort(),
            "saboteur/panic" => panic!("the saboteur panics"),
            "saboteur/hang" => hang(run),
            "saboteur/eat-memory" => sabotage::eat_memory(),
            "saboteur/overlap" => run.offer(Plan::from_offsets(vec![Offset::new(0); run.instance().len()])),
            "saboteur/claim-optimal" => {
                let plan = stacked(run);
                let height = plan.height(run.instance()).expect("a stack fits 64 bits");
                run.offer(plan)?;
                run.raise_bound(height, Scope::Any, Evidence::Claimed)
            }
            "saboteur/lie-about-bound" => {
                run.offer(stacked(run))?;
                run.raise_bound(Bytes::new(u64::MAX), Scope::Any, Evidence::Claimed)
            }
            _ => run.offer(stacked(run)),
        }
    }
}

/// The file that the saboteur writes for a test once it has offered its plan.
const HANGS: &str = "PLANLAB_SABOTEUR_HANGS";

/// Offers a plan, so that a kill could lose it, and never checks the clock again.
fn hang(run: &mut Run<'_>) -> Result<(), Halt> {
    run.offer(stacked(run))?;
    if let Some(file) = std::env::var_os(HANGS) {
        std::fs::write(file, "").expect("the test's folder");
    }
    sabotage::hang()
}

fn stacked(run: &Run<'_>) -> Plan {
    let mut top = 0_u64;
    let place = |buffer: &planlab_dsa::Buffer| {
        let offset = buffer.align.round_up(top).expect("totals fit 64 bits");
        top = offset + buffer.size.get();
        Offset::new(offset)
    };
    Plan::from_offsets(run.instance().buffers().iter().map(place).collect::<Vec<_>>())
}
