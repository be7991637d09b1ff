//! EfficientNet-B0: inverted residuals with squeeze and excitation.
//!
//! # References
//!
//! 1. M. Tan, Q. Le, *EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks*, ICML 2019,
//!    arXiv:1905.11946.
//! 2. J. Hu, L. Shen, G. Sun, *Squeeze-and-Excitation Networks*, CVPR 2018, doi:10.1109/CVPR.2018.00745.
//! 3. torchvision, which publishes parameters and multiply-adds.
//!
//! # Deviations from the paper
//!
//! No stochastic depth: every block runs in training.

use super::mobilenet::depthwise;
use crate::models::net::{Convolution, Function, Net, NetValue, Window};
use crate::models::nets::blocks::{classify, images};
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "efficientnet-b0",
    summary: "EfficientNet-B0",
    input: image(224),
    published: Published::new(Some(5_288_548), Some(772_000_000), "torchvision"),
    build: efficientnet,
}];

/// The stages: expansion, kernel, stride of the first block, output channels, blocks.
const STAGES: [(u64, u64, u64, u64, usize); 7] = [
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
];

fn activated(n: &Net, x: NetValue, out: u64, convolution: impl Into<Convolution>) -> NetValue {
    n.each(Function::Silu, n.batch_norm(n.conv(x, out, convolution)))
}

/// Squeeze and excitation: scales each channel by a factor computed from the means of all channels.
fn excite(n: &Net, x: NetValue, squeezed: u64) -> NetValue {
    let mean = n.global_average_pool(x.clone());
    let h = n.each(Function::Silu, n.conv_bias(mean, squeezed, Window::square(1)));
    let factors = n.each(Function::Sigmoid, n.conv_bias(h, x.channels(), Window::square(1)));
    n.multiply_channels(x, factors)
}

fn block(n: &Net, x: NetValue, (expansion, kernel, stride, out): (u64, u64, u64, u64)) -> NetValue {
    let (from, hidden) = (x.channels(), expansion * x.channels());
    let wide = if expansion == 1 { x.clone() } else { activated(n, x.clone(), hidden, Window::square(1)) };
    let h = activated(n, wide, hidden, depthwise(hidden, kernel, stride));
    let h = n.batch_norm(n.conv(excite(n, h, from / 4), out, Window::square(1)));
    if stride == 1 && from == out { n.add(h, x) } else { h }
}

fn efficientnet(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let mut h = activated(n, x, 32, Window::square(3).with_stride(2).with_padding(1));
    for (expansion, kernel, first, out, blocks) in STAGES {
        for index in 0..blocks {
            h = block(n, h, (expansion, kernel, if index == 0 { first } else { 1 }, out));
        }
    }
    let h = n.global_average_pool(activated(n, h, 1280, Window::square(1)));
    classify(n, n.linear(n.dropout(h), 1000), labels.as_ref())
}
