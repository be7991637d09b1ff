//! Signals: Ctrl-C, TERM and HUP, handled alike for every verb.
//!
//! A verb that searches or measures stops, prints what it has, and exits with 130. Any other verb ends at once, and so
//! does every verb at the second signal. Unfinished hidden files are removed first.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;

use planlab_dsa::CancelToken;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::exit;

use crate::shell::exit::{Exit, Failure};

static FLAG: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The token that the first signal sets.
pub(crate) fn cancel_token() -> CancelToken {
    CancelToken::from(Arc::clone(&FLAG))
}

/// Starts to listen. `ends_by_itself`: whether the verb checks [`cancel_token`]. `last` is called before the process ends
/// at once.
pub(crate) fn listen(ends_by_itself: bool, last: fn()) -> Result<(), Failure> {
    let mut wanted = vec![SIGINT, SIGTERM];
    if !is_hup_ignored() {
        wanted.push(SIGHUP);
    }
    let mut signals = Signals::new(wanted)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in &mut signals {
            let is_first = !FLAG.swap(true, Ordering::SeqCst);
            if !(is_first && ends_by_itself) {
                planlab_files::abandon();
                last();
                exit(Exit::Interrupted.code().into());
            }
        }
    })?;
    Ok(())
}

/// Whether the process should outlive the terminal, as `nohup` requests.
fn is_hup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}
