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
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, kill_process_group,
    pidfd_open, pidfd_send_signal, set_child_subreaper, waitid, waitpid,
};

/// How long killed processes have to disappear. One that waits for a disk or a dead server takes longer.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval between two looks at them.
const LOOK: Duration = Duration::from_millis(1);

/// The children that somebody waits for.
static CHILDREN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn lock_children() -> MutexGuard<'static, BTreeSet<u32>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this process adopts orphans.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// Makes this process the parent of all orphans below it. [`end_orphans`] ends them. The first process of a container is
/// the parent of everybody's orphans, so it ends none.
///
/// # Errors
///
/// If the kernel does not support it, or this process has children already: a shell that became this process may have
/// left some, and what they start later would be adopted, too.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    let own = std::process::id();
    if own == 1 || ADOPTS.load(Ordering::Relaxed) {
        return Ok(());
    }
    let known = lock_children();
    let is_foreign = |(pid, parent): (u32, u32)| parent == own && !known.contains(&pid);
    if parent_of_processes().into_iter().any(is_foreign) {
        return Err(io::Error::other(
            "this process had children when it started, which cannot be distinguished from a planner's",
        ));
    }
    set_child_subreaper(Some(getpid()))?;
    ADOPTS.store(true, Ordering::Relaxed);
    Ok(())
}

/// Starts a child that is no orphan until [`collect_child`] has waited for it.
///
/// # Errors
///
/// If it cannot be started.
pub(crate) fn spawn_child(command: &mut Command) -> io::Result<Child> {
    // Under the lock, so that nobody sees the child before it is known.
    let mut children = lock_children();
    let child = command.spawn()?;
    children.insert(child.id());
    Ok(child)
}

/// Sends a signal to a child and to all of its group. Nobody gets it once the child was waited for, as its number may
/// be another's then.
pub(crate) fn signal_group(pid: u32, signal: Signal) {
    let children = lock_children();
    if let Some(pid) = to_pid(pid).filter(|_| children.contains(&pid))
        && (kill_process_group(pid, signal).is_err() || signal == Signal::KILL)
    {
        // It may have left its group. A second TERM would count as one more.
        let _ = kill_process(pid, signal);
    }
}

/// Whether a child has ended, which still holds its number.
///
/// # Errors
///
/// If it is no child.
pub(crate) fn has_ended(pid: u32) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    Ok(look_at(pid, options)?.is_some())
}

/// Waits until a child has ended, kills what is left of its group, and collects it.
///
/// # Errors
///
/// If it is no child.
pub(crate) fn collect_child(child: &mut Child) -> io::Result<ExitStatus> {
    let seen = look_at(child.id(), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    let mut children = lock_children();
    if let Some(group) = to_pid(child.id()).filter(|_| seen.is_ok()) {
        // The child holds the group's number until it is collected.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait();
    children.remove(&child.id());
    status
}

fn look_at(pid: u32, options: WaitIdOptions) -> io::Result<Option<rustix::process::WaitIdStatus>> {
    let pid = to_pid(pid).ok_or(Errno::CHILD)?;
    Ok(retry_on_intr(|| waitid(WaitId::Pid(pid), options))?)
}

/// Whether somebody waits for a child now.
pub(crate) fn has_children() -> bool {
    !lock_children().is_empty()
}

/// Kills all orphans that this process has adopted with all that they started, until none is left.
pub(crate) fn end_orphans() {
    let until = Instant::now() + KILL_TIMEOUT;
    while kill_all_but(&lock_children()) && Instant::now() < until {
        thread::sleep(LOOK);
    }
}

/// Kills all processes below this one if it adopts orphans. The caller ends this process; nothing starts any more.
pub(crate) fn end_all() {
    let children = lock_children();
    let until = Instant::now() + KILL_TIMEOUT;
    while kill_all_but(&BTreeSet::new()) && Instant::now() < until {
        thread::sleep(LOOK);
    }
    std::mem::forget(children);
}

/// Kills what is below this process if it adopts orphans, except `kept` children and what they started. Returns whether
/// there was anything. It may have started more meanwhile, which the next call sees.
fn kill_all_but(kept: &BTreeSet<u32>) -> bool {
    if !ADOPTS.load(Ordering::Relaxed) {
        return false;
    }
    // Most programs leave nothing, and a look at every process of the machine takes long.
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if waitid(WaitId::All, any).is_err() {
        return false;
    }
    let orphans = descendants(std::process::id(), &parent_of_processes(), kept);
    for pid in orphans.iter().filter_map(|&pid| to_pid(pid)) {
        kill_below(pid, &orphans);
        // Only a child can be waited for; anything below becomes one when its parent ends.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
    !orphans.is_empty()
}

/// Kills one of these orphans, unless it has ended and its number is another's.
fn kill_below(pid: Pid, orphans: &[u32]) {
    let is_still = || {
        let parent = parent_of(pid.as_raw_nonzero().get().cast_unsigned());
        parent.is_some_and(|parent| parent == std::process::id() || orphans.contains(&parent))
    };
    let _ = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) if is_still() => pidfd_send_signal(process, Signal::KILL),
        // The kernel is older than these handles.
        Err(Errno::NOSYS) if is_still() => kill_process(pid, Signal::KILL),
        other => other.map(drop),
    };
}

/// All processes below `root`, except `kept` children and what is below them.
fn descendants(root: u32, parents: &BTreeMap<u32, u32>, kept: &BTreeSet<u32>) -> Vec<u32> {
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
fn parent_of_processes() -> BTreeMap<u32, u32> {
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
    use std::io::Read;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::Stdio;

    use super::*;

    #[test]
    fn orphans_are_all_but_kept_children() {
        let parents = [(10, 1), (20, 10), (21, 20), (30, 10), (31, 30), (32, 31), (40, 1)];
        let kept = BTreeSet::from([20]);
        let mut found = descendants(10, &BTreeMap::from(parents), &kept);
        found.sort_unstable();
        assert_eq!(found, [30, 31, 32]);
    }

    #[test]
    fn a_collected_child_gets_no_signal() {
        let mut child = spawn_child(Command::new("sleep").arg("1000").process_group(0)).expect("it runs");
        assert!(!has_ended(child.id()).expect("ours"));
        signal_group(child.id(), Signal::KILL);
        assert_eq!(collect_child(&mut child).expect("ours").signal(), Some(9));
        assert!(has_ended(child.id()).is_err() && !lock_children().contains(&child.id()));
    }

    #[test]
    fn collecting_a_child_ends_its_group() {
        let script = "sleep 1000 & echo $!";
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0).stdout(Stdio::piped());
        let mut child = spawn_child(&mut command).expect("it runs");
        collect_child(&mut child).expect("ours");
        // The group's last process held the stream.
        let mut line = String::new();
        child.stdout.take().expect("piped").read_to_string(&mut line).expect("text");
        line.trim().parse::<u32>().expect("a number");
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
