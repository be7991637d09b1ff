//! A folder that one writer owns.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::temporary::{BACK, OLD, begun};
use crate::{FolderError, Place, TemporaryFolder, is_temporary};

/// The version of the manifests.
const VERSION: u64 = 1;
/// In the temporary folder: what is being filled.
const NEW: &str = "new";

/// A folder that is being filled and then appears, or replaces an earlier one, as a whole.
///
/// Its manifest, the file `<kind>.json`, says who wrote it and lists its files:
/// `{"planlab": "<kind>", "version": 1, "files": [...]}`. Only a folder of the same kind that holds nothing but
/// these files is replaced.
#[derive(Debug)]
pub struct NewFolder {
    place: Place,
    kind: &'static str,
    temporary: TemporaryFolder,
    files: BTreeSet<String>,
}

impl NewFolder {
    /// Looks whether the folder may be written, and makes place for it. `reads` is what is read to fill it.
    ///
    /// # Errors
    ///
    /// As [`Place::find`] and [`Place::check_replaceable`]; [`FolderError::Foreign`] and [`FolderError::NoList`]
    /// where the folder holds something else; [`FolderError::Io`] where there is no writing beside it.
    pub fn create<P: AsRef<Path>>(
        named: &Path,
        kind: &'static str,
        reads: &[P],
    ) -> Result<Self, FolderError> {
        let place = Place::find(named, reads)?;
        place.check_replaceable()?;
        check_own(&place, kind)?;
        let temporary = TemporaryFolder::beside(&place)?;
        // A folder inside: temporary folders are private, what is kept is not.
        let new = fs::create_dir(temporary.path().join(NEW));
        new.map_err(FolderError::io("create", place.named()))?;
        Ok(Self { place, kind, temporary, files: BTreeSet::new() })
    }

    /// Puts a file into the folder; `name` is its path there, parts separated by `/`.
    ///
    /// # Errors
    ///
    /// [`FolderError::Io`].
    pub fn put(&mut self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        let mut path = self.temporary.path().join(NEW);
        let (folders, _) = name.rsplit_once('/').unwrap_or(("", name));
        // One by one: a folder that was abandoned is not made again.
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            path.push(folder);
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(FolderError::io("create", &self.shown(name))(error));
                }
                _ => {}
            }
        }
        let path = self.temporary.path().join(NEW).join(name);
        fs::write(&path, content).map_err(FolderError::io("write", &self.shown(name)))?;
        self.files.insert(name.to_owned());
        Ok(())
    }

    /// The path that a file will have.
    fn shown(&self, name: &str) -> PathBuf {
        self.place.named().join(name)
    }

    /// How many files were put.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether no file was put.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Writes the manifest, with what `about` says besides, and gives the folder its name. Whoever looks sees
    /// the earlier folder or this one, and a process that is killed leaves one of the two. Gives the number of
    /// files, the manifest included.
    ///
    /// # Errors
    ///
    /// As [`NewFolder::create`]; the earlier folder is then as it was.
    pub fn commit(mut self, about: Map<String, Value>) -> Result<usize, FolderError> {
        let mut manifest = json!({ "planlab": self.kind, "version": VERSION, "files": self.files });
        if let Value::Object(manifest) = &mut manifest {
            manifest.extend(about);
        }
        self.put(&manifest_of(self.kind), format!("{manifest:#}\n").as_bytes())?;
        // Time has passed.
        check_own(&self.place, self.kind)?;
        self.swap().map_err(FolderError::io("replace", self.place.named()))?;
        Ok(self.files.len())
    }

    fn swap(&self) -> io::Result<()> {
        let _begun = begun();
        let (new, target) = (self.temporary.path().join(NEW), self.place.target());
        if let Ok(there) = fs::metadata(target) {
            fs::set_permissions(&new, there.permissions())?;
        }
        match fs::rename(&new, target) {
            // The system replaces what is empty or not there.
            Ok(()) => return Ok(()),
            Err(error) if !target.is_dir() => return Err(error),
            Err(_) => {}
        }
        if exchange(&new, target).is_ok() {
            return Ok(());
        }
        self.swap_in_steps(&new, target)
    }

    /// Where the file system cannot exchange two folders at once; a run that is killed in between leaves the old
    /// one to the next run, which gives it its name back.
    fn swap_in_steps(&self, new: &Path, target: &Path) -> io::Result<()> {
        let name = target.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| io::Error::other("the folder's name is no text"))?;
        let (back, old) = (self.temporary.path().join(BACK), self.temporary.path().join(OLD));
        fs::write(&back, name)?;
        fs::rename(target, &old)?;
        // Where this fails the name goes back when the temporary folder is dropped.
        fs::rename(new, target)
    }
}

