//! What the environment says, and what happens when the library is loaded.
#![allow(unsafe_code, reason = "a constructor, and handlers of forks and exits")]

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use planlab_dsa::Bytes;

use super::{check, heap, real, record, report, symbols, thread};
use crate::machine::Config;

/// What the library was told.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) machine: Config,
    /// Every planned block is checked.
    pub(super) checks: bool,
    /// The kernel is asked for huge pages where plans are large.
    pub(super) huge_pages: bool,
    /// How long a plan may take.
    pub(super) patience: Duration,
    /// Where the statistics go: a line for each process.
    pub(super) report: Option<PathBuf>,
    /// Where the requests go; then nothing is planned. The number of the process is added to the name.
    pub(super) record: Option<PathBuf>,
    /// As `machine`, for the memory of GPUs, where small requests are dear, too.
    #[cfg(feature = "cuda")]
    pub(super) of_devices: Config,
    /// A simulated device of so many bytes stands for every GPU.
    #[cfg(feature = "cuda")]
    pub(super) simulated: Option<Bytes>,
}

/// Bytes of the smallest request that is looked at: the C library may ask for 512 where a thread's state is set.
const LEAST_SIZE: u64 = 1024;

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// What the environment said when the library was loaded; `None` before that.
#[inline]
pub(super) fn settings() -> Option<&'static Settings> {
    SETTINGS.get()
}

fn number<T: FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.trim().parse().ok()
}

fn is_on(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| !matches!(value.trim(), "" | "0"))
}

fn file(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

impl Settings {
    fn of_environment() -> Self {
        let mut machine = Config::default();
        machine.least_size = number("PLANLAB_MIN_SIZE").unwrap_or(machine.least_size).max(LEAST_SIZE);
        machine.least_load = number("PLANLAB_MIN_LOAD").map_or(machine.least_load, Bytes::new);
        machine.proof.rounds = number("PLANLAB_ROUNDS").unwrap_or(machine.proof.rounds).max(2);
        machine.marks = is_on("PLANLAB_MARKS");
        Self {
            machine,
            checks: is_on("PLANLAB_CHECK"),
            huge_pages: number::<u64>("PLANLAB_HUGE_PAGES") != Some(0),
            patience: Duration::from_millis(number("PLANLAB_PLAN_MS").unwrap_or(200)),
            report: file("PLANLAB_REPORT"),
            record: file("PLANLAB_RECORD"),
            #[cfg(feature = "cuda")]
            of_devices: Config { least_size: number("PLANLAB_MIN_SIZE").unwrap_or(512).max(512), ..machine },
            #[cfg(feature = "cuda")]
            simulated: number("PLANLAB_SIMULATED_CUDA").map(Bytes::new),
        }
    }
}

/// Before the program's own constructors and `main`. Until then every request is handed through.
extern "C" fn load() {
    real::prepare();
    // That of a planner ends in "no plan", and is no message of the program's; any other ends the process.
    std::panic::set_hook(Box::new(|panic| {
        if !thread::hands_all_through() {
            check::say(&format!("planlab: {panic}\n"));
        }
    }));
    if !thread::prepare() {
        return;
    }
    // SAFETY: the handlers live as long as the process, and a library that is preloaded is not unloaded.
    unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child));
        libc::atexit(at_exit);
    }
    let settings = SETTINGS.get_or_init(Settings::of_environment);
    symbols::open(settings.machine.least_size);
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

extern "C" fn before_fork() {
    record::lock();
}

extern "C" fn after_fork_in_parent() {
    record::unlock();
}

extern "C" fn after_fork_in_child() {
    record::stop();
    record::unlock();
    #[cfg(feature = "cuda")]
    super::cuda::after_fork();
    thread::after_fork();
}

extern "C" fn at_exit() {
    let Some(settings) = settings() else { return };
    heap::end();
    record::flush();
    if let Some(file) = &settings.report {
        report::append(file);
    }
}
