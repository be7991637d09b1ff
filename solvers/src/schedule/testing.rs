//! Nets for tests.

use planlab_dsa::Bytes;
use planlab_graph::{
    FeatureMap, Function, FunctionKind, Machine, MapId, SchedulingProblem, TrainingNet, Work,
};

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
    let machine = Machine {
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
    };
    SchedulingProblem::new(net, machine)
}
