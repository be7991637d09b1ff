//! The kinds of cells, a folder each: what a child is asked, what it answers, and the row that its answer becomes.

#[cfg(test)]
mod example;
pub(crate) mod external;
pub(crate) mod placement;
pub(crate) mod pool;
pub(crate) mod schedule;
