//! Lower bounds beyond the load: each argument, what it proves and at what cost.
//!
//! [`raise_bounds`] proves all that it can on a run, the cheap arguments first; [`prove_bounds`] also reports every step. An argument
//! never gives a bound that is too high: the tests check each against brute force and exhaustive search. All arguments
//! look at one arena at a time, without hand-overs. A bound on plans *with* hand-overs comes from a changed instance,
//! in which every buffer that may overwrite another begins a step later.
//!
//! | argument | evidence | file |
//! |---|---|---|
//! | load of rounded sizes, for each alignment | alignment | `aligned.rs` |
//! | heights that sums of sizes can reach | normal-pattern | `patterns.rs` |
//! | what can lie below each buffer in all sections | section | `section.rs` |
//! | a window of steps has no plan within a capacity | search | `window.rs` |

//! # What they find
//!
//! Each argument alone, starting from the load, on instances whose optimum lies above it: those of the corpus, and
//! random ones in which one-step buffers fill every step up to the load (release build,
//! one thread of a busy machine of 2 cores). *Quick* gives a window 1,000 nodes and probing 2^20 words, *thorough*
//! 100,000 nodes and 2^25 words. n counts the buffers before filling up; the result has up to three times as many. `-`:
//! the optimum is not known.
//!
//! | instances | argument | above the load | equal to the optimum | time each, ms |
//! |---|---|---|---|---|
//! | corpus, 29 | normal-pattern | 2 | 2 | 0.0 |
//! | | search, quick | 27 | 27 | 0.4 |
//! | | section, quick | 25 | 24 | 21 |
//! | n = 5, sizes to 9, 20 | search, quick | 20 | 20 | 0.1 |
//! | | section, quick | 20 | 20 | 14 |
//! | n = 7, sizes to 30, 20 | search, quick | 20 | 20 | 1.6 |
//! | | section, quick | 20 | 19 | 101 |
//! | n = 7, sizes to 1000, 20 | search, quick | 20 | 20 | 3.4 |
//! | | section, quick | 19 | 1 | 40 |
//! | | section, thorough | 19 | 7 | 1263 |
//! | n = 15, sizes to 9, 20 | search, quick | 17 | - | 10 |
//! | | section, quick | 17 | - | 159 |
//! | n = 20, sizes to 9, 20 | search, quick | 20 | - | 21 |
//! | | section, quick | 20 | - | 77 |
//! | n = 40, sizes to 30, 20 | search, quick | 7 | - | 69 |
//! | | section, quick | 17 | - | 51 |
//!
//! Search is better up to some 40 buffers (20 before filling up), section arguments above that. If nothing is pinned or
//! aligned, sums of sizes can reach the load, so they give no bound alone. On traces with dozens of small buffers at
//! every step, no argument finds anything above the load.

mod aligned;
mod argument;
mod bits;
mod cores;
mod patterns;
mod section;
#[cfg(test)]
mod tests;
mod view;
mod window;

use planlab_dsa::{Bytes, Evidence, Halt, Instance, Run, Scope};

use argument::Argument;
pub(crate) use bits::Bits;
use view::{View, instance_views};

use crate::tick::Tick;

/// The cost that arguments may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Some milliseconds, and 0.1 s for 100,000 buffers: affordable in every run.
    Quick,
    /// A few seconds.
    Thorough,
}

/// A bound, and the argument behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The kind of argument.
    pub evidence: Evidence,
    /// No plan of the scope is lower.
    pub value: Bytes,
    /// The plans to which it applies.
    pub scope: Scope,
    /// Wall time of the argument.
    pub seconds: f64,
    /// Units of work of the argument.
    pub work: u64,
    /// Whether it is higher than the previous bound.
    pub raised: bool,
    /// Whether the argument was completed; a limit may cut it short.
    pub finished: bool,
    /// A short description of the argument.
    pub how: String,
}

