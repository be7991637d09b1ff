//! Lower bounds beyond the load: each argument, what it proves and at which cost.
//!
//! [`raise`] states all that can be proved on a run, the cheap arguments first; [`prove`] tells of every
//! step as well. An argument never errs towards a bound that is too high: the tests hold each against brute
//! force and exhaustive search. All of them look at one arena at a time, without hand-overs; what they say
//! of plans *with* hand-overs comes from the instance in which every buffer that may overwrite another
//! begins a step later.
//!
//! | argument | evidence | file |
//! |---|---|---|
//! | load of rounded sizes, for each alignment | alignment | `aligned.rs` |
//! | heights that sums of sizes can reach | normal-pattern | `patterns.rs` |
//! | what can lie below each buffer in all sections | section | `section.rs` |
//! | a window of steps has no plan within a capacity | search | `window.rs`, `cells.rs` |

mod aligned;
mod bits;
mod cells;
mod patterns;
mod section;
#[cfg(test)]
mod tests;
mod view;
mod window;

use std::time::Instant;

use planlab_dsa::{Bytes, Evidence, Halt, Instance, Run, Scope};

use view::{View, views};

/// What an argument may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Some milliseconds, and 0.1 s for 100,000 buffers: what every run can afford.
    Quick,
    /// A few seconds.
    Thorough,
}

/// A bound, and how it was had.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What kind of argument it was.
    pub evidence: Evidence,
    /// No plan of the scope is lower.
    pub value: Bytes,
    /// The plans that it speaks of.
    pub scope: Scope,
    /// Wall time that the argument took.
    pub seconds: f64,
    /// Units of work that it took.
    pub work: u64,
    /// The argument in a few words; empty where it found nothing above what was known.
    pub how: String,
}

/// Counts work; an error ends the search.
type Tick<'t> = dyn FnMut(u64) -> Result<(), Halt> + 't;

/// A bound above what was known.
struct Found {
    /// In bytes.
    value: u64,
    how: String,
}

/// One way to a bound on the height of a plan in one arena without hand-overs.
trait Argument: Sync {
    fn evidence(&self) -> Evidence;

    /// A bound above `known` bytes, which is one itself, if the argument has one.
    fn prove(&self, arena: &Instance, known: u64, tick: &mut Tick<'_>) -> Result<Option<Found>, Halt>;
}

fn arguments(effort: Effort) -> Vec<Box<dyn Argument>> {
    let (probing, nodes) = match effort {
        Effort::Quick => (1 << 18, 1_000),
        Effort::Thorough => (1 << 26, 1_000_000),
    };
    vec![
        Box::new(aligned::Aligned),
        Box::new(patterns::Patterns),
        Box::new(section::Tight { probing }),
        Box::new(window::Windows { nodes }),
    ]
}

/// Proves what it can and raises the bounds of the run.
///
/// # Errors
///
/// Whatever ends the run: [`planlab_dsa::Stop::Proved`] when a bound meets the incumbent, a limit, or
/// [`planlab_dsa::PlanError::Refuted`].
pub fn raise(run: &mut Run<'_>, effort: Effort) -> Result<(), Halt> {
    prove(run, effort, &mut |_| ())
}

/// The same, telling `report` of every argument as it ends, ascending by cost.
///
/// # Errors
///
/// As [`raise`].
pub fn prove(run: &mut Run<'_>, effort: Effort, report: &mut dyn FnMut(Step)) -> Result<(), Halt> {
    let instance = run.instance();
    let mut tracks: Vec<Track<'_>> = views(instance).into_iter().map(Track::new).collect();
    for argument in arguments(effort) {
        for track in &mut tracks {
            let before = Instant::now();
            let mut work = 0;
            let raised = track.apply(&*argument, &mut |units| {
                work += units;
                run.tick(units)
            })?;
            let (value, how) = (Bytes::new(track.total()), raised.unwrap_or_default());
            let is_new = !how.is_empty();
            let (evidence, scope) = (argument.evidence(), track.view.scope);
            report(Step { evidence, value, scope, seconds: before.elapsed().as_secs_f64(), work, how });
            if is_new {
                run.raise_bound(value, scope, evidence)?;
            }
        }
    }
    Ok(())
}

/// What is known in one scope, arena by arena, in bytes.
struct Track<'i> {
    view: View<'i>,
    known: Vec<u64>,
}

impl<'i> Track<'i> {
    fn new(view: View<'i>) -> Self {
        let known = |arena: &Instance| planlab_dsa::initial_bound(arena).of(Scope::NoHandOver).value.get();
        let known = view.arenas.iter().map(|arena| known(arena)).collect();
        Self { view, known }
    }

    fn total(&self) -> u64 {
        self.known.iter().sum()
    }

    /// What the argument says, where it raises anything.
    fn apply(&mut self, argument: &dyn Argument, tick: &mut Tick<'_>) -> Result<Option<String>, Halt> {
        let mut how: Option<String> = None;
        for (arena, known) in self.view.arenas.iter().zip(&mut self.known) {
            if let Some(found) = argument.prove(arena, *known, tick)? {
                *known = found.value;
                how = Some(found.how);
            }
        }
        Ok(how)
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
