//! Ctrl-C, TERM and HUP: the same way for every verb.
//!
//! A verb that searches or measures is asked to end, tells what it has, and exits with 130. Any other ends at
//! once, and so does everything at the second signal; hidden files that are not whole yet go first.

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

/// Listens from now on. `ends_by_itself`: whether the verb looks at [`cancel_token`].
pub(crate) fn listen(ends_by_itself: bool) -> Result<(), Failure> {
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
                exit(Exit::Interrupted.code().into());
            }
        }
    })?;
    Ok(())
}

/// Whether whoever started the process wants it to outlive the terminal, as `nohup` does.
fn is_hup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}
