//! Pools that plan: they record a propagation, and serve the next ones from a plan of the record.

mod memory;
mod miss;
mod numbered;
mod scoped;

pub use numbered::ProfileGuided;
pub use scoped::ProfileGuidedScoped;
