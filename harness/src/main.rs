//! planlab
fn main() {}
