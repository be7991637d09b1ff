//! A folder that one writer owns.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::temporary::{BACK, OLD, lock_begun};
use crate::{FolderError, ResolvedFolder, TemporaryFolder, is_temporary};

/// The version of the manifest format.
const VERSION: u64 = 1;
/// The name of the new folder inside the temporary folder, while it is filled.
const NEW: &str = "new";

/// A folder that is filled first and then appears, or replaces an earlier one, as a whole.
///
/// Its manifest, the file `<kind>.json`, names the writer and lists the files: `{"planlab": "<kind>", "version": 1,
/// "files": [...]}`. Only a folder of the same kind that holds nothing but these files is replaced.
#[derive(Debug)]
pub struct NewFolder {
    place: ResolvedFolder,
    kind: &'static str,
    temporary: TemporaryFolder,
    files: BTreeSet<String>,
}

impl NewFolder {
    /// Checks that the folder may be written, and creates a temporary folder beside it. `reads` are the paths that are
    /// read to fill it.
    ///
    /// # Errors
    ///
    /// As [`ResolvedFolder::resolve_target`] and [`ResolvedFolder::check_replaceable`]; [`FolderError::Foreign`] and [`FolderError::NoList`] if the
    /// folder holds something else; [`FolderError::Io`] if the folder beside it cannot be created.
    pub fn create<P: AsRef<Path>>(
        named: &Path,
        kind: &'static str,
        reads: &[P],
    ) -> Result<Self, FolderError> {
        let place = ResolvedFolder::resolve_target(named, reads)?;
        place.check_replaceable()?;
        check_own(place.target(), place.named(), kind)?;
        let temporary = TemporaryFolder::beside(&place)?;
        // A folder inside, because temporary folders are private and the result is not.
        let new = fs::create_dir(temporary.path().join(NEW));
        new.map_err(FolderError::from_io("create", place.named()))?;
        Ok(Self { place, kind, temporary, files: BTreeSet::new() })
    }

