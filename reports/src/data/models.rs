//! Cells of models: a net by batch and workspace limit, and what was asked of its graph.

use std::collections::BTreeMap;

use planlab_results::WorkloadKey;

use super::model::{Model, Workload};

/// The route of workloads that are made from nets.
const ROUTE: &str = "model";

/// The lowest heights that planners reached on one workload of a net.
#[derive(Clone, Debug)]
pub(crate) struct Case<'m> {
    /// The workload's key without the question.
    pub(crate) key: WorkloadKey,
    pub(crate) question: Question<'m>,
    pub(crate) load: u64,
    /// Bytes by planner.
    pub(crate) heights: BTreeMap<&'m str, u64>,
}

/// What `planlab graph` asks of a net beside its plan; the last segment of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question<'k> {
    /// Nothing: the net's own order.
    Plan,
    /// Another order of the operations, by what found it.
    Order(&'k str),
    /// A plan that holds in every legal order, by how buffers are kept apart.
    Safe(&'k str),
}

impl<'k> Question<'k> {
    fn of(key: &'k str) -> (&'k str, Self) {
        let Some((rest, last)) = key.rsplit_once('/') else { return (key, Self::Plan) };
        let order = last.strip_prefix("order-").map(Self::Order);
        match order.or_else(|| last.strip_prefix("safe-").map(Self::Safe)) {
            Some(question) => (rest, question),
            None => (key, Self::Plan),
        }
    }
}

impl Case<'_> {
    /// The lowest height of all planners.
    pub(crate) fn lowest(&self) -> Option<u64> {
        self.heights.values().min().copied()
    }

    /// The net with its mode and variant, without the batch: what a curve over batches is of.
    pub(crate) fn family(&self) -> Option<String> {
        let net = self.key.net()?;
        let variant = net.variant.map_or_else(String::new, |variant| format!("/{variant}"));
        Some(format!("{}/{}{variant}", net.net, net.mode))
    }
}

/// Every workload of a model that has an answer.
pub(crate) fn cases(model: &Model) -> Vec<Case<'_>> {
    let numbered = model.workloads.iter().enumerate();
    numbered.filter_map(|(number, workload)| case(model, number, workload)).collect()
}

fn case<'m>(model: &'m Model, number: usize, workload: &'m Workload) -> Option<Case<'m>> {
    let (key, question) = Question::of(&workload.key);
    let key = WorkloadKey::from(key);
    // Iterations of Chainer's seq2seq example have other sentences each: they are no curve.
    let is_iteration = |variant: &str| variant.starts_with("iteration");
    key.net().filter(|net| net.route == ROUTE && !net.variant.is_some_and(is_iteration))?;
    let mut heights = BTreeMap::new();
    let free = model.cells_of(number).filter(|cell| cell.target_bytes.is_none());
    for cell in free {
        let Some(height) = cell.height.filter(|_| cell.status.is_answer()) else { continue };
        let lowest = heights.entry(&*cell.planner).or_insert(height);
        *lowest = height.min(*lowest);
    }
    (!heights.is_empty()).then_some(Case { key, question, load: workload.load, heights })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_segment_is_the_question() {
        let order = ("model/vgg16/infer/b1", Question::Order("greedy"));
        assert_eq!(Question::of("model/vgg16/infer/b1/order-greedy"), order);
        let safe = ("model/vgg16/infer/b1/ws8m", Question::Safe("pairs"));
        assert_eq!(Question::of("model/vgg16/infer/b1/ws8m/safe-pairs"), safe);
        assert_eq!(Question::of("model/vgg16/infer/b1"), ("model/vgg16/infer/b1", Question::Plan));
    }
}
