//! Helpers for tests of planners.
