//! planlab for programs in C and C++: arrays in, offsets out.
//!
//! `include/planlab.h` is the interface, and is made of what is here. [`planlab_plan`] gives every buffer an offset;
//! `examples/plan_memory.cpp` is a pass of a compiler that calls it. Rust programs need none of this: they call
//! `planlab_dsa` and `planlab_solvers`.
//!
//! ```
//! use planlab_c::{planlab_plan, planlab_result, planlab_status};
//!
//! let (lower, upper, sizes) = ([0, 1, 2], [2, 3, 4], [64, 32, 64]);
//! let (mut offsets, mut result) = ([0; 3], planlab_result::default());
//! // SAFETY: there are three numbers in each array, and the result has its size.
//! let status = unsafe {
//!     let arrays = (lower.as_ptr(), upper.as_ptr(), sizes.as_ptr());
//!     planlab_plan(3, arrays.0, arrays.1, arrays.2, std::ptr::null(), offsets.as_mut_ptr(), &raw mut result)
//! };
//! assert_eq!((status, result.height), (planlab_status::PLANLAB_OPTIMAL, 96));
//! ```

/// The Rust program of the book's page for other programs.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embed.md")]
struct Page;

mod border;
mod question;
mod status;
mod types;

pub use border::{planlab_abi_version, planlab_plan, planlab_status_text};
pub use types::{PLANLAB_ABI_VERSION, PLANLAB_MESSAGE_SIZE, planlab_options, planlab_result, planlab_status};
