//! A net as schedulers see it: feature maps, the functions between them, and the maps that their backward passes read.
//!
//! A *feature map* is a tensor that a function makes, or the input image. A map is *retained* if the backward pass of
//! some function reads it: a schedule has to keep it, swap it to the host or recompute it. Every other map is
//! *transient*: it is freed after its last use in the forward pass.
//!
//! A function makes one map, and its backward pass reads maps that are its inputs or its output. Other data that a
//! function keeps (a mask, statistics) is not modelled: its bytes belong to the corresponding map. A view is not a
//! function: it is the map that it views.

use std::collections::BTreeMap;

use planlab_dsa::Bytes;

use super::parts::{EXACT, FeatureMap, Function, FunctionId, FunctionKind, Kernel, MapId};

/// A broken rule of [`TrainingNet`].
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The net has no functions.
    #[error("a net without functions")]
    Empty,
    /// A map of 0 bytes.
    #[error("map `{0}` has 0 bytes")]
    EmptyMap(String),
    /// A map that does not exist.
    #[error("function `{function}` names map {map}, but there are {maps} maps")]
    UnknownMap { function: String, map: MapId, maps: usize },
    /// A map that is read before it is made.
    #[error("function `{function}` reads map `{map}`, which a later function makes")]
    ReadBeforeMade { function: String, map: String },
    /// A map that two functions make.
    #[error("function `{function}` makes map `{map}`, which another function makes too")]
    MadeTwice { function: String, map: String },
    /// A backward pass that reads a map that is neither an input nor the output of its function.
    #[error("the backward pass of `{function}` needs map `{map}`, which is neither its input nor its output")]
    StrangeNeed { function: String, map: String },
    /// An input of a sum that differs in size from the output, so that the two cannot share a gradient.
    #[error("sum `{function}` has {output} bytes, but its input `{map}` has {input}")]
    UnequalSum { function: String, map: String, input: Bytes, output: Bytes },
    /// More bytes than add up exactly as floating-point numbers.
    #[error("the feature maps have {bytes} bytes together at batch {batch}; at most {EXACT} are possible")]
    TooLarge { bytes: u128, batch: u64 },
    /// A cost that is negative, infinite or not a number.
    #[error("function `{function}` has an impossible cost: {value}")]
    BadWork { function: String, value: String },
    /// An invalid kernel, or a kernel of a function that is not a convolution.
    #[error("function `{function}` cannot have the kernel {kernel:?}")]
    BadKernel { function: String, kernel: Kernel },
}

impl NetError {
    /// The function that breaks the rule, if a single one does.
    #[must_use]
    pub fn faulty_function(&self) -> Option<&str> {
        match self {
            Self::Empty | Self::EmptyMap(_) | Self::TooLarge { .. } => None,
            Self::UnknownMap { function, .. }
            | Self::ReadBeforeMade { function, .. }
            | Self::MadeTwice { function, .. }
            | Self::StrangeNeed { function, .. }
            | Self::UnequalSum { function, .. }
            | Self::BadKernel { function, .. }
            | Self::BadWork { function, .. } => Some(function),
        }
    }
}

/// A net: feature maps and functions in the order of the forward pass.
///
/// ```
/// use planlab_dsa::Bytes;
/// use planlab_graph::{FeatureMap, Function, FunctionKind, MapId, TrainingNet, Work};
///
/// let [image, conv] = [0, 1].map(MapId::from_index);
/// let map = |name: &str, bytes| FeatureMap { name: name.to_owned(), bytes: Bytes::new(bytes) };
/// let work = Work { flops: 1e9, bytes: 4e6, launches: 1 };
/// let function = Function {
///     name: "conv".to_owned(), kind: FunctionKind::Convolution, inputs: vec![image], output: conv,
///     needs: vec![image], forward: work, backward: work,
/// };
/// let net = TrainingNet::new("one", 1, 1000, vec![map("image", 64), map("conv", 128)], vec![function])?;
/// assert!(net.is_retained(image) && !net.is_retained(conv));
/// # Ok::<(), planlab_graph::NetError>(())
/// ```
///
/// # Panics
///
/// All methods that take an id panic if the net has no such map or function.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingNet {
    name: String,
    batch: u64,
    parameters: u64,
    maps: Vec<FeatureMap>,
    functions: Vec<Function>,
    /// For each map, the function that makes it; `None` for an input of the net.
    producers: Vec<Option<FunctionId>>,
    /// For each map, the function that reads it last in the forward pass.
    last_uses: Vec<Option<FunctionId>>,
    retained: Vec<bool>,
    /// The known kernels of convolutions.
    kernels: BTreeMap<FunctionId, Kernel>,
}

