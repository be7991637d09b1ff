//! Signals: Ctrl-C, TERM and HUP, handled alike for every verb.
//!
//! A verb that searches or measures stops, prints what it has, and exits with 130. Any other verb ends at once, and so
//! does every verb at the second signal. Unfinished hidden files are removed first.
//!
//! A verb that runs somebody's program passes its signals on instead, and ends with the program.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;

use planlab_dsa::CancelToken;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
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
pub(crate) fn listen_for_signals(ends_by_itself: bool, last: fn()) -> Result<(), Failure> {
    let mut wanted = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let mut signals = Signals::new(wanted)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in &mut signals {
            let is_first = !FLAG.swap(true, Ordering::SeqCst);
            if !(is_first && ends_by_itself) {
                planlab_files::abandon_all();
                last();
                exit(Exit::Interrupted.code().into());
            }
        }
    })?;
    Ok(())
}

/// The program that receives this process's signals. While the lock is held, signals wait.
static PROGRAM: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Starts to pass signals on to the program of [`Relay`]. Before it runs and after its end, this process ends.
pub(crate) fn relay_signals() -> Result<(), Failure> {
    let all = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2];
    let mut signals = Signals::new(all.into_iter().filter(|&signal| !is_ignored(signal)))?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            let passed = lock_program().as_ref().is_some_and(|program| pass_on(signal, program));
            if !passed {
                planlab_files::abandon_all();
                exit(Exit::Interrupted.code().into());
            }
        }
    })?;
    Ok(())
}

fn lock_program() -> MutexGuard<'static, Option<OwnedFd>> {
    PROGRAM.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds signals back until the program is known.
pub(crate) struct Relay(MutexGuard<'static, Option<OwnedFd>>);

impl Relay {
    pub(crate) fn begin_relay() -> Self {
        Self(lock_program())
    }

    /// Sends the signals to the program from now on; if the kernel is too old for that, they end this process.
    pub(crate) fn relay_to(mut self, pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        *self.0 = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    }
}

/// Sends the program a signal that it does not have already; `false` if the program has ended.
fn pass_on(signal: i32, program: &OwnedFd) -> bool {
    if matches!(signal, SIGINT | SIGQUIT) && has_terminal() {
        return true;
    }
    Signal::from_named_raw(signal).is_none_or(|signal| pidfd_send_signal(program, signal).is_ok())
}

/// Whether this process is one of those to which a terminal sends Ctrl-C; the program is one, too.
fn has_terminal() -> bool {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name: state, parent, group, session, terminal, the terminal's group.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    fields.get(4).is_some_and(|terminal| *terminal != "0") && fields.get(2) == fields.get(5)
}

/// Whether a signal was ignored from the start: HUP, if the process should outlive the terminal, as `nohup` requests.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}
