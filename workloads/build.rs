//! Recompiles the crate when a data file or a suite is added or removed: the files are embedded.
#![allow(clippy::print_stdout, reason = "how a build script speaks to cargo")]

fn main() {
    println!("cargo:rerun-if-changed=data");
    println!("cargo:rerun-if-changed=suites");
}