fn arguments_for(effort: Effort) -> Vec<Box<dyn Argument>> {
    let mut all: Vec<Box<dyn Argument>> = vec![
        Box::new(aligned::Aligned),
        Box::new(patterns::Patterns),
        Box::new(window::Windows { nodes: 1_000, buffers: 64 }),
        Box::new(section::Tight { probing: 1 << 20, windows: 0 }),
        Box::new(patterns::Patterns),
    ];
    if effort == Effort::Thorough {
        all.push(Box::new(window::Windows { nodes: 100_000, buffers: 400 }));
        all.push(Box::new(section::Tight { probing: 1 << 25, windows: 6 }));
        all.push(Box::new(window::Windows { nodes: 1_000_000, buffers: 400 }));
        all.push(Box::new(patterns::Patterns));
    }
    all
}

/// Proves all that it can and raises the bounds of the run.
///
/// # Errors
///
/// The `Halt` that ends the run: [`planlab_dsa::Stop::Proved`] if a bound meets the incumbent, a limit, or
/// [`planlab_dsa::PlanError::Refuted`].
pub fn raise_bounds(run: &mut Run<'_>, effort: Effort) -> Result<(), Halt> {
    prove_bounds(run, effort, &mut |_| ())
}

/// The same, and calls `report` for every argument when it ends or is cut short, the cheapest first.
///
/// # Errors
///
/// As [`raise_bounds`].
pub fn prove_bounds(run: &mut Run<'_>, effort: Effort, report: &mut dyn FnMut(Step)) -> Result<(), Halt> {
    let instance = run.instance();
    let mut tracks: Vec<Track<'_>> = instance_views(instance).into_iter().map(Track::new).collect();
    for argument in arguments_for(effort) {
        for track in &mut tracks {
            if !track.is_worth(&*argument) {
                continue;
            }
            let before = run.clock().now();
            let mut work = 0;
            let applied = track.apply_argument(&*argument, &mut |units| {
                work += units;
                run.tick(units)
            });
            let (evidence, scope, value) =
                (argument.evidence(), track.view.scope, Bytes::new(track.total_bound()));
            let finished = applied.is_ok();
            let (how, halt) = match applied {
                Ok(how) => (how, Ok(())),
                Err(halt) => (None, Err(halt)),
            };
            let raised = how.is_some();
            let how = how.unwrap_or_else(|| argument.failure_message().to_owned());
            let seconds = run.clock().now().saturating_sub(before).as_secs_f64();
            report(Step { evidence, value, scope, seconds, work, raised, finished, how });
            halt?;
            if raised {
                run.raise_bound(value, scope, evidence)?;
            }
        }
    }
    Ok(())
}

/// The known bounds in one scope, for each arena, in bytes.
struct Track<'i> {
    view: View<'i>,
    known: Vec<u64>,
    /// The known bounds when sums of sizes were last tried.
    rounded: Option<Vec<u64>>,
}

impl<'i> Track<'i> {
    fn new(view: View<'i>) -> Self {
        let known =
            |arena: &Instance| planlab_dsa::initial_bound(arena).best_claim(Scope::NoHandOver).value.get();
        let known = view.arenas.iter().map(|arena| known(arena)).collect();
        Self { view, known, rounded: None }
    }

    fn total_bound(&self) -> u64 {
        self.known.iter().sum()
    }

    /// Whether the argument could give anything new: sums of sizes are tried again only after a bound rose.
    fn is_worth(&mut self, argument: &dyn Argument) -> bool {
        let is_rounding = argument.evidence() == Evidence::NormalPattern;
        let is_old = self.rounded.as_ref() == Some(&self.known);
        if is_rounding && !is_old {
            self.rounded = Some(self.known.clone());
        }
        !(is_rounding && is_old)
    }

    /// Applies the argument; returns its description if it raises anything.
    fn apply_argument(
        &mut self,
        argument: &dyn Argument,
        tick: &mut Tick<'_>,
    ) -> Result<Option<String>, Halt> {
        let mut how: Option<String> = None;
        for (arena, known) in self.view.arenas.iter().zip(&mut self.known) {
            if let Some(found) = argument.prove_bound(arena, *known, tick)? {
                *known = found.value;
                how = Some(found.how);
            }
        }
        Ok(how)
    }
}
