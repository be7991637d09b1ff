//! What planners, schedulers and allocators that break their contract share, for tests. They exist only if the
//! environment sets `PLANLAB_SABOTEURS=1`.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

/// Whether the environment enables saboteurs.
pub(crate) fn is_enabled() -> bool {
    std::env::var_os("PLANLAB_SABOTEURS").is_some_and(|value| value == "1")
}

/// The keys of these saboteurs, if saboteurs are enabled.
pub(crate) fn enabled(keys: &[&'static str]) -> impl Iterator<Item = &'static str> {
    keys.iter().copied().filter(|_| is_enabled())
}

/// The key if it is one of these saboteurs, and saboteurs are enabled.
pub(crate) fn find(keys: &[&'static str], key: &str) -> Option<&'static str> {
    enabled(keys).find(|&known| known == key)
}

/// Never checks the clock.
pub(crate) fn hang() -> ! {
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

pub(crate) fn eat_memory() -> ! {
    let mut hoard: Vec<Vec<u8>> = Vec::new();
    loop {
        hoard.push(black_box(vec![1; 16 << 20]));
    }
}
