//! Inception nets with residual connections: v1, v2 as in the paper, and v2 as in TF-slim.
//!
//! A convolution has no bias, and batch normalisation and a ReLU follow it. The output of a module is a 1 x 1 convolution
//! with a bias, scaled by a constant, plus the module's input.
//!
//! # References
//!
//! 1. C. Szegedy, S. Ioffe, V. Vanhoucke, A. Alemi, *Inception-v4, Inception-ResNet and the Impact of Residual
//!    Connections on Learning*, AAAI 2017.
//! 2. TensorFlow models, `research/slim/nets/inception_resnet_v2.py`.

use crate::models::net::{Net, NetValue, Window};
use crate::models::nets::blocks::{classify, images};
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 3] = [
    Model {
        name: "inception-resnet-v1",
        summary: "Inception-ResNet-v1 as in the paper: 5, 10 and 5 modules",
        input: image(299),
        published: Published::NOTHING,
        build: v1,
    },
    Model {
        name: "inception-resnet-v2",
        summary: "Inception-ResNet-v2 as in TF-slim: 10, 20 and 10 modules",
        input: image(299),
        published: Published::new(Some(55_843_464), None, "timm"),
        build: v2,
    },
    Model {
        name: "inception-resnet-v2-published",
        summary: "Inception-ResNet-v2 as in the paper: the stem of Inception-v4; 5, 10 and 5 modules",
        input: image(299),
        published: Published::NOTHING,
        build: v2_published,
    },
];

/// A convolution: output channels and window.
pub(crate) type Layer = (u64, Window);

/// A branch: consecutive convolutions.
pub(crate) type Branch<'a> = &'a [Layer];

pub(crate) const fn point(out: u64) -> Layer {
    (out, Window::square(1))
}

pub(crate) const fn three(out: u64) -> Layer {
    (out, Window::square(3).with_padding(1))
}

pub(crate) const fn narrow(out: u64) -> Layer {
    (out, Window::square(3))
}

pub(crate) const fn halve(out: u64) -> Layer {
    (out, Window::square(3).with_stride(2))
}

pub(crate) const fn wide(out: u64, width: u64) -> Layer {
    (out, Window::from_sides(1, width).with_paddings(0, width / 2))
}

pub(crate) const fn tall(out: u64, height: u64) -> Layer {
    (out, Window::from_sides(height, 1).with_paddings(height / 2, 0))
}

pub(crate) fn layer(n: &Net, x: &NetValue, (out, window): Layer) -> NetValue {
    let h = n.batch_norm(n.conv(x.clone(), out, window));
    n.relu(h)
}

pub(crate) fn chain(n: &Net, x: &NetValue, layers: Branch<'_>) -> NetValue {
    let mut h = x.clone();
    for &each in layers {
        h = layer(n, &h, each);
    }
    h
}

fn halving_pool(n: &Net, x: &NetValue) -> NetValue {
    n.max_pool(x.clone(), Window::square(3).with_stride(2))
}

