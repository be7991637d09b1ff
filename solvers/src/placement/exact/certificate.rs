//! Certificates: proofs that no plan fits a capacity, for everybody to check.
//!
//! [`certify`] searches once, depth first, and writes down what it does; [`Certificate::check`] follows the
//! steps with code of its own. A proof has a step or two for each node of the search, so only small
//! instances have one that is worth keeping.

use std::fmt;
use std::str::FromStr;
use std::thread;

use planlab_dsa::{Bytes, Digest, Halt, Instance, PlanError};
use serde::{Deserialize, Serialize};

use super::minimise::stack;
use super::problem::Problem;
use super::pruning::Pruning;
use super::rank::{Preference, Ranking};
use super::search::{Cut, Search};

/// The most buffers of an instance that gets a certificate.
const MOST_BUFFERS: usize = 2_000;
/// Stack that the search has in any case, in bytes.
const STACK: usize = 2 << 20;

/// One step of a proof, in depth-first order. Numbers are the buffers' indices.
///
/// As text, a letter and the number: `p3`, `s3`, `k3`, `r3`, `o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The case that a buffer lies at its lowest offset; the other case, `Skip`, follows its proof.
    Place(usize),
    /// As `Place`, but nothing is pushed up: the only case.
    Settle(usize),
    /// The case that it lies above its lowest offset, and above something that is not placed yet.
    Skip(usize),
    /// A buffer that has to lie above something that is not placed yet rises with what that can be.
    Raise(usize),
    /// A contradiction: some step of time, or a buffer, does not fit. It ends the case.
    Over,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(buffer) => write!(f, "p{buffer}"),
            Self::Settle(buffer) => write!(f, "s{buffer}"),
            Self::Skip(buffer) => write!(f, "k{buffer}"),
            Self::Raise(buffer) => write!(f, "r{buffer}"),
            Self::Over => f.write_str("o"),
        }
    }
}

/// Text that is no step of a proof.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no step of a certificate (p, s, k or r with a number, or o)")]
pub struct BadStep(String);

impl FromStr for Step {
    type Err = BadStep;

    fn from_str(text: &str) -> Result<Self, BadStep> {
        let bad = || BadStep(text.chars().take(40).collect());
        if text == "o" {
            return Ok(Self::Over);
        }
        let kind = text.chars().next().ok_or_else(bad)?;
        let number = text.get(1..).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let buffer = number.and_then(|digits| digits.parse().ok()).ok_or_else(bad)?;
        match kind {
            'p' => Ok(Self::Place(buffer)),
            's' => Ok(Self::Settle(buffer)),
            'k' => Ok(Self::Skip(buffer)),
            'r' => Ok(Self::Raise(buffer)),
            _ => Err(bad()),
        }
    }
}

/// A proof that no plan without hand-overs fits a capacity.
///
/// What it says counts once [`Certificate::check`] has accepted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The version of the rules; [`Certificate::VERSION`].
    pub version: u32,
    /// The instance's digest.
    pub instance: Digest,
    /// The capacity that no plan fits.
    pub capacity: Bytes,
    /// A divisor of the least height of any plan: the bound is the next multiple above the capacity.
    pub unit: Bytes,
    /// The proof; in files one string, the steps separated by spaces.
    #[serde(with = "text")]
    pub steps: Vec<Step>,
}

impl Certificate {
    /// The version that this crate writes and checks.
    pub const VERSION: u32 = 1;
}

mod text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Step;

    pub(super) fn serialize<S: Serializer>(steps: &[Step], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::new();
        for step in steps {
            if !text.is_empty() {
                text.push(' ');
            }
            text += &step.to_string();
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Step>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.split_ascii_whitespace().map(|step| step.parse().map_err(D::Error::custom)).collect()
    }
}

/// What came of the attempt to refute a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refutation {
    /// No plan without hand-overs fits; this is why.
    Proved(Certificate),
    /// There is a plan that fits.
    Feasible,
    /// The node limit came first.
    Unknown,
    /// Windows in use during a pause, several arenas, a pair kept apart of which one is never active, more
    /// than 2,000 buffers, or numbers too large: there are no certificates for such instances.
    Unsupported,
}

/// Searches for a proof that no plan without hand-overs fits `capacity`, by at most `nodes` search nodes.
/// `tick` is told of the work.
///
/// Neither restarts nor remembers states, so that it is slower than the planner `exact`. The steps take 16
/// bytes each in memory; there are up to four a node.
///
/// # Errors
///
/// What `tick` returns; [`PlanError::Failed`] where there is no thread to be had.
pub fn certify(
    instance: &Instance,
    capacity: Bytes,
    nodes: u64,
    tick: &mut (dyn FnMut(u64) -> Result<(), Halt> + Send),
) -> Result<Refutation, Halt> {
    let problem = if instance.len() > MOST_BUFFERS { None } else { Problem::new(instance, &[]) };
    let Some(problem) = problem else { return Ok(Refutation::Unsupported) };
    let steps = if problem.contradictory || problem.floor() > capacity {
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

/// The steps of a proof, or that there is a plan; on a thread with a stack as deep as the search goes.
fn prove(
    problem: &Problem,
    capacity: u64,
    nodes: u64,
    tick: &mut (dyn FnMut(u64) -> Result<(), Halt> + Send),
) -> Result<Option<Vec<Step>>, Cut> {
    // A state that is known to fail has no steps to show, and the order of what is alike no rule.
    let pruning = Pruning { memo: false, twins: false, ..Pruning::default() };
    let body = || {
        let mut search = Search::new(problem, pruning, Preference::plain(Ranking::ALL[0]));
        search.proof = Some(Vec::new());
        let found = search.run(capacity, nodes, tick)?;
        Ok(search.proof.filter(|_| !found))
    };
    thread::scope(|scope| {
        let worker = thread::Builder::new().stack_size(STACK + stack(problem)).spawn_scoped(scope, body);
        let no_thread = |error| Halt::from(PlanError::Failed(format!("no thread: {error}")));
        worker.map_err(no_thread)?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
