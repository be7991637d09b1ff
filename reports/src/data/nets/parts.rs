//! Nets: what is known of their memory, how figures group them, and the time to plan them.

use std::collections::BTreeMap;

use planlab_results::{NetParts, WorkloadKey};

use crate::data::planners::model::Model;
use crate::data::rows::group_by;
use crate::figures::Drawing;
use crate::figures::coord::Axis;
use crate::figures::palette::BLUE;
use crate::figures::plots::bars::{Bars, Part, Slot, WIDTH, needed_width};
use crate::format::format_nanoseconds;

/// Facts about a workload that are not in the records; memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolTotal {
    /// Bytes kept over all iterations: parameters and their state.
    pub parameters: Option<u64>,
    /// The sum of all requests, without any reuse.
    pub network_wise: Option<u64>,
    /// The bytes that the framework's own pool took for the same requests.
    pub pool: Option<u64>,
    /// The bytes that the framework's own pool held after a whole process of the net, including those kept over all
    /// iterations.
    pub process_pool: Option<u64>,
    /// Measured time of one propagation in the framework's own pool, in nanoseconds.
    pub pool_ns: Option<u64>,
    /// Time of one propagation in a plan's table, in nanoseconds, measured alongside it.
    pub plan_ns: Option<u64>,
    /// The most bytes that PyTorch itself reserved while the trace was recorded.
    pub torch_reserved: Option<u64>,
    /// The most bytes in use in PyTorch at once while the trace was recorded.
    pub torch_allocated: Option<u64>,
    /// The number of iterations that can be distinguished in a PyTorch trace; 0 for other workloads.
    pub torch_iterations: usize,
    /// Whether two iterations request different sizes, or in a different order.
    pub torch_iterations_differ: bool,
    /// Whether an output layer's own weight was replaced by an embedding's in the process that contains the trace.
    pub torch_tied_head: bool,
}

/// Facts by workload key. Reports have no access to workloads, so the caller provides them.
pub type PoolTotals = BTreeMap<String, PoolTotal>;

pub(crate) type Numbered<'k> = (NetParts<'k>, usize);

/// Bars per batch.
const BARS: usize = 3;

/// The parts of a net's key in training or inference; `None` for the whole process that contains a propagation.
pub(crate) fn net_of(key: &WorkloadKey) -> Option<NetParts<'_>> {
    key.net_parts().filter(|net| matches!(net.mode, "train" | "infer") && !key.ends_with("/process"))
}

/// The batch, followed by the variant.
pub(crate) fn shown_batch(net: &NetParts<'_>) -> String {
    let variant = net.variant.map(|variant| format!(" {}", variant.replace("iteration", "#")));
    format!("b{}{}", net.batch, variant.unwrap_or_default())
}

/// Workloads of nets in one figure.
pub(crate) struct NetPart<'k> {
    pub(crate) route: &'k str,
    /// Route, mode and, with several parts, the part's number.
    pub(crate) title: String,
    /// The nets, each with its index among the workloads.
    pub(crate) nets: Vec<Numbered<'k>>,
}

/// Workloads of nets by route and mode, split into parts that fit a figure with this many bars per batch; a net is
/// never split.
pub(crate) fn parts<'k>(keys: impl IntoIterator<Item = &'k WorkloadKey>, bars: usize) -> Vec<NetPart<'k>> {
    let nets = keys.into_iter().enumerate().filter_map(|(number, key)| Some((net_of(key)?, number)));
    let mut parts = Vec::new();
    for ((route, mode), nets) in group_by(nets, |(net, _)| (net.route, net.mode)) {
        let chunks = chunks(&nets, bars);
        let mode = if mode == "train" { "training" } else { "inference" };
        for (number, chunk) in chunks.iter().enumerate() {
            let part = if chunks.len() > 1 { format!(" ({})", number + 1) } else { String::new() };
            let title = format!("{route}, {mode}{part}");
            parts.push(NetPart { route, title, nets: chunk.clone() });
        }
    }
    parts
}

/// Splits nets into groups that fit side by side in one figure.
fn chunks<'k>(nets: &[Numbered<'k>], bars: usize) -> Vec<Vec<Numbered<'k>>> {
    let mut chunks: Vec<Vec<Numbered<'_>>> = Vec::new();
    let mut room = 0.0;
    for net in nets.chunk_by(|a, b| a.0.net == b.0.net) {
        let names: Vec<String> = net.iter().map(|(key, _)| shown_batch(key)).collect();
        let width = needed_width(net[0].0.net, names.iter().map(String::as_str), bars);
        match chunks.last_mut() {
            Some(last) if width <= room => last.extend_from_slice(net),
            _ => {
                chunks.push(net.to_vec());
                room = WIDTH;
            }
        }
        room -= width;
    }
    chunks
}

/// The planning time by net and batch, one figure per route and mode with times.
pub(crate) fn time_figures(model: &Model, baseline: &str) -> Vec<Drawing> {
    let Some(planner) = model.planner_of(baseline) else { return Vec::new() };
    let time = |workload: usize| model.free_cells(planner, workload).find_map(|cell| cell.time_ns);
    let figure = |NetPart { title, nets, .. }: NetPart<'_>| {
        let times = nets.into_iter().filter_map(|(key, workload)| Some((key, time(workload)?.max(1.0))));
        let times: Vec<(NetParts<'_>, f64)> = times.collect();
        time_plot(&format!("Time of {baseline} by net and batch: {title}"), &times)
    };
    let keys = model.workloads.iter().map(|workload| &workload.key);
    parts(keys, BARS).into_iter().filter_map(figure).collect()
}

fn time_plot(title: &str, times: &[(NetParts<'_>, f64)]) -> Option<Drawing> {
    let least = times.iter().map(|time| time.1).min_by(f64::total_cmp)?;
    let most = times.iter().map(|time| time.1).fold(0.0, f64::max);
    let y = Axis::times("planning time", least, most);
    let low = y.low();
    let slot = |(key, time): &(NetParts<'_>, f64)| {
        let (group, name) = (key.net.to_owned(), shown_batch(key));
        let tip = format!("{group} {name}: {}", format_nanoseconds(*time));
        let part = Part { from: low, to: *time, color: BLUE, tip, label: String::new() };
        Slot { group, name, bars: vec![vec![part]], ..Slot::default() }
    };
    // One value needs no range.
    let note = if least < most {
        format!("{} to {}", format_nanoseconds(least), format_nanoseconds(most))
    } else {
        format_nanoseconds(most)
    };
    let bars = Bars::new(title, y, times.iter().map(slot).collect(), Vec::new());
    Some(Bars { height: 262, note, ..bars }.plot_slots())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_nets() {
        let key = WorkloadKey::from("chainer/seq2seq/train/b32/iteration9");
        let net = net_of(&key).expect("a net");
        assert_eq!((net.net, net.mode, shown_batch(&net).as_str()), ("seq2seq", "train", "b32 #9"));
        for key in ["synthetic/uniform/n10/s1", "torch/bert/train/b8/process", "torch/gpt2/decode/b1", "a/b"]
        {
            assert_eq!(net_of(&key.into()), None, "{key}");
        }
    }
}
