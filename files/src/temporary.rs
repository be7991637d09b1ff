//! Temporary files and folders for unfinished output, and the rules for who may remove them.
//!
//! A temporary file or folder has a unique name, and its process holds a lock on it: on the file itself, or on the file
//! `lock` in the folder. A leftover is recognised by its name and by its free lock, which the system releases however a
//! process ends. The name has no process number, because numbers are reused and other hosts have their own. Some file
//! systems keep locks within a host, so what another boot or another host began counts as a leftover only after a day.
//!
//! The names are not secret, and anybody may write to `/tmp`. So files of other users are left alone, no link is
//! followed, and nothing is moved out of a leftover except a folder that gets its own name back.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};
use tempfile::NamedTempFile;

use crate::{FolderError, ResolvedFolder};

const PREFIX: &str = ".planlab-tmp-";
/// Number of letters of the boot id in a name; below, of the random part.
const BOOT: usize = 8;
const RANDOM: usize = 6;
/// How long output of another host or boot is left alone.
const FOREIGN_GRACE: Duration = Duration::from_secs(24 * 60 * 60);
/// Attempts to find a name. One fails if another process removes the file as a leftover before it is locked.
const TRIES: usize = 16;

/// In a folder: the locked file.
const LOCK: &str = "lock";
/// In a folder: the replaced folder, while it has no other name.
pub(crate) const OLD: &str = "old";
/// In a folder: a file with the name that [`OLD`] had, to restore it unless something else has taken the name.
pub(crate) const BACK: &str = "back";

static BEGUN: LazyLock<Mutex<Begun>> = LazyLock::new(Mutex::default);

/// The temporary files and folders that this process has begun.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    paths: BTreeMap<PathBuf, Traces>,
    /// Folders that were already searched for leftovers, with their use.
    swept: BTreeSet<(PathBuf, Use)>,
}

/// What belongs to a temporary file or folder.
#[derive(Debug, Default)]
struct Traces {
    usage: Use,
    /// Parent folders that were created for it, the innermost first. They are removed if they are empty.
    made: Vec<PathBuf>,
}

/// What a temporary folder is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// To give output its name; [`OLD`] gets its name back.
    #[default]
    Names,
    /// Nothing is kept.
    Scratch,
}

/// The lock under which temporaries get and lose their names.
pub(crate) fn lock_begun() -> MutexGuard<'static, Begun> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes everything that this process has begun and not finished. Any other thread that begins or finishes a
/// temporary now waits for ever: the caller ends the process.
pub fn abandon_all() {
    let mut begun = lock_begun();
    for (path, traces) in std::mem::take(&mut begun.paths) {
        if path.is_dir() {
            abandon_folder(&path, traces.usage);
        } else {
            let _ = fs::remove_file(&path);
        }
        remove_empty(&traces.made);
    }
    std::mem::forget(begun);
}

/// Removes a folder after renaming it, so that a thread that still writes by its path finds nothing.
fn abandon_folder(path: &Path, usage: Use) {
    let mut aside = path.as_os_str().to_owned();
    aside.push("x");
    let aside = PathBuf::from(aside);
    let is_aside = fs::rename(path, &aside).is_ok();
    discard_folder(if is_aside { &aside } else { path }, usage);
    if is_aside && path.exists() {
        // Another thread created it again, without a lock by which the next run could recognise a leftover.
        let _ = fs::remove_dir_all(path);
    }
}

/// Waits for ever if another thread has called [`abandon_all`], so that no errors are reported after that.
pub fn settle_after_abandon() {
    drop(lock_begun());
}

/// Creates a folder and its missing parents, unless another thread has called [`abandon_all`]; that call and this one
/// exclude each other, so nothing that was removed comes back.
pub fn create_folders(path: &Path) -> io::Result<()> {
    let _begun = lock_begun();
    fs::create_dir_all(path)
}

/// Whether a name belongs to a temporary file or folder.
#[must_use]
pub fn is_temporary(name: &OsStr) -> bool {
    boot_in(name).is_some()
}

