//! Schedules: the figures of the published methods on ResNet-50, and that what schedulers give is right.

mod checkpoint_nets;
mod checkpoints;
mod contract;
mod golden;
mod measured;
mod mutants;
mod nets;
mod search;
mod slow;
mod table;
