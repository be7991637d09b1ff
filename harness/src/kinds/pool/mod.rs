//! Plays traces on allocators: over simulated memory, on the host, and on a device.

pub(crate) mod contender;
pub(crate) mod device;
mod environment;
pub(crate) mod host;
mod keeper;
mod row;
mod saboteurs;
pub(crate) mod simulated;
mod subject;
mod table;

pub(crate) use contender::Contender;
pub(crate) use keeper::Keeper;
pub(crate) use row::exit_of;