/// The boot id in the name of a temporary file or folder.
fn boot_in(name: &OsStr) -> Option<&str> {
    let (boot, random) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    let is_boot = boot.len() == BOOT && boot.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_random = random.len() >= RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_boot && is_random).then_some(boot)
}

/// The boot id of the kernel; zeros if it is not available.
fn boot_id() -> &'static str {
    static NUMBER: LazyLock<String> = LazyLock::new(|| {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        text.get(..BOOT).map_or_else(|| UNKNOWN.to_owned(), str::to_owned)
    });
    &NUMBER
}

const UNKNOWN: &str = "00000000";

/// A hidden file that is removed when dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    inner: Option<NamedTempFile>,
}

impl TemporaryFile {
    /// A new file with the permissions of an ordinary one.
    pub(crate) fn create_in(folder: &Path) -> io::Result<Self> {
        let mut begun = lock_begun();
        begun.sweep_remains(folder, Use::Names);
        for _ in 0..TRIES {
            let open = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
            let file = named_builder().make_in(folder, open)?;
            if is_held(file.as_file(), file.path()) {
                begun.paths.insert(file.path().to_owned(), Traces::default());
                return Ok(Self { inner: Some(file) });
            }
        }
        Err(no_name())
    }

    pub(crate) fn file(&mut self) -> io::Result<&mut File> {
        self.inner.as_mut().map(NamedTempFile::as_file_mut).ok_or_else(no_name)
    }

    /// Gives the file its name, replacing any file that had it.
    pub(crate) fn persist_as(mut self, to: &Path) -> io::Result<()> {
        let mut begun = lock_begun();
        let file = self.inner.take().ok_or_else(no_name)?;
        let path = file.path().to_owned();
        let persisted = file.persist(to).map(drop).map_err(|error| error.error);
        begun.paths.remove(&path);
        persisted
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let mut begun = lock_begun();
        if let Some(file) = self.inner.take() {
            begun.paths.remove(file.path());
        }
    }
}

/// Removes what killed processes have left beside a place; once per process. Creating a temporary folder there does the
/// same.
///
/// # Errors
///
/// [`FolderError::InUse`] for the root, which lies in no folder.
pub fn remove_leftovers(place: &ResolvedFolder) -> Result<(), FolderError> {
    let parent = place.parent()?;
    lock_begun().sweep_remains(parent, Use::Names);
    Ok(())
}

/// A hidden folder that is removed with its content when dropped.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    /// Open, so that it is found if a program moves it.
    folder: File,
    _lock: File,
}

impl TemporaryFolder {
    /// A new folder for files that are not kept, private to this user.
    pub fn scratch_in(folder: &Path) -> io::Result<Self> {
        lock_begun().begin_folder(folder, Use::Scratch, Vec::new())
    }

