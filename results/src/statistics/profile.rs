//! Performance profiles and the virtual best.
//!
//! # References
//!
//! 1. E. D. Dolan, J. J. Moré: Benchmarking optimization software with performance profiles. Mathematical
//!    Programming 91 (2002). DOI 10.1007/s101070100263.

use super::count;

/// For each factor, the share of instances on which a planner is within it of the best.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Cost over the least cost of the instance, ascending; instances without an answer are left out.
    pub ratios: Vec<f64>,
    /// The number of instances, answered or not.
    pub total: usize,
}

impl Profile {
    /// The share of instances with a ratio of at most `factor`.
    #[must_use]
    pub fn at(&self, factor: f64) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        count(self.ratios.partition_point(|&ratio| ratio <= factor)) / count(self.total)
    }
}

/// The profile of each planner: `costs[planner][instance]`, positive, `None` without an answer. Instances
/// that nobody answered count in the total.
///
/// # Panics
///
/// If the planners have different numbers of instances.
#[must_use]
pub fn performance_profiles(costs: &[Vec<Option<f64>>]) -> Vec<Profile> {
    let best = virtual_best(costs).costs;
    let profile = |row: &Vec<Option<f64>>| {
        let pairs = row.iter().zip(&best);
        let mut ratios: Vec<f64> = pairs.filter_map(|(cost, best)| Some(ratio((*cost)?, (*best)?))).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        Profile { ratios, total: row.len() }
    };
    costs.iter().map(profile).collect()
}

fn ratio(cost: f64, best: f64) -> f64 {
    if cost == best { 1.0 } else { cost / best }
}

/// What one would have with the best planner for each instance.
#[derive(Clone, Debug, PartialEq)]
pub struct VirtualBest {
    /// The least cost of each instance; `None` where nobody has an answer.
    pub costs: Vec<Option<f64>>,
    /// How many instances have an answer.
    pub solved: usize,
    /// How many instances each planner is (among) the best on.
    pub wins: Vec<usize>,
}

/// The virtual best of `costs[planner][instance]`.
///
/// # Panics
///
/// If the planners have different numbers of instances.
#[must_use]
pub fn virtual_best(costs: &[Vec<Option<f64>>]) -> VirtualBest {
    let instances = costs.first().map_or(0, Vec::len);
    assert!(costs.iter().all(|row| row.len() == instances), "every planner has a cost for each instance");
    let least = |instance: usize| costs.iter().filter_map(|row| row[instance]).min_by(f64::total_cmp);
    let best: Vec<Option<f64>> = (0..instances).map(least).collect();
    let wins_of =
        |row: &Vec<Option<f64>>| row.iter().zip(&best).filter(|(c, b)| c.is_some() && c == b).count();
    VirtualBest {
        solved: best.iter().flatten().count(),
        wins: costs.iter().map(wins_of).collect(),
        costs: best,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Vec<Vec<Option<f64>>> {
        vec![vec![Some(1.0), Some(4.0), None, None], vec![Some(2.0), Some(2.0), Some(5.0), None]]
    }

    #[test]
    fn profiles_by_hand() {
        let profiles = performance_profiles(&costs());
        assert_eq!(profiles[0].ratios, [1.0, 2.0]);
        assert_eq!(profiles[1].ratios, [1.0, 1.0, 2.0]);
        let shares: Vec<f64> = [0.99, 1.0, 1.99, 2.0, 100.0].map(|factor| profiles[0].at(factor)).to_vec();
        assert_eq!(shares, [0.0, 0.25, 0.25, 0.5, 0.5]);
        assert_eq!(profiles[1].at(1.0), 0.5);
    }

    #[test]
    fn the_virtual_best_takes_the_least_of_each() {
        let best = virtual_best(&costs());
        assert_eq!(best.costs, [Some(1.0), Some(2.0), Some(5.0), None]);
        assert_eq!((best.solved, best.wins), (3, vec![1, 2]));
    }

    #[test]
    fn costs_of_zero_are_equal_to_each_other() {
        let profiles = performance_profiles(&[vec![Some(0.0)], vec![Some(0.0)]]);
        assert_eq!(profiles[0].ratios, [1.0]);
    }

    #[test]
    fn no_instances_no_share() {
        assert_eq!(performance_profiles(&[vec![]])[0].at(2.0), 0.0);
        assert!(performance_profiles(&[]).is_empty());
    }
}
