//! Writes pages.

mod html;
pub(crate) mod markdown;
mod writer;

pub(crate) use html::{Frame, page_alone};
pub(crate) use writer::Writer;
