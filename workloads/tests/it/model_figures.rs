//! Compares the parameters and FLOPs of every net with published figures or with independent counts.
//!
//! A count here shares no code with the library: it lists the layers with their channels and the extents of their
//! outputs, or is a closed formula.

use planlab_workloads::models::{self, Mode, Model, Spec};

/// Parameters, and multiply-adds of inference on one input.
#[derive(Clone, Copy, Default)]
struct Count {
    parameters: u64,
    products: u64,
}

/// The parameters of the function after a layer, per output channel.
const PLAIN: u64 = 0;
const BIAS: u64 = 1;
const NORM: u64 = 2;

impl Count {
    /// The count of a net that adds its layers one by one.
    fn of_layers(add_layers: fn(&mut Self)) -> Self {
        let mut count = Self::default();
        add_layers(&mut count);
        count
    }

    /// Adds a convolution, or a fully connected layer with one position: channels, elements of the kernel, positions of
    /// the output (of the input, if it is transposed).
    fn conv(&mut self, [from, to]: [u64; 2], kernel: u64, positions: u64, extra: u64) {
        self.parameters += to * (from * kernel + extra);
        self.products += from * to * kernel * positions;
    }

    /// Convolutions of one branch, each with batch normalisation: channels, kernel, positions.
    fn branch(&mut self, mut from: u64, layers: &[(u64, u64, u64)]) {
        for &(to, kernel, positions) in layers {
            self.conv([from, to], kernel, positions, NORM);
            from = to;
        }
    }

    fn unused(&mut self, parameters: u64) {
        self.parameters += parameters;
    }
}

fn alexnet(count: &mut Count) {
    for (channels, kernel, extent) in [
        ([3, 96], 11 * 11, 55),
        ([96, 256], 5 * 5, 27),
        ([256, 384], 3 * 3, 13),
        ([384, 384], 3 * 3, 13),
        ([384, 256], 3 * 3, 13),
        ([256 * 6 * 6, 4096], 1, 1),
        ([4096, 4096], 1, 1),
        ([4096, 1000], 1, 1),
    ] {
        count.conv(channels, kernel, extent * extent, BIAS);
    }
}

/// Strides are in the 1 x 1 convolutions; the first convolution has a bias in addition to its normalisation.
fn resnet50(count: &mut Count) {
    count.conv([3, 64], 7 * 7, 112 * 112, NORM + BIAS);
    let mut from = 64;
    for (hidden, blocks, extent) in [(64, 3, 56), (128, 4, 28), (256, 6, 14), (512, 3, 7_u64)] {
        let positions = extent * extent;
        count.conv([from, 4 * hidden], 1, positions, NORM);
        for _ in 0..blocks {
            count.branch(from, &[(hidden, 1, positions), (hidden, 9, positions), (4 * hidden, 1, positions)]);
            from = 4 * hidden;
        }
    }
    count.conv([2048, 1000], 1, 1, BIAS);
}

/// Adds the auxiliary classifiers as well: they have parameters, but do not run in inference.
fn googlenet(count: &mut Count) {
    for (channels, kernel, extent) in [([3, 64], 7 * 7, 112), ([64, 64], 1, 56), ([64, 192], 9, 56)] {
        count.conv(channels, kernel, extent * extent, BIAS);
    }
    let mut from = 192;
    for ([one, to_three, three, to_five, five, pooled], extent) in [
        ([64, 96, 128, 16, 32, 32], 28),
        ([128, 128, 192, 32, 96, 64], 28),
        ([192, 96, 208, 16, 48, 64], 14),
        ([160, 112, 224, 24, 64, 64], 14),
        ([128, 128, 256, 24, 64, 64], 14),
        ([112, 144, 288, 32, 64, 64], 14),
        ([256, 160, 320, 32, 128, 128], 14),
        ([256, 160, 320, 32, 128, 128], 7),
        ([384, 192, 384, 48, 128, 128], 7_u64),
    ] {
        count.conv([from, one + to_three + to_five + pooled], 1, extent * extent, BIAS);
        count.conv([to_three, three], 9, extent * extent, BIAS);
        count.conv([to_five, five], 25, extent * extent, BIAS);
        from = one + three + five + pooled;
    }
    count.conv([1024, 1000], 1, 1, BIAS);
    for from in [512, 528] {
        count.unused((from + 1) * 128 + (128 * 4 * 4 + 1) * 1024 + (1024 + 1) * 1000);
    }
}

