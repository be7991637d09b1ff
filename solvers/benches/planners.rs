//! Times of the planners.

fn main() {}
