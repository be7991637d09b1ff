//! AlexNet: the net of 2012 in one tower, and the smaller one of 2014.
//!
//! # References
//!
//! 1. A. Krizhevsky, I. Sutskever, G. E. Hinton, *ImageNet Classification with Deep Convolutional Neural Networks*,
//!    NIPS 2012.
//! 2. Chainer 3.0.0rc1, `examples/imagenet/alex.py`.
//! 3. A. Krizhevsky, *One weird trick for parallelizing convolutional neural networks*, 2014, arXiv:1404.5997; widths as
//!    in torchvision, which publishes 61,100,840 parameters and 0.714 G multiply-adds.
//!
//! # Deviations from the paper
//!
//! `alexnet` does not divide its convolutions between two devices: it has 62,378,344 parameters instead of 60,965,224.
//! The first fully connected layer grows with the input.

use crate::models::net::{Net, NetValue, Window};
use crate::models::nets::blocks::{classify, images};
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 2] = [
    Model {
        name: "alexnet",
        summary: "AlexNet in one tower, as in Chainer's example",
        input: image(227),
        published: Published::new(Some(62_378_344), None, "imgclsmob, netscope (one tower)"),
        build: alexnet,
    },
    Model {
        name: "alexnet-owt",
        summary: "AlexNet of 2014 (one weird trick), without normalisation",
        input: image(224),
        published: Published::new(Some(61_100_840), Some(1_428_000_000), "torchvision"),
        build: one_weird_trick,
    },
];

fn alexnet(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let pool = Window::square(3).with_stride(2).rounding_up();
    let three = Window::square(3).with_padding(1);
    let h = n.conv_bias(x, 96, Window::square(11).with_stride(4));
    let mut h = n.max_pool(n.lrn(n.relu(h)), pool);
    h = n.max_pool(n.lrn(n.relu(n.conv_bias(h.clone(), 256, Window::square(5).with_padding(2)))), pool);
    h = n.relu(n.conv_bias(h.clone(), 384, three));
    h = n.relu(n.conv_bias(h.clone(), 384, three));
    h = n.max_pool(n.relu(n.conv_bias(h.clone(), 256, three)), pool);
    h = n.dropout(n.relu(n.linear(h.clone(), 4096)));
    h = n.dropout(n.relu(n.linear(h.clone(), 4096)));
    h = n.linear(h.clone(), 1000);
    classify(n, h, labels.as_ref())
}

fn one_weird_trick(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let pool = Window::square(3).with_stride(2);
    let three = Window::square(3).with_padding(1);
    let h = n.relu(n.conv_bias(x, 64, Window::square(11).with_stride(4).with_padding(2)));
    let h = n.relu(n.conv_bias(n.max_pool(h, pool), 192, Window::square(5).with_padding(2)));
    let h = n.relu(n.conv_bias(n.max_pool(h, pool), 384, three));
    let h = n.relu(n.conv_bias(h, 256, three));
    let h = n.max_pool(n.relu(n.conv_bias(h, 256, three)), pool);
    let h = n.relu(n.linear(n.dropout(h), 4096));
    let h = n.relu(n.linear(n.dropout(h), 4096));
    classify(n, n.linear(h, 1000), labels.as_ref())
}
