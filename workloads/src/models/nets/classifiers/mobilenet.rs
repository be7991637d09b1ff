//! MobileNet-V2: inverted residuals with depthwise convolutions.
//!
//! # References
//!
//! 1. M. Sandler, A. Howard, M. Zhu, A. Zhmoginov, L.-C. Chen, *MobileNetV2: Inverted Residuals and Linear Bottlenecks*,
//!    CVPR 2018, doi:10.1109/CVPR.2018.00474.
//! 2. torchvision, which publishes parameters and multiply-adds.
//!
//! # Deviations from the paper
//!
//! A ReLU stands for ReLU6: the two take the same memory.

use crate::models::net::{Convolution, Net, NetValue, Window};
use crate::models::nets::blocks::{classify, images};
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "mobilenet-v2",
    summary: "MobileNet-V2, width 1.0",
    input: image(224),
    published: Published::new(Some(3_504_872), Some(602_000_000), "torchvision"),
    build: mobilenet,
}];

/// The stages: expansion, output channels, blocks, stride of the first block.
const STAGES: [(u64, u64, usize, u64); 7] = [
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
];

/// A convolution of each channel on its own, with padding that keeps the extents at stride 1.
pub(crate) fn depthwise(channels: u64, kernel: u64, stride: u64) -> Convolution {
    Convolution::from(Window::square(kernel).with_padding(kernel / 2).with_stride(stride))
        .with_groups(channels)
}

fn normal(n: &Net, x: NetValue, out: u64, convolution: impl Into<Convolution>) -> NetValue {
    n.batch_norm(n.conv(x, out, convolution))
}

fn block(n: &Net, x: NetValue, expansion: u64, out: u64, stride: u64) -> NetValue {
    let (from, hidden) = (x.channels(), expansion * x.channels());
    let wide =
        if expansion == 1 { x.clone() } else { n.relu(normal(n, x.clone(), hidden, Window::square(1))) };
    let h = n.relu(normal(n, wide, hidden, depthwise(hidden, 3, stride)));
    let h = normal(n, h, out, Window::square(1));
    if stride == 1 && from == out { n.add(x, h) } else { h }
}

fn mobilenet(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let mut h = n.relu(normal(n, x, 32, Window::square(3).with_stride(2).with_padding(1)));
    for (expansion, out, blocks, stride) in STAGES {
        for index in 0..blocks {
            h = block(n, h, expansion, out, if index == 0 { stride } else { 1 });
        }
    }
    let h = n.global_average_pool(n.relu(normal(n, h, 1280, Window::square(1))));
    classify(n, n.linear(n.dropout(h), 1000), labels.as_ref())
}
