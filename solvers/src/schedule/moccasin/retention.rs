//! The problem behind the model: an order of computations, what each reads and holds, and a budget of bytes.

/// A computation of the order, and the value that it makes.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// What a run costs.
    pub(super) cost: f64,
    /// The size of its value.
    pub(super) bytes: u64,
    /// The earlier nodes whose values it reads, each once.
    pub(super) inputs: Vec<usize>,
    /// Whether it may run again.
    pub(super) may_repeat: bool,
}

/// Bytes that a stage takes beside the values of nodes: while nodes run again, while its own node runs, and from then
/// to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) before: u64,
    pub(super) during: u64,
    pub(super) after: u64,
}

impl Load {
    fn most_bytes(self) -> u64 {
        self.before.max(self.during).max(self.after)
    }

    fn in_units(self, unit: u64) -> Self {
        let [before, during, after] =
            [self.before, self.during, self.after].map(|bytes| bytes.div_ceil(unit));
        Self { before, during, after }
    }
}

/// An order of computations that has to run within a budget. Stage i ends with the first run of node i; before it,
/// earlier nodes run again, in their order.
#[derive(Clone, Debug)]
pub(super) struct RetentionProblem {
    pub(super) nodes: Vec<Node>,
    /// For each stage, the bytes beside the values.
    pub(super) loads: Vec<Load>,
    /// The most bytes at once.
    pub(super) budget: u64,
}

/// For each node, the stages in which it runs, ascending; the first is its own.
pub(super) type Runs = Vec<Vec<usize>>;

/// The time from a run of a node to the last read of that value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retention {
    /// The stage of the run.
    pub(super) stage: usize,
    /// The stage of the last read, and the node that reads; the run itself if nothing does.
    pub(super) last: (usize, usize),
}

impl RetentionProblem {
    /// Every node runs once.
    pub(super) fn run_once(&self) -> Runs {
        (0..self.nodes.len()).map(|node| vec![node]).collect()
    }

    /// How long each value is held: a run reads the latest value of each input.
    pub(super) fn retain_values(&self, runs: &Runs) -> Vec<Vec<Retention>> {
        let retention = |node: usize, &stage: &usize| Retention { stage, last: (stage, node) };
        let by_node = |(node, stages): (usize, &Vec<usize>)| {
            stages.iter().map(|stage| retention(node, stage)).collect::<Vec<_>>()
        };
        let mut held: Vec<_> = runs.iter().enumerate().map(by_node).collect();
        for (reader, stages) in runs.iter().enumerate() {
            for &stage in stages {
                for &input in &self.nodes[reader].inputs {
                    let begun = runs[input].partition_point(|&run| run <= stage);
                    let Some(place) = begun.checked_sub(1) else { continue };
                    let last = &mut held[input][place].last;
                    *last = (*last).max((stage, reader));
                }
            }
        }
        held
    }

    /// The same problem with at most about `most` units of memory for `computations` values of each node: sizes are
    /// rounded up and the budget down, so what fits here fits there.
    pub(super) fn in_coarse_units(&self, computations: usize, most: u64) -> Self {
        let unit = self.total_bytes(computations).div_ceil(most).max(1);
        let node = |node: &Node| Node { bytes: node.bytes.div_ceil(unit), ..node.clone() };
        let nodes = self.nodes.iter().map(node).collect();
        let loads = self.loads.iter().map(|load| load.in_units(unit)).collect();
        let mut coarse = Self { nodes, loads, budget: self.budget / unit };
        coarse.budget = coarse.budget.min(coarse.total_bytes(computations));
        coarse
    }

    /// The bytes of all values and of the largest load: no schedule takes more.
    fn total_bytes(&self, computations: usize) -> u64 {
        let values: u64 = self.nodes.iter().map(|node| node.bytes).sum();
        let load = self.loads.iter().map(|load| load.most_bytes()).max().unwrap_or(0);
        values.saturating_mul(computations as u64).saturating_add(load)
    }