impl TrainingNet {
    /// A net with `parameters` parameters that processes `batch` images at once.
    pub fn new(
        name: impl Into<String>,
        batch: u64,
        parameters: u64,
        maps: Vec<FeatureMap>,
        functions: Vec<Function>,
    ) -> Result<Self, NetError> {
        let count = maps.len();
        let mut net = Self {
            name: name.into(),
            batch,
            parameters,
            maps,
            functions,
            producers: vec![None; count],
            last_uses: vec![None; count],
            retained: vec![false; count],
            kernels: BTreeMap::new(),
        };
        if net.functions.is_empty() {
            return Err(NetError::Empty);
        }
        if let Some(empty) = net.maps.iter().find(|map| map.bytes == Bytes::ZERO) {
            return Err(NetError::EmptyMap(empty.name.clone()));
        }
        let bytes = net.maps.iter().map(|map| u128::from(map.bytes.get())).sum();
        if bytes > u128::from(EXACT) {
            return Err(NetError::TooLarge { bytes, batch });
        }
        net.find_producers()?;
        for index in 0..net.functions.len() {
            net.check_function(FunctionId::from_index(index))?;
        }
        net.find_uses();
        Ok(net)
    }

    fn find_producers(&mut self) -> Result<(), NetError> {
        for (index, function) in self.functions.iter().enumerate() {
            let named = function.inputs.iter().chain(&function.needs).chain([&function.output]);
            if let Some(&map) = named.into_iter().find(|map| map.index() >= self.maps.len()) {
                let function = function.name.clone();
                return Err(NetError::UnknownMap { function, map, maps: self.maps.len() });
            }
            let producer = &mut self.producers[function.output.index()];
            if producer.replace(FunctionId::from_index(index)).is_some() {
                let map = self.maps[function.output.index()].name.clone();
                return Err(NetError::MadeTwice { function: function.name.clone(), map });
            }
        }
        Ok(())
    }

    fn check_function(&self, id: FunctionId) -> Result<(), NetError> {
        let function = self.function(id);
        let name = || function.name.clone();
        let called = |map: MapId| self.map(map).name.clone();
        for &map in &function.inputs {
            if self.producer_of(map).is_some_and(|producer| producer >= id) {
                return Err(NetError::ReadBeforeMade { function: name(), map: called(map) });
            }
            let (input, output) = (self.map(map).bytes, self.map(function.output).bytes);
            if function.kind == FunctionKind::Add && input != output {
                return Err(NetError::UnequalSum { function: name(), map: called(map), input, output });
            }
        }
        let is_strange = |map: &&MapId| **map != function.output && !function.inputs.contains(map);
        if let Some(&map) = function.needs.iter().find(is_strange) {
            return Err(NetError::StrangeNeed { function: name(), map: called(map) });
        }
        let costs = [function.forward, function.backward].map(|work| [work.flops, work.bytes]);
        match costs.as_flattened().iter().find(|cost| !cost.is_finite() || **cost < 0.0) {
            Some(cost) => Err(NetError::BadWork { function: name(), value: cost.to_string() }),
            None => Ok(()),
        }
    }

