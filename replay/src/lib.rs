//! planlab