#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(target_os = "linux"))]
fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn manifest_of(kind: &str) -> String {
    format!("{kind}.json")
}

/// Refuses a folder that holds anything but what an earlier run of the same writer has put there.
fn check_own(place: &Place, kind: &'static str) -> Result<(), FolderError> {
    let (path, manifest) = (place.target(), place.target().join(manifest_of(kind)));
    let io = |error| FolderError::io("read", place.named())(error);
    if first_foreign(path, &BTreeSet::new()).map_err(io)?.is_none() {
        return Ok(());
    }
    let own = match fs::read(&manifest) {
        Ok(bytes) => listed(&bytes, kind),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(BTreeSet::new()),
        Err(error) => return Err(FolderError::io("read", &manifest)(error)),
    };
    let Some(mut own) = own else {
        let manifest = place.named().join(manifest_of(kind));
        return Err(FolderError::NoList { path: place.named().to_owned(), manifest, kind });
    };
    if !own.is_empty() {
        own.insert(manifest_of(kind));
    }
    match first_foreign(path, &own).map_err(io)? {
        Some(file) => Err(FolderError::Foreign { path: place.named().to_owned(), file, kind }),
        None => Ok(()),
    }
}

/// The files that a manifest of this kind lists.
fn listed(manifest: &[u8], kind: &str) -> Option<BTreeSet<String>> {
    let manifest: Value = serde_json::from_slice(manifest).ok()?;
    let is_own = manifest["planlab"] == kind && manifest["version"] == VERSION;
    let files = manifest["files"].as_array().filter(|_| is_own)?;
    files.iter().map(|file| file.as_str().map(str::to_owned)).collect()
}

/// The first file below a folder that is not in the list, in the order of their paths; a folder counts as one
/// where it is empty or no folder of the list. Temporary files are left out.
///
/// # Errors
///
/// What the file system says. A folder that is not there holds nothing.
pub fn first_foreign(folder: &Path, own: &BTreeSet<String>) -> io::Result<Option<PathBuf>> {
    look(folder, Path::new(""), own)
}

fn look(folder: &Path, inside: &Path, own: &BTreeSet<String>) -> io::Result<Option<PathBuf>> {
    let entries = match fs::read_dir(folder.join(inside)) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut entries = entries;
    entries.retain(|entry| !is_temporary(&entry.file_name()));
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = inside.join(entry.file_name());
        let kind = entry.file_type()?;
        let foreign = match path.to_str() {
            Some(name) if kind.is_dir() && has_folder(own, name) => look(folder, &path, own)?,
            Some(name) if kind.is_file() && own.contains(name) => None,
            _ => Some(path),
        };
        if foreign.is_some() {
            return Ok(foreign);
        }
    }
    Ok(None)
}

/// Whether a file of the list lies in the folder.
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
            folder.put(name, text.as_bytes())?;
        }
        folder.commit(Map::new())
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).expect("there")
    }

    /// A folder in which there is a report.
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
        folder.put("index.html", b"two").expect("writable");
        fs::write(out.join("notes.txt"), "precious").expect("writable");
        assert!(matches!(folder.commit(Map::new()), Err(FolderError::Foreign { .. })));
        assert_eq!(
            (read(&out.join("notes.txt")), read(&out.join("index.html"))),
            ("precious".into(), "one".into())
        );
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
