//! Child processes: starting, asking, reading, limiting and ending them, and the duties of a child towards its parent.
//!
//! Nothing here depends on the purpose of a child.

mod child;
pub(crate) mod limits;
mod orphans;
mod parent;
mod tail;
mod talk;
mod usage;

pub(crate) use child::{cancel_on_term, die_with_parent, limit_address_space, receive, tell};
pub(crate) use orphans::{
    adopt_orphans, collect, end_all, end_orphans, has_children, has_ended, signal, spawn,
};
pub(crate) use parent::{Death, Lines, cause, command, confine, end_of, listen, reap, send};
pub(crate) use tail::{Tail, tail};
#[cfg(feature = "reports")]
pub(crate) use talk::talk_through;
pub(crate) use talk::{Talk, talk};
pub(crate) use usage::{ProcessUsage, measured, peak_rss_of};