/// Only the generator runs in inference.
fn dcgan(count: &mut Count) {
    for (channels, extent, extra) in [
        ([100, 512], 1, NORM),
        ([512, 256], 4, NORM),
        ([256, 128], 8, NORM),
        ([128, 64], 16, NORM),
        ([64, 3], 32, PLAIN),
    ] {
        count.conv(channels, 4 * 4, extent * extent, extra);
    }
    count.unused(4 * 4 * (3 * 64 + 64 * 128 + 128 * 256 + 256 * 512 + 512) + 2 * (128 + 256 + 512));
}

fn unet(count: &mut Count) {
    for (from, to, extent) in
        [(1, 64, 570), (64, 128, 282), (128, 256, 138), (256, 512, 66), (512, 1024, 30_u64)]
    {
        count.conv([from, to], 9, extent * extent, BIAS);
        count.conv([to, to], 9, (extent - 2) * (extent - 2), BIAS);
    }
    for (from, extent) in [(1024, 28), (512, 52), (256, 100), (128, 196_u64)] {
        let (to, wide) = (from / 2, 2 * extent);
        count.conv([from, to], 4, extent * extent, BIAS);
        count.conv([from, to], 9, (wide - 2) * (wide - 2), BIAS);
        count.conv([to, to], 9, (wide - 4) * (wide - 4), BIAS);
    }
    count.conv([64, 2], 1, 388 * 388, BIAS);
}

fn resnext101_3d(count: &mut Count) {
    count.conv([3, 64], 7 * 7 * 7, 16 * 56 * 56, NORM);
    let mut from = 64;
    let mut before = 8 * 28 * 28;
    for (hidden, blocks, positions) in
        [(128, 3, 8 * 28 * 28), (256, 4, 4 * 14 * 14), (512, 23, 2 * 7 * 7), (1024, 3, 4 * 4)]
    {
        count.conv([from, 2 * hidden], 1, positions, NORM);
        for _ in 0..blocks {
            count.conv([from, hidden], 1, before, NORM);
            count.conv([hidden / 32, hidden], 27, positions, NORM);
            count.conv([hidden, 2 * hidden], 1, positions, NORM);
            (from, before) = (2 * hidden, positions);
        }
    }
    count.conv([2048, 400], 1, 1, BIAS);
}

const E147: u64 = 147 * 147;
const E73: u64 = 73 * 73;
const E71: u64 = 71 * 71;
const E35: u64 = 35 * 35;
const E17: u64 = 17 * 17;
const E8: u64 = 8 * 8;

fn inception_resnet_v1(count: &mut Count) {
    count.branch(
        3,
        &[(32, 9, 149 * 149), (32, 9, E147), (64, 9, E147), (80, 1, E73), (192, 9, E71), (256, 9, E35)],
    );
    for _ in 0..5 {
        count.branch(256, &[(32, 1, E35)]);
        count.branch(256, &[(32, 1, E35), (32, 9, E35)]);
        count.branch(256, &[(32, 1, E35), (32, 9, E35), (32, 9, E35)]);
        count.conv([96, 256], 1, E35, BIAS);
    }
    count.branch(256, &[(384, 9, E17)]);
    count.branch(256, &[(192, 1, E35), (192, 9, E35), (256, 9, E17)]);
    for _ in 0..10 {
        count.branch(896, &[(128, 1, E17)]);
        count.branch(896, &[(128, 1, E17), (128, 7, E17), (128, 7, E17)]);
        count.conv([256, 896], 1, E17, BIAS);
    }
    count.branch(896, &[(256, 1, E17), (384, 9, E8)]);
    count.branch(896, &[(256, 1, E17), (256, 9, E8)]);
    count.branch(896, &[(256, 1, E17), (256, 9, E17), (256, 9, E8)]);
    for _ in 0..5 {
        count.branch(1792, &[(192, 1, E8)]);
        count.branch(1792, &[(192, 1, E8), (192, 3, E8), (192, 3, E8)]);
        count.conv([384, 1792], 1, E8, BIAS);
    }
    count.conv([1792, 1000], 1, 1, BIAS);
}

