//! Writes graph files.

use std::collections::{BTreeMap, BTreeSet};

use super::raw::{Header, RawOperation, RawTensor, Turns};
use crate::formats::lines::to_line;
use crate::{Graph, Tensor, TensorId};

/// Writes a graph. If a tensor has no name or shares it with another tensor, its number is appended.
#[must_use]
pub fn write_jsonl(graph: &Graph) -> String {
    let names = unique_names(graph);
    let mut said = vec![false; graph.tensors().len()];
    let mut raw = |id: TensorId| {
        let tensor = &graph.tensors()[id.index()];
        let first = !std::mem::replace(&mut said[id.index()], true);
        RawTensor {
            tensor: names[id.index()].clone(),
            bytes: first.then_some(tensor.bytes.get()),
            category: tensor.category.clone().filter(|_| first).map(Into::into),
            output: (tensor.output && first).then_some(true),
            external: (tensor.external && first).then_some(true),
            alias: tensor.alias.filter(|_| first).map(|alias| names[alias.base.index()].clone()),
            at: tensor.alias.map(|alias| alias.offset.get()).filter(|&at| first && at > 0),
        }
    };
    let all = (0..graph.tensors().len()).map(TensorId::from_index);
    let inputs = all.filter(|&id| graph.maker_of(id).is_none()).map(&mut raw).collect();
    let order = Turns::default();
    let mut out = to_line(&Header { planlab: "graph".to_owned(), version: 1, order, tensors: inputs });
    let name = |id: &TensorId| names[id.index()].clone();
    for operation in graph.operations() {
        out.push_str(&to_line(&RawOperation {
            op: operation.op.clone().into_owned(),
            name: operation.name.clone(),
            reads: operation.reads.iter().map(name).collect(),
            writes: operation.writes.iter().copied().map(&mut raw).collect(),
            in_place: operation.in_place.iter().map(|(input, output)| (name(input), name(output))).collect(),
            workspace: operation.workspace.get(),
            flops: operation.flops,
            seconds: operation.seconds,
            stream: operation.stream.get(),
        }));
    }
    out
}

pub(super) fn unique_names(graph: &Graph) -> Vec<String> {
    let mut times = BTreeMap::<&str, u32>::new();
    graph.tensors().iter().for_each(|tensor| *times.entry(&tensor.name).or_default() += 1);
    let is_own = |name: &str| !name.is_empty() && times[name] == 1;
    let all = graph.tensors().iter().map(|tensor| tensor.name.as_str());
    let mut taken: BTreeSet<String> = all.filter(|name| is_own(name)).map(str::to_owned).collect();
    let mut name = |(index, tensor): (usize, &Tensor)| {
        if is_own(&tensor.name) {
            return tensor.name.clone();
        }
        let mut name = format!("{}#{index}", tensor.name);
        while !taken.insert(name.clone()) {
            name.push('#');
        }
        name
    };
    graph.tensors().iter().enumerate().map(&mut name).collect()
}
