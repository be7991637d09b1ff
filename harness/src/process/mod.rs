//! Child processes: starting, asking, reading, limiting and ending them, and the duties of a child towards its parent.
//!
//! Nothing here depends on the purpose of a child.

mod child;
pub(crate) mod limits;
mod orphans;
mod parent;
mod tail;
mod usage;

pub(crate) use child::{cancel_on_term, die_with_parent, limit_address_space, receive_request, send_reply};
pub(crate) use orphans::{
    adopt_orphans, collect_child, end_all, end_orphans, has_children, has_ended, signal_group, spawn_child,
};
pub(crate) use parent::{
    Death, Lines, confine_child, death_cause, end_of, hidden_command, listen_to, reap_child, send_request,
};
pub(crate) use tail::{Tail, read_tail};
pub(crate) use usage::{ProcessUsage, measured, peak_rss_of};
