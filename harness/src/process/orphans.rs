//! Ends what programs leave behind. A process that starts programs of others adopts their orphans: whatever a program
//! does (leave its process group, start a session, fork twice, kill its parent), its processes stay below this one.
//!
//! ```text
//!   this process ──> child that somebody waits for (kept, with all below it)
//!                ──> orphan of a program that has ended (killed, with all below it)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, set_child_subreaper, waitid,
    waitpid,
};

/// How long killed processes have to disappear. One that waits for a disk or a dead server takes longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The interval between two looks at them.
const LOOK: Duration = Duration::from_millis(1);

/// The children that somebody waits for.
static CHILDREN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn children() -> MutexGuard<'static, BTreeSet<u32>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The children that were there before this process adopted orphans, which it does. A shell that became this process may
/// have left some.
static EARLIER: OnceLock<BTreeSet<u32>> = OnceLock::new();

/// Makes this process the parent of all orphans below it. [`end_orphans`] ends them. The first process of a container is
/// the parent of everybody's orphans, so it ends none.
///
/// # Errors
///
/// If the kernel does not support it.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    let own = std::process::id();
    if own == 1 {
        return Ok(());
    }
    let children = processes().into_iter().filter(|&(_, parent)| parent == own).map(|(pid, _)| pid);
    EARLIER.get_or_init(|| children.collect());
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Starts a child that is no orphan until [`forget`] is called.
///
/// # Errors
///
/// If it cannot be started.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    // Under the lock, so that nobody sees the child before it is known.
    let mut children = children();
    let child = command.spawn()?;
    children.insert(child.id());
    Ok(child)
}

/// Forgets a child that was waited for.
pub(crate) fn forget(pid: u32) {
    children().remove(&pid);
}

/// Whether somebody waits for a child now.
pub(crate) fn has_children() -> bool {
    !children().is_empty()
}

/// Kills all orphans that this process has adopted with all that they started, until none is left.
pub(crate) fn end_orphans() {
    let until = Instant::now() + PATIENCE;
    while kill_all_but(&children()) && Instant::now() < until {
        thread::sleep(LOOK);
    }
}

/// Kills all processes below this one if it adopts orphans. The caller ends this process; nothing starts any more.
pub(crate) fn end_all() {
    let children = children();
    let until = Instant::now() + PATIENCE;
    while kill_all_but(&BTreeSet::new()) && Instant::now() < until {
        thread::sleep(LOOK);
    }
    std::mem::forget(children);
}

/// Kills what is below this process if it adopts orphans, except `kept` and earlier children and what they started.
/// Returns whether there was anything. It may have started more meanwhile, which the next call sees.
fn kill_all_but(kept: &BTreeSet<u32>) -> bool {
    let Some(earlier) = EARLIER.get() else { return false };
    // Most programs leave nothing, and a look at every process of the machine takes long.
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if waitid(WaitId::All, any).is_err() {
        return false;
    }
    let orphans = below(std::process::id(), &processes(), &(kept | earlier));
    for pid in orphans.iter().filter_map(|&pid| to_pid(pid)) {
        let _ = kill_process(pid, Signal::KILL);
        // Only a child can be waited for; anything below becomes one when its parent ends.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
    !orphans.is_empty()
}

/// All processes below `root`, except `kept` children and what is below them.
fn below(root: u32, parents: &BTreeMap<u32, u32>, kept: &BTreeSet<u32>) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        let of = parents.iter().filter(|&(pid, of)| *of == parent && !kept.contains(pid));
        found.extend(of.map(|(&pid, _)| pid));
    }
    found.split_off(1)
}

/// The parent of every process.
fn processes() -> BTreeMap<u32, u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything, even a closing bracket; the state and the parent follow it.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orphans_are_all_but_kept_children() {
        let parents = [(10, 1), (20, 10), (21, 20), (30, 10), (31, 30), (32, 31), (40, 1)];
        let kept = BTreeSet::from([20]);
        let mut found = below(10, &BTreeMap::from(parents), &kept);
        found.sort_unstable();
        assert_eq!(found, [30, 31, 32]);
    }

    #[test]
    fn parent_is_read_whatever_the_name() {
        let own = std::process::id();
        let mut child = Command::new("sleep").arg("1000").spawn().expect("it runs");
        assert_eq!(parent_of(child.id()), Some(own));
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert_eq!(parent_of(child.id()), None);
    }
}
