//! Compares dependencies with a reference that checks each byte of each storage.

use planlab_dsa::Bytes;
use planlab_graph::{Ancestors, Dependencies, Graph, OpId, Operation, Tensor, TensorId};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Operations that read, make and update tensors of three storages of 12 bytes, and views of them. `None` if they break
/// a rule.
fn random_graph(rng: &mut impl Rng) -> Option<Graph> {
    let mut graph = Graph::builder();
    let mut tensors: Vec<TensorId> =
        (0..3).map(|_| graph.add_tensor(Tensor::new("", Bytes::new(12)))).collect();
    for _ in 0..8 {
        let base = tensors[rng.random_range(0..tensors.len())];
        let bytes = graph.tensor_bytes(base).get();
        let offset = rng.random_range(0..bytes);
        let bytes = Bytes::new(rng.random_range(1..=bytes - offset));
        tensors.push(graph.add_tensor(Tensor::new("", bytes).with_base(base, Bytes::new(offset))));
    }
    let draw = |rng: &mut _| tensors[RngExt::random_range(rng, 0..tensors.len())];
    for _ in 0..rng.random_range(1..12) {
        let mut operation = Operation::new("f");
        for _ in 0..rng.random_range(0..3) {
            operation = operation.with_inputs([draw(rng)]);
        }
        let read = operation.reads.first().copied();
        operation = match (read, rng.random_range(0..4)) {
            (Some(read), 0) => operation.with_outputs([read]),
            (_, 1) => operation.with_outputs([draw(rng)]),
            _ => operation,
        };
        graph.add_operation(operation);
    }
    graph.build().ok()
}

/// For each byte of each storage, whether a tensor contains it.
fn bytes(graph: &Graph, tensor: TensorId) -> Vec<bool> {
    let place = graph.tensor_place(tensor);
    let from = place.root.index() * 12 + usize::try_from(place.offset.get()).expect("small");
    let to = from + usize::try_from(graph.tensors()[tensor.index()].bytes.get()).expect("small");
    (0..36).map(|byte| (from..to).contains(&byte)).collect()
}

fn meet(some: &[bool], others: &[bool]) -> bool {
    some.iter().zip(others).any(|(&one, &other)| one && other)
}

/// The bytes that an operation reads, updates, and writes without reading.
fn touched(graph: &Graph, operation: &Operation) -> [Vec<bool>; 3] {
    let all = |tensors: &mut dyn Iterator<Item = &TensorId>| {
        tensors.fold(vec![false; 36], |all, &tensor| {
            all.iter().zip(bytes(graph, tensor)).map(|(&one, other)| one || other).collect()
        })
    };
    let read = all(&mut operation.reads.iter());
    let updated = all(&mut operation.writes.iter().filter(|tensor| operation.reads.contains(tensor)));
    let written = all(&mut operation.writes.iter());
    let fresh = written.iter().zip(&read).map(|(&written, &read)| written && !read).collect();
    [read, updated, fresh]
}

/// Whether an operation makes a tensor that another reads, or the closest base of one that has a maker.
fn makes_for(graph: &Graph, maker: &Operation, reader: &Operation) -> bool {
    let makes = |operation: &Operation, tensor: TensorId| {
        operation.writes.contains(&tensor) && !operation.reads.contains(&tensor)
    };
    reader.reads.iter().any(|&read| {
        let base = |&id: &TensorId| graph.tensors()[id.index()].alias.map(|alias| alias.base);
        let mut chain = std::iter::successors(Some(read), base);
        let made = chain.find(|&id| graph.operations().iter().any(|operation| makes(operation, id)));
        made.is_some_and(|made| makes(maker, made))
    })
}

/// For each operation, which others come before it, computed by bytes and closed under paths.
fn reference(graph: &Graph) -> Vec<Vec<bool>> {
    let ops = graph.operations();
    let touched: Vec<[Vec<bool>; 3]> = ops.iter().map(|operation| touched(graph, operation)).collect();
    let mut before = vec![vec![false; ops.len()]; ops.len()];
    for (first, second) in (0..ops.len()).flat_map(|second| (0..second).map(move |first| (first, second))) {
        let [[read, updated, fresh], [reads, updates, _]] = [&touched[first], &touched[second]];
        before[first][second] = meet(fresh, reads)
            || meet(updated, reads)
            || meet(read, updates)
            || makes_for(graph, &ops[first], &ops[second]);
    }
    for middle in 0..ops.len() {
        for first in 0..ops.len() {
            for second in 0..ops.len() {
                before[first][second] |= before[first][middle] && before[middle][second];
            }
        }
    }
    before
}

#[test]
fn dependencies_are_those_of_each_byte() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (mut tried, mut updates) = (0, 0);
    while tried < 3_000 {
        let Some(graph) = random_graph(&mut rng) else { continue };
        tried += 1;
        updates +=
            graph.operations().iter().map(|operation| operation.updated_tensors().count()).sum::<usize>();
        let expected = reference(&graph);
        let ancestors = Ancestors::from_dependencies(&Dependencies::from_tensors(&graph), Ancestors::MEMORY)
            .expect("few operations");
        for (first, row) in expected.iter().enumerate() {
            for (second, &is_before) in row.iter().enumerate() {
                let found = ancestors.precedes(OpId::from_index(first), OpId::from_index(second));
                assert_eq!(found, is_before, "{first} {second}: {graph:?}");
            }
        }
    }
    assert!(updates > 1_000, "{updates}");
}

/// Adds the operations of a valid graph in any order: the result is a graph that keeps the order of updates, or an
/// error that names a cycle. In their own order, nothing changes.
#[test]
fn a_valid_order_is_kept_where_any_is_allowed() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut tried = 0;
    while tried < 1_000 {
        let Some(graph) = random_graph(&mut rng) else { continue };
        tried += 1;
        let rebuilt = |order: &[OpId]| {
            let mut builder = Graph::builder();
            graph.tensors().iter().for_each(|tensor| _ = builder.add_tensor(tensor.clone()));
            for op in order {
                builder.add_operation(graph.operations()[op.index()].clone());
            }
            builder.build_in_any_order()
        };
        assert_eq!(rebuilt(&graph.operation_order()).as_ref(), Ok(&graph));
        let dependencies = Dependencies::from_tensors(&graph);
        let order = dependencies.random_order(&mut rng);
        let again = rebuilt(&order).expect("a legal order has no cycle");
        // A legal order needs no sorting.
        let moved: Vec<&Operation> = order.iter().map(|op| &graph.operations()[op.index()]).collect();
        assert_eq!(again.operations().iter().collect::<Vec<_>>(), moved);
    }
}
