//! Reads the settings from the environment, and sets the library up when it is loaded.
#![allow(unsafe_code, reason = "a constructor, and handlers of forks and exits")]

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use planlab_dsa::Bytes;

use super::{check, heap, kernel, real, record, report, symbols, thread};
use crate::machine::Config;

/// The library's settings.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) machine: Config,
    /// Whether every planned block is checked.
    pub(super) checks: bool,
    /// Whether the kernel is asked for huge pages for large plans.
    pub(super) huge_pages: bool,
    /// The most time that a plan may take.
    pub(super) patience: Duration,
    /// Plans without a round for this long give their memory back; zero: they keep it.
    pub(super) idle: Duration,
    /// The file for the statistics: a line for each process.
    pub(super) report: Option<PathBuf>,
    /// The file for the recorded requests; then nothing is planned. The process number is appended to the name.
    pub(super) record: Option<PathBuf>,
    /// The folder in which `planlab run` plans rounds.
    pub(super) launcher: Option<PathBuf>,
    /// As `machine`, for the memory of GPUs, where small requests are expensive, too.
    #[cfg(feature = "cuda")]
    pub(super) of_devices: Config,
    /// If set, simulated devices with this many bytes replace all GPUs.
    #[cfg(feature = "cuda")]
    pub(super) simulated: Option<Bytes>,
}

/// The size of the smallest watched request: the C library may request 512 bytes when a thread's state is set.
const LEAST_SIZE: u64 = 1024;
/// Bytes of address space below which nothing is planned.
const LEAST_ADDRESS_SPACE: u64 = 64 << 20;

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The settings when the library was loaded; `None` before that.
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
            idle: Duration::from_millis(number("PLANLAB_IDLE_MS").unwrap_or(2000)),
            report: file("PLANLAB_REPORT"),
            record: file("PLANLAB_RECORD"),
            launcher: file("PLANLAB_LAUNCHER"),
            #[cfg(feature = "cuda")]
            of_devices: Config { least_size: number("PLANLAB_MIN_SIZE").unwrap_or(512).max(512), ..machine },
            #[cfg(feature = "cuda")]
            simulated: number("PLANLAB_SIMULATED_CUDA").map(Bytes::new),
        }
    }
}

/// Runs before the program's own constructors and `main`. Until then the real allocator serves every request.
extern "C" fn load() {
    real::prepare();
    kernel::prepare();
    // A planner's panic only ends in "no plan" and prints no message; any other panic ends the process.
    std::panic::set_hook(Box::new(|panic| {
        if !thread::hands_all_through() {
            check::say(&format!("planlab: {panic}\n"));
        }
    }));
    if has_sanitizer() {
        check::say("planlab: a sanitizer is in this process, so nothing is planned\n");
        return;
    }
    if is_address_space_scarce() || !thread::prepare() {
        return;
    }
    // SAFETY: the handlers live as long as the process, because the library is never unloaded.
    unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child));
        libc::atexit(at_exit);
    }
    let settings = SETTINGS.get_or_init(Settings::of_environment);
    symbols::open(settings.machine.least_size);
}

/// Whether the process may map so little that the library would take what the program needs.
fn is_address_space_scarce() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it writes only the local that it receives.
    unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) == 0 && limit.rlim_cur < LEAST_ADDRESS_SPACE }
}

/// Whether a sanitizer watches the process: it has an allocator of its own, and must see every call first.
fn has_sanitizer() -> bool {
    // SAFETY: the name ends with a zero.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__sanitizer_set_death_callback".as_ptr()) }.is_null()
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
    let Some(settings) = settings().filter(|_| !symbols::is_frozen()) else { return };
    heap::end();
    write(settings);
}

/// Writes what the process leaves: its statistics, or the rest of its trace.
pub(super) fn write(settings: &Settings) {
    record::flush();
    if let Some(file) = &settings.report {
        report::append(file);
    }
}
