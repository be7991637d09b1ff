//! Published figures, for comparison with ours.

pub(crate) mod claims;
pub(crate) mod paper;
pub(crate) mod published;
mod range;

pub(crate) use range::lies;
