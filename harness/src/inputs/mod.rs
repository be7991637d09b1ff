//! What verbs read: traces, plans, hints, rows of results.

mod carried;
mod files;
pub(crate) mod hints;
pub(crate) mod network;
pub(crate) mod records;
mod source;

pub(crate) use carried::{Carried, carried};
pub(crate) use files::Named;
pub(crate) use hints::Hints;
pub(crate) use source::{
    Source, alignment, bytes, document, import_parts, limits, name, open, open_parts, plan, plan_file,
    refuse_several_arenas, set_limit,
};
