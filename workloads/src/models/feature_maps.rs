//! Converts a net in training for schedulers: feature maps, and functions with the costs of their two passes.
//!
//! | function | forward bytes | backward bytes | backward work |
//! |---|---|---|---|
//! | convolution | X + Y | 2 (X + Y) | twice the products, two kernels |
//! | the same, of an input of the net | X + Y | X + Y | the products, one kernel |
//! | linear | W | 2 W | twice the products |
//! | batch, layer and RMS norm, LRN | 3 X | 5 X | |
//! | average pooling | X | X | |
//! | a loss | 2 X | 2 X | |
//! | add | 3 X | none: both inputs have the gradient of the output | no kernel |
//! | any other | what it reads and writes | what it needs, and the gradients in and out | twice the products |
//!
//! X and Y are the bytes of the input and the output, W those of the weights. The table in `rules` gives the inputs and
//! outputs that a backward pass reads.
//!
//! # References
//!
//! 1. Y. Ito et al.: Profiling based Out-of-core Hybrid Method for Large Neural Networks. PPoPP 2019,
//!    doi:10.1145/3293883.3298790: which maps ResNet-50 has.
//!
//! # Deviations from the paper
//!
//! Data that a function saves besides its inputs and its output is not a feature map. Statistics of norms are small,
//! and the probabilities of a loss become its gradient in place. Dropout works in place, and its mask is not counted.
//! An LSTM is two functions, one that computes the gates and one that makes the output from them. Labels and accuracies
//! are left out.

use planlab_dsa::Bytes;
use planlab_graph::{FeatureMap, FunctionId, FunctionKind, Kernel, MapId, NetError, TrainingNet, Work};

use super::ideal::unique;
use super::net::{Call, Convolution, Function, Program, ValueId, elements};
use super::rules::{self, Backward, FLOAT, Source};

/// The net of a program in training, with its `name` and the number of inputs per `batch`.
///
/// # Errors
///
/// [`NetError`] if the program has no calls, or a map without bytes.
pub(super) fn lower_program(name: &str, batch: u64, program: &Program) -> Result<TrainingNet, NetError> {
    let mut lowering = Lowering {
        program,
        map_of: vec![None; program.shapes.len()],
        maps: Vec::new(),
        functions: Vec::new(),
        kernels: Vec::new(),
    };
    for call in program.calls() {
        lowering.lower_call(call);
    }
    let parameters = program.parameter_count().unwrap_or(u64::MAX);
    let Lowering { maps, functions, kernels, .. } = lowering;
    TrainingNet::new(name, batch, parameters, maps, functions)?.with_kernels(kernels)
}

struct Lowering<'p> {
    program: &'p Program,
    /// The map of each value; a view has that of its base.
    map_of: Vec<Option<MapId>>,
    maps: Vec<FeatureMap>,
    functions: Vec<planlab_graph::Function>,
    kernels: Vec<(FunctionId, Kernel)>,
}

