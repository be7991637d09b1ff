//! Whether planners and allocators that break their contract are let in, for tests: `PLANLAB_SABOTEURS=1`.

/// Whether the environment lets saboteurs in.
pub(crate) fn is_enabled() -> bool {
    std::env::var_os("PLANLAB_SABOTEURS").is_some_and(|value| value == "1")
}
