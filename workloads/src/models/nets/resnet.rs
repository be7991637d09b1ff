//! Residual nets with bottlenecks: 50, 101 and 152 layers.
//!
//! # References
//!
//! 1. K. He, X. Zhang, S. Ren, J. Sun, *Deep Residual Learning for Image Recognition*, CVPR 2016,
//!    doi:10.1109/CVPR.2016.90.
//! 2. Chainer 3.0.0rc1, `examples/imagenet/resnet50.py`: a stage's stride is in its first 1 x 1 convolution.

use super::classify;
use crate::models::net::{Net, Value, Window};

/// Extents of an input image.
pub const INPUT: u64 = 224;

/// Bottlenecks in each of the four stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth(pub [usize; 4]);

/// 50 layers.
pub const RESNET_50: Depth = Depth([3, 4, 6, 3]);
/// 101 layers.
pub const RESNET_101: Depth = Depth([3, 4, 23, 3]);
/// 152 layers.
pub const RESNET_152: Depth = Depth([3, 8, 36, 3]);

/// The first of a stage: its shortcut is a convolution.
fn widen(n: &Net, x: &Value, hidden: u64, out: u64, stride: u64) -> Value {
    let point = Window::square(1);
    let mut h = n.relu(n.batch_norm(n.conv(x.clone(), hidden, point.stride(stride))));
    h = n.relu(n.batch_norm(n.conv(h.clone(), hidden, Window::square(3).pad(1))));
    h = n.batch_norm(n.conv(h.clone(), out, point));
    let shortcut = n.batch_norm(n.conv(x.clone(), out, point.stride(stride)));
    n.relu(n.add(h.clone(), shortcut.clone()))
}

fn bottleneck(n: &Net, x: &Value, hidden: u64) -> Value {
    let point = Window::square(1);
    let mut h = n.relu(n.batch_norm(n.conv(x.clone(), hidden, point)));
    h = n.relu(n.batch_norm(n.conv(h.clone(), hidden, Window::square(3).pad(1))));
    h = n.batch_norm(n.conv(h.clone(), x.shape()[1], point));
    n.relu(n.add(h.clone(), x.clone()))
}

fn stage(n: &Net, x: &Value, count: usize, hidden: u64, stride: u64) -> Value {
    let mut h = widen(n, x, hidden, 4 * hidden, stride);
    for _ in 1..count {
        h = bottleneck(n, &h, hidden);
    }
    h
}

/// The net.
pub fn resnet(n: &Net, x: &Value, labels: &Value, Depth(counts): Depth) -> Value {
    let mut h = n.batch_norm(n.conv_bias(x.clone(), 64, Window::square(7).stride(2).pad(3)));
    h = n.max_pool(n.relu(h.clone()), Window::square(3).stride(2).covering());
    for ((count, hidden), stride) in counts.into_iter().zip([64, 128, 256, 512]).zip([1, 2, 2, 2]) {
        h = stage(n, &h, count, hidden, stride);
    }
    h = n.average_pool(h.clone(), Window::square(7));
    h = n.linear(h.clone(), 1000);
    classify(n, h, labels)
}
