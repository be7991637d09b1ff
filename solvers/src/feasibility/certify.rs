//! Writes certificates: one search, depth first, that records its steps.
//!
//! A proof has one or two steps for each node of the search, so it is worth keeping only for small instances.

use planlab_dsa::{Bytes, Halt, Instance};

use super::preference::{Preference, Ranking};
use super::problem::Problem;
use super::search::{Cut, Search};
use crate::certificate::{Certificate, Step};
use crate::team::call_with_stack;

/// The most buffers of an instance that gets a certificate.
const MOST_BUFFERS: usize = 2_000;
/// The least stack of the search, in bytes.
const STACK: usize = 2 << 20;

/// The result of an attempt to refute a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refutation {
    /// No plan without hand-overs fits; the certificate proves it.
    Proved(Certificate),
    /// There is a plan that fits.
    Feasible,
    /// The node limit came first.
    Unknown,
    /// There are no certificates for such an instance: windows in use during a pause, several arenas, a kept-apart pair
    /// with a buffer that is never active, more than 2,000 buffers, or numbers too large.
    Unsupported,
}

/// Searches for a proof that no plan without hand-overs fits `capacity`, in at most `nodes` search nodes. Reports the
/// work done to `tick`.
///
/// It neither restarts nor remembers states, so it is slower than the planner `exact`. Each step takes 16 bytes of
/// memory; there are up to four steps per node.
///
/// # Errors
///
/// What `tick` returns; [`PlanError::Failed`](planlab_dsa::PlanError::Failed) if no thread can be started.
pub fn certify(
    instance: &Instance,
    capacity: Bytes,
    nodes: u64,
    tick: &mut (dyn FnMut(u64) -> Result<(), Halt> + Send),
) -> Result<Refutation, Halt> {
    let problem = if instance.len() > MOST_BUFFERS { None } else { Problem::new(instance) };
    let Some(problem) = problem else { return Ok(Refutation::Unsupported) };
    let steps = if problem.contradictory || problem.floor_height() > capacity {
        vec![Step::Over]
    } else {
        match prove(&problem, capacity.get() / problem.unit(), nodes, tick) {
            Ok(Some(steps)) => steps,
            Ok(None) => return Ok(Refutation::Feasible),
            Err(Cut::Nodes) => return Ok(Refutation::Unknown),
            Err(Cut::Halt(halt)) => return Err(halt),
        }
    };
    let (version, instance) = (Certificate::VERSION, instance.digest());
    let unit = Bytes::new(problem.unit());
    Ok(Refutation::Proved(Certificate { version, instance, capacity, unit, steps }))
}

/// The steps of a proof, or the result that there is a plan; runs on a thread with a stack as deep as the search goes.
fn prove(
    problem: &Problem,
    capacity: u64,
    nodes: u64,
    tick: &mut (dyn FnMut(u64) -> Result<(), Halt> + Send),
) -> Result<Option<Vec<Step>>, Cut> {
    let body = || {
        let mut search = Search::new(problem, Preference::from_ranking(Ranking::ALL[0]));
        search.proof = Some(Vec::new());
        let found = search.run(capacity, nodes, tick)?;
        Ok(search.proof.filter(|_| !found))
    };
    call_with_stack(STACK + problem.stack(), body).map_err(Halt::from)?
}
