//! GoogLeNet (Inception v1) with its two auxiliary classifiers in training.
//!
//! # References
//!
//! 1. C. Szegedy et al., *Going Deeper with Convolutions*, CVPR 2015, doi:10.1109/CVPR.2015.7298594.
//! 2. Chainer 3.0.0rc1, `examples/imagenet/googlenet.py`.

use crate::models::net::{Net, NetValue, Window};
use crate::models::nets::blocks::images;
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "googlenet",
    summary: "GoogLeNet with two auxiliary classifiers in training, as in Chainer's example",
    input: image(224),
    published: Published::new(Some(13_378_280), None, "the weights of Caffe's bvlc_googlenet"),
    build: googlenet,
}];

/// The channels of a module: 1x1; 1x1 before 3x3, 3x3; 1x1 before 5x5, 5x5; 1x1 after pooling.
type Channels = [u64; 6];

fn inception(n: &Net, x: &NetValue, [one, to_three, three, to_five, five, pooled]: Channels) -> NetValue {
    let point = Window::square(1);
    let a = n.conv_bias(x.clone(), one, point);
    let b = n.relu(n.conv_bias(x.clone(), to_three, point));
    let b = n.conv_bias(b, three, Window::square(3).with_padding(1));
    let c = n.relu(n.conv_bias(x.clone(), to_five, point));
    let c = n.conv_bias(c, five, Window::square(5).with_padding(2));
    let d = n.max_pool(x.clone(), Window::square(3).with_padding(1).rounding_up());
    let d = n.conv_bias(d, pooled, point);
    n.relu(n.concat(vec![a.clone(), b.clone(), c.clone(), d.clone()]))
}

/// An auxiliary classifier. `l` is the pooled value, and then holds each later one, as in Chainer's example.
fn auxiliary(n: &Net, l: &mut NetValue, labels: &NetValue) -> NetValue {
    *l = n.relu(n.conv_bias(l.clone(), 128, Window::square(1)));
    *l = n.relu(n.linear(l.clone(), 1024));
    *l = n.linear(l.clone(), 1000);
    n.softmax_cross_entropy(l.clone(), labels)
}

fn googlenet(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let labels = labels.as_ref();
    let pool = Window::square(3).with_stride(2).rounding_up();
    let middle = Window::square(5).with_stride(3);
    let mut h = n.relu(n.conv_bias(x, 64, Window::square(7).with_stride(2).with_padding(3)));
    h = n.lrn(n.max_pool(h.clone(), pool));
    h = n.relu(n.conv_bias(h.clone(), 64, Window::square(1)));
    h = n.relu(n.conv_bias(h.clone(), 192, Window::square(3).with_padding(1)));
    h = n.max_pool(n.lrn(h.clone()), pool);
    h = inception(n, &h, [64, 96, 128, 16, 32, 32]);
    h = inception(n, &h, [128, 128, 192, 32, 96, 64]);
    h = n.max_pool(h.clone(), pool);
    h = inception(n, &h, [192, 96, 208, 16, 48, 64]);
    let mut l = None;
    let first = labels.map(|labels| auxiliary(n, l.insert(n.average_pool(h.clone(), middle)), labels));
    h = inception(n, &h, [160, 112, 224, 24, 64, 64]);
    h = inception(n, &h, [128, 128, 256, 24, 64, 64]);
    h = inception(n, &h, [112, 144, 288, 32, 64, 64]);
    let second = labels.map(|labels| auxiliary(n, l.insert(n.average_pool(h.clone(), middle)), labels));
    h = inception(n, &h, [256, 160, 320, 32, 128, 128]);
    h = n.max_pool(h.clone(), pool);
    h = inception(n, &h, [256, 160, 320, 32, 128, 128]);
    h = inception(n, &h, [384, 192, 384, 48, 128, 128]);
    h = n.global_average_pool(h.clone());
    h = n.linear(n.dropout(h.clone()), 1000);
    let (Some(labels), Some(first), Some(second)) = (labels, first, second) else { return h };
    let third = n.softmax_cross_entropy(h.clone(), labels);
    let both = n.scale(n.add(first.clone(), second.clone()));
    let loss = n.add(both, third.clone());
    let accuracy = n.accuracy(h.clone(), labels);
    n.report_values(&[&loss, &first, &second, &third, &accuracy]);
    loss
}
