//! The functions that a net may call, and the windows of convolutions and poolings.

use super::shape::Shape;

/// A window of a convolution or a pooling, by depth, height and width. A value with two spatial extents uses the last
/// two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The extents.
    pub kernel: [u64; 3],
    /// The distance between neighbouring windows.
    pub stride: [u64; 3],
    /// The zeros added on each side.
    pub pad: [u64; 3],
    /// The distance between neighbouring elements within a window.
    pub dilation: [u64; 3],
    /// Whether a last window may reach past the end (the output size is rounded up).
    pub covers_all: bool,
}

impl Window {
    /// A square window with stride 1 and no padding.
    #[must_use]
    pub const fn square(kernel: u64) -> Self {
        Self::from_sides(kernel, kernel)
    }

    /// A cube with stride 1 and no padding.
    #[must_use]
    pub const fn cube(kernel: u64) -> Self {
        Self { kernel: [kernel; 3], ..Self::from_sides(kernel, kernel) }
    }

    /// A window with stride 1 and no padding.
    #[must_use]
    pub const fn from_sides(height: u64, width: u64) -> Self {
        Self { kernel: [1, height, width], stride: [1; 3], pad: [0; 3], dilation: [1; 3], covers_all: false }
    }

    /// Sets the stride. Default: 1.
    #[must_use]
    pub const fn with_stride(self, stride: u64) -> Self {
        self.with_strides([stride; 3])
    }

    /// Sets the strides for depth, height and width. Default: 1.
    #[must_use]
    pub const fn with_strides(mut self, stride: [u64; 3]) -> Self {
        self.stride = stride;
        self
    }

    /// Sets the padding in height and width, and in depth if the window is a cube. Default: 0.
    #[must_use]
    pub const fn with_padding(mut self, pad: u64) -> Self {
        self.pad = [if self.kernel[0] > 1 { pad } else { 0 }, pad, pad];
        self
    }

    /// Sets the padding above and below, left and right. Default: 0.
    #[must_use]
    pub const fn with_paddings(mut self, vertical: u64, horizontal: u64) -> Self {
        self.pad = [0, vertical, horizontal];
        self
    }

    /// Rounds the output size up: a last window may reach past the end. Default: rounded down.
    #[must_use]
    pub const fn rounding_up(mut self) -> Self {
        self.covers_all = true;
        self
    }

    /// The extents of the window, dilation included, on the last `rank` axes.
    pub(super) fn window_extents(self, rank: usize) -> Shape {
        let axes = 3 - rank..3;
        axes.map(|axis| self.dilation[axis] * (self.kernel[axis] - 1) + 1).collect()
    }

    /// The spatial extents of the output; `None` if the window does not fit.
    pub(super) fn output_extents(self, extents: &[u64]) -> Option<Shape> {
        let axes = (3 - extents.len()..).zip(extents).zip(self.window_extents(extents.len()));
        let one = |((axis, &extent), reach): ((usize, &u64), u64)| {
            let more = if self.covers_all { self.stride[axis] - 1 } else { 0 };
            let room = (extent + 2 * self.pad[axis]).checked_sub(reach)?;
            Some((room + more) / self.stride[axis] + 1)
        };
        axes.map(one).collect()
    }

    /// The spatial extents of the output of a transposed convolution; `None` if nothing is left.
    pub(super) fn spread_extents(self, extents: &[u64]) -> Option<Shape> {
        let axes = (3 - extents.len()..).zip(extents).zip(self.window_extents(extents.len()));
        let one = |((axis, &extent), reach): ((usize, &u64), u64)| {
            ((extent - 1) * self.stride[axis] + reach).checked_sub(2 * self.pad[axis]).filter(|&out| out > 0)
        };
        axes.map(one).collect()
    }
}

/// A convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// The kernel, its stride and its padding.
    pub window: Window,
    /// The number of groups that the channels are divided into.
    pub groups: u64,
    /// Whether it is a transposed convolution.
    pub is_transposed: bool,
}

impl From<Window> for Convolution {
    fn from(window: Window) -> Self {
        Self { window, groups: 1, is_transposed: false }
    }
}

impl Convolution {
    /// Sets the number of groups. Default: 1.
    #[must_use]
    pub const fn with_groups(mut self, groups: u64) -> Self {
        self.groups = groups;
        self
    }