    /// Puts a file into the folder; `name` is its path there, parts separated by `/`.
    pub fn put_file(&mut self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        let mut path = self.temporary.path().join(NEW);
        let (folders, _) = name.rsplit_once('/').unwrap_or(("", name));
        // One by one, so that an abandoned folder is not created again.
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            path.push(folder);
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(FolderError::from_io("create", &self.final_path(name))(error));
                }
                _ => {}
            }
        }
        let path = self.temporary.path().join(NEW).join(name);
        fs::write(&path, content).map_err(FolderError::from_io("write", &self.final_path(name)))?;
        self.files.insert(name.to_owned());
        Ok(())
    }

    /// The path that a file will have, for messages.
    fn final_path(&self, name: &str) -> PathBuf {
        self.place.named().join(name)
    }

    /// The number of files put so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether no file was put.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Writes the manifest, with the extra fields of `about`, and gives the folder its name. Readers see either the
    /// earlier folder or this one, and a killed process leaves one of the two. Returns the number of files, including
    /// the manifest.
    ///
    /// # Errors
    ///
    /// As [`NewFolder::create`]; the earlier folder is then unchanged. [`FolderError::Kept`] if the folder was
    /// replaced, but not all of the earlier one could be removed.
    pub fn commit(mut self, about: Map<String, Value>) -> Result<usize, FolderError> {
        let mut manifest = json!({ "planlab": self.kind, "version": VERSION, "files": self.files });
        if let Value::Object(manifest) = &mut manifest {
            manifest.extend(about);
        }
        self.put_file(&manifest_of(self.kind), format!("{manifest:#}\n").as_bytes())?;
        self.sync_files()?;
        // The folder may have changed since it was created.
        self.check_own(self.place.target())?;
        self.swap_folders()?;
        Ok(self.files.len())
    }

    /// Syncs all files to disk: a name that survives a power cut must not lead to empty files.
    fn sync_files(&self) -> Result<(), FolderError> {
        let new = self.temporary.path().join(NEW);
        let mut paths = BTreeSet::from([Path::new("")]);
        for file in &self.files {
            paths.extend(Path::new(file).ancestors());
        }
        let sync = |path: &Path| File::open(new.join(path))?.sync_all();
        paths.into_iter().try_for_each(|path| {
            sync(path).map_err(FolderError::from_io("write", &self.place.named().join(path)))
        })
    }

    fn check_own(&self, folder: &Path) -> Result<BTreeSet<String>, FolderError> {
        check_own(folder, self.place.named(), self.kind)
    }

    /// Replaces the old folder with the new one, then checks the old one again: while it had its name, anybody could
    /// put a file into it.
    fn swap_folders(&self) -> Result<(), FolderError> {
        let _begun = lock_begun();
        let (new, target) = (self.temporary.path().join(NEW), self.place.target());
        let io = |error| FolderError::from_io("replace", self.place.named())(error);
        let Some(old) = self.take_name(&new).map_err(io)? else { return Ok(()) };
        let own = match self.check_own(&old) {
            Ok(own) => own,
            Err(error) => {
                // If it cannot get its name back, all of it is kept.
                let back = self.take_back(&old, &new);
                back.or_else(|_| self.remove_listed(&old, &BTreeSet::new()))?;
                return Err(error);
            }
        };
        // The new name must be on disk before the old folder is removed.
        let mut parents = target.parent().into_iter().chain([self.temporary.path()]);
        parents.try_for_each(|folder| File::open(folder)?.sync_all()).map_err(io)?;
        self.remove_listed(&old, &own)
    }

    /// Gives the new folder its name; returns the new path of the folder that had the name.
    fn take_name(&self, new: &Path) -> io::Result<Option<PathBuf>> {
        let target = self.place.target();
        if let Ok(there) = fs::metadata(target) {
            fs::set_permissions(new, there.permissions())?;
        }
        match fs::rename(new, target) {
            // The rename works if the target is empty or missing.
            Ok(()) => return Ok(None),
            Err(error) if !target.is_dir() => return Err(error),
            Err(_) => {}
        }
        if exchange_names(new, target).is_ok() {
            return Ok(Some(new.to_owned()));
        }
        self.swap_in_steps(new, target).map(Some)
    }

    /// For file systems that cannot exchange two folders at once. If a run is killed in between, the next run gives the
    /// old folder its name back.
    fn swap_in_steps(&self, new: &Path, target: &Path) -> io::Result<PathBuf> {
        let name = target.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| io::Error::other("the folder's name is no text"))?;
        let (back, old) = (self.temporary.path().join(BACK), self.temporary.path().join(OLD));
        fs::write(&back, name)?;
        fs::rename(target, &old)?;
        // If this fails, dropping the temporary folder restores the name.
        fs::rename(new, target)?;
        Ok(old)
    }

    /// Gives the old folder its name back. Files that others put into the new one meanwhile are kept.
    fn take_back(&self, old: &Path, new: &Path) -> io::Result<()> {
        let target = self.place.target();
        if old == new {
            exchange_names(new, target)?;
        } else {
            fs::rename(target, new)?;
            fs::rename(old, target)?;
        }
        if first_foreign(new, &self.files)?.is_some() {
            self.keep_foreign(new)?;
        }
        Ok(())
    }

    /// Removes a folder file by file. Files that are not on the list are kept, whenever they appeared.
    fn remove_listed(&self, folder: &Path, own: &BTreeSet<String>) -> Result<(), FolderError> {
        // What cannot be removed here, and is ours, is removed with the temporary folder.
        let _ = remove_own(folder, Path::new(""), own);
        let io = |error| FolderError::from_io("replace", self.place.named())(error);
        match first_foreign(folder, own).map_err(io)? {
            Some(file) => {
                let kept = self.keep_foreign(folder).map_err(io)?;
                Err(FolderError::Kept { path: self.place.named().to_owned(), file, kept })
            }
            None => Ok(()),
        }
    }

    /// Gives a folder with foreign files a visible name (`<name>.kept-<n>`). If that fails, it stays where it is.
    fn keep_foreign(&self, folder: &Path) -> io::Result<PathBuf> {
        let name = |number: u32| {
            let mut name = self.place.target().as_os_str().to_owned();
            name.push(format!(".kept-{number}"));
            PathBuf::from(name)
        };
        let free = (1..).map(name).find(|kept| fs::symlink_metadata(kept).is_err());
        let kept = free.ok_or(io::ErrorKind::AlreadyExists)?;
        if let Err(error) = fs::rename(folder, &kept) {
            self.temporary.keep_unless_empty()?;
            return Err(error);
        }
        Ok(kept)
    }
}

