//! Reads the entries of a `planners.toml`, which describe external planners.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use planlab_dsa::Honours;
use planlab_workloads::Trace;
use planlab_workloads::formats::{write_idealloc, write_minimalloc, write_trace};
use serde::Deserialize;

use super::program;
use crate::inputs;
use crate::shell::exit::Failure;
use crate::shell::output::print_note;

/// The prefix of every external planner's key.
pub(crate) const PREFIX: &str = "external/";

/// The format in which the program reads an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    Minimalloc,
    Idealloc,
    Lab,
}

/// What a planner can take into account (`honours`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Feature {
    Alignment,
    Pins,
    Pauses,
    InPlace,
    Arenas,
    KeepApart,
    Threads,
}

/// The unit in which a planner prints its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Unit {
    #[default]
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "us")]
    Microseconds,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    planner: Vec<toml::Spanned<Entry>>,
}

/// One planner of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) summary: String,
    /// The program and its arguments, with placeholders.
    pub(crate) command: Vec<String>,
    #[serde(rename = "instance")]
    pub(crate) format: Format,
    #[serde(rename = "honours", default)]
    features: Vec<Feature>,
    /// What these features say.
    #[serde(skip)]
    pub(crate) honours: Honours,
    #[serde(default)]
    pub(crate) exact: bool,
    pub(crate) practical: Option<u32>,
    #[serde(rename = "version", default)]
    ask_version: Vec<String>,
    /// Words that the program prints if it has no plan.
    #[serde(default)]
    pub(crate) no_plan: Vec<String>,
    /// Words that it prints if its time is up.
    #[serde(default)]
    pub(crate) out_of_time: Vec<String>,
    /// What it prints before its own time.
    pub(crate) time_after: Option<String>,
    #[serde(default)]
    pub(crate) time_unit: Unit,
    /// What it prints before its bound, in bytes.
    pub(crate) bound_after: Option<String>,
    /// Whether the output may be read while the program runs: each plan replaces the one before as a whole.
    #[serde(default)]
    pub(crate) anytime: bool,
    #[serde(skip)]
    version: OnceLock<String>,
    #[serde(skip)]
    said: OnceLock<Option<String>>,
}

/// The version of a program that does not print it in time.
const UNKNOWN: &str = "version unknown";
/// How long a program may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// The time limit for versions. The variable sets it in milliseconds: a slow machine may need more, a test less.
fn version_timeout() -> Duration {
    let told = std::env::var("PLANLAB_VERSION_PATIENCE").ok().and_then(|text| text.parse().ok());
    told.map_or(VERSION_TIMEOUT, Duration::from_millis)
}

/// The placeholders that a command may contain.
pub(crate) const PLACEHOLDERS: [&str; 7] =
    ["{instance}", "{output}", "{capacity}", "{time_limit}", "{time_limit_ms}", "{seed}", "{threads}"];