/// The modules of v2 after its stem of `width` channels; returns the number of channels of the last ones.
fn inception_resnet_v2_modules(count: &mut Count, width: u64, [a, b, c]: [usize; 3]) -> u64 {
    for _ in 0..a {
        count.branch(width, &[(32, 1, E35)]);
        count.branch(width, &[(32, 1, E35), (32, 9, E35)]);
        count.branch(width, &[(32, 1, E35), (48, 9, E35), (64, 9, E35)]);
        count.conv([128, width], 1, E35, BIAS);
    }
    count.branch(width, &[(384, 9, E17)]);
    count.branch(width, &[(256, 1, E35), (256, 9, E35), (384, 9, E17)]);
    let width = width + 768;
    for _ in 0..b {
        count.branch(width, &[(192, 1, E17)]);
        count.branch(width, &[(128, 1, E17), (160, 7, E17), (192, 7, E17)]);
        count.conv([384, width], 1, E17, BIAS);
    }
    count.branch(width, &[(256, 1, E17), (384, 9, E8)]);
    count.branch(width, &[(256, 1, E17), (288, 9, E8)]);
    count.branch(width, &[(256, 1, E17), (288, 9, E17), (320, 9, E8)]);
    let width = width + 992;
    for _ in 0..c {
        count.branch(width, &[(192, 1, E8)]);
        count.branch(width, &[(192, 1, E8), (224, 3, E8), (256, 3, E8)]);
        count.conv([448, width], 1, E8, BIAS);
    }
    width
}

fn inception_resnet_v2(count: &mut Count) {
    count.branch(3, &[(32, 9, 149 * 149), (32, 9, E147), (64, 9, E147), (80, 1, E73), (192, 9, E71)]);
    count.branch(192, &[(96, 1, E35)]);
    count.branch(192, &[(48, 1, E35), (64, 25, E35)]);
    count.branch(192, &[(64, 1, E35), (96, 9, E35), (96, 9, E35)]);
    count.branch(192, &[(64, 1, E35)]);
    let width = inception_resnet_v2_modules(count, 320, [10, 20, 10]);
    count.branch(width, &[(1536, 1, E8)]);
    count.conv([1536, 1000], 1, 1, BIAS);
}

fn inception_resnet_v2_published(count: &mut Count) {
    count.branch(3, &[(32, 9, 149 * 149), (32, 9, E147), (64, 9, E147), (96, 9, E73)]);
    count.branch(160, &[(64, 1, E73), (96, 9, E71)]);
    count.branch(160, &[(64, 1, E73), (64, 7, E73), (64, 7, E73), (96, 9, E71)]);
    count.branch(192, &[(192, 9, E35)]);
    let width = inception_resnet_v2_modules(count, 384, [5, 10, 5]);
    count.conv([width, 1000], 1, 1, BIAS);
}

/// A transformer of `layers` with `d` units and `s` tokens: 12 d^2 weights per layer, the products of attention, the
/// head.
const fn transformer(layers: u64, d: u64, s: u64, vocabulary: u64) -> u64 {
    12 * layers * d * d * s + 2 * layers * s * s * d + s * d * vocabulary
}

fn gpt2(layers: u64, d: u64) -> Count {
    let parameters = layers * (12 * d * d + 13 * d) + (50_257 + 1024) * d + 2 * d;
    Count { parameters, products: transformer(layers, d, 1024, 50_257) }
}

/// The head has its own layer before the vocabulary.
fn bert(layers: u64, d: u64) -> Count {
    let table = (30_522 + 512 + 2) * d + 2 * d;
    let head = d * d + d + 2 * d + 30_522;
    Count {
        parameters: layers * (12 * d * d + 13 * d) + table + head,
        products: transformer(layers, d, 512, 30_522) + 512 * d * d,
    }
}

/// Four matrices of attention, two of them narrower; three matrices for each expert that a token is sent to.
fn llama(
    vocabulary: u64,
    layers: u64,
    [d, shared, hidden]: [u64; 3],
    [experts, chosen]: [u64; 2],
    norms: u64,
) -> Count {
    let s = 2048;
    let router = if experts > 1 { d * experts } else { 0 };
    let attention = 2 * d * d + 2 * d * shared;
    let layer = attention + 3 * experts * d * hidden + router + norms * d;
    let tokens = attention + 3 * chosen * d * hidden + router;
    Count {
        parameters: 2 * vocabulary * d + layers * layer + d,
        products: layers * (tokens * s + 2 * s * s * d) + s * d * vocabulary,
    }
}