/// Parallel branches, concatenated; with a pooled branch if the extents are halved.
pub(crate) fn branches(n: &Net, x: &NetValue, all: &[Branch<'_>], is_pooled: bool) -> NetValue {
    let mut made: Vec<NetValue> = all.iter().map(|layers| chain(n, x, layers)).collect();
    if is_pooled {
        made.push(halving_pool(n, x));
    }
    n.concat(made)
}

fn residual(n: &Net, x: &NetValue, all: &[Branch<'_>], has_relu: bool) -> NetValue {
    let joined = branches(n, x, all, false);
    let mut h = n.conv_bias(joined, x.shape()[1], Window::square(1));
    h = n.add(n.scale(h.clone()), x.clone());
    if has_relu { n.relu(h) } else { h }
}

fn repeat(x: &NetValue, count: usize, module: impl Fn(&NetValue, usize) -> NetValue) -> NetValue {
    let mut h = x.clone();
    for index in 0..count {
        h = module(&h, index);
    }
    h
}

fn head(n: &Net, x: &NetValue, labels: Option<&NetValue>) -> NetValue {
    let mut h = n.global_average_pool(x.clone());
    h = n.linear(n.dropout(h.clone()), 1000);
    classify(n, h, labels)
}

/// Inception-ResNet-v2 as in TF-slim: 10, 20 and 10 modules.
fn v2(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let mut h = halving_pool(n, &chain(n, &x, &[halve(32), narrow(32), three(64)]));
    h = halving_pool(n, &chain(n, &h, &[point(80), narrow(192)]));
    h = mixed_5b(n, &h);
    h = repeat(&h, 10, |x, _| module_a(n, x, 48, 64));
    h = branches(n, &h, &[&[halve(384)], &[point(256), three(256), halve(384)]], true);
    h = repeat(&h, 20, |x, _| module_b(n, x));
    h = reduction_b(n, &h);
    h = repeat(&h, 10, |x, index| module_c(n, x, index < 9));
    h = layer(n, &h, point(1536));
    head(n, &h, labels.as_ref())
}

fn mixed_5b(n: &Net, x: &NetValue) -> NetValue {
    let five = (64, Window::square(5).with_padding(2));
    let mut made: Vec<NetValue> = [&[point(96)][..], &[point(48), five], &[point(64), three(96), three(96)]]
        .into_iter()
        .map(|layers| chain(n, x, layers))
        .collect();
    let pooled = n.average_pool(x.clone(), Window::square(3).with_padding(1));
    made.push(layer(n, &pooled, point(64)));
    drop(pooled);
    n.concat(made)
}

fn module_a(n: &Net, x: &NetValue, middle: u64, last: u64) -> NetValue {
    let one: Branch<'_> = &[point(32)];
    residual(n, x, &[one, &[point(32), three(32)], &[point(32), three(middle), three(last)]], true)
}

fn module_b(n: &Net, x: &NetValue) -> NetValue {
    residual(n, x, &[&[point(192)], &[point(128), wide(160, 7), tall(192, 7)]], true)
}

fn module_c(n: &Net, x: &NetValue, has_relu: bool) -> NetValue {
    residual(n, x, &[&[point(192)], &[point(192), wide(224, 3), tall(256, 3)]], has_relu)
}

fn reduction_b(n: &Net, x: &NetValue) -> NetValue {
    let layers: [Branch<'_>; 3] =
        [&[point(256), halve(384)], &[point(256), halve(288)], &[point(256), three(288), halve(320)]];
    branches(n, x, &layers, true)
}

/// Inception-ResNet-v2 as in the paper: the stem of Inception-v4, and 5, 10 and 5 modules.
fn v2_published(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let mut h = chain(n, &x, &[halve(32), narrow(32), three(64)]);
    h = branches(n, &h, &[&[halve(96)]], true);
    h = branches(
        n,
        &h,
        &[&[point(64), narrow(96)], &[point(64), tall(64, 7), wide(64, 7), narrow(96)]],
        false,
    );
    h = branches(n, &h, &[&[halve(192)]], true);
    h = repeat(&h, 5, |x, _| module_a(n, x, 48, 64));
    h = branches(n, &h, &[&[halve(384)], &[point(256), three(256), halve(384)]], true);
    h = repeat(&h, 10, |x, _| module_b(n, x));
    h = reduction_b(n, &h);
    h = repeat(&h, 5, |x, _| module_c(n, x, true));
    head(n, &h, labels.as_ref())
}

/// Inception-ResNet-v1: 5, 10 and 5 modules.
fn v1(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let mut h = halving_pool(n, &chain(n, &x, &[halve(32), narrow(32), three(64)]));
    h = chain(n, &h, &[point(80), narrow(192), halve(256)]);
    h = repeat(&h, 5, |x, _| module_a(n, x, 32, 32));
    h = branches(n, &h, &[&[halve(384)], &[point(192), three(192), halve(256)]], true);
    h = repeat(&h, 10, |x, _| {
        residual(n, x, &[&[point(128)], &[point(128), wide(128, 7), tall(128, 7)]], true)
    });
    let layers: [Branch<'_>; 3] =
        [&[point(256), halve(384)], &[point(256), halve(256)], &[point(256), three(256), halve(256)]];
    h = branches(n, &h, &layers, true);
    h = repeat(&h, 5, |x, _| {
        residual(n, x, &[&[point(192)], &[point(192), wide(192, 3), tall(192, 3)]], true)
    });
    head(n, &h, labels.as_ref())
}
