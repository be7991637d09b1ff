//! Cells of models: a net by batch and workspace limit, with the questions about its graph.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::performance::End;
use planlab_results::WorkloadKey;

use crate::data::planners::model::Model;
use crate::data::replays::{self, Replays};

/// The route of nets, and that of graph files.
const ROUTES: [&str; 2] = ["model", "graph"];
/// Planners that represent no sharing, in-place alone, sharing alone, and both.
pub(crate) const NOTHING: &str = "bump";
pub(crate) const IN_PLACE: &str = "mxnet-sharing/in-place-only";
pub(crate) const SHARING: &str = "mxnet-sharing/sharing-only";
pub(crate) const BOTH: &str = "mxnet-sharing";

/// One workload of a net or graph file, with the memory that planners and allocators need.
#[derive(Clone, Debug)]
pub(crate) struct Case<'m> {
    /// The workload's key without the question.
    pub(crate) key: WorkloadKey,
    /// The key without its batch; a curve over batches has one family.
    pub(crate) family: String,
    pub(crate) batch: u64,
    pub(crate) question: Question<'m>,
    pub(crate) load: u64,
    /// The lowest height of each planner in bytes.
    pub(crate) heights: BTreeMap<&'m str, u64>,
    /// The bytes that each online allocator held in the steady state.
    pub(crate) reserved: BTreeMap<&'m str, u64>,
    /// The number of random legal orders in which a plan was run, and the number of failures among them.
    pub(crate) orders: Option<(u64, u64)>,
    /// The proven minimum of memory over all legal orders, in bytes.
    pub(crate) order_bound: Option<u64>,
}

/// A question of `planlab graph` about a net, besides its plan; the last segment of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question<'k> {
    /// No question: the net's own order.
    Plan,
    /// Another order of the operations, with the method that found it.
    Order(&'k str),
    /// A plan that holds in every legal order, with the method that keeps buffers apart.
    Safe(&'k str),
}

impl<'k> Question<'k> {
    fn from_key(key: &'k str) -> (&'k str, Self) {
        let Some((rest, last)) = key.rsplit_once('/') else { return (key, Self::Plan) };
        let order = last.strip_prefix("order-").map(Self::Order);
        match order.or_else(|| last.strip_prefix("safe-").map(Self::Safe)) {
            Some(question) => (rest, question),
            None => (key, Self::Plan),
        }
    }
}

impl<'m> Case<'m> {
    /// A case without heights; `None` if the key is neither that of a net nor of a graph file.
    fn new(replays: &'m Replays, key: &str, question: Question<'m>, load: u64) -> Option<Self> {
        let (family, batch) = split_batch(key)?;
        let (heights, reserved) = (BTreeMap::new(), held_by_allocator(replays, key));
        let key = WorkloadKey::from(key);
        Some(Self { key, family, batch, question, load, heights, reserved, orders: None, order_bound: None })
    }

    /// The lowest height over all planners that provide offsets.
    pub(crate) fn lowest_height(&self) -> Option<u64> {
        let is_means = |planner: &str| [NOTHING, IN_PLACE, SHARING, BOTH].contains(&planner);
        self.heights.iter().filter(|(planner, _)| !is_means(planner)).map(|(_, &height)| height).min()
    }

    /// The name of the net or file.
    pub(crate) fn is_trained(&self) -> bool {
        self.key.net_parts().is_some_and(|net| net.mode == "train")
    }

    /// The bytes that planners and allocators need; allocators are marked.
    pub(crate) fn memory_by_planner(&self) -> impl Iterator<Item = (String, u64)> + use<'_, 'm> {
        let planned = self.heights.iter().map(|(&planner, &height)| (planner.to_owned(), height));
        let reserved = self.reserved.iter().map(|(name, &held)| (format!("{name} (allocator)"), held));
        planned.chain(reserved)
    }
}

/// All workloads of nets and graph files with an answer.
pub(crate) fn model_cases<'m>(model: &'m Model, replays: &'m Replays) -> Vec<Case<'m>> {
    let mut cases: Vec<Case<'m>> =
        (0..model.workloads.len()).filter_map(|number| planned(model, replays, number)).collect();
    let known: BTreeSet<WorkloadKey> = cases.iter().map(|case| case.key.clone()).collect();
    // For some batches only an allocator was run.
    for replayed in replays.simulated_cases().filter(|case| !known.contains(case.workload())) {
        let load = replayed.summary_row().requested_peak;
        let Some(case) = Case::new(replays, replayed.workload(), Question::Plan, load) else { continue };
        if !case.reserved.is_empty() && cases.iter().all(|other| other.key != case.key) {
            cases.push(case);
        }
    }
    cases
}

/// The bytes that each online allocator held for a workload in the steady state.
fn held_by_allocator<'m>(replays: &'m Replays, key: &str) -> BTreeMap<&'m str, u64> {
    let served = replays.simulated_cases().filter(|case| case.workload() == key);
    let served = served.filter(|case| case.summary_row().performance.status == End::Complete);
    let held = |case: &'m replays::Case| {
        let row = case.summary_row();
        (row.contender.as_str(), case.settled_bytes().unwrap_or(row.performance.reserved_peak))
    };
    served.map(held).collect()
}