    /// Makes it a transposed convolution. Default: not transposed.
    #[must_use]
    pub const fn transposed(mut self) -> Self {
        self.is_transposed = true;
        self
    }

    /// The shape of the weights.
    pub(super) fn weight_shape(&self, channels: u64, out: u64, rank: usize) -> Shape {
        let [first, second] = if self.is_transposed { [channels, out] } else { [out, channels] };
        let mut shape = vec![first, second / self.groups];
        shape.extend(&self.window.kernel[3 - rank..]);
        shape
    }
}

/// Defines the functions, each with its name.
macro_rules! functions {
    ($(
        $(#[$doc:meta])*
        $function:ident $(($content:ty))? $({ $(#[$field_doc:meta])* $field:ident: $type:ty, })?
            = $name:literal,
    )+) => {
        /// A function that a net may call.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Function {
            $($(#[$doc])* $function $(($content))? $({ $(#[$field_doc])* $field: $type })?,)+
        }

        impl Function {
            /// The function's name in traces and graphs.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    Self::Convolution(Convolution { is_transposed: true, .. }) => "transposed-convolution",
                    $(Self::$function { .. } => $name,)+
                }
            }
        }
    };
}

functions! {
    /// Cross-correlation with weights, and a bias if there is one.
    Convolution(Convolution) = "convolution",
    /// max(x, 0).
    Relu = "relu",
    /// max(x, 0) + a min(x, 0).
    LeakyRelu = "leaky-relu",
    /// 1 / (1 + exp(-x)).
    Sigmoid = "sigmoid",
    /// Hyperbolic tangent.
    Tanh = "tanh",
    /// x times the standard normal distribution function of x.
    Gelu = "gelu",
    /// x times the sigmoid of x.
    Silu = "silu",
    /// Local response normalisation over channels.
    LocalResponseNorm = "local-response-norm",
    /// The maximum of each window.
    MaxPooling(Window) = "max-pooling",
    /// The mean of each window.
    AveragePooling(Window) = "average-pooling",
    /// The same elements in another shape or order; nothing is copied.
    Reshape = "reshape",
    /// A block of the elements that starts at these indices; nothing is copied.
    Slice(Vec<u64>) = "slice",
    /// Matrix product with weights, and a bias if there is one.
    Linear = "linear",
    /// A batch of matrix products, one for each combination of the leading indices.
    MatMul {
        /// Whether the second factor is stored as `[.., N, K]`.
        is_transposed: bool,
    } = "matmul",
    /// Sets random elements to zero (training only).
    Dropout = "dropout",
    /// Normalisation over the batch, with scale and shift.
    BatchNorm = "batch-norm",
    /// Normalisation over the last axis, with scale and shift.
    LayerNorm = "layer-norm",
    /// Division by the root mean square over the last axis, with scale.
    RmsNorm = "rms-norm",
    /// Softmax over the last axis, scaling and masking included.
    Softmax = "softmax",
    /// Rotary position embedding.
    Rotary = "rotary",
    /// Concatenation.
    Concat = "concat",
    /// The sum of two values.
    Add = "add",
    /// The element-wise product of two values.
    Multiply = "multiply",
    /// The product with a constant.
    Scale = "scale",
    /// The row of a table for each index.
    Embedding = "embedding",
    /// The `k` largest elements of each row with their indices, `[rows, 2, k]`.
    TopK = "top-k",
    /// A copy of each row for each expert that `TopK` chose for it, sorted by expert.
    Dispatch = "dispatch",
    /// For each row, the weighted sum of its experts' outputs.
    Combine = "combine",
    /// A recurrent layer with gates over packed sequences, `[tokens, width]`.
    Lstm {
        /// The number of sequences: each has a cell state.
        sequences: u64,
    } = "lstm",
    /// The hidden and cell states after the last token of each sequence, `[N, 2 width]`.
    LstmState = "lstm-state",
    /// Softmax and cross entropy: the loss of a classification.
    SoftmaxCrossEntropy = "softmax-cross-entropy",
    /// The loss of a binary classification with constant labels.
    BinaryCrossEntropy = "binary-cross-entropy",
    /// The share of correct predictions; it has no gradient.
    Accuracy = "accuracy",
}