    /// A new folder beside a place, private to this user. Missing parents of the place are created, and removed with
    /// this folder if they are empty by then.
    ///
    /// # Errors
    ///
    /// [`FolderError::InUse`] for the root, which lies in no folder; [`FolderError::Io`].
    pub fn beside(place: &ResolvedFolder) -> Result<Self, FolderError> {
        let parent = place.parent()?;
        let mut begun = lock_begun();
        let made = make_missing(parent).map_err(FolderError::from_io("create", parent))?;
        let folder = begun.begin_folder(parent, Use::Names, made);
        folder.map_err(FolderError::from_io("create a folder in", parent))
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// From now on the folder is removed only if it is empty.
    pub(crate) fn keep_unless_empty(&self) -> io::Result<()> {
        fs::remove_file(self.path.join(LOCK))
    }

    /// Moves a file or folder out of this one, but not while the process is being ended.
    pub fn hand_out(&self, name: &str, to: &Path) -> io::Result<()> {
        let _begun = lock_begun();
        fs::rename(self.path.join(name), to)
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let mut begun = lock_begun();
        let traces = begun.paths.remove(&self.path).unwrap_or_default();
        if traces.usage == Use::Scratch {
            discard_scratch(&self.path, &self.folder);
        } else {
            discard_folder(&self.path, traces.usage);
        }
        remove_empty(&traces.made);
    }
}

fn named_builder() -> tempfile::Builder<'static, 'static> {
    static START: LazyLock<String> = LazyLock::new(|| format!("{PREFIX}{}-", boot_id()));
    let mut builder = tempfile::Builder::new();
    builder.prefix(START.as_str()).rand_bytes(RANDOM);
    builder
}

fn no_name() -> io::Error {
    io::Error::other("other processes remove every temporary file as soon as it is there")
}

/// Creates a folder and its missing parents, all or none; returns the created ones, the innermost first.
fn make_missing(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
    for folder in missing.into_iter().rev() {
        match fs::create_dir(folder) {
            Ok(()) => made.insert(0, folder.to_owned()),
            Err(_) if folder.is_dir() => {}
            Err(error) => {
                remove_empty(&made);
                return Err(error);
            }
        }
    }
    Ok(made)
}

/// Removes folders up to the first that is not empty.
fn remove_empty(folders: &[PathBuf]) {
    let _ = folders.iter().try_for_each(fs::remove_dir);
}

/// Creates the lock file of a new folder.
fn new_lock(folder: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(folder.join(LOCK))
}

/// Locks a new file and checks that it still exists: until then it looked like a leftover. On a file system without
/// locks no process takes it for one.
fn is_held(lock: &File, path: &Path) -> bool {
    !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) && path.exists()
}

impl Begun {
    fn begin_folder(&mut self, folder: &Path, usage: Use, made: Vec<PathBuf>) -> io::Result<TemporaryFolder> {
        self.sweep_remains(folder, usage);
        let begun = locked_folder(folder).inspect_err(|_| remove_empty(&made))?;
        self.paths.insert(begun.path.clone(), Traces { usage, made });
        Ok(begun)
    }

    /// Removes what killed processes have left in a folder; once per process.
    fn sweep_remains(&mut self, folder: &Path, usage: Use) {
        let Ok(folder) = folder.canonicalize() else { return };
        let Ok(entries) = fs::read_dir(&folder) else { return };
        if !self.swept.insert((folder, usage)) {
            return;
        }
        for entry in entries.filter_map(Result::ok) {
            let name = entry.file_name();
            if boot_in(&name).is_some_and(|boot| is_of_the_past(boot, &entry)) {
                // If the lock is not available, for any reason, the leftover stays.
                let _ = remove_leftover(&entry.path(), usage);
            }
        }
    }
}

fn locked_folder(parent: &Path) -> io::Result<TemporaryFolder> {
    for _ in 0..TRIES {
        // Only this user may open it.
        let private = Permissions::from_mode(0o700);
        let path = named_builder().permissions(private).tempdir_in(parent)?.keep();
        match new_lock(&path) {
            Ok(lock) if is_held(&lock, &path) => {
                let folder = File::open(&path)?;
                return Ok(TemporaryFolder { path, folder, _lock: lock });
            }
            // Another process removed it as a leftover before it was locked.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let _ = fs::remove_dir_all(&path);
                return Err(error);
            }
        }
    }
    Err(no_name())
}

/// Whether the lock alone decides: the file is of this boot, or too old for another host to be still writing it.
fn is_of_the_past(of: &str, entry: &fs::DirEntry) -> bool {
    let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
    (of == boot_id() && of != UNKNOWN) || age().is_some_and(|age| age > FOREIGN_GRACE)
}

