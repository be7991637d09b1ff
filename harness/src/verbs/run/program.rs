//! Looks at a program before it starts: what the library cannot work in, or must not.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why a program runs without the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Aside {
    /// It loads no libraries.
    Static,
    /// Its machine is another one than this binary's.
    Foreign,
    /// Another C library than glibc starts it.
    OtherLibc(String),
    /// It contains or loads a sanitizer, which has an allocator of its own and comes first.
    Sanitizer(&'static str),
}

impl std::fmt::Display for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Static => f.write_str("it is linked statically"),
            Self::Foreign => f.write_str("it is built for another machine"),
            Self::OtherLibc(loader) => write!(f, "its C library is not glibc ({loader})"),
            Self::Sanitizer(name) => write!(f, "{name} is in it"),
        }
    }
}

/// The symbols by which sanitizers are known, and parts of their libraries' names.
const SANITIZERS: [(&str, &str, &str); 5] = [
    ("__asan_init", "libasan", "AddressSanitizer"),
    ("__tsan_init", "libtsan", "ThreadSanitizer"),
    ("__msan_init", "libmsan", "MemorySanitizer"),
    ("__hwasan_init", "libhwasan", "HWAddressSanitizer"),
    ("__lsan_init", "liblsan", "LeakSanitizer"),
];

/// The sanitizer in a value of `LD_PRELOAD`.
pub(super) fn preloaded_sanitizer(preload: &OsStr) -> Option<Aside> {
    let preload = preload.to_string_lossy();
    let words = preload.split([':', ' ']).filter_map(|path| path.rsplit('/').next());
    let find = |word: &str| {
        let is_of = |(_, library, _): &&(&str, &str, &'static str)| {
            word.starts_with(*library) || word.contains(&library.replacen("lib", "libclang_rt.", 1))
        };
        SANITIZERS.iter().find(is_of).map(|&(_, _, name)| Aside::Sanitizer(name))
    };
    words.into_iter().find_map(find)
}

/// The most files that start each other: a script, its interpreter, ...
const MOST_SCRIPTS: usize = 4;

/// Why a command runs without the library, as far as its file shows.
pub(super) fn why_aside(command: &OsStr) -> Option<Aside> {
    let mut file = find_program(command)?;
    for _ in 0..MOST_SCRIPTS {
        match script_interpreter(&file) {
            Some(next) => file = next,
            None => return Elf::open_elf(&file)?.why_aside(),
        }
    }
    None
}

/// The file that a command names, by `PATH` if it is no path.
fn find_program(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(command.into());
    }
    let folders = std::env::var_os("PATH")?;
    let is_program = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&folders).map(|folder| folder.join(command)).find(is_program)
}

/// The program that runs a script; `env` names it in its turn.
fn script_interpreter(script: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(script).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let mut words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let first = Path::new(OsStr::from_bytes(words.next()?)).to_owned();
    match words.next() {
        Some(named) if first.ends_with("env") && !named.starts_with(b"-") && !named.contains(&b'=') => {
            find_program(OsStr::from_bytes(named))
        }
        _ => Some(first),
    }
}

/// A program of 64 bits in the byte order of this machine.
struct Elf {
    file: File,
    /// Type, offset, address and bytes of each segment.
    segments: Vec<[u64; 4]>,
    is_foreign: bool,
}

/// Kinds of segments and entries.
const LOAD: u64 = 1;
const DYNAMIC: u64 = 2;
const INTERPRETER: u64 = 3;
const NAMES: u64 = 5;
const NAMES_SIZE: u64 = 10;
/// More bytes of a table are not read.
const MOST: u64 = 64 << 20;

