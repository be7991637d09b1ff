//! The contract, the verifier and the bounds, from outside.

mod bounds;
mod common;
mod corpus;
mod instance_errors;
mod metamorphic;
mod strategies;
mod verifier;
mod violations;