/// 20 source tokens, and as many target tokens followed by an end of sentence.
fn seq2seq() -> Count {
    let (vocabulary, units, source, target) = (40_000, 1024, 20, 21);
    let head = units * vocabulary;
    Count {
        parameters: 2 * vocabulary * units + 6 * (8 * units * units + 8 * units) + head + vocabulary,
        products: 3 * 8 * units * units * (source + target) + target * head,
    }
}

/// The decoder has another four matrices of attention in each layer.
fn t5() -> Count {
    let (vocabulary, d, s) = (32_128, 512_u64, 512);
    let (encoder, decoder) = (4 * d * d + 8 * d * d, 8 * d * d + 8 * d * d);
    Count {
        parameters: vocabulary * d + 6 * (encoder + 2 * d + decoder + 3 * d) + 2 * d + 2 * 32 * 8,
        products: 6 * (encoder + decoder) * s + 6 * 3 * 2 * s * s * d + s * d * vocabulary,
    }
}

/// Counts of the nets that lack a published figure.
fn counted(name: &str) -> Option<Count> {
    Some(match name {
        "alexnet" => Count::of_layers(alexnet),
        "resnet50" => Count::of_layers(resnet50),
        "googlenet" => Count::of_layers(googlenet),
        "dcgan" => Count::of_layers(dcgan),
        "unet" => Count::of_layers(unet),
        "resnext101-3d" => Count::of_layers(resnext101_3d),
        "inception-resnet-v1" => Count::of_layers(inception_resnet_v1),
        "inception-resnet-v2" => Count::of_layers(inception_resnet_v2),
        "inception-resnet-v2-published" => Count::of_layers(inception_resnet_v2_published),
        "seq2seq" => seq2seq(),
        "bert-base" => bert(12, 768),
        "bert-large" => bert(24, 1024),
        "gpt2-small" => gpt2(12, 768),
        "gpt2-medium" => gpt2(24, 1024),
        "gpt2-large" => gpt2(36, 1280),
        "gpt2-xl" => gpt2(48, 1600),
        "t5-small" => t5(),
        "llama-1b" => llama(32_000, 22, [2048, 256, 5632], [1, 1], 2),
        "llama-7b" => llama(32_000, 32, [4096, 4096, 11_008], [1, 1], 2),
        "mixtral-8x7b" => llama(32_000, 32, [4096, 1024, 14_336], [8, 2], 2),
        "olmoe-1b-7b" => llama(50_304, 16, [2048, 2048, 1024], [64, 8], 4),
        _ => return None,
    })
}

/// Additional parameters of a net compared with the published number, for the stated reason.
fn more_parameters(name: &str) -> u64 {
    // The bias of 64 channels.
    if name == "resnet50" { 64 } else { 0 }
}

/// The errors in a net's figures.
fn complaints(model: &'static Model) -> Vec<String> {
    let sequence = (model.name == "seq2seq").then_some(20);
    let of = |mode| Spec { sequence, ..Spec::new(model, mode, 1) };
    let parameters = of(Mode::Train).parameter_count().expect(model.name);
    let flops = of(Mode::Infer).count_flops().expect(model.name);
    let (published, more) = (model.published, more_parameters(model.name));
    let counted = counted(model.name);
    let mut wrong = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            wrong.push(format!(
                "{}: {what}; {parameters} parameters, {flops} FLOPs, {published:?}",
                model.name
            ));
        }
    };
    expect(published.parameters.is_none_or(|number| number + more == parameters), "published parameters");
    expect(published.differs.is_empty() == (more == 0), "a difference is named where there is one");
    // Published FLOPs have three or four digits.
    expect(published.flops.is_none_or(|number| number.abs_diff(flops) <= number / 1000), "published FLOPs");
    let has_figures = published.parameters.is_some() || published.flops.is_some();
    expect(has_figures != published.source.is_empty(), "a source for the figures");
    let count = counted.map(|count| (count.parameters, 2 * count.products));
    expect(count.is_none_or(|count| count == (parameters, flops)), &format!("counted {count:?}"));
    let is_published = published.parameters.is_some() && published.flops.is_some();
    expect(is_published || count.is_some(), "neither published nor counted");
    wrong
}

#[test]
fn parameters_and_flops_of_every_net_are_published_or_counted_by_hand() {
    let wrong: Vec<String> = models::models().flat_map(complaints).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(models::find("resnet50").expect("a net").published.parameters, Some(25_557_032));
}