/// Removes a file or folder of this user if no process holds its lock.
fn remove_leftover(path: &Path, usage: Use) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_file() {
        let file = open_in(CWD, path, OFlags::RDWR)?;
        if is_ours(&file)? && file.metadata()?.is_file() && file.try_lock().is_ok() {
            fs::remove_file(path)?;
        }
        return Ok(());
    }
    let folder = open_in(CWD, path, OFlags::DIRECTORY)?;
    if !is_ours(&folder)? {
        return Ok(());
    }
    let lock = match open_in(&folder, Path::new(LOCK), OFlags::RDWR) {
        // Without a lock it is removed only if empty: its process was about to lock it, or was removing it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return fs::remove_dir(path),
        lock => lock?,
    };
    // A leftover with [`BACK`] waits for a run that writes there, which restores the earlier folder's name.
    let waits = usage == Use::Scratch && fs::symlink_metadata(path.join(BACK)).is_ok();
    if !waits && lock.metadata()?.is_file() && lock.try_lock().is_ok() {
        discard_folder(path, usage);
    }
    Ok(())
}

/// Opens an entry of an open folder, or a path. Does not follow links, and does not wait for the other end of a pipe.
fn open_in(folder: impl AsFd, path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(folder, path, flags, Mode::empty())?.into())
}

fn is_ours(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.uid() == rustix::process::geteuid().as_raw())
}

/// Removes a folder for files that are not kept, whatever a program has done to it: moved it, removed its lock, or taken
/// the permission to look into it.
fn discard_scratch(path: &Path, folder: &File) {
    let moved = current_path(folder).filter(|now| now != path);
    for folder in [Some(path), moved.as_deref()].into_iter().flatten() {
        if remove_all(folder).is_err() {
            open_up(folder);
            // If it cannot be removed now, the next run finds it as a leftover.
            let _ = remove_all(folder);
        }
    }
}

/// The path of an open folder now; `None` if it has no name any more.
fn current_path(folder: &File) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd())).ok()?;
    let (own, there) = (folder.metadata().ok()?, fs::symlink_metadata(&path).ok()?);
    ((own.dev(), own.ino()) == (there.dev(), there.ino())).then_some(path)
}

/// Removes a folder with its content, the lock last.
fn remove_all(folder: &Path) -> io::Result<()> {
    if folder.join(LOCK).exists() { remove_folder(folder) } else { fs::remove_dir_all(folder) }
}

/// Gives this user all permissions for a folder and those below it.
fn open_up(folder: &Path) {
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir());
    if is_folder && fs::set_permissions(folder, Permissions::from_mode(0o700)).is_ok() {
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        entries.for_each(|entry| open_up(&entry.path()));
    }
}

/// Removes a temporary folder. First, the folder whose name it took gets the name back, unless something else has it.
fn discard_folder(folder: &Path, usage: Use) {
    if usage == Use::Scratch || give_back(folder).is_ok() {
        // If it cannot be removed now, the next run finds it as a leftover.
        let _ = remove_folder(folder);
    }
}

/// Removes a folder, with the lock last: a later run removes a folder without a lock only if it is empty.
fn remove_folder(folder: &Path) -> io::Result<()> {
    let lock = folder.join(LOCK);
    if !lock.exists() {
        return fs::remove_dir(folder);
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(&path)?,
            false if path == lock => {}
            false => fs::remove_file(&path)?,
        }
    }
    fs::remove_file(lock)?;
    fs::remove_dir(folder)
}

/// Gives the folder [`OLD`] the name in [`BACK`] back, if both exist and nothing else has the name.
fn give_back(folder: &Path) -> io::Result<()> {
    let old = folder.join(OLD);
    if !fs::symlink_metadata(&old).is_ok_and(|old| old.is_dir()) {
        return Ok(());
    }
    let mut name = String::new();
    match open_in(CWD, &folder.join(BACK), OFlags::RDONLY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        back => back?.read_to_string(&mut name)?,
    };
    let parent = folder.parent().filter(|_| is_name(&name)).ok_or(io::ErrorKind::InvalidData)?;
    let target = parent.join(name);
    if fs::symlink_metadata(&target).is_ok() { Ok(()) } else { fs::rename(old, target) }
}

/// Whether a text is a plain name in a folder, rather than a path that leads out of it.
fn is_name(text: &str) -> bool {
    let mut parts = Path::new(text).components();
    matches!(parts.next(), Some(Component::Normal(name)) if name == text) && parts.next().is_none()
}

#[cfg(test)]
mod tests;
