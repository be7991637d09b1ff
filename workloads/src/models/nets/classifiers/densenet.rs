//! DenseNet-161: each layer reads the concatenated outputs of all earlier layers.
//!
//! # References
//!
//! 1. G. Huang, Z. Liu, L. van der Maaten, K. Weinberger, *Densely Connected Convolutional Networks*, CVPR 2017,
//!    doi:10.1109/CVPR.2017.243.
//! 2. torchvision, which publishes parameters and multiply-adds.
//!
//! Each concatenation is a copy, as in most frameworks: memory grows with the square of the number of layers of a block.

use crate::models::net::{Net, NetValue, Window};
use crate::models::nets::blocks::{classify, images};
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "densenet161",
    summary: "DenseNet-161, with copied concatenations",
    input: image(224),
    published: Published::new(Some(28_681_000), Some(15_456_000_000), "torchvision"),
    build: densenet161,
}];

const GROWTH: u64 = 48;

fn activate(n: &Net, x: NetValue) -> NetValue {
    n.relu(n.batch_norm(x))
}

fn layer(n: &Net, x: NetValue) -> NetValue {
    let h = n.conv(activate(n, x), 4 * GROWTH, Window::square(1));
    n.conv(activate(n, h), GROWTH, Window::square(3).with_padding(1))
}

fn block(n: &Net, x: NetValue, layers: usize) -> NetValue {
    let mut made = vec![layer(n, x.clone())];
    made.insert(0, x);
    for _ in 1..layers {
        let joined = n.concat(made.clone());
        made.push(layer(n, joined));
    }
    n.concat(made)
}

fn halve(n: &Net, x: NetValue) -> NetValue {
    let out = x.channels() / 2;
    n.average_pool(n.conv(activate(n, x), out, Window::square(1)), Window::square(2).with_stride(2))
}

fn densenet161(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let h = activate(n, n.conv(x, 2 * GROWTH, Window::square(7).with_stride(2).with_padding(3)));
    let mut h = n.max_pool(h, Window::square(3).with_stride(2).with_padding(1));
    for layers in [6, 12, 36] {
        h = halve(n, block(n, h, layers));
    }
    h = n.global_average_pool(activate(n, block(n, h, 24)));
    classify(n, n.linear(h, 1000), labels.as_ref())
}
