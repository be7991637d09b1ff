//! Online allocation: the contract of pools, which do not know future requests, and of the memory under them.
//!
//! An [`OnlineAllocator`] answers requests one at a time. It takes *segments* from a [`Backing`] (a device, or
//! [`Simulated`] memory) and hands parts of them out. The memory that it holds from the backing is *reserved*, in use
//! or not. Compare its reserved peak with the height of a plan.
//!
//! ```text
//!   alloc, free  -->  OnlineAllocator  --acquire, release-->  Backing
//!                     blocks of segments                      segments
//! ```

mod allocator;
mod audit;
mod backing;
mod meter;
pub mod performance;
mod ranges;
mod requests;
mod simulated;

pub use allocator::{AllocError, NO_OPERATIONS, NotLive, OnlineAllocator, Planning, Usage};
pub use audit::{Audit, AuditError};
pub use backing::{Backing, DeviceMemory, Refused};
pub use meter::{Meter, Metered};
pub use ranges::Ranges;
pub use requests::{Call, Requests};
pub use simulated::Simulated;
