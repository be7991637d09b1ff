//! Adds a trace to the recorded workloads: its file, and its line in the manifest.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use planlab_files::{SaveError, create_folders, save_file};
use toml::Value;

use super::manifest::{DataFile, Manifest, Recorded};
use crate::formats::{FormatError, ReadOptions, Trace, compress_zstd, read_trace, write_trace};

/// The manifest's name in the folder of recorded workloads.
const MANIFEST: &str = "MANIFEST.toml";
/// zstd's level for files that are committed.
const LEVEL: i32 = 19;
/// Keys of these routes are not recorded.
const OTHER_ROUTES: [&str; 6] = ["file", "graph", "idealloc", "minimalloc", "model", "synthetic"];
const MODES: [&str; 4] = ["train", "infer", "decode", "process"];

/// What the manifest says about a new workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The key: `<route>/<net>/<mode>/b<N>[/<variant>]`.
    pub key: String,
    /// How the trace was obtained, and with which versions.
    pub source: String,
    /// The licence under which it may be redistributed.
    pub license: String,
}

/// Why a workload cannot be added.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The key is not one of a recorded workload.
    #[error("the key `{key}`: {reason}")]
    Key { key: String, reason: String },
    /// A field that a reader of the manifest needs is empty or has several lines.
    #[error("the {field} is empty, or not one line")]
    Field { field: &'static str },
    /// There is a workload with this key already.
    #[error("there is a workload `{key}` already, in {file}")]
    Taken { key: String, file: String },
    /// Another workload has the same buffers.
    #[error("the workload `{key}` has the same buffers already")]
    Same { key: String },
    /// There is a file of this name, which no line of the manifest is about and which is not this trace.
    #[error("{}: there is such a file already, and the manifest does not list it: move it elsewhere", path.display())]
    Unlisted { path: PathBuf },
    /// The folder cannot be locked.
    #[error("{}: cannot be locked: {source}", path.display())]
    Lock { path: PathBuf, source: io::Error },
    /// The trace has no buffers.
    #[error("the trace has no buffers")]
    Empty,
    /// The written trace would not be the one that was read.
    #[error("the trace changes when it is written as a CSV; it cannot be kept as a recorded workload")]
    Lossy,
    /// The folder has no manifest that can be read.
    #[error("{}: {source}", path.display())]
    NoManifest { path: PathBuf, source: io::Error },
    /// The manifest is damaged.
    #[error(transparent)]
    Manifest(#[from] FormatError),
    /// A file cannot be written.
    #[error(transparent)]
    Save(#[from] SaveError),
}

/// Writes a trace below `folder`, compressed, and adds its line to the manifest there. Both are written, or neither is:
/// a file without a line is what an interruption may leave, and the next call for the same trace adds the line. Calls for
/// one folder wait for each other.
///
/// # Errors
///
/// [`AddError`]; then nothing has changed.
pub fn add(folder: &Path, trace: &Trace, origin: &Origin) -> Result<Recorded, AddError> {
    let file = file_of(&origin.key)?;
    for (field, text) in [("source", &origin.source), ("licence", &origin.license)] {
        if text.trim().is_empty() || text.contains(char::is_control) {
            return Err(AddError::Field { field });
        }
    }
    if trace.instance.is_empty() {
        return Err(AddError::Empty);
    }
    let _lock = lock(folder)?;
    let (head, mut manifest) = read_manifest(&folder.join(MANIFEST))?;
    let entry = Recorded {
        key: origin.key.clone(),
        file,
        digest: trace.instance.digest(),
        buffers: trace.instance.len(),
        load: trace.instance.load().bytes.get(),
        provenance: format!("{}; licence: {}", origin.source.trim(), origin.license.trim()),
    };
    refuse_known(&manifest, &entry)?;
    let bytes = file_bytes(trace, origin, &entry)?;
    manifest.workload.push(entry.clone());
    manifest.workload.sort_by(|a, b| a.key.cmp(&b.key));
    let path = folder.join(&entry.file);
    let is_new = put_file(folder, &path, &bytes)?;
    if let Err(error) = save_file(&folder.join(MANIFEST), manifest.render_text(&head).as_bytes()) {
        if is_new {
            // Without its line the file would be a stranger in the folder.
            let _ = fs::remove_file(&path);
        }
        return Err(error.into());
    }
    Ok(entry)
}

/// Excludes other calls for the folder until the file is dropped. The manifest is replaced, so it cannot hold the lock.
fn lock(folder: &Path) -> Result<File, AddError> {
    let path = folder.join(MANIFEST);
    if let Err(source) = fs::metadata(&path) {
        return Err(AddError::NoManifest { path, source });
    }
    let locked = File::open(folder).and_then(|open| open.lock().map(|()| open));
    locked.map_err(|source| AddError::Lock { path: folder.to_owned(), source })
}

/// Writes a file that is not listed; `false` if it is there already, byte by byte.
fn put_file(folder: &Path, path: &Path, bytes: &[u8]) -> Result<bool, AddError> {
    if fs::symlink_metadata(path).is_ok() {
        return match fs::read(path) {
            Ok(there) if there == bytes => Ok(false),
            _ => Err(AddError::Unlisted { path: path.to_owned() }),
        };
    }
    let parent = path.parent().unwrap_or(folder);
    create_folders(parent).map_err(|error| SaveError::new(parent, error))?;
    save_file(path, bytes)?;
    Ok(true)
}

/// The file of a key: its route is the folder, the rest is the name.
fn file_of(key: &str) -> Result<String, AddError> {
    let bad = |reason: String| AddError::Key { key: key.to_owned(), reason };
    let segments: Vec<&str> = key.split('/').collect();
    let [route, _, mode, batch, ..] = segments.as_slice() else {
        return Err(bad("a key is ROUTE/NET/MODE/bN, and may have a variant behind that".to_owned()));
    };
    let is_plain = |segment: &&str| {
        let is_letter =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '_');
        segment.starts_with(|c: char| c.is_ascii_alphanumeric()) && segment.chars().all(is_letter)
    };
    if let Some(wrong) = segments.iter().find(|segment| !is_plain(segment)) {
        return Err(bad(format!("`{wrong}` may have lower-case letters, digits, `-`, `.` and `_`")));
    }
    if OTHER_ROUTES.contains(route) {
        return Err(bad(format!("the route `{route}` is not for recorded workloads")));
    }
    if !MODES.contains(mode) {
        return Err(bad(format!("`{mode}` is not a mode ({})", MODES.join(", "))));
    }
    if batch.strip_prefix('b').is_none_or(|number| number.parse::<u64>().is_err()) {
        return Err(bad(format!("`{batch}` is not a batch (b1, b32, ...)")));
    }
    Ok(format!("{route}/{}.csv.zst", segments[1..].join("-")))
}

fn refuse_known(manifest: &Manifest, new: &Recorded) -> Result<(), AddError> {
    let taken = |known: &&Recorded| known.key == new.key || known.file == new.file;
    if let Some(known) = manifest.workload.iter().find(taken) {
        return Err(AddError::Taken { key: known.key.clone(), file: known.file.clone() });
    }
    match manifest.workload.iter().find(|known| known.digest == new.digest) {
        Some(known) => Err(AddError::Same { key: known.key.clone() }),
        None => Ok(()),
    }
}

/// The compressed trace with its origin in the metadata, after a check that it reads as the same instance.
fn file_bytes(trace: &Trace, origin: &Origin, entry: &Recorded) -> Result<Vec<u8>, AddError> {
    let mut trace = trace.clone();
    let own = ["workload", "source", "license"];
    trace.labels.metadata.retain(|(name, _)| !own.contains(&name.as_str()));
    let values = [&origin.key, &origin.source, &origin.license];
    let own = own.iter().zip(values).map(|(name, value)| ((*name).to_owned(), value.trim().to_owned()));
    trace.labels.metadata.splice(0..0, own);
    let packed = compress_zstd(&write_trace(&trace), LEVEL);
    let packed = packed.map_err(|error| SaveError::new(Path::new(&entry.file), error))?;
    let again = read_trace(&entry.file, packed.as_slice(), &ReadOptions::default())?;
    if again.instance.digest() != entry.digest {
        return Err(AddError::Lossy);
    }
    Ok(packed)
}

/// The comment above the manifest's first entry, and its entries.
fn read_manifest(path: &Path) -> Result<(String, Manifest), AddError> {
    let text =
        fs::read_to_string(path).map_err(|source| AddError::NoManifest { path: path.to_owned(), source })?;
    let manifest: Manifest = toml::from_str(&text).map_err(|error| {
        let before = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(before).filter(|&byte| byte == b'\n').count();
        FormatError::new(path.display().to_string(), line as u64, error.message().replace('\n', " "))
    })?;
    let head =
        text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    Ok((head, manifest))
}

impl Manifest {
    /// The text of the file, with an entry a line below a comment.
    fn render_text(&self, head: &str) -> String {
        let workloads = self.workload.iter().map(Recorded::manifest_line);
        let files = self.file.iter().map(DataFile::manifest_line);
        let list = |name: &str, lines: String| format!("\n{name} = [\n{lines}]\n");
        head.to_owned() + &list("workload", workloads.collect()) + &list("file", files.collect())
    }
}

impl Recorded {
    fn manifest_line(&self) -> String {
        format!(
            "  {{ key = {}, file = {}, digest = \"{}\", buffers = {}, load = {}, provenance = {} }},\n",
            quote_text(&self.key),
            quote_text(&self.file),
            self.digest,
            self.buffers,
            self.load,
            quote_text(&self.provenance)
        )
    }
}

impl DataFile {
    fn manifest_line(&self) -> String {
        let (file, provenance) = (quote_text(&self.file), quote_text(&self.provenance));
        format!("  {{ file = {file}, digest = \"{}\", provenance = {provenance} }},\n", self.digest)
    }
}

fn quote_text(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::trace;
    use crate::recorded::stored_file;

    const TRACE: &str = "# alignment: 512\n# framework: mine\nid,lower,upper,size\nx,0,3,4096\ny,1,2,1000\n";

    fn origin(key: &str) -> Origin {
        Origin { key: key.to_owned(), source: "my \"net\" 1.0".to_owned(), license: "MIT".to_owned() }
    }

    /// A folder with the embedded manifest.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join(MANIFEST), stored_file(MANIFEST).expect("embedded")).expect("writable");
        folder
    }

    #[test]
    fn the_manifest_is_written_as_it_was_read() {
        let folder = folder();
        let (head, manifest) = read_manifest(&folder.path().join(MANIFEST)).expect("valid");
        assert!(head.lines().count() > 3, "{head}");
        assert_eq!(manifest.render_text(&head).as_bytes(), stored_file(MANIFEST).expect("embedded"));
    }

    #[test]
    fn a_workload_is_added_with_its_line() {
        let folder = folder();
        let trace = trace(TRACE);
        let entry = add(folder.path(), &trace, &origin("mine/net/train/b8/x")).expect("new");
        assert_eq!(entry.file, "mine/net-train-b8-x.csv.zst");
        let (_, manifest) = read_manifest(&folder.path().join(MANIFEST)).expect("valid");
        let keys: Vec<&str> = manifest.workload.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys.len(), crate::recorded::manifest().workload.len() + 1);
        assert!(keys.is_sorted() && manifest.workload.contains(&entry));
        let bytes = fs::read(folder.path().join(&entry.file)).expect("written");
        let again = read_trace("again.csv.zst", &bytes, &ReadOptions::default()).expect("valid");
        assert_eq!(again.instance.digest(), trace.instance.digest());
        assert_eq!((entry.buffers, entry.load), (2, 4096 + 1024));
        let meta = |name| again.labels.meta_value(name);
        assert_eq!(meta("workload"), Some("mine/net/train/b8/x"));
        assert_eq!((meta("license"), meta("framework")), (Some("MIT"), Some("mine")));
        assert!(entry.provenance.ends_with("my \"net\" 1.0; licence: MIT"), "{}", entry.provenance);
    }

    #[test]
    fn a_file_that_nobody_listed_is_neither_replaced_nor_removed() {
        let folder = folder();
        let path = folder.path().join("mine/net-train-b8.csv.zst");
        fs::create_dir(folder.path().join("mine")).expect("writable");
        fs::write(&path, "precious").expect("writable");
        let error = add(folder.path(), &trace(TRACE), &origin("mine/net/train/b8")).expect_err("there");
        assert!(error.to_string().ends_with("move it elsewhere"), "{error}");
        assert_eq!(fs::read(&path).expect("there"), b"precious");
        // What an interrupted call left of the same trace is taken.
        fs::remove_file(&path).expect("ours");
        let manifest = fs::read(folder.path().join(MANIFEST)).expect("there");
        add(folder.path(), &trace(TRACE), &origin("mine/net/train/b8")).expect("new");
        fs::write(folder.path().join(MANIFEST), manifest).expect("writable");
        add(folder.path(), &trace(TRACE), &origin("mine/net/train/b8")).expect("the same bytes");
    }

    #[test]
    fn lines_of_calls_at_the_same_time_are_all_there() {
        const CALLS: usize = 8;
        let folder = folder();
        let call = |number: usize| {
            let trace = trace(&TRACE.replace("4096", &(512 * (number + 20)).to_string()));
            add(folder.path(), &trace, &origin(&format!("mine/net/train/b{number}"))).expect("new");
        };
        let call = &call;
        std::thread::scope(|scope| (0..CALLS).for_each(|number| drop(scope.spawn(move || call(number)))));
        let (_, manifest) = read_manifest(&folder.path().join(MANIFEST)).expect("valid");
        assert_eq!(manifest.workload.len(), crate::recorded::manifest().workload.len() + CALLS);
    }

    #[test]
    fn nothing_changes_when_a_workload_is_refused() {
        let folder = folder();
        add(folder.path(), &trace(TRACE), &origin("mine/net/train/b8")).expect("new");
        let before = fs::read(folder.path().join(MANIFEST)).expect("there");
        let other = trace(&TRACE.replace("4096", "8192"));
        let refused = |trace: &Trace, origin: &Origin| {
            add(folder.path(), trace, origin).expect_err(&origin.key).to_string()
        };
        for (key, reason) in [
            ("mine/net", "a key is ROUTE/NET/MODE/bN, and may have a variant behind that"),
            ("mine/net/eat/b8", "`eat` is not a mode (train, infer, decode, process)"),
            ("mine/net/train/8", "`8` is not a batch (b1, b32, ...)"),
            ("model/net/train/b8", "the route `model` is not for recorded workloads"),
            ("mine/../train/b8", "`..` may have lower-case letters, digits, `-`, `.` and `_`"),
        ] {
            assert_eq!(refused(&other, &origin(key)), format!("the key `{key}`: {reason}"));
        }
        let taken = refused(&other, &origin("mine/net/train/b8"));
        let place = "mine/net-train-b8.csv.zst";
        assert_eq!(taken, format!("there is a workload `mine/net/train/b8` already, in {place}"));
        let same = refused(&trace(TRACE), &origin("mine/other/train/b8"));
        assert_eq!(same, "the workload `mine/net/train/b8` has the same buffers already");
        let unsaid = Origin { license: " ".to_owned(), ..origin("mine/new/train/b8") };
        assert_eq!(refused(&other, &unsaid), "the licence is empty, or not one line");
        assert_eq!(fs::read(folder.path().join(MANIFEST)).expect("there"), before);
        let files = fs::read_dir(folder.path().join("mine")).expect("there").count();
        assert_eq!(files, 1, "nothing half written");
        let error = add(Path::new("/nowhere"), &other, &origin("mine/new/train/b8")).expect_err("no folder");
        assert!(error.to_string().starts_with("/nowhere/MANIFEST.toml: No such file"), "{error}");
    }
}
