//! Classifiers of images and clips out of convolutions.

pub mod alexnet;
pub mod densenet;
pub mod efficientnet;
pub mod googlenet;
pub mod inception_resnet;
pub mod inception_v3;
pub mod mobilenet;
pub mod resnet;
pub mod squeezenet;
pub mod vgg;