    /// The cost of each node as a whole number: about `most` for all together.
    pub(super) fn whole_costs(&self, most: f64) -> Vec<i32> {
        let total: f64 = self.nodes.iter().filter(|node| node.may_repeat).map(|node| node.cost).sum();
        let scale = if total > 0.0 { most / total } else { 0.0 };
        self.nodes
            .iter()
            .map(|node| if node.may_repeat { round_cost(node.cost * scale) } else { 0 })
            .collect()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a part of the total, which is small")]
fn round_cost(cost: f64) -> i32 {
    cost.round() as i32
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A chain of `count` nodes, a loss, and a node for each of them in reverse order, which reads it. All values have
    /// one byte, and all runs cost 1.
    pub(in crate::schedule::moccasin) fn unit_chain(count: usize, budget: u64) -> RetentionProblem {
        let node = |index: usize| {
            let mut inputs: Vec<usize> = index.checked_sub(1).into_iter().collect();
            if index > count {
                inputs.push(2 * count - index);
            }
            Node { cost: 1.0, bytes: 1, inputs, may_repeat: index < count }
        };
        let nodes: Vec<_> = (0..=2 * count).map(node).collect();
        RetentionProblem { loads: vec![Load::default(); nodes.len()], nodes, budget }
    }

    /// The most bytes at once, from the definition: the values that are held at each event.
    pub(in crate::schedule::moccasin) fn peak_bytes(problem: &RetentionProblem, runs: &Runs) -> u64 {
        let held = problem.retain_values(runs);
        let count = problem.nodes.len();
        let values_at = |time: (usize, usize)| {
            let is_held = |node: usize, value: &&Retention| (value.stage, node) <= time && time <= value.last;
            let held = held.iter().enumerate();
            held.map(|(node, values)| {
                values.iter().filter(|value| is_held(node, value)).count() as u64 * problem.nodes[node].bytes
            })
            .sum::<u64>()
        };
        let mut peak = 0;
        for (node, stages) in runs.iter().enumerate() {
            for &stage in stages {
                let load = problem.loads[stage];
                peak = peak
                    .max(values_at((stage, node)) + if stage == node { load.during } else { load.before });
            }
            peak = peak.max(values_at((node, count)) + problem.loads[node].after);
        }
        peak
    }

    #[test]
    fn value_is_held_until_its_last_read() {
        let problem = unit_chain(2, 9);
        assert_eq!(problem.nodes[3].inputs, [2, 1]);
        assert_eq!(problem.nodes[4].inputs, [3, 0]);
        let mut runs = problem.run_once();
        assert_eq!(problem.retain_values(&runs)[0], [Retention { stage: 0, last: (4, 4) }]);
        assert_eq!(peak_bytes(&problem, &runs), 4);
        runs[0].push(4);
        let values = [Retention { stage: 0, last: (1, 1) }, Retention { stage: 4, last: (4, 4) }];
        assert_eq!(problem.retain_values(&runs)[0], values);
        assert_eq!(peak_bytes(&problem, &runs), 3);
    }

    #[test]
    fn coarse_units_are_rounded_to_the_safe_side() {
        let mut problem = unit_chain(1, 1000);
        problem.nodes[0].bytes = 101;
        problem.loads[1].during = 7;
        // 2 * 103 bytes of values and a load of 7: units of 5 bytes.
        let coarse = problem.in_coarse_units(2, 50);
        let bytes: Vec<u64> = coarse.nodes.iter().map(|node| node.bytes).collect();
        assert_eq!((&bytes[..], coarse.loads[1].during), (&[21, 1, 1][..], 2));
        assert_eq!(coarse.budget, 2 * 23 + 2);
        problem.budget = 104;
        assert_eq!(problem.in_coarse_units(2, 50).budget, 20);
        assert_eq!(problem.whole_costs(10.0), [10, 0, 0]);
    }
}
