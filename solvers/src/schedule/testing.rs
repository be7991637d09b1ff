//! Nets for tests.

use planlab_dsa::Bytes;
use planlab_graph::{
    Event, FeatureMap, Function, FunctionKind, Machine, MapId, SchedulingProblem, Task, TrainingNet, Work,
};

use super::program::Program;

/// The events of the compute engine, a letter and a number for each.
pub(super) fn step_names(program: &Program) -> String {
    event_names(program.compute_steps())
}

/// Events of the compute engine, a letter and a number for each.
pub(super) fn event_names(events: &[Event]) -> String {
    let name = |event: &Event| match event.task {
        Task::Forward(id) => format!("F{id}"),
        Task::Recompute(id) => format!("R{id}"),
        Task::Backward(id) => format!("B{id}"),
        Task::Accumulate(map) => format!("A{map}"),
        Task::CopyOut(_) | Task::CopyIn(_) => panic!("copies come later"),
    };
    events.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// image -> 0 conv -> 1 relu -> 2 conv -> 3 add(relu, conv) -> 4 loss. Maps 0 (image), 2 (relu) and 4 (sum) have a
/// class.
pub(super) fn shortcut_problem() -> SchedulingProblem {
    let functions = vec![
        test_function(FunctionKind::Convolution, &[0], 1, &[0]),
        test_function(FunctionKind::Other, &[1], 2, &[2]),
        test_function(FunctionKind::Convolution, &[2], 3, &[2]),
        test_function(FunctionKind::Add, &[2, 3], 4, &[]),
        test_function(FunctionKind::Other, &[4], 5, &[4]),
    ];
    test_problem(functions)
}

/// image -> 0 conv -> 1 relu, 2 tanh -> 3 product(relu, tanh) -> 4 loss. All maps but 1 (conv) and 5 (loss) have a class.
pub(super) fn branching_problem() -> SchedulingProblem {
    let functions = vec![
        test_function(FunctionKind::Convolution, &[0], 1, &[0]),
        test_function(FunctionKind::Other, &[1], 2, &[2]),
        test_function(FunctionKind::Other, &[1], 3, &[3]),
        test_function(FunctionKind::Other, &[2, 3], 4, &[2, 3]),
        test_function(FunctionKind::Other, &[4], 5, &[4]),
    ];
    test_problem(functions)
}

/// A chain of functions that take a second, as do their backward passes, which read the input.
pub(super) fn chain_problem(bytes: &[u64]) -> SchedulingProblem {
    SchedulingProblem::new(chain_net(bytes, FunctionKind::Other, false), test_machine())
}

/// A chain of functions; the first map is the input of the net. Each backward pass reads its function's input, and the
/// output if wanted.
pub(super) fn chain_net(bytes: &[u64], kind: FunctionKind, reads_output: bool) -> TrainingNet {
    let map = |&bytes: &u64| FeatureMap { name: String::new(), bytes: Bytes::new(bytes) };
    let work = Work { flops: 1.0, bytes: 0.0, launches: 0 };
    let function = |output: usize| {
        let needs = if reads_output { vec![output - 1, output] } else { vec![output - 1] };
        Function { forward: work, backward: work, ..test_function(kind, &[output - 1], output, &needs) }
    };
    let functions = (1..bytes.len()).map(function).collect();
    TrainingNet::new("chain", 1, 0, bytes.iter().map(map).collect(), functions).expect("a net")
}

fn test_function(kind: FunctionKind, inputs: &[usize], output: usize, needs: &[usize]) -> Function {
    let ids = |ids: &[usize]| ids.iter().map(|&id| MapId::from_index(id)).collect();
    let work = Work { flops: 2.0, bytes: 0.0, launches: 0 };
    Function {
        kind,
        inputs: ids(inputs),
        output: MapId::from_index(output),
        needs: ids(needs),
        forward: work,
        backward: work,
        ..Function::default()
    }
}

fn test_problem(functions: Vec<Function>) -> SchedulingProblem {
    let maps =
        [64, 256, 256, 256, 256, 4].map(|bytes| FeatureMap { name: String::new(), bytes: Bytes::new(bytes) });
    let net = TrainingNet::new("small", 1, 0, maps.to_vec(), functions).expect("a net");
    SchedulingProblem::new(net, test_machine())
}

fn test_machine() -> Machine {
    Machine {
        name: "small".to_owned(),
        copy_out: 256.0,
        copy_in: 128.0,
        flops: 1.0,
        memory: 256.0,
        launch: 0.0,
        capacity: Bytes::new(1 << 20),
        bytes_per_parameter: 0,
        large_batch_slowdown: 1.0,
        workspace: Bytes::ZERO,
    }
}
