//! Numbers and tables as text.

pub mod format;
pub mod table;
