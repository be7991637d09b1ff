//! Residual nets with bottlenecks: ResNet-50 of Chainer, and torchvision's ResNets, a wide one and a grouped one among
//! them; and a ResNeXt with three-dimensional convolutions, for video clips.
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
//! 6. K. Hara, H. Kataoka, Y. Satoh, *Can Spatiotemporal 3D CNNs Retrace the History of 2D CNNs and ImageNet?*, CVPR
//!    2018, doi:10.1109/CVPR.2018.00685; 16 frames of 112 x 112, 400 classes, shortcuts of type B (convolutions).

use crate::models::net::{Convolution, Net, NetValue, Window};
use crate::models::nets::blocks::{classify, images};
use crate::models::nets::model::{Input, Model, Published, Sizes, image};

macro_rules! model {
    ($name:literal, $summary:literal, $layout:expr, $parameters:literal, $flops:literal) => {
        Model {
            name: $name,
            summary: $summary,
            input: image(224),
            published: Published::new(Some($parameters), Some($flops), "torchvision"),
            build: |n, sizes| resnet(n, sizes, $layout),
        }
    };
}

pub(crate) static MODELS: [Model; 7] = [
    Model {
        name: "resnet50",
        summary: "ResNet-50 as in Chainer's example",
        input: image(224),
        published: Published {
            differs: "64 parameters more: Chainer's first convolution has a bias",
            ..Published::new(Some(25_557_032), None, "torchvision")
        },
        build: |n, sizes| resnet(n, sizes, Layout { is_chainer: true, ..Layout::from_counts([3, 4, 6, 3]) }),
    },
    model!(
        "resnet50-v1-5",
        "ResNet-50 with strides in the 3 x 3 convolutions",
        Layout::from_counts([3, 4, 6, 3]),
        25_557_032,
        8_178_000_000
    ),
    model!("resnet101", "ResNet-101", Layout::from_counts([3, 4, 23, 3]), 44_549_160, 15_602_000_000),
    model!("resnet152", "ResNet-152", Layout::from_counts([3, 8, 36, 3]), 60_192_808, 23_028_000_000),
    model!(
        "wide-resnet50-2",
        "Wide ResNet-50-2: bottlenecks twice as wide",
        Layout { width: 128, ..Layout::from_counts([3, 4, 6, 3]) },
        68_883_240,
        22_796_000_000
    ),
    model!(
        "resnext101-32x8d",
        "ResNeXt-101 32x8d: 32 groups of 8 channels",
        Layout { width: 256, groups: 32, ..Layout::from_counts([3, 4, 23, 3]) },
        88_791_336,
        32_828_000_000
    ),
    Model {
        name: "resnext101-3d",
        summary: "3D ResNeXt-101 for video clips, 32 groups",
        input: Input::Image { channels: 3, extent: 112, frames: FRAMES },
        published: Published::NOTHING,
        build: resnext_3d,
    },
];

const FRAMES: u64 = 16;

/// The layout of a net.
#[derive(Clone, Copy)]
struct Layout {
    /// Bottlenecks in each of the four stages.
    counts: [usize; 4],
    /// Channels of the 3 x 3 convolutions of the first stage.
    width: u64,
    groups: u64,
    /// A window of as many axes as the inputs have.
    window: fn(u64) -> Window,
    is_chainer: bool,
}

impl Layout {
    const fn from_counts(counts: [usize; 4]) -> Self {
        Self { counts, width: 64, groups: 1, window: Window::square, is_chainer: false }
    }

    /// A bottleneck. In the first one of a stage, which has a stride of its own, the shortcut is a convolution.
    fn bottleneck(self, n: &Net, x: &NetValue, [hidden, out]: [u64; 2], first: Option<u64>) -> NetValue {
        let (point, stride) = ((self.window)(1), first.unwrap_or(1));
        let strides = if self.is_chainer { (stride, 1) } else { (1, stride) };
        let three = (self.window)(3).with_padding(1).with_stride(strides.1);
        let three = Convolution::from(three).with_groups(self.groups);
        let mut h = n.relu(n.batch_norm(n.conv(x.clone(), hidden, point.with_stride(strides.0))));
        h = n.relu(n.batch_norm(n.conv(h.clone(), hidden, three)));
        h = n.batch_norm(n.conv(h.clone(), out, point));
        let shortcut = match first {
            Some(stride) => n.batch_norm(n.conv(x.clone(), out, point.with_stride(stride))),
            None => x.clone(),
        };
        n.relu(n.add(h.clone(), shortcut.clone()))
    }

    fn stages(self, n: &Net, mut h: NetValue) -> NetValue {
        for index in 0..self.counts.len() {
            h = self.stage(n, &h, index);
        }
        h
    }

    fn stage(self, n: &Net, x: &NetValue, index: usize) -> NetValue {
        let (scale, stride) = (1 << index, if index == 0 { 1 } else { 2 });
        let channels = [self.width * scale, 256 * scale];
        let mut h = self.bottleneck(n, x, channels, Some(stride));
        for _ in 1..self.counts[index] {
            h = self.bottleneck(n, &h, channels, None);
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
    h = layout.stages(n, h);
    h = n.global_average_pool(h.clone());
    h = n.linear(h.clone(), 1000);
    classify(n, h, labels.as_ref())
}

fn resnext_3d(n: &Net, sizes: Sizes) -> NetValue {
    let x = n.new_input(vec![sizes.batch, 3, FRAMES, sizes.extent, sizes.extent]);
    let labels = n.is_scored().then(|| n.new_input(vec![sizes.batch]));
    let h = n.conv(x, 64, Window::cube(7).with_padding(3).with_strides([1, 2, 2]));
    let h = n.max_pool(n.relu(n.batch_norm(h)), Window::cube(3).with_padding(1).with_stride(2));
    let layout =
        Layout { width: 128, groups: 32, window: Window::cube, ..Layout::from_counts([3, 4, 23, 3]) };
    let h = layout.stages(n, h);
    classify(n, n.linear(n.global_average_pool(h), 400), labels.as_ref())
}