/// The case of a workload; `None` if no planner has an answer.
fn planned<'m>(model: &'m Model, replays: &'m Replays, number: usize) -> Option<Case<'m>> {
    let workload = &model.workloads[number];
    let (key, question) = Question::from_key(&workload.key);
    let mut case = Case::new(replays, key, question, workload.load)?;
    for cell in model.cells_of(number).filter(|cell| cell.target_bytes.is_none()) {
        let Some(height) = cell.height.filter(|_| cell.status.is_answer()) else { continue };
        let lowest = case.heights.entry(&*cell.planner).or_insert(height);
        *lowest = height.min(*lowest);
        case.orders = case.orders.max(cell.orders_run.zip(cell.orders_failed));
        case.order_bound = case.order_bound.max(cell.order_bound);
    }
    (!case.heights.is_empty()).then_some(case)
}

/// A key without its batch, and the batch; `None` if it is neither that of a net nor of a graph file.
fn split_batch(key: &str) -> Option<(String, u64)> {
    let (route, rest) = key.split_once('/')?;
    // Iterations of Chainer's seq2seq example have different sentences, so they do not form a curve.
    if !ROUTES.contains(&route) || rest.split('/').any(|segment| segment.starts_with("iteration")) {
        return None;
    }
    let batch = |segment: &str| segment.strip_prefix('b')?.parse().ok();
    let number = rest.split('/').find_map(batch)?;
    let others: Vec<&str> = rest.split('/').filter(|segment| batch(segment).is_none()).collect();
    Some((others.join("/"), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_segment_is_the_question() {
        let order = ("model/vgg16/infer/b1", Question::Order("greedy"));
        assert_eq!(Question::from_key("model/vgg16/infer/b1/order-greedy"), order);
        let safe = ("model/vgg16/infer/b1/ws8m", Question::Safe("pairs"));
        assert_eq!(Question::from_key("model/vgg16/infer/b1/ws8m/safe-pairs"), safe);
        assert_eq!(Question::from_key("model/vgg16/infer/b1"), ("model/vgg16/infer/b1", Question::Plan));
    }

    #[test]
    fn a_family_has_all_batches() {
        assert_eq!(split_batch("model/vgg16/infer/b8/ws8m"), Some(("vgg16/infer/ws8m".to_owned(), 8)));
        assert_eq!(split_batch("graph/mine/b3"), Some(("mine".to_owned(), 3)));
        assert_eq!(
            (split_batch("chainer/vgg16/infer/b8"), split_batch("model/s/train/b32/iteration-1")),
            (None, None)
        );
    }
}
