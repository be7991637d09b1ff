//! What is not whole yet, and who may remove it.
//!
//! A temporary file or folder has a name that nothing else has, and its process holds a lock on it: on the
//! file itself, or on the file `lock` in the folder. So a leftover is known by its name and by its lock, which
//! the system frees when a process ends, however it ends. There is no process number in the name: numbers are
//! used again, and other hosts have their own. Some file systems keep locks within a host: what another boot
//! of this host or another host began is a leftover after a day only.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::NamedTempFile;

const PREFIX: &str = ".planlab-tmp-";
/// Letters of the boot's number in a name, and of the random part.
const BOOT: usize = 8;
const RANDOM: usize = 6;
/// How long what another host or boot began is left alone.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);
/// Each time that a name is lost to a process that took it for a leftover, another is drawn.
const TRIES: usize = 16;

/// In a folder: what is locked.
const LOCK: &str = "lock";
/// In a folder: the folder that is replaced, while it has no other name.
pub(crate) const OLD: &str = "old";
/// In a folder: the name that [`OLD`] had, for as long as nothing else has it.
pub(crate) const BACK: &str = "back";

static BEGUN: LazyLock<Mutex<Begun>> = LazyLock::new(Mutex::default);

/// What this process has begun.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    paths: BTreeSet<PathBuf>,
    /// Folders that leftovers were looked for in.
    swept: BTreeSet<PathBuf>,
}

/// Temporaries get their names, and lose them, under this lock alone.
pub(crate) fn begun() -> MutexGuard<'static, Begun> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all that this process has begun and not ended. Whatever would begin or end something waits from now
/// on and for ever: the caller ends the process.
pub fn abandon() {
    let mut begun = begun();
    for path in std::mem::take(&mut begun.paths) {
        if path.is_dir() { abandon_folder(&path) } else { drop(fs::remove_file(&path)) }
    }
    std::mem::forget(begun);
}

/// Under another name first: whoever still writes to it by its path writes to nothing.
fn abandon_folder(path: &Path) {
    let mut aside = path.as_os_str().to_owned();
    aside.push("x");
    let aside = PathBuf::from(aside);
    let is_aside = fs::rename(path, &aside).is_ok();
    discard(if is_aside { &aside } else { path });
    if path.exists() {
        discard(path);
    }
}

/// Waits for ever where another thread has called [`abandon`]: what goes wrong after that is no error to tell.
pub fn settle() {
    drop(begun());
}

/// Whether a name is one of a temporary file or folder.
#[must_use]
pub fn is_temporary(name: &OsStr) -> bool {
    boot_in(name).is_some()
}

/// The boot's number in the name of a temporary file or folder.
fn boot_in(name: &OsStr) -> Option<&str> {
    let (boot, random) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    let is_boot = boot.len() == BOOT && boot.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_random = random.len() >= RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_boot && is_random).then_some(boot)
}

/// The number that the kernel drew when it began; zeros where it does not tell.
fn boot() -> &'static str {
    static NUMBER: LazyLock<String> = LazyLock::new(|| {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.get(..BOOT).map_or_else(|| UNKNOWN.to_owned(), str::to_owned)
    });
    &NUMBER
}

const UNKNOWN: &str = "00000000";

/// A hidden file that goes when it is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    inner: Option<NamedTempFile>,
}

impl TemporaryFile {
    /// A new file with what an ordinary one gets for its permissions.
    pub(crate) fn create_in(folder: &Path) -> io::Result<Self> {
        let mut begun = begun();
        begun.sweep(folder);
        for _ in 0..TRIES {
            let open = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
            let file = named().make_in(folder, open)?;
            if is_held(file.as_file(), file.path()) {
                begun.paths.insert(file.path().to_owned());
                return Ok(Self { inner: Some(file) });
            }
        }
        Err(no_name())
    }

    pub(crate) fn file(&mut self) -> io::Result<&mut File> {
        self.inner.as_mut().map(NamedTempFile::as_file_mut).ok_or_else(no_name)
    }

    /// Gives the file its name, whatever had it before.
    pub(crate) fn persist(mut self, to: &Path) -> io::Result<()> {
        let mut begun = begun();
        let file = self.inner.take().ok_or_else(no_name)?;
        let path = file.path().to_owned();
        let persisted = file.persist(to).map(drop).map_err(|error| error.error);
        begun.paths.remove(&path);
        persisted
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let mut begun = begun();
        if let Some(file) = self.inner.take() {
            begun.paths.remove(file.path());
        }
    }
}

/// A hidden folder that goes when it is dropped, with all that is in it.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    _lock: File,
}

impl TemporaryFolder {
    /// A new folder, private to this user.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn create_in(folder: &Path) -> io::Result<Self> {
        let mut begun = begun();
        begun.sweep(folder);
        for _ in 0..TRIES {
            let path = named().tempdir_in(folder)?.keep();
            match lock_of(&path) {
                Ok(lock) if is_held(&lock, &path) => {
                    begun.paths.insert(path.clone());
                    return Ok(Self { path, _lock: lock });
                }
                // Another process took it for a leftover before it was locked.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    discard(&path);
                    return Err(error);
                }
            }
        }
        Err(no_name())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames what is in the folder; not while the process is being ended.
    ///
    /// # Errors
    ///
    /// What the file system says.
    pub fn hand_out(&self, name: &str, to: &Path) -> io::Result<()> {
        let _begun = begun();
        fs::rename(self.path.join(name), to)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let mut begun = begun();
        discard(&self.path);
        begun.paths.remove(&self.path);
    }
}

