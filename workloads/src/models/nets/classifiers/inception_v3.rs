//! Inception-v3, in training with its auxiliary classifier.
//!
//! # References
//!
//! 1. C. Szegedy, V. Vanhoucke, S. Ioffe, J. Shlens, Z. Wojna, *Rethinking the Inception Architecture for Computer
//!    Vision*, CVPR 2016, doi:10.1109/CVPR.2016.308.
//! 2. torchvision, which publishes parameters (with the auxiliary classifier) and multiply-adds (without it).

use super::inception_resnet::{Branch, branches, chain, halve, layer, narrow, point, tall, three, wide};
use crate::models::net::{Net, NetValue, Window};
use crate::models::nets::blocks::images;
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "inception-v3",
    summary: "Inception-v3 with an auxiliary classifier in training",
    input: image(299),
    published: Published::new(Some(27_161_264), Some(11_426_000_000), "torchvision"),
    build: inception_v3,
}];

/// Parallel branches, and one after average pooling.
fn module(n: &Net, x: &NetValue, all: &[Branch<'_>], pooled: u64) -> NetValue {
    let mut made: Vec<NetValue> = all.iter().map(|layers| chain(n, x, layers)).collect();
    let mean = n.average_pool(x.clone(), Window::square(3).with_padding(1));
    made.push(layer(n, &mean, point(pooled)));
    n.concat(made)
}

fn module_a(n: &Net, x: &NetValue, pooled: u64) -> NetValue {
    let five = (64, Window::square(5).with_padding(2));
    module(n, x, &[&[point(64)], &[point(48), five], &[point(64), three(96), three(96)]], pooled)
}

fn module_c(n: &Net, x: &NetValue, hidden: u64) -> NetValue {
    let twice: Branch<'_> = &[point(hidden), tall(hidden, 7), wide(hidden, 7), tall(hidden, 7), wide(192, 7)];
    module(n, x, &[&[point(192)], &[point(hidden), wide(hidden, 7), tall(192, 7)], twice], 192)
}

/// A 1 x 3 and a 3 x 1 convolution in parallel.
fn forked(n: &Net, x: &NetValue) -> NetValue {
    branches(n, x, &[&[wide(384, 3)], &[tall(384, 3)]], false)
}

fn module_e(n: &Net, x: &NetValue) -> NetValue {
    let one = chain(n, x, &[point(320)]);
    let two = forked(n, &chain(n, x, &[point(384)]));
    let four = forked(n, &chain(n, x, &[point(448), three(384)]));
    let mean = n.average_pool(x.clone(), Window::square(3).with_padding(1));
    n.concat(vec![one, two, four, layer(n, &mean, point(192))])
}

fn auxiliary(n: &Net, x: NetValue, labels: &NetValue) -> NetValue {
    let h = n.average_pool(x, Window::square(5).with_stride(3));
    let h = chain(n, &h, &[point(128), (768, Window::square(5))]);
    n.scale(n.softmax_cross_entropy(n.linear(n.global_average_pool(h), 1000), labels))
}

fn inception_v3(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let pool = Window::square(3).with_stride(2);
    let h = chain(n, &x, &[halve(32), narrow(32), three(64)]);
    let h = chain(n, &n.max_pool(h, pool), &[point(80), narrow(192)]);
    let mut h = n.max_pool(h, pool);
    for pooled in [32, 64, 64] {
        h = module_a(n, &h, pooled);
    }
    h = branches(n, &h, &[&[halve(384)], &[point(64), three(96), halve(96)]], true);
    for hidden in [128, 160, 160, 192] {
        h = module_c(n, &h, hidden);
    }
    let second = labels.as_ref().map(|labels| auxiliary(n, h.clone(), labels));
    let seven: Branch<'_> = &[point(192), wide(192, 7), tall(192, 7), halve(192)];
    h = branches(n, &h, &[&[point(192), halve(320)], seven], true);
    for _ in 0..2 {
        h = module_e(n, &h);
    }
    h = n.linear(n.dropout(n.global_average_pool(h)), 1000);
    let (Some(labels), Some(second)) = (&labels, second) else { return h };
    let loss = n.add(n.softmax_cross_entropy(h, labels), second);
    n.report_values(&[&loss]);
    loss
}
