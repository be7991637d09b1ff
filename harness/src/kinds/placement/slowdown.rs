//! A planted slowdown that `diff` has to find. Only builds with the feature `debug-checks` have it. The environment
//! sets `PLANLAB_SLOWDOWN=<planner>=<nanoseconds>`: that planner is then busy this long for each buffer.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use planlab_dsa::{Descriptor, Halt, Planner, Run};

const VARIABLE: &str = "PLANLAB_SLOWDOWN";

/// The planner, slowed down if the environment names it.
pub(crate) fn plant_slowdown(planner: Box<dyn Planner>) -> Box<dyn Planner> {
    let planted = std::env::var(VARIABLE).ok();
    match planted.as_deref().and_then(parse_slowdown) {
        Some((key, per_buffer)) if planner.descriptor().key == key => Box::new(Slow { planner, per_buffer }),
        _ => planner,
    }
}

/// `best-fit=150`: the planner's key and nanoseconds for each buffer.
fn parse_slowdown(text: &str) -> Option<(&str, u32)> {
    let (key, nanoseconds) = text.rsplit_once('=')?;
    Some((key, nanoseconds.parse().ok()?))
}

struct Slow {
    planner: Box<dyn Planner>,
    per_buffer: u32,
}

impl Planner for Slow {
    fn descriptor(&self) -> Descriptor {
        self.planner.descriptor()
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        let buffers = u64::try_from(run.instance().len()).unwrap_or(u64::MAX);
        let busy = Duration::from_nanos(buffers.saturating_mul(self.per_buffer.into()));
        let start = Instant::now();
        while start.elapsed() < busy {
            spin_loop();
        }
        self.planner.plan(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_and_nanoseconds() {
        assert_eq!(parse_slowdown("first-fit/size=150"), Some(("first-fit/size", 150)));
        for text in ["", "best-fit", "best-fit=much", "best-fit=-1"] {
            assert_eq!(parse_slowdown(text), None, "{text}");
        }
    }
}
