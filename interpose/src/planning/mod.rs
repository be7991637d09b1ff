//! Has a round planned: by `planlab run` if it started the program, otherwise in a thread.
//!
//! The calling thread cannot do it: a plan needs the portfolio's stack, and takes milliseconds for a round of
//! thousands of requests. A process with one more thread behaves differently (`unshare`, warnings at forks). So
//! `planlab run` plans in its own process, and without it the thread exists only while there is something to plan.

mod letter;
mod settings;
mod solve;
mod thread;

use std::sync::Arc;

use crate::calls::Round;
use solve::Problem;

#[cfg(test)]
pub(crate) use solve::solve;

pub use settings::Planning;
pub use solve::{Solved, Unsolved};

/// A round that is being planned.
pub(crate) struct Job {
    how: Planning,
    state: State,
}

enum State {
    Thread(Arc<thread::Planned>),
    Sent(letter::Letter, Box<Problem>),
    /// Not worth a plan.
    Refused(Unsolved),
    /// The result was collected, or there will be none.
    Over,
}

impl Job {
    /// Begins to plan a round; `None` if nobody can.
    pub(crate) fn start_planning(round: Round, how: Planning) -> Option<Self> {
        let Some(folder) = how.launcher.filter(|_| letter::is_answered()) else {
            return Self::in_thread(round, how);
        };
        let problem = match Problem::new(round, how.least_load) {
            Ok(problem) => problem,
            Err(reason) => return Some(Self { how, state: State::Refused(reason) }),
        };
        match letter::Letter::send_problem(folder, problem.instance(), how.patience) {
            Some(letter) => Some(Self { how, state: State::Sent(letter, Box::new(problem)) }),
            None => Self::in_thread(problem.into_round(), how),
        }
    }

    fn in_thread(round: Round, how: Planning) -> Option<Self> {
        Some(Self { how, state: State::Thread(thread::start_planning(round, how)?) })
    }

    /// The result, once planning has ended. Called at every request.
    #[inline]
    pub(crate) fn collect_result(&mut self) -> Option<Result<Solved, Unsolved>> {
        match &mut self.state {
            State::Thread(planned) => return planned.collect_result(),
            State::Sent(letter, _) => {
                if letter.is_awaited() {
                    return None;
                }
            }
            State::Refused(_) | State::Over => {}
        }
        self.open_answer()
    }

    /// Opens the answer. If none came, a thread plans the round.
    #[cold]
    fn open_answer(&mut self) -> Option<Result<Solved, Unsolved>> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Sent(letter, problem) => match letter.read_answer() {
                Some(Some(answer)) => Some(problem.accept_plan(answer.plan, answer.bound, answer.took)),
                Some(None) => Some(Err(Unsolved::NoPlan("planlab run found none".to_owned()))),
                None => match thread::start_planning(problem.into_round(), self.how) {
                    Some(planned) => {
                        self.state = State::Thread(planned);
                        None
                    }
                    None => Some(Err(Unsolved::NoPlan("no thread can be started".to_owned()))),
                },
            },
            State::Refused(reason) => Some(Err(reason)),
            State::Thread(_) | State::Over => None,
        }
    }
}