impl Lowering<'_> {
    fn lower_call(&mut self, call: &Call) {
        match &call.function {
            Function::Accuracy => {}
            // The output shares the place of the input.
            Function::Reshape | Function::Dropout => {
                self.map_of[call.output.0] = Some(self.input_map(call.inputs[0]));
            }
            Function::Lstm { .. } => self.lower_lstm(call),
            _ => {
                let inputs = self.input_maps(call);
                let name = self.name_of(call);
                let output = self.map_value(call.output, name.clone());
                let needs = backward_needs(call, &inputs, output);
                self.push_function(call, name, inputs, output, needs);
            }
        }
    }

    /// Adds an LSTM. The gates take all the products; their gradient has the same size.
    fn lower_lstm(&mut self, call: &Call) {
        let inputs = self.input_maps(call);
        let name = self.name_of(call);
        let shape = self.program.shape_of(call.output);
        let saved = rules::saved_bytes(&call.function, self.program.shape_of(call.inputs[0]), shape);
        let gates = self.add_map(format!("{name}.gates"), saved);
        self.push_function(call, format!("{name}.gates"), inputs.clone(), gates, inputs);
        let output = self.map_value(call.output, name.clone());
        let bytes = self.bytes_of(&[gates, output]);
        let pass = |bytes: u64| Work { flops: 0.0, bytes: as_real(bytes), launches: 1 };
        self.functions.push(planlab_graph::Function {
            name,
            kind: FunctionKind::Other,
            inputs: vec![gates],
            output,
            needs: vec![gates, output],
            forward: pass(bytes),
            backward: pass(2 * bytes),
        });
    }

    fn push_function(
        &mut self,
        call: &Call,
        name: String,
        inputs: Vec<MapId>,
        output: MapId,
        needs: Vec<MapId>,
    ) {
        let kind = self.function_kind(call, &inputs, output);
        let (forward, backward) = self.work_of(call, (&inputs, output, &needs), kind);
        if let Function::Convolution(convolution) = &call.function {
            let kernel = self.kernel_of(call, convolution);
            self.kernels.push((FunctionId::from_index(self.functions.len()), kernel));
        }
        self.functions.push(planlab_graph::Function { name, kind, inputs, output, needs, forward, backward });
    }

    /// A transposed convolution moves its window over its output.
    fn kernel_of(&self, call: &Call, convolution: &Convolution) -> Kernel {
        let moved = if convolution.is_transposed { call.inputs[0] } else { call.output };
        let extents = &self.program.shape_of(moved)[2..];
        // A window has three axes; those of the value are the last ones.
        let first = convolution.window.kernel.len() - extents.len();
        Kernel {
            extents: convolution.window.kernel[first..].to_vec(),
            strides: convolution.window.stride[first..].to_vec(),
            positions: elements(extents),
        }
    }

    fn name_of(&self, call: &Call) -> String {
        format!("{}{}", call.function.name(), self.functions.len())
    }

    /// The maps that a function reads, each once; labels are not maps.
    fn input_maps(&mut self, call: &Call) -> Vec<MapId> {
        let is_loss = matches!(call.function, Function::SoftmaxCrossEntropy | Function::BinaryCrossEntropy);
        let read = if is_loss { &call.inputs[..1] } else { &call.inputs[..] };
        unique(read.iter().map(|&value| self.input_map(value)).collect())
    }

    /// The map of a value; an input of the net gets one when it is first read.
    fn input_map(&mut self, value: ValueId) -> MapId {
        match self.map_of[value.0] {
            Some(map) => map,
            None => self.map_value(value, format!("input{}", value.0)),
        }
    }

    fn map_value(&mut self, value: ValueId, name: String) -> MapId {
        let bytes = FLOAT * elements(self.program.shape_of(value));
        let map = self.add_map(name, bytes);
        self.map_of[value.0] = Some(map);
        map
    }

    fn add_map(&mut self, name: String, bytes: u64) -> MapId {
        self.maps.push(FeatureMap { name, bytes: Bytes::new(bytes) });
        MapId::from_index(self.maps.len() - 1)
    }

    fn bytes_of(&self, maps: &[MapId]) -> u64 {
        maps.iter().map(|map| self.maps[map.index()].bytes.get()).sum()
    }

    fn function_kind(&self, call: &Call, inputs: &[MapId], output: MapId) -> FunctionKind {
        let is_of_size = |input: &MapId| self.maps[input.index()].bytes == self.maps[output.index()].bytes;
        match call.function {
            Function::Convolution(_) => FunctionKind::Convolution,
            Function::Linear => FunctionKind::FullyConnected,
            Function::Add if inputs.len() > 1 && inputs.iter().all(is_of_size) => FunctionKind::Add,
            _ => FunctionKind::Other,
        }
    }

    /// The costs of the two passes.
    fn work_of(
        &self,
        call: &Call,
        (inputs, output, needs): (&[MapId], MapId, &[MapId]),
        kind: FunctionKind,
    ) -> (Work, Work) {
        let flops = as_real(rules::call_flops(self.program, call).unwrap_or(u64::MAX));
        let (x, y) = (self.bytes_of(inputs), self.bytes_of(&[output]));
        let weights =
            || call.parameters.first().map_or(0, |&at| FLOAT * elements(&self.program.parameters[at]));
        let is_first =
            inputs.iter().all(|map| !self.functions.iter().any(|function| function.output == *map));
        let is_convolution = kind == FunctionKind::Convolution;
        let (forward, backward) = match &call.function {
            Function::Convolution(_) if is_first => (x + y, x + y),
            Function::Convolution(_) => (x + y, 2 * (x + y)),
            Function::Linear => (weights(), 2 * weights()),
            Function::BatchNorm | Function::LayerNorm | Function::RmsNorm | Function::LocalResponseNorm => {
                (3 * x, 5 * x)
            }
            Function::AveragePooling(_) => (x, x),
            Function::SoftmaxCrossEntropy | Function::BinaryCrossEntropy => (2 * x, 2 * x),
            _ if kind == FunctionKind::Add => (x + y, 0),
            _ => (x + y, self.bytes_of(needs) + x + y),
        };
        let launches = match kind {
            FunctionKind::Convolution if !is_first => 2,
            FunctionKind::Add => 0,
            _ => 1,
        };
        let products = if is_convolution && is_first { flops } else { 2.0 * flops };
        (
            Work { flops, bytes: as_real(forward), launches: 1 },
            Work { flops: products, bytes: as_real(backward), launches },
        )
    }
}

/// The inputs and outputs that a function's backward pass reads.
fn backward_needs(call: &Call, inputs: &[MapId], output: MapId) -> Vec<MapId> {
    let sources: &[&[Source]] = match &rules::rule_of(&call.function).backward {
        Backward::Whole(sources, _) | Backward::First(sources, _) => &[sources],
        Backward::Parts(weights, input) => &[weights, input],
        Backward::Factors => &[&[Source::Inputs]],
        Backward::Stops | Backward::Passes | Backward::Splits => &[],
    };
    let mut needs: Vec<MapId> = Vec::new();
    for source in sources.iter().copied().flatten() {
        match source {
            Source::Inputs => needs.extend(inputs),
            Source::LaterInputs => needs.extend(inputs.iter().skip(1)),
            Source::Output => needs.push(output),
            Source::Weights | Source::BothWeights | Source::Saved => {}
        }
    }
    // The maps that a loss needs become its gradient.
    if matches!(call.function, Function::SoftmaxCrossEntropy | Function::BinaryCrossEntropy) {
        needs.clear();
    }
    needs.sort_unstable();
    needs.dedup();
    needs
}

fn as_real(number: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a cost, which is an estimate")]
    let number = number as f64;
    number
}
