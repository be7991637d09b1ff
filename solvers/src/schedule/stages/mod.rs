//! Programs over stages: what is there at the start of each pass of an iteration, what runs again, and what is copied.
//!
//! `checkmate` and `offmate` are searches over one program, with copies or without.
//!
//! | file | what |
//! |---|---|
//! | `graph` | nodes, with seconds, bytes and inputs, and the link |
//! | `copies` | the columns and rows of copies |
//! | `formulation` | the program |
//! | `plan` | what a solution retains, and the runs that this takes |
//! | `training` | the graph of a net in training, and the fates of a plan |
//! | `search` | from a program to schedules |

mod copies;
mod formulation;
mod graph;
mod plan;
mod search;
mod training;

pub(super) use formulation::Form;
pub(super) use search::StageSearch;
pub(super) use training::count_nodes;
