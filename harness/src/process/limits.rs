//! Memory limits of child processes: by cgroup v2, else v1, else an address-space limit.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal, kill_process};

/// What enforces memory limits on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    CgroupV2,
    CgroupV1,
    Rlimit,
}

impl Mechanism {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CgroupV2 => "cgroup-v2",
            Self::CgroupV1 => "cgroup-v1",
            Self::Rlimit => "rlimit",
        }
    }

    /// The first mechanism that works on this machine, found by trying.
    pub(crate) fn detect_mechanism() -> Self {
        for mechanism in [Self::CgroupV2, Self::CgroupV1] {
            if let Some(root) = mechanism.cgroup_root() {
                sweep_dead_groups(&root);
            }
            if Cgroup::create(mechanism, Some(1 << 30)).is_ok_and(|group| group.is_some()) {
                return mechanism;
            }
        }
        Self::Rlimit
    }

    fn cgroup_root(self) -> Option<PathBuf> {
        match self {
            Self::CgroupV2 => own_v2_group(),
            Self::CgroupV1 => Some(PathBuf::from("/sys/fs/cgroup/memory")),
            Self::Rlimit => None,
        }
    }
}

/// Removes groups of killed runs, with the processes that still run in them: folders `planlab-<pid>-...` whose process
/// has ended. A cgroup file system has no locks, so the name contains the process. A process of another container has
/// other numbers: its group stays, since the kernel never removes one in use.
fn sweep_dead_groups(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix("planlab-")?.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            kill_members(&entry.path());
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Kills the processes of a group that belong to this container.
fn kill_members(group: &Path) {
    let container = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
    let own = container("self");
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let members = text.lines().filter(|member| own.is_some() && container(member) == own);
    for pid in members.filter_map(|member| Pid::from_raw(member.parse().ok()?)) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The cgroup v2 folder in which groups with a memory limit can be created: it must delegate the memory controller.
fn own_v2_group() -> Option<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let handed_down = fs::read_to_string(root.join("cgroup.subtree_control")).ok()?;
    handed_down.split_whitespace().any(|controller| controller == "memory").then(|| root.to_owned())
}

/// The cgroup of one child; dropping it removes its folder.
#[derive(Debug)]
pub(crate) struct Cgroup {
    folder: PathBuf,
    mechanism: Mechanism,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Cgroup {
    /// A new group with a memory limit in bytes; `None` if the mechanism has no groups.
    pub(crate) fn create(mechanism: Mechanism, memory: Option<u64>) -> io::Result<Option<Self>> {
        let Some(root) = mechanism.cgroup_root() else { return Ok(None) };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = root.join(format!("planlab-{}-{number}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = Self { folder, mechanism };
        if let Some(bytes) = memory.map(|bytes| bytes.to_string()) {
            let (limit, swap, most) = match mechanism {
                Mechanism::CgroupV2 => ("memory.max", "memory.swap.max", "0"),
                _ => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes.as_str()),
            };
            group.write_file(limit, &bytes)?;
            // A child must not use swap to escape its limit.
            let _ = group.write_file(swap, most);
        }
        Ok(Some(group))
    }

    pub(crate) fn add_process(&self, pid: u32) -> io::Result<()> {
        self.write_file("cgroup.procs", &pid.to_string())
    }

    /// Whether the kernel killed a process of the group for using too much memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let file = match self.mechanism {
            Mechanism::CgroupV2 => "memory.events",
            _ => "memory.oom_control",
        };
        let text = fs::read_to_string(self.folder.join(file)).unwrap_or_default();
        text.lines().filter_map(|line| line.strip_prefix("oom_kill ")).any(|count| count.trim() != "0")
    }

    fn write_file(&self, file: &str, value: &str) -> io::Result<()> {
        fs::write(self.folder.join(file), value)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A group with a dying process stays busy for a moment.
        for _ in 0..50 {
            kill_members(&self.folder);
            if fs::remove_dir(&self.folder).is_ok() || !self.folder.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}
