//! The knapsacks of `torch.compile`, by name.

use std::time::Duration;

use planlab_graph::{ScheduleError, ScheduleHalt};

use super::activations::Activation;
use super::dp::choose_by_slots;
use super::greedy::choose_greedily;
#[cfg(feature = "mip")]
use super::ilp::choose_by_program;
use crate::schedule::solver_time::error_of_halt;

/// How activations are chosen within a budget of bytes: PyTorch's `activation_memory_budget_solver`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetSolver {
    /// In the order of seconds per byte.
    Greedy,
    /// By a table over sizes that are rounded to 10,000 slots.
    Dp,
    /// By a 0-1 program.
    #[cfg(feature = "mip")]
    Ilp,
}

impl BudgetSolver {
    /// All solvers of this build.
    pub const ALL: &[Self] = &[
        Self::Greedy,
        Self::Dp,
        #[cfg(feature = "mip")]
        Self::Ilp,
    ];

    /// Whether a smaller budget that still holds the chosen activations changes nothing.
    pub(super) const fn is_exact(self) -> bool {
        !matches!(self, Self::Greedy | Self::Dp)
    }

    /// For each activation, whether it is saved: the seconds of the saved ones are many, their bytes at most `budget` of
    /// the bytes of all. The budget is from 0 to 1.
    ///
    /// # Errors
    ///
    /// [`ScheduleError::Failed`] if the solver of a program fails.
    pub fn choose_saved(self, activations: &[Activation], budget: f64) -> Result<Vec<bool>, ScheduleError> {
        self.choose_saved_within(activations, budget, None).map_err(error_of_halt)
    }

    /// As [`Self::choose_saved`]; the solver of a program has this much time.
    #[cfg_attr(not(feature = "mip"), expect(unused_variables, reason = "no solver needs a limit"))]
    pub(super) fn choose_saved_within(
        self,
        activations: &[Activation],
        budget: f64,
        time: Option<Duration>,
    ) -> Result<Vec<bool>, ScheduleHalt> {
        match self {
            Self::Greedy => Ok(choose_greedily(activations, budget)),
            Self::Dp => Ok(choose_by_slots(activations, budget)),
            #[cfg(feature = "mip")]
            Self::Ilp => choose_by_program(activations, budget, time),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::schedule::knapsack::activations::saved_bytes;
    use crate::schedule::knapsack::testing::activations;

    /// Twelve items that have 10,000 bytes together: each slot is a byte.
    fn random_items(seed: u64) -> Vec<Activation> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut sizes: Vec<u64> = (0..11).map(|_| rng.random_range(1..=850)).collect();
        sizes.push(10_000 - sizes.iter().sum::<u64>());
        let items: Vec<_> =
            sizes.into_iter().map(|bytes| (bytes, f64::from(rng.random_range(1..=1000_u32)))).collect();
        activations(&items)
    }

    fn saved_seconds(items: &[Activation], saved: &[bool]) -> f64 {
        items.iter().zip(saved).filter(|&(_, &is_saved)| is_saved).map(|(item, _)| item.seconds).sum()
    }

    /// The most seconds that fit, by trying all sets.
    fn most_seconds(items: &[Activation], room: u64) -> f64 {
        let sets = (0..(1_u32 << items.len())).map(|set| {
            let saved: Vec<bool> = (0..items.len()).map(|index| (set >> index) & 1 == 1).collect();
            if saved_bytes(items, &saved) <= room { saved_seconds(items, &saved) } else { 0.0 }
        });
        sets.fold(0.0, f64::max)
    }

    #[test]
    fn exact_solvers_reach_the_optimum_and_greedy_stays_below() {
        let mut is_greedy_below = false;
        for seed in 0..8 {
            let items = random_items(seed);
            let room = 1000 + 1000 * seed;
            let most = most_seconds(&items, room);
            for &solver in BudgetSolver::ALL {
                let saved = solver.choose_saved(&items, room as f64 / 10_000.0).expect("a choice");
                let seconds = saved_seconds(&items, &saved);
                assert!(saved_bytes(&items, &saved) <= room, "seed {seed}, {solver:?}");
                assert!(seconds <= most, "seed {seed}, {solver:?}: {seconds} of {most}");
                match solver {
                    BudgetSolver::Greedy => is_greedy_below |= seconds < most,
                    BudgetSolver::Dp => assert_eq!(seconds, most, "seed {seed}"),
                    #[cfg(feature = "mip")]
                    BudgetSolver::Ilp => assert!(seconds >= 0.999 * most, "seed {seed}: {seconds} of {most}"),
                }
            }
        }
        assert!(is_greedy_below, "greedy is optimal everywhere");
    }
}
