//! Residual nets with bottlenecks: ResNet-50 of Chainer, and torchvision's ResNets, a wide one and a grouped one among
//! them.
//!
//! # References
//!
//! 1. K. He, X. Zhang, S. Ren, J. Sun, *Deep Residual Learning for Image Recognition*, CVPR 2016,
//!    doi:10.1109/CVPR.2016.90.
//! 2. Chainer 3.0.0rc1, `examples/imagenet/resnet50.py`: the stride of a stage is in its first 1 x 1 convolution, and the
//!    first convolution of the net has a bias: 64 parameters more than the published 25,557,032.
//! 3. S. Xie, R. Girshick, P. Dollár, Z. Tu, K. He, *Aggregated Residual Transformations for Deep Neural Networks*,
//!    CVPR 2017, doi:10.1109/CVPR.2017.634.
//! 4. S. Zagoruyko, N. Komodakis, *Wide Residual Networks*, BMVC 2016.
//! 5. torchvision, which publishes parameters and multiply-adds: the stride is in the 3 x 3 convolution ("v1.5").

use crate::models::net::{Convolution, Net, NetValue, Window};
use crate::models::nets::blocks::{classify, images};
use crate::models::nets::model::{Model, Published, Sizes, image};

macro_rules! model {
    ($name:literal, $summary:literal, $layout:expr, $parameters:literal, $flops:literal, $source:literal) => {
        Model {
            name: $name,
            summary: $summary,
            input: image(224),
            published: Published::new(Some($parameters), Some($flops), $source),
            build: |n, sizes| resnet(n, sizes, $layout),
        }
    };
}

pub(crate) static MODELS: [Model; 6] = [
    Model {
        name: "resnet50",
        summary: "ResNet-50 as in Chainer's example",
        input: image(224),
        published: Published::new(Some(25_557_032), None, "torchvision")
            .with_difference("64 parameters more: Chainer's first convolution has a bias"),
        build: |n, sizes| resnet(n, sizes, Layout { is_chainer: true, ..Layout::from_counts([3, 4, 6, 3]) }),
    },
    model!(
        "resnet50-v1-5",
        "ResNet-50 with strides in the 3 x 3 convolutions",
        Layout::from_counts([3, 4, 6, 3]),
        25_557_032,
        8_178_000_000,
        "torchvision"
    ),
    model!(
        "resnet101",
        "ResNet-101",
        Layout::from_counts([3, 4, 23, 3]),
        44_549_160,
        15_602_000_000,
        "torchvision"
    ),
    model!(
        "resnet152",
        "ResNet-152",
        Layout::from_counts([3, 8, 36, 3]),
        60_192_808,
        23_028_000_000,
        "torchvision"
    ),
    model!(
        "wide-resnet50-2",
        "Wide ResNet-50-2: bottlenecks twice as wide",
        Layout { width: 128, ..Layout::from_counts([3, 4, 6, 3]) },
        68_883_240,
        22_796_000_000,
        "torchvision"
    ),
    model!(
        "resnext101-32x8d",
        "ResNeXt-101 32x8d: 32 groups of 8 channels",
        Layout { width: 256, groups: 32, ..Layout::from_counts([3, 4, 23, 3]) },
        88_791_336,
        32_828_000_000,
        "torchvision"
    ),
];

/// The layout of a net.
#[derive(Clone, Copy)]
struct Layout {
    /// Bottlenecks in each of the four stages.
    counts: [usize; 4],
    /// Channels of the 3 x 3 convolutions of the first stage.
    width: u64,
    groups: u64,
    is_chainer: bool,
}

impl Layout {
    const fn from_counts(counts: [usize; 4]) -> Self {
        Self { counts, width: 64, groups: 1, is_chainer: false }
    }

    /// The first two convolutions of a bottleneck with a stride: 1 x 1, then 3 x 3.
    fn bottleneck_convolutions(self, stride: u64) -> (Window, Convolution) {
        let strides = if self.is_chainer { (stride, 1) } else { (1, stride) };
        let three = Window::square(3).with_padding(1).with_stride(strides.1);
        (Window::square(1).with_stride(strides.0), Convolution::from(three).with_groups(self.groups))
    }

    /// The first bottleneck of a stage, whose shortcut is a convolution.
    fn widening_bottleneck(self, n: &Net, x: &NetValue, hidden: u64, out: u64, stride: u64) -> NetValue {
        let point = Window::square(1);
        let (first, three) = self.bottleneck_convolutions(stride);
        let mut h = n.relu(n.batch_norm(n.conv(x.clone(), hidden, first)));
        h = n.relu(n.batch_norm(n.conv(h.clone(), hidden, three)));
        h = n.batch_norm(n.conv(h.clone(), out, point));
        let shortcut = n.batch_norm(n.conv(x.clone(), out, point.with_stride(stride)));
        n.relu(n.add(h.clone(), shortcut.clone()))
    }

    fn bottleneck(self, n: &Net, x: &NetValue, hidden: u64) -> NetValue {
        let (point, three) = self.bottleneck_convolutions(1);
        let mut h = n.relu(n.batch_norm(n.conv(x.clone(), hidden, point)));
        h = n.relu(n.batch_norm(n.conv(h.clone(), hidden, three)));
        h = n.batch_norm(n.conv(h.clone(), x.channels(), point));
        n.relu(n.add(h.clone(), x.clone()))
    }

    fn stage(self, n: &Net, x: &NetValue, index: usize) -> NetValue {
        let (scale, stride) = (1 << index, if index == 0 { 1 } else { 2 });
        let (hidden, out) = (self.width * scale, 256 * scale);
        let mut h = self.widening_bottleneck(n, x, hidden, out, stride);
        for _ in 1..self.counts[index] {
            h = self.bottleneck(n, &h, hidden);
        }
        h
    }
}

fn resnet(n: &Net, sizes: Sizes, layout: Layout) -> NetValue {
    let (x, labels) = images(n, sizes);
    let first = Window::square(7).with_stride(2).with_padding(3);
    let (conv, pool) = if layout.is_chainer {
        (n.conv_bias(x, 64, first), Window::square(3).with_stride(2).rounding_up())
    } else {
        (n.conv(x, 64, first), Window::square(3).with_stride(2).with_padding(1))
    };
    let mut h = n.batch_norm(conv);
    h = n.max_pool(n.relu(h.clone()), pool);
    for index in 0..layout.counts.len() {
        h = layout.stage(n, &h, index);
    }
    h = n.global_average_pool(h.clone());
    h = n.linear(h.clone(), 1000);
    classify(n, h, labels.as_ref())
}
