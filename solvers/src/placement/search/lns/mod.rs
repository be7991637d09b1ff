//! Large neighbourhood search: frees a few buffers and puts them back by an exact search.
//!
//! The state is a set of offsets, with a *ceiling* a little below the best height. A step takes a buffer that sticks
//! out, frees it and others that are live with it, and leaves everything else in place. Then an exact search (see the
//! module `window`) looks for places of the freed buffers below the ceiling. The step accepts any answer, so that the
//! plan also drifts if nothing sticks out. Once nothing sticks out at all, first fit places all buffers again in the
//! order of their offsets, and the search offers the plan.
//!
//! Three kinds of neighbourhoods take turns at random: what is live nearest to a step, random neighbours in time, and
//! the neighbours in time that are nearest in address. Their size adapts: a proof that there is no room makes them
//! larger, a search that was cut short smaller. The ceiling adapts, too: each success doubles its distance below the
//! best height, a long run of failures halves it. Once the distance is at its least, the next such run sets it back to
//! its first value. After half of all such runs it goes back to the lowest plan of its course.
//!
//! The search takes turns with annealing (see the module `annealing`), which can escape if no window has room. Each
//! continues from the other's plan if that is lower.
//!
//! Both restart in courses whose lengths are those of Luby's sequence: small neighbourhoods, a low ceiling and a short
//! round again, by turns from the lowest plan and from first fit in a disturbed order of its offsets. A lower plan begins
//! the course again.
//!
//! # References
//!
//! 1. P. Shaw, *Using constraint programming and local search methods to solve vehicle routing problems*,
//!    CP 1998, doi:10.1007/3-540-49481-2_30 (large neighbourhood search).
//! 2. D. Pisinger and S. Ropke, *Large neighborhood search*, Handbook of Metaheuristics, 2010,
//!    doi:10.1007/978-1-4419-1665-5_13.
//! 3. M. Luby, A. Sinclair and D. Zuckerman, *Optimal speedup of Las Vegas algorithms*, Information
//!    Processing Letters 47, 1993, doi:10.1016/0020-0190(93)90029-9 (the lengths of restarts).
//!
//! # Complexity
//!
//! Anytime. A step with k neighbours of a buffer takes O(k log k), and a search over at most 384
//! freed buffers with up to 80 nodes for each.

mod search;
mod turns;

use planlab_dsa::{Descriptor, Halt, Honours, Planner, Run};

#[cfg(test)]
pub(crate) use self::search::LnsSearch;
pub(crate) use self::turns::LnsTurns;
use crate::arenas::{has_arenas, plan_each_arena};
use crate::placement::search::{HONOURS, anytime_descriptor, start};
use crate::placement::start_from_hints::offer_hints;

/// Units of work before annealing takes its turn, and the other way round.
const TURN: u64 = 5_000_000;

/// Frees a few buffers and places them exactly; key `lns`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lns;

impl Planner for Lns {
    fn descriptor(&self) -> Descriptor {
        Descriptor {
            key: "lns".into(),
            summary: "frees a few buffers and places them by an exact search, in turns with annealing".into(),
            honours: Honours { hint: true, ..HONOURS },
            reference: "Shaw 1998, doi:10.1007/3-540-49481-2_30",
            ..anytime_descriptor()
        }
    }

    fn plan(&self, run: &mut Run<'_>) -> Result<(), Halt> {
        if has_arenas(run.instance()) {
            return plan_each_arena(self, run);
        }
        offer_hints(run)?;
        let Some(start) = start::best_start(run)? else { return Ok(()) };
        let Some(mut turns) = LnsTurns::new(run, &start)? else { return Ok(()) };
        while turns.run_turn(run, TURN)? {}
        Ok(())
    }
}