/// Reads a file.
pub(crate) fn read_entries(path: &Path) -> Result<Vec<Entry>, Failure> {
    let name = path.display().to_string();
    let text = inputs::read_file_document(&name)?;
    let refuse = |at: usize, reason: &str| {
        let line = 1 + text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        Failure::from_usage(format!("{name}:{line}: {reason}")).in_file(&name, u64::try_from(line).ok())
    };
    let file: File = toml::from_str(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        refuse(at, &error.message().replace('\n', " "))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut entries: Vec<Entry> = Vec::new();
    for entry in file.planner {
        let at = entry.span().start;
        let entry = entry.into_inner().checked(folder);
        let entry = entry.and_then(|entry| match entries.iter().any(|other| other.key == entry.key) {
            true => Err(format!("there are two entries `{}`", entry.key)),
            false => Ok(entry),
        });
        entries.push(entry.map_err(|reason| refuse(at, &reason))?);
    }
    Ok(entries)
}

impl Entry {
    /// The entry as it can be used, if nothing is wrong with it; `folder` is that of the file.
    fn checked(mut self, folder: &Path) -> Result<Self, String> {
        let name = self.key.strip_prefix(PREFIX).unwrap_or("");
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/.".contains(c);
        if name.is_empty() || !name.chars().all(letters) {
            let key = self.key;
            return Err(format!("`{key}`: a key is `external/` and a name of a-z, 0-9, `-`, `.`, `/`"));
        }
        self.honours = honours_from(&self.features);
        check_format(self.format, &self.honours)?;
        check_command(&self.command)?;
        self.command = resolve_words(&self.command, folder);
        self.ask_version = resolve_words(&self.ask_version, folder);
        if self.summary.is_empty() {
            self.summary = format!("the program {}", self.command[0]);
        }
        Ok(self)
    }

    /// Why the planner cannot run, if its program is missing.
    pub(crate) fn missing_program(&self) -> Option<String> {
        let program = &self.command[0];
        find_program(program).is_none().then(|| format!("there is no program {program}"))
    }

    /// Whether the command contains a placeholder.
    pub(crate) fn uses_placeholder(&self, placeholder: &str) -> bool {
        self.command.iter().any(|word| word.contains(placeholder))
    }

    /// The instance in the program's format; the error names what the format lacks.
    pub(crate) fn write_instance(&self, trace: &Trace) -> Result<Vec<u8>, String> {
        match self.format {
            Format::Minimalloc => write_minimalloc(trace).map_err(|error| error.to_string()),
            Format::Idealloc => write_idealloc(trace).map_err(|error| error.to_string()),
            Format::Lab => Ok(write_trace(trace)),
        }
    }

    /// A digest of the program, the files and words of its command line, and the version that it prints. If it does not
    /// print one in time, the version is left out with a note.
    pub(crate) fn version(&self) -> &str {
        self.version.get_or_init(|| {
            let mut hasher = blake3::Hasher::new();
            for word in &self.command {
                hasher.update(word.as_bytes()).update(&[0]);
                if let Some(content) = find_program(word).and_then(|path| fs::read(path).ok()) {
                    hasher.update(&content).update(&[0]);
                }
            }
            if self.reported_version().is_none() {
                print_note(&format!(
                    "{}: its version command did not end within {:?} (PLANLAB_VERSION_PATIENCE, in ms): its rows are \
                     kept without a version, apart from those of earlier runs in which it was known",
                    self.key,
                    version_timeout()
                ));
            }
            hasher.update(self.reported_version().unwrap_or_default().as_bytes()).update(format!("{:?}", self.format).as_bytes());
            hasher.finalize().to_hex().to_string()
        })
    }

    /// The first line that the version command prints; empty if there is no such command, [`UNKNOWN`] if it takes too
    /// long.
    pub(crate) fn says_version(&self) -> &str {
        self.reported_version().unwrap_or(UNKNOWN)
    }

    /// The same; `None` if it takes too long.
    fn reported_version(&self) -> Option<&str> {
        let ask = || {
            let is_there = self.ask_version.first().is_some_and(|program| find_program(program).is_some());
            if !is_there {
                return Some(String::new());
            }
            let words: Vec<OsString> = self.ask_version.iter().map(OsString::from).collect();
            let text = program::output_within(&words, version_timeout())?;
            Some(text.lines().next().unwrap_or("").trim().to_owned())
        };
        self.said.get_or_init(ask).as_deref()
    }
}

fn honours_from(features: &[Feature]) -> Honours {
    let has = |feature| features.contains(&feature);
    Honours {
        in_place: has(Feature::InPlace),
        pins: has(Feature::Pins),
        pauses: has(Feature::Pauses),
        alignment: has(Feature::Alignment),
        arenas: has(Feature::Arenas),
        apart: has(Feature::KeepApart),
        threads: has(Feature::Threads),
        ..Honours::default()
    }
}

/// Refuses `honours` that the format cannot express: a planner cannot honour what it does not receive.
fn check_format(format: Format, honours: &Honours) -> Result<(), String> {
    let (in_place, arenas) = (honours.in_place, honours.arenas || honours.apart);
    let (marks, pauses) = (honours.alignment || honours.pins, honours.pauses);
    let (name, lacks) = match format {
        Format::Lab => return Ok(()),
        Format::Minimalloc => ("minimalloc", in_place || arenas),
        Format::Idealloc => ("idealloc", in_place || arenas || marks || pauses),
    };
    if lacks { Err(format!("`honours` has more than the format `{name}` can express")) } else { Ok(()) }
}

fn check_command(command: &[String]) -> Result<(), String> {
    if command.first().is_none_or(String::is_empty) {
        return Err("`command` names no program".to_owned());
    }
    for needed in ["{instance}", "{output}"] {
        if !command.iter().any(|word| word.contains(needed)) {
            return Err(format!("`command` has no {needed}"));
        }
    }
    for word in command {
        let mut rest = word.as_str();
        while let Some(start) = rest.find('{') {
            let end = rest[start..].find('}').map_or(rest.len(), |end| start + end + 1);
            let found = &rest[start..end];
            if !PLACEHOLDERS.contains(&found) {
                return Err(format!(
                    "`{found}` is not a placeholder; the placeholders are {}",
                    PLACEHOLDERS.join(" ")
                ));
            }
            rest = &rest[end..];
        }
    }
    Ok(())
}

/// Replaces words that name a file beside `planners.toml`, and a program with a `/`, by the whole path.
fn resolve_words(words: &[String], folder: &Path) -> Vec<String> {
    let whole = |(at, word): (usize, &String)| {
        let beside = folder.join(word);
        let is_program = at == 0 && word.contains('/');
        if is_program || beside.is_file() { beside.display().to_string() } else { word.clone() }
    };
    words.iter().enumerate().map(whole).collect()
}

/// The file of a program: a path, or a name in PATH.
fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[[planner]]\nkey = \"external/peer\"\n\
        command = [\"sh\", \"peer.sh\", \"{instance}\", \"{output}\"]\ninstance = \"minimalloc\"\n";

    fn parse(text: &str) -> Result<Vec<Entry>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("planners.toml");
        fs::write(&path, text).expect("writable");
        read_entries(&path).map_err(|failure| failure.error.to_string())
    }

    #[test]
    fn what_is_wrong_is_told_by_line() {
        let line = |text: &str, what: &str| format!("{GOOD}{text}").replace(what, "");
        for (text, place, reason) in [
            (line("honours = [\"in-place\"]\n", ""), ":1:", "can express"),
            (GOOD.replace("external/peer", "peer"), ":1:", "a key is"),
            (GOOD.replace("{output}", "{outptu}"), ":1:", "{output}"),
            (GOOD.replace("{output}", "{output}{nonsense}"), ":1:", "{nonsense}"),
            (format!("{GOOD}{GOOD}"), ":5:", "there are two entries"),
            (line("speed = 3\n", ""), ":5:", "speed"),
            (GOOD.replace("minimalloc", "maximalloc"), ":4:", "maximalloc"),
        ] {
            let error = parse(&text).expect_err(reason);
            assert!(error.contains(place) && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn the_example_is_valid() {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("external/planners.example.toml");
        let entries = read_entries(&example).map_err(|failure| failure.error).expect("valid");
        let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert!(keys.contains(&"external/minimalloc") && keys.contains(&"external/cp-sat"), "{keys:?}");
    }

    #[test]
    fn a_version_follows_program_and_command_line() {
        let version = |text: &str| parse(text).expect("valid")[0].version().to_owned();
        assert_eq!(version(GOOD), version(GOOD));
        assert_ne!(version(GOOD), version(&GOOD.replace("peer.sh", "other.sh")));
        assert_ne!(version(GOOD), version(&GOOD.replace("\"sh\"", "\"ls\"")));
        let asks = format!("{GOOD}version = [\"echo\", \"1.2\"]\n");
        assert_ne!(version(GOOD), version(&asks));
    }

    #[test]
    fn a_missing_program_is_told_and_a_script_beside_the_file_is_found() {
        let absent = parse(&GOOD.replace("\"sh\"", "\"./no-such-program\"")).expect("valid");
        assert!(absent[0].missing_program().is_some_and(|reason| reason.contains("no-such-program")));
        assert_eq!(parse(GOOD).expect("valid")[0].missing_program(), None);
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("peer.sh"), "exit 0").expect("writable");
        fs::write(folder.path().join("planners.toml"), GOOD).expect("writable");
        let entries = read_entries(&folder.path().join("planners.toml")).map_err(|f| f.error).expect("valid");
        assert_eq!(entries[0].command[1], folder.path().join("peer.sh").display().to_string());
    }
}