/// Removes the listed files, then the empty folders.
fn remove_own(folder: &Path, inside: &Path, own: &BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(inside))? {
        let entry = entry?;
        let (path, kind) = (inside.join(entry.file_name()), entry.file_type()?);
        match path.to_str() {
            Some(name) if kind.is_dir() && has_folder(own, name) => remove_own(folder, &path, own)?,
            Some(name) if kind.is_file() && own.contains(name) => fs::remove_file(entry.path())?,
            _ => {}
        }
    }
    match fs::remove_dir(folder.join(inside)) {
        Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error),
        _ => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn exchange_names(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange_names(_a: &Path, _b: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn manifest_of(kind: &str) -> String {
    format!("{kind}.json")
}

/// Refuses a folder that holds anything except the files of an earlier run of the same writer; returns the list of
/// those. `named` is the folder's name in messages.
fn check_own(path: &Path, named: &Path, kind: &'static str) -> Result<BTreeSet<String>, FolderError> {
    let manifest = path.join(manifest_of(kind));
    let io = |error| FolderError::from_io("read", named)(error);
    if first_foreign(path, &BTreeSet::new()).map_err(io)?.is_none() {
        return Ok(BTreeSet::new());
    }
    let own = match fs::read(&manifest) {
        Ok(bytes) => listed_files(&bytes, kind),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(BTreeSet::new()),
        Err(error) => return Err(FolderError::from_io("read", &manifest)(error)),
    };
    let Some(mut own) = own else {
        let manifest = named.join(manifest_of(kind));
        return Err(FolderError::NoList { path: named.to_owned(), manifest, kind });
    };
    if !own.is_empty() {
        own.insert(manifest_of(kind));
    }
    match first_foreign(path, &own).map_err(io)? {
        Some(file) => Err(FolderError::Foreign { path: named.to_owned(), file, kind }),
        None => Ok(own),
    }
}

/// The files that a manifest of this kind lists.
fn listed_files(manifest: &[u8], kind: &str) -> Option<BTreeSet<String>> {
    let manifest: Value = serde_json::from_slice(manifest).ok()?;
    let is_own = manifest["planlab"] == kind && manifest["version"] == VERSION;
    let files = manifest["files"].as_array().filter(|_| is_own)?;
    files.iter().map(|file| file.as_str().map(str::to_owned)).collect()
}

/// The first file below a folder that is not in the list, in the order of their paths. A folder counts as a file if it
/// is empty or not on the list. Temporary files are skipped.
///
/// # Errors
///
/// Errors of the file system. A missing folder counts as empty.
pub fn first_foreign(folder: &Path, own: &BTreeSet<String>) -> io::Result<Option<PathBuf>> {
    find_foreign(folder, Path::new(""), own)
}

fn find_foreign(folder: &Path, inside: &Path, own: &BTreeSet<String>) -> io::Result<Option<PathBuf>> {
    let mut entries = match fs::read_dir(folder.join(inside)) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    entries.retain(|entry| !is_temporary(&entry.file_name()));
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = inside.join(entry.file_name());
        let kind = entry.file_type()?;
        let foreign = match path.to_str() {
            Some(name) if kind.is_dir() && has_folder(own, name) => find_foreign(folder, &path, own)?,
            Some(name) if kind.is_file() && own.contains(name) => None,
            _ => Some(path),
        };
        if foreign.is_some() {
            return Ok(foreign);
        }
    }
    Ok(None)
}

/// Whether a listed file lies in the folder.
fn has_folder(own: &BTreeSet<String>, name: &str) -> bool {
    let start = format!("{name}/");
    own.range(start.clone()..).next().is_some_and(|file| file.starts_with(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: [&Path; 0] = [];

    fn write(out: &Path, files: &[(&str, &str)]) -> Result<usize, FolderError> {
        let mut folder = NewFolder::create(out, "report", &NOTHING)?;
        for (name, text) in files {
            folder.put_file(name, text.as_bytes())?;
        }
        folder.commit(Map::new())
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).expect("there")
    }

    /// A folder that contains a report.
    fn begun_report() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().expect("a folder");
        let out = root.path().join("deep/out");
        assert_eq!(write(&out, &[("index.html", "one"), ("a/b/c.csv", "1")]).expect("new"), 3);
        (root, out)
    }

    fn only(folder: &Path) -> Vec<PathBuf> {
        fs::read_dir(folder).expect("there").map(|entry| entry.expect("readable").path()).collect()
    }

    #[test]
    fn an_own_folder_is_replaced_as_a_whole() {
        let (_root, out) = begun_report();
        write(&out, &[("index.html", "two"), ("a/d.csv", "2")]).expect("own");
        assert_eq!(read(&out.join("index.html")), "two");
        assert_eq!(read(&out.join("a/d.csv")), "2");
        assert!(!out.join("a/b").exists(), "what the new one lacks is gone");
        assert_eq!(
            only(out.parent().expect("one")),
            std::slice::from_ref(&out),
            "no temporary folder is left"
        );
        let manifest: Value = serde_json::from_str(&read(&out.join("report.json"))).expect("JSON");
        assert_eq!(
            manifest,
            json!({ "planlab": "report", "version": 1, "files": ["a/d.csv", "index.html"] })
        );
    }

    #[test]
    fn a_listed_file_may_be_missing() {
        let (_root, out) = begun_report();
        fs::remove_dir_all(out.join("a")).expect("ours");
        write(&out, &[("index.html", "two")]).expect("own");
    }

    #[test]
    fn what_is_not_on_the_list_is_named_and_stays() {
        for foreign in ["notes.txt", "a/notes.txt", "a/b/z/notes.txt", ".hidden", "empty/"] {
            let (_root, out) = begun_report();
            let path = out.join(foreign);
            fs::create_dir_all(path.parent().expect("one")).expect("writable");
            if foreign.ends_with('/') {
                fs::create_dir(&path).expect("writable");
            } else {
                fs::write(&path, "precious").expect("writable");
            }
            let error = write(&out, &[("index.html", "two")]).expect_err("foreign").to_string();
            let named = foreign.trim_end_matches('/').trim_end_matches("/notes.txt");
            assert!(error.contains(named), "{foreign}: {error}");
            assert!(path.exists() && read(&out.join("index.html")) == "one", "{foreign}");
        }
    }

    #[test]
    fn a_link_in_place_of_a_listed_folder_is_foreign() {
        let (root, out) = begun_report();
        let elsewhere = root.path().join("elsewhere");
        fs::rename(out.join("a"), &elsewhere).expect("ours");
        std::os::unix::fs::symlink(&elsewhere, out.join("a")).expect("writable");
        assert!(write(&out, &[("index.html", "two")]).is_err());
        assert_eq!(read(&elsewhere.join("b/c.csv")), "1");
    }

    #[test]
    fn a_manifest_without_a_list_is_none_of_ours() {
        for manifest in [
            "",
            "{}",
            "[]",
            r#"{"kind":"planlab report","records":1}"#,
            r#"{"planlab":"scale","version":1,"files":["x"]}"#,
        ] {
            let root = tempfile::tempdir().expect("a folder");
            fs::write(root.path().join("report.json"), manifest).expect("writable");
            fs::write(root.path().join("x"), "precious").expect("writable");
            let error = write(root.path(), &[("index.html", "two")]).expect_err("no list");
            assert!(matches!(error, FolderError::NoList { .. }), "{manifest}: {error}");
            assert_eq!(read(&root.path().join("x")), "precious");
        }
    }

    #[test]
    fn notes_that_come_meanwhile_stay() {
        let (_root, out) = begun_report();
        let mut folder = NewFolder::create(&out, "report", &NOTHING).expect("own");
        folder.put_file("index.html", b"two").expect("writable");
        fs::write(out.join("notes.txt"), "precious").expect("writable");
        assert!(matches!(folder.commit(Map::new()), Err(FolderError::Foreign { .. })));
        assert_eq!(
            (read(&out.join("notes.txt")), read(&out.join("index.html"))),
            ("precious".into(), "one".into())
        );
    }

    #[test]
    fn notes_that_come_while_the_folder_is_replaced_stay() {
        let (_root, out) = begun_report();
        let mut folder = NewFolder::create(&out, "report", &NOTHING).expect("own");
        folder.put_file("index.html", b"two").expect("writable");
        fs::write(out.join("notes.txt"), "precious").expect("writable");
        // After the last check of the old folder.
        assert!(matches!(folder.swap_folders(), Err(FolderError::Foreign { .. })));
        drop(folder);
        assert_eq!(read(&out.join("notes.txt")), "precious");
        assert_eq!((read(&out.join("index.html")), read(&out.join("a/b/c.csv"))), ("one".into(), "1".into()));
        assert_eq!(only(out.parent().expect("one")), std::slice::from_ref(&out));
    }

    #[test]
    fn notes_that_come_while_the_steps_are_taken_stay() {
        let (_root, out) = begun_report();
        let folder = NewFolder::create(&out, "report", &NOTHING).expect("own");
        let new = folder.temporary.path().join(NEW);
        fs::write(out.join("notes.txt"), "precious").expect("writable");
        let old = folder.swap_in_steps(&new, &out).expect("ours");
        fs::write(out.join("late.txt"), "precious too").expect("writable");
        folder.take_back(&old, &new).expect("ours");
        drop(folder);
        assert_eq!(
            (read(&out.join("notes.txt")), read(&out.join("index.html"))),
            ("precious".into(), "one".into())
        );
        assert_eq!(read(&out.with_file_name("out.kept-1").join("late.txt")), "precious too");
    }

    #[test]
    fn what_comes_into_the_earlier_folder_at_last_is_kept_beside() {
        let (_root, out) = begun_report();
        let mut folder = NewFolder::create(&out, "report", &NOTHING).expect("own");
        folder.put_file("index.html", b"two").expect("writable");
        fs::create_dir(out.with_file_name("out.kept-1")).expect("writable");
        let new = folder.temporary.path().join(NEW);
        let old = folder.take_name(&new).expect("ours").expect("an earlier one");
        let own = folder.check_own(&old).expect("a list");
        fs::write(old.join("a/notes.txt"), "precious").expect("writable");
        let error = folder.remove_listed(&old, &own).expect_err("foreign").to_string();
        drop(folder);
        assert!(error.contains("a/notes.txt") && error.contains("out.kept-2"), "{error}");
        assert_eq!(read(&out.with_file_name("out.kept-2").join("a/notes.txt")), "precious");
        assert_eq!(read(&out.join("index.html")), "two");
        assert_eq!(only(out.parent().expect("one")).len(), 3, "no temporary folder is left");
    }

    #[test]
    fn a_link_is_kept_and_its_target_written() {
        let (root, out) = begun_report();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&out, &link).expect("writable");
        write(&link, &[("index.html", "two")]).expect("own");
        assert!(link.is_symlink());
        assert_eq!(read(&out.join("index.html")), "two");
    }

    #[test]
    fn the_steps_give_the_same_as_the_exchange() {
        let (_root, out) = begun_report();
        let folder = NewFolder::create(&out, "report", &NOTHING).expect("own");
        fs::write(folder.temporary.path().join(NEW).join("index.html"), "two").expect("writable");
        let place = folder.place.clone();
        folder.swap_in_steps(&folder.temporary.path().join(NEW), place.target()).expect("ours");
        drop(folder);
        assert_eq!(read(&out.join("index.html")), "two");
        assert_eq!(only(out.parent().expect("one")), std::slice::from_ref(&out));
    }

    #[test]
    fn the_steps_can_be_taken_back() {
        let (_root, out) = begun_report();
        let folder = NewFolder::create(&out, "report", &NOTHING).expect("own");
        let target = folder.place.target().to_owned();
        folder.swap_in_steps(Path::new("/nowhere/at/all"), &target).expect_err("there is nothing new");
        assert!(!out.exists());
        drop(folder);
        assert_eq!(read(&out.join("index.html")), "one");
    }
}
