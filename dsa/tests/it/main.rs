//! Tests the contract, the verifier and the bounds from outside the crate.

mod bounds;
mod common;
mod corpus;
mod instance_errors;
mod metamorphic;
mod strategies;
mod verifier;
mod violations;
