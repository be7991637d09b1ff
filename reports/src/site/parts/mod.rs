//! Parts of a page that the browser draws or sorts.

pub(crate) mod grid;
pub(crate) mod script;
pub(crate) mod timeline;
pub(crate) mod viewer;
