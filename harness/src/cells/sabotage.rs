//! The switch for planners and allocators that break their contract, for tests: `PLANLAB_SABOTEURS=1`.

/// Whether the environment enables saboteurs.
pub(crate) fn is_enabled() -> bool {
    std::env::var_os("PLANLAB_SABOTEURS").is_some_and(|value| value == "1")
}