fn named() -> tempfile::Builder<'static, 'static> {
    static START: LazyLock<String> = LazyLock::new(|| format!("{PREFIX}{}-", boot()));
    let mut builder = tempfile::Builder::new();
    builder.prefix(START.as_str()).rand_bytes(RANDOM);
    builder
}

fn no_name() -> io::Error {
    io::Error::other("other processes remove every temporary file as soon as it is there")
}

fn lock_of(folder: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(folder.join(LOCK))
}

/// Locks what was made, and looks whether it is still there: until then it looked like a leftover. Where there
/// are no locks nobody takes it for one.
fn is_held(lock: &File, path: &Path) -> bool {
    !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) && path.exists()
}

impl Begun {
    /// Removes what killed processes have left in a folder; once in a process.
    fn sweep(&mut self, folder: &Path) {
        let Ok(folder) = folder.canonicalize() else { return };
        let Ok(entries) = fs::read_dir(&folder) else { return };
        if !self.swept.insert(folder) {
            return;
        }
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            if boot_in(&name).is_some_and(|boot| is_of_the_past(boot, &entry)) {
                remove_leftover(&entry.path());
            }
        }
    }
}

/// Whether the lock decides alone: of this boot, or so old that no other host is at work on it.
fn is_of_the_past(of: &str, entry: &fs::DirEntry) -> bool {
    let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
    (of == boot() && of != UNKNOWN) || age().is_some_and(|age| age > PATIENCE)
}

/// Removes a file or folder that no process holds. Who cannot have the lock leaves it, for whatever reason.
fn remove_leftover(path: &Path) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    let lock = match metadata.file_type() {
        kind if kind.is_dir() => lock_of(path),
        kind if kind.is_file() => OpenOptions::new().read(true).write(true).open(path),
        _ => return,
    };
    if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
        if metadata.is_dir() { discard(path) } else { drop(fs::remove_file(path)) }
    }
}

/// Removes a temporary folder. What it took the name from gets it back first, where nothing else has it.
fn discard(folder: &Path) {
    if let (Ok(name), Some(parent)) = (fs::read_to_string(folder.join(BACK)), folder.parent()) {
        let (old, target) = (folder.join(OLD), parent.join(name));
        if old.exists() && !target.exists() && fs::rename(&old, &target).is_err() {
            return;
        }
    }
    // A folder that cannot be removed now is a leftover for the next run.
    let _ = fs::remove_dir_all(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(boot: &str, random: &str) -> String {
        format!("{PREFIX}{boot}-{random}")
    }

    /// Names of what is in a folder.
    fn there(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("readable").filter_map(Result::ok);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn names_are_told_from_others() {
        assert!(is_temporary(OsStr::new(&name("0123abcd", "aB3xYz"))));
        assert!(is_temporary(OsStr::new(&name("0123abcd", "aB3xYzx"))));
        for other in [".planlab-tmp-", ".planlab-tmp-notes", ".planlab-notes", "0123abcd-aB3xYz"] {
            assert!(!is_temporary(OsStr::new(other)), "{other}");
        }
        assert!(!is_temporary(OsStr::new(&name("0123abcd", "notes.txt"))));
    }

    #[test]
    fn what_is_dropped_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = TemporaryFile::create_in(folder.path()).expect("writable");
        let inner = TemporaryFolder::create_in(folder.path()).expect("writable");
        fs::write(inner.path().join("x"), "x").expect("writable");
        assert_eq!(there(folder.path()).len(), 2);
        drop((file, inner));
        assert!(there(folder.path()).is_empty());
    }

    #[test]
    fn leftovers_go_and_all_else_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let (dead, empty) = (name(boot(), "deadAA"), name(boot(), "deadBB"));
        fs::write(path(&dead), "half").expect("writable");
        fs::create_dir(path(&empty)).expect("writable");
        // One that lives: another process holds the lock; an open file of ours is no different.
        let (alive, busy) = (name(boot(), "aliveA"), name(boot(), "aliveB"));
        let held = File::create(path(&alive)).expect("writable");
        held.try_lock().expect("free");
        fs::create_dir(path(&busy)).expect("writable");
        let inside = lock_of(&path(&busy)).expect("writable");
        inside.try_lock().expect("free");
        // Another host's, which is young; and what is none of ours.
        let elsewhere = name("ffffffff", "hostAA");
        fs::write(path(&elsewhere), "half").expect("writable");
        fs::write(path(".planlab-tmp-notes"), "mine").expect("writable");
        drop(TemporaryFile::create_in(folder.path()).expect("writable"));
        let mut left = vec![".planlab-tmp-notes".to_owned(), alive, busy, elsewhere.clone()];
        left.sort();
        assert_eq!(there(folder.path()), left);
        let long_ago = std::time::SystemTime::now() - 2 * PATIENCE;
        let old = File::options().write(true).open(path(&elsewhere)).expect("ours");
        old.set_modified(long_ago).expect("ours");
        drop(old);
        begun().swept.clear();
        drop(TemporaryFile::create_in(folder.path()).expect("writable"));
        assert!(!path(&elsewhere).exists());
    }

    #[test]
    fn a_replaced_folder_gets_its_name_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let left = folder.path().join(name(boot(), "deadAA"));
        fs::create_dir_all(left.join(OLD)).expect("writable");
        fs::write(left.join(OLD).join("page"), "old").expect("writable");
        fs::write(left.join(BACK), "out").expect("writable");
        drop(TemporaryFile::create_in(folder.path()).expect("writable"));
        assert_eq!(there(folder.path()), ["out"]);
        assert_eq!(fs::read_to_string(folder.path().join("out/page")).expect("there"), "old");
    }
}