    fn find_uses(&mut self) {
        for (index, function) in self.functions.iter().enumerate() {
            for map in &function.inputs {
                self.last_uses[map.index()] = Some(FunctionId::from_index(index));
            }
            for map in &function.needs {
                self.retained[map.index()] = true;
            }
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Images processed at once.
    #[must_use]
    pub const fn batch(&self) -> u64 {
        self.batch
    }

    /// The number of its parameters.
    #[must_use]
    pub const fn parameters(&self) -> u64 {
        self.parameters
    }

    /// All feature maps, by id.
    #[must_use]
    pub fn maps(&self) -> &[FeatureMap] {
        &self.maps
    }

    /// All functions, in the order of the forward pass.
    #[must_use]
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// A feature map.
    #[must_use]
    pub fn map(&self, id: MapId) -> &FeatureMap {
        &self.maps[id.index()]
    }

    /// A function.
    #[must_use]
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// The ids of all maps, ascending.
    pub fn map_ids(&self) -> impl DoubleEndedIterator<Item = MapId> + use<> {
        (0..self.maps.len()).map(MapId::from_index)
    }

    /// The ids of all functions, ascending.
    pub fn function_ids(&self) -> impl DoubleEndedIterator<Item = FunctionId> + use<> {
        (0..self.functions.len()).map(FunctionId::from_index)
    }

    /// The function that makes a map; `None` for an input of the net.
    #[must_use]
    pub fn producer_of(&self, map: MapId) -> Option<FunctionId> {
        self.producers[map.index()]
    }

    /// The function that reads a map last in the forward pass; `None` if no function reads it.
    #[must_use]
    pub fn last_use(&self, map: MapId) -> Option<FunctionId> {
        self.last_uses[map.index()]
    }

    /// Whether the backward pass of some function reads the map.
    #[must_use]
    pub fn is_retained(&self, map: MapId) -> bool {
        self.retained[map.index()]
    }

    /// The retained maps, ascending.
    pub fn retained_maps(&self) -> impl DoubleEndedIterator<Item = MapId> {
        self.map_ids().filter(|&map| self.is_retained(map))
    }

    /// Whether a gradient of the map is computed: true for all maps except inputs of the net.
    #[must_use]
    pub fn has_gradient(&self, map: MapId) -> bool {
        self.producer_of(map).is_some()
    }

    /// Whether the function has a backward pass. An addition has none if its output is read: each of its inputs has the
    /// gradient of the output as a part of its own.
    #[must_use]
    pub fn has_backward_pass(&self, id: FunctionId) -> bool {
        let function = self.function(id);
        function.kind != FunctionKind::Add || self.last_use(function.output).is_none()
    }

    /// The kernel of a function; `None` if it is unknown or the function is not a convolution.
    #[must_use]
    pub fn convolution_kernel(&self, id: FunctionId) -> Option<&Kernel> {
        assert!(id.index() < self.functions().len(), "no function {id}");
        self.kernels.get(&id)
    }

    /// Sets the kernels of some convolutions.
    ///
    /// # Errors
    ///
    /// [`NetError::BadKernel`] for a kernel without extents, with a different number of strides or a 0 among the
    /// numbers, and for the kernel of a function that is not a convolution.
    pub fn with_kernels(
        mut self,
        kernels: impl IntoIterator<Item = (FunctionId, Kernel)>,
    ) -> Result<Self, NetError> {
        for (id, kernel) in kernels {
            let function = self.function(id);
            let numbers = || kernel.extents.iter().chain(&kernel.strides).chain([&kernel.positions]);
            let is_good = !kernel.extents.is_empty()
                && kernel.extents.len() == kernel.strides.len()
                && numbers().all(|&number| number > 0);
            if function.kind != FunctionKind::Convolution || !is_good {
                return Err(NetError::BadKernel { function: function.name.clone(), kernel });
            }
            self.kernels.insert(id, kernel);
        }
        Ok(self)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Work;

    fn map(name: &str, bytes: u64) -> FeatureMap {
        FeatureMap { name: name.to_owned(), bytes: Bytes::new(bytes) }
    }

    /// image -> conv -> relu -> conv2 -> add(relu, conv2) -> loss, the second convolution in parallel to a shortcut.
    pub(crate) fn shortcut_net() -> TrainingNet {
        let maps = ["image", "conv", "relu", "conv2", "sum", "loss"];
        let maps = maps.iter().zip([64, 256, 256, 256, 256, 4]).map(|(name, bytes)| map(name, bytes));
        let make = |name: &str, kind, inputs: &[usize], output, needs: &[usize]| Function {
            name: name.to_owned(),
            kind,
            inputs: inputs.iter().map(|&id| MapId::from_index(id)).collect(),
            output: MapId::from_index(output),
            needs: needs.iter().map(|&id| MapId::from_index(id)).collect(),
            forward: Work { flops: 1e9, bytes: 1e6, launches: 1 },
            backward: Work {
                flops: 2e9,
                bytes: 2e6,
                launches: if kind == FunctionKind::Add { 0 } else { 1 },
            },
        };
        let functions = vec![
            make("conv", FunctionKind::Convolution, &[0], 1, &[0]),
            make("relu", FunctionKind::Other, &[1], 2, &[2]),
            make("conv2", FunctionKind::Convolution, &[2], 3, &[2]),
            make("add", FunctionKind::Add, &[2, 3], 4, &[]),
            make("loss", FunctionKind::Other, &[4], 5, &[4]),
        ];
        TrainingNet::new("shortcut", 1, 100, maps.collect(), functions).expect("a net")
    }

    #[test]
    fn uses_and_retained_maps_are_derived() {
        let net = shortcut_net();
        let retained: Vec<_> = net.retained_maps().map(MapId::index).collect();
        assert_eq!(retained, [0, 2, 4]);
        assert_eq!(net.last_use(MapId::from_index(2)), Some(FunctionId::from_index(3)));
        assert_eq!(net.last_use(MapId::from_index(5)), None);
        assert!(!net.has_gradient(MapId::from_index(0)) && net.has_gradient(MapId::from_index(1)));
    }

    #[test]
    fn a_broken_rule_is_named() {
        let net = shortcut_net();
        let broken = |change: &dyn Fn(&mut Vec<Function>)| {
            let mut functions = net.functions().to_vec();
            change(&mut functions);
            TrainingNet::new("x", 1, 0, net.maps().to_vec(), functions).expect_err("broken").to_string()
        };
        assert_eq!(broken(&Vec::clear), "a net without functions");
        let text = broken(&|functions| functions[0].inputs = vec![MapId::from_index(9)]);
        assert_eq!(text, "function `conv` names map 9, but there are 6 maps");
        let text = broken(&|functions| functions.swap(0, 1));
        assert_eq!(text, "function `relu` reads map `conv`, which a later function makes");
        let text = broken(&|functions| functions[1].output = MapId::from_index(1));
        assert_eq!(text, "function `relu` makes map `conv`, which another function makes too");
        let text = broken(&|functions| functions[4].needs = vec![MapId::from_index(0)]);
        assert!(text.contains("needs map `image`, which is neither"), "{text}");
        let text = broken(&|functions| functions[3].inputs[1] = MapId::from_index(0));
        assert_eq!(text, "sum `add` has 256 bytes, but its input `image` has 64");
        let text = broken(&|functions| functions[2].forward.flops = f64::NAN);
        assert_eq!(text, "function `conv2` has an impossible cost: NaN");
    }
}
