//! What verbs read: traces, plans, hints, rows of results.

mod files;
pub(crate) mod hints;
pub(crate) mod network;
mod playbacks;
pub(crate) mod records;
mod source;

pub(crate) use files::NamedFiles;
pub(crate) use hints::{Carried, Hints, carried_plan};
pub(crate) use playbacks::open_playback;
#[cfg(feature = "reports")]
pub(crate) use playbacks::read_playback;
pub(crate) use source::{
    Source, import_parts, input_limits, input_name, open_document, open_parts, open_trace, parse_alignment,
    plan_file, read_file_bytes, read_file_document, read_plan, refuse_several_arenas, set_limit,
};
