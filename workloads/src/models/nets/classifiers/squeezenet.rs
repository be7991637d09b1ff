//! SqueezeNet 1.0 and 1.1.
//!
//! # References
//!
//! 1. F. Iandola et al., *SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size*, 2016,
//!    arXiv:1602.07360.
//! 2. torchvision, which publishes parameters and multiply-adds.

use crate::models::net::{Net, NetValue, Window};
use crate::models::nets::blocks::{classify, images};
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 2] = [
    Model {
        name: "squeezenet1-0",
        summary: "SqueezeNet 1.0",
        input: image(224),
        published: Published::new(Some(1_248_424), Some(1_638_000_000), "torchvision"),
        build: |n, sizes| squeezenet(n, sizes, (96, 7), &[3, 7]),
    },
    Model {
        name: "squeezenet1-1",
        summary: "SqueezeNet 1.1, with earlier pooling",
        input: image(224),
        published: Published::new(Some(1_235_496), Some(698_000_000), "torchvision"),
        build: |n, sizes| squeezenet(n, sizes, (64, 3), &[2, 4]),
    },
];

/// The channels of a fire module: after the squeeze, and in each half of the expansion.
const MODULES: [(u64, u64); 8] =
    [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)];

fn fire(n: &Net, x: NetValue, (squeezed, expanded): (u64, u64)) -> NetValue {
    let x = n.relu(n.conv_bias(x, squeezed, Window::square(1)));
    let one = n.relu(n.conv_bias(x.clone(), expanded, Window::square(1)));
    let three = n.relu(n.conv_bias(x, expanded, Window::square(3).with_padding(1)));
    n.concat(vec![one, three])
}

/// `pooled` has the indices of the modules that follow a pooling.
fn squeezenet(n: &Net, sizes: Sizes, (out, window): (u64, u64), pooled: &[usize]) -> NetValue {
    let (x, labels) = images(n, sizes);
    let pool = Window::square(3).with_stride(2).rounding_up();
    let mut h = n.max_pool(n.relu(n.conv_bias(x, out, Window::square(window).with_stride(2))), pool);
    for (index, module) in MODULES.into_iter().enumerate() {
        if pooled.contains(&index) {
            h = n.max_pool(h, pool);
        }
        h = fire(n, h, module);
    }
    h = n.relu(n.conv_bias(n.dropout(h), 1000, Window::square(1)));
    h = n.global_average_pool(h);
    let batch = h.shape()[0];
    h = n.reshape(h, vec![batch, 1000]);
    classify(n, h, labels.as_ref())
}
