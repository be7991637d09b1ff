//! The settings in the environment.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;

use planlab_dsa::Bytes;

use crate::machine::Config;
use crate::planning::Planning;

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
static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// The settings when the library was loaded; `None` before that.
#[inline]
pub(super) fn settings() -> Option<&'static Settings> {
    SETTINGS.get()
}

/// Reads the settings, from now on those of the library.
pub(super) fn read() -> &'static Settings {
    SETTINGS.get_or_init(Settings::of_environment)
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
    /// How rounds are planned: by the launcher, or in a thread that first calls `prepare`.
    pub(super) fn planning(&'static self, prepare: fn()) -> Planning {
        Planning {
            least_load: self.machine.least_load,
            patience: self.patience,
            prepare,
            launcher: self.launcher.as_deref(),
        }
    }

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
