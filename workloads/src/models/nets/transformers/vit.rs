//! Vision transformer, ViT-B/16.
//!
//! # References
//!
//! 1. A. Dosovitskiy et al., *An Image is Worth 16x16 Words: Transformers for Image Recognition at Scale*, ICLR 2021,
//!    arXiv:2010.11929.
//! 2. torchvision, which publishes parameters and multiply-adds; no dropout.
//!
//! The class token and the position embeddings are looked up for each image. The table of positions grows with the
//! image.

use super::gpt2::layer;
use crate::models::net::{Net, NetValue, Window};
use crate::models::nets::blocks::{classify, embed, images};
use crate::models::nets::model::{Model, Published, Sizes, image};

pub(crate) static MODELS: [Model; 1] = [Model {
    name: "vit-b-16",
    summary: "Vision transformer ViT-B/16",
    input: image(224),
    published: Published::new(Some(86_567_656), Some(35_128_000_000), "torchvision"),
    build: vit,
}];

const WIDTH: u64 = 768;

fn vit(n: &Net, sizes: Sizes) -> NetValue {
    let (x, labels) = images(n, sizes);
    let map = n.conv_bias(x, WIDTH, Window::square(16).with_stride(16));
    let patches = map.shape()[2] * map.shape()[3];
    let patch_tokens = n.reshape(map, vec![sizes.batch, patches, WIDTH]);
    let look_up = |rows: u64| embed(n, vec![sizes.batch, rows], rows, WIDTH);
    let tokens = n.concat(vec![look_up(1), patch_tokens]);
    let mut h = n.add(tokens, look_up(patches + 1));
    for _ in 0..12 {
        h = layer(n, h, 12, false);
    }
    let class = n.slice(n.layer_norm(h), vec![0, 0, 0], vec![sizes.batch, 1, WIDTH]);
    classify(n, n.dense_bias(n.reshape(class, vec![sizes.batch, WIDTH]), 1000), labels.as_ref())
}
