//! The nets, one file per family.

mod blocks;
pub mod classifiers;
pub mod dcgan;
pub mod model;
pub mod seq2seq;
pub mod transformers;
pub mod unet;

use self::model::Model;

/// All nets.
pub fn models() -> impl Iterator<Item = &'static Model> {
    FAMILIES.into_iter().flatten()
}

static FAMILIES: [&[Model]; 18] = [
    &classifiers::alexnet::MODELS,
    &classifiers::googlenet::MODELS,
    &classifiers::resnet::MODELS,
    &classifiers::vgg::MODELS,
    &classifiers::inception_v3::MODELS,
    &classifiers::inception_resnet::MODELS,
    &classifiers::densenet::MODELS,
    &classifiers::squeezenet::MODELS,
    &classifiers::mobilenet::MODELS,
    &classifiers::efficientnet::MODELS,
    &transformers::vit::MODELS,
    &unet::MODELS,
    &dcgan::MODELS,
    &seq2seq::MODELS,
    &transformers::bert::MODELS,
    &transformers::gpt2::MODELS,
    &transformers::t5::MODELS,
    &transformers::llama::MODELS,
];
