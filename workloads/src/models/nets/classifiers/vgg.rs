//! VGG-16.
//!
//! # References
//!
//! 1. K. Simonyan, A. Zisserman, *Very Deep Convolutional Networks for Large-Scale Image Recognition*, ICLR 2015,
//!    arXiv:1409.1556, configuration D.
//! 2. torchvision, which publishes parameters and multiply-adds.
//!
//! The first fully connected layer grows with the input.

use crate::models::net::{Net, NetValue, Window};
use crate::models::nets::blocks::{classify, images};
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "vgg16",
    summary: "VGG-16, configuration D",
    input: image(224),
    published: Published::new(Some(138_357_544), Some(30_940_000_000), "the paper, torchvision"),
    build: vgg16,
}];

fn vgg16(n: &Net, sizes: Sizes) -> NetValue {
    let (mut h, labels) = images(n, sizes);
    for (count, out) in [(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)] {
        for _ in 0..count {
            h = n.relu(n.conv_bias(h, out, Window::square(3).with_padding(1)));
        }
        h = n.max_pool(h, Window::square(2).with_stride(2));
    }
    for _ in 0..2 {
        h = n.dropout(n.relu(n.linear(h, 4096)));
    }
    classify(n, n.linear(h, 1000), labels.as_ref())
}
