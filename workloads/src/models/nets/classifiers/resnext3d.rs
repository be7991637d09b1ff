//! ResNeXt-101 with three-dimensional convolutions, for video clips.
//!
//! # References
//!
//! 1. K. Hara, H. Kataoka, Y. Satoh, *Can Spatiotemporal 3D CNNs Retrace the History of 2D CNNs and ImageNet?*, CVPR
//!    2018, doi:10.1109/CVPR.2018.00685; 16 frames of 112 x 112, 400 classes, shortcuts of type B (convolutions).

use crate::models::net::{Convolution, Net, NetValue, Window};
use crate::models::nets::blocks::classify;
use crate::models::nets::model::{Input, Model, Published, Sizes};

const FRAMES: u64 = 16;

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "resnext101-3d",
    summary: "3D ResNeXt-101 for video clips, 32 groups",
    input: Input::Image { channels: 3, extent: 112, frames: FRAMES },
    published: Published::NOTHING,
    build: resnext,
}];

fn bottleneck(n: &Net, x: &NetValue, hidden: u64, stride: u64, is_first: bool) -> NetValue {
    let (point, three) = (Window::cube(1), Window::cube(3).with_padding(1).with_stride(stride));
    let h = n.relu(n.batch_norm(n.conv(x.clone(), hidden, point)));
    let h = n.relu(n.batch_norm(n.conv(h, hidden, Convolution::from(three).with_groups(32))));
    let h = n.batch_norm(n.conv(h, 2 * hidden, point));
    let shortcut = if is_first {
        n.batch_norm(n.conv(x.clone(), 2 * hidden, point.with_stride(stride)))
    } else {
        x.clone()
    };
    n.relu(n.add(h, shortcut))
}

fn resnext(n: &Net, sizes: Sizes) -> NetValue {
    let x = n.new_input(vec![sizes.batch, 3, FRAMES, sizes.extent, sizes.extent]);
    let labels = n.is_scored().then(|| n.new_input(vec![sizes.batch]));
    let h = n.conv(x, 64, Window::cube(7).with_padding(3).with_strides([1, 2, 2]));
    let mut h = n.max_pool(n.relu(n.batch_norm(h)), Window::cube(3).with_padding(1).with_stride(2));
    for ((count, hidden), stride) in [3, 4, 23, 3].into_iter().zip([128, 256, 512, 1024]).zip([1, 2, 2, 2]) {
        for index in 0..count {
            let is_first = index == 0;
            h = bottleneck(n, &h, hidden, if is_first { stride } else { 1 }, is_first);
        }
    }
    classify(n, n.linear(n.global_average_pool(h), 400), labels.as_ref())
}