impl Elf {
    /// `None` if it is no such program, or cannot be read.
    fn open_elf(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0).ok()?;
        if !head.starts_with(b"\x7fELF") {
            return None;
        }
        let mut own = [0; 20];
        File::open("/proc/self/exe").ok()?.read_exact_at(&mut own, 0).ok()?;
        // Class, byte order and machine.
        let is_foreign = head[4..6] != own[4..6] || head[18..20] != own[18..20];
        let mut elf = Self { file, segments: Vec::new(), is_foreign };
        if !is_foreign && cfg!(target_endian = "little") {
            let entry = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
            let table = elf.read_bytes(little_endian(&head[32..40]), entry(54) * entry(56))?;
            let rows = table.chunks_exact(usize::try_from(entry(54)).ok()?.max(56));
            elf.segments = rows
                .map(|row| {
                    [
                        little_endian(&row[..4]),
                        little_endian(&row[8..16]),
                        little_endian(&row[16..24]),
                        little_endian(&row[32..40]),
                    ]
                })
                .collect();
        }
        Some(elf)
    }

    fn read_bytes(&self, at: u64, count: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(count.min(MOST)).ok()?];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    /// The contents of the first segment of a kind.
    fn segment_contents(&self, kind: u64) -> Option<Vec<u8>> {
        let [_, at, _, count] = *self.segments.iter().find(|segment| segment[0] == kind)?;
        self.read_bytes(at, count)
    }

    fn why_aside(&self) -> Option<Aside> {
        if self.is_foreign {
            return Some(Aside::Foreign);
        }
        let Some(loader) = self.segment_contents(INTERPRETER) else { return Some(Aside::Static) };
        let loader = String::from_utf8_lossy(&loader).trim_end_matches('\0').to_owned();
        let name = loader.rsplit('/').next().unwrap_or_default();
        if !name.starts_with("ld-linux") && !name.starts_with("ld64.so") && !name.starts_with("ld.so") {
            return Some(Aside::OtherLibc(loader));
        }
        let names = self.symbol_names()?;
        let has = |symbol: &str| names.split(|&byte| byte == 0).any(|name| name == symbol.as_bytes());
        SANITIZERS.iter().find(|(symbol, ..)| has(symbol)).map(|&(_, _, name)| Aside::Sanitizer(name))
    }

    /// The names of the symbols and libraries that it loads and provides.
    fn symbol_names(&self) -> Option<Vec<u8>> {
        let entries = self.segment_contents(DYNAMIC)?;
        let value = |wanted: u64| {
            let mut pairs =
                entries.chunks_exact(16).map(|pair| (little_endian(&pair[..8]), little_endian(&pair[8..])));
            pairs.find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
        };
        let (address, count) = (value(NAMES)?, value(NAMES_SIZE)?);
        let holds = |segment: &&[u64; 4]| segment[0] == LOAD && address.wrapping_sub(segment[2]) < segment[3];
        let [_, at, begin, _] = *self.segments.iter().find(holds)?;
        self.read_bytes(at + (address - begin), count)
    }
}

/// A number of at most 8 bytes, the low byte first.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_machine_has_the_library() {
        for command in ["sh", "/bin/sh", "/proc/self/exe"] {
            assert_eq!(why_aside(OsStr::new(command)), None, "{command}");
        }
        assert_eq!(why_aside(OsStr::new("no-such-program-anywhere")), None);
    }

    #[test]
    fn scripts_are_judged_by_what_runs_them() {
        let folder = tempfile::tempdir().expect("writable");
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("writable");
            path
        };
        let plain = script("plain", "#! /bin/sh -e\ntrue\n");
        assert_eq!(script_interpreter(&plain).as_deref(), Some(Path::new("/bin/sh")));
        let by_env = script("by-env", "#!/usr/bin/env sh\n");
        assert!(script_interpreter(&by_env).is_some_and(|file| file.ends_with("sh") && file.is_absolute()));
        let circle = folder.path().join("circle");
        script("circle", &format!("#!{}\n", circle.display()));
        assert_eq!(why_aside(circle.as_os_str()), None);
        assert_eq!(script_interpreter(&script("text", "no script")), None);
    }

    #[test]
    fn damaged_files_are_no_programs() {
        let folder = tempfile::tempdir().expect("writable");
        let whole = fs::read("/proc/self/exe").expect("readable");
        let path = folder.path().join("program");
        for length in [0, 3, 10, 63, 64, 100, 300] {
            fs::write(&path, &whole[..length]).expect("writable");
            let _ = why_aside(path.as_os_str());
        }
        let mut other = whole[..4096].to_vec();
        other[18] ^= 0xff;
        fs::write(&path, &other).expect("writable");
        assert_eq!(why_aside(path.as_os_str()), Some(Aside::Foreign));
        // No segment names a loader.
        other.truncate(64);
        (other[18], other[56], other[57]) = (whole[18], 0, 0);
        fs::write(&path, &other).expect("writable");
        assert_eq!(why_aside(path.as_os_str()), Some(Aside::Static));
    }

    #[test]
    fn preloaded_sanitizers_are_recognised() {
        for (preload, name) in [
            ("/usr/lib/libtsan.so.2", Some("ThreadSanitizer")),
            ("libm.so.6:libasan.so.8", Some("AddressSanitizer")),
            ("/opt/libclang_rt.asan-x86_64.so", Some("AddressSanitizer")),
            ("libm.so.6 /opt/libasana/x.so", None),
        ] {
            let found = preloaded_sanitizer(OsStr::new(preload));
            assert_eq!(found, name.map(Aside::Sanitizer), "{preload}");
        }
    }
}
