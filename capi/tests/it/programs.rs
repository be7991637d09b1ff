//! Programs in C and C++, compiled by the system's compiler and linked with both kinds of the library.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use planlab_dsa::{Instance, Offset, Plan};
use planlab_workloads::Catalog;
use planlab_workloads::formats::{ReadOptions, read_trace, write_minimalloc};
use tempfile::TempDir;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Which of the two libraries a program is linked with.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Shared,
    Static,
}

const KINDS: [Kind; 2] = [Kind::Shared, Kind::Static];

/// Where cargo puts the libraries: beside the tests.
fn folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    test.parent().expect("in a folder").to_owned()
}

fn link(kind: Kind) -> Vec<OsString> {
    let folder = folder();
    let library = |name: &str| {
        let file = folder.join(name);
        assert!(file.exists(), "{} is not built", file.display());
        file.into_os_string()
    };
    match kind {
        Kind::Shared => {
            let mut path = OsString::from("-Wl,-rpath,");
            path.push(&folder);
            vec![library("libplanlab_c.so"), path]
        }
        Kind::Static => {
            let mut words = vec![library("libplanlab_c.a")];
            // Tests of the whole workspace build the solvers with all planners, and these need their libraries.
            if !planlab_solvers::absent_keys().contains(&"mip/cbc") {
                words.extend(["-lCbcSolver", "-lCbc", "-lz", "-lstdc++"].map(OsString::from));
            }
            words.extend(["-lpthread", "-ldl", "-lm"].map(OsString::from));
            words
        }
    }
}

/// A compiled program, and the folder that it goes with.
struct Program {
    file: PathBuf,
    _folder: TempDir,
}

impl Program {
    fn run(&self, words: &[&str]) -> Output {
        Command::new(&self.file).args(words).output().expect("it starts")
    }
}

/// A program, by a compiler that `./setup` installs.
fn compiled(compiler: &str, source: &Path, kind: Kind, flags: &[&str]) -> Program {
    let folder = tempfile::tempdir().expect("writable");
    let file = folder.path().join("program");
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"]).args(flags);
    command.arg("-I").arg(format!("{ROOT}/include")).arg(source).args(link(kind)).arg("-o").arg(&file);
    let output = command.output().unwrap_or_else(|error| panic!("{compiler} (./setup): {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Program { file, _folder: folder }
}

fn cpp(source: &str, kind: Kind, flags: &[&str]) -> Program {
    let flags: Vec<&str> = ["-std=c++17"].iter().chain(flags).copied().collect();
    compiled("c++", &Path::new(ROOT).join(source), kind, &flags)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// The recorded instance of the example, in MiniMalloc's form.
fn example_instance(folder: &Path) -> (String, Instance) {
    let trace = Catalog::new(None).load("torch/squeezenet1-0/train/b64").expect("recorded");
    let bytes = write_minimalloc(&trace).expect("it has nothing that the form lacks");
    let file = folder.join("squeezenet.csv");
    std::fs::write(&file, &bytes).expect("writable");
    // What MiniMalloc's form does not carry, the example does not know.
    let read = read_trace("squeezenet.csv", &bytes, &ReadOptions::default()).expect("as written");
    (file.to_str().expect("UTF-8").to_owned(), read.instance)
}

/// The offsets that the example printed, by row.
fn offsets(stdout: &str) -> Vec<Offset> {
    let mut rows = stdout.lines();
    assert_eq!(rows.next(), Some("id,lower,upper,size,offset"));
    let offset = |row: &str| row.rsplit(',').next().and_then(|cell| cell.parse().ok());
    rows.map(|row| Offset::new(offset(row).expect("a number"))).collect()
}

#[test]
fn the_pass_in_cpp_plans_a_recorded_net() {
    let folder = tempfile::tempdir().expect("writable");
    let (file, instance) = example_instance(folder.path());
    for kind in KINDS {
        let program = cpp("examples/plan_memory.cpp", kind, &[]);
        let output = program.run(&[&file]);
        let told = text(&output.stderr);
        assert!(output.status.success(), "{kind:?}: {told}");
        let plan = Plan::from_offsets(offsets(&text(&output.stdout)));
        let verified = instance.verify(plan).expect("valid");
        assert!(told.starts_with(&format!("height {} bound", verified.height())), "{told}");
        let load = instance.load().bytes;
        assert!(told.contains("optimal") || verified.height() > load, "{told}");
        // What does not fit the load fits nothing.
        let refused = program.run(&[&file, &(load.get() - 1).to_string()]);
        assert_eq!(refused.status.code(), Some(3));
        assert!(text(&refused.stderr).contains("every plan needs"), "{}", text(&refused.stderr));
        assert!(refused.stdout.is_empty());
    }
}

#[test]
fn the_pass_in_cpp_names_a_buffer_that_cannot_be() {
    let folder = tempfile::tempdir().expect("writable");
    let file = folder.path().join("bad.csv");
    std::fs::write(&file, "id,lower,upper,size\nweights,0,9,64\nscratch,4,4,64\n").expect("writable");
    let program = cpp("examples/plan_memory.cpp", Kind::Shared, &[]);
    let output = program.run(&[file.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("live at steps [4, 4)"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("(scratch)"), "{}", text(&output.stderr));
}

/// Statuses that came, and how often, of random calls with arrays at the edge of what may be touched.
fn statuses(program: &Program, calls: &str) -> BTreeMap<i32, u64> {
    let output = program.run(&[calls, "1"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?} {stdout} {stderr}", output.status);
    assert!(!stderr.contains("Sanitizer"), "{stderr}");
    let pair = |line: &str| {
        let (status, times) = line.split_once(' ')?;
        Some((status.parse().ok()?, times.parse().ok()?))
    };
    stdout.lines().map(|line| pair(line).expect("a status and how often")).collect()
}

#[test]
fn random_callers_get_valid_plans_or_errors_and_no_byte_beyond_their_arrays() {
    for kind in KINDS {
        let program = cpp("tests/programs/fenced.cpp", kind, &[]);
        let seen = statuses(&program, "2000");
        // Plans that are proved and that are not, infeasible ones, and each error that such a caller can make.
        for status in [0, 1, 2, -3, -4, -5, -6] {
            assert!(seen.contains_key(&status), "{kind:?}: none ended with {status}: {seen:?}");
        }
        assert_eq!(seen.values().sum::<u64>(), 2000);
        assert!(!seen.contains_key(&-9), "{seen:?}");
    }
}

#[test]
fn random_callers_under_the_address_sanitizer() {
    let sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let program = cpp("tests/programs/fenced.cpp", Kind::Shared, &sanitize);
    assert_eq!(statuses(&program, "500").values().sum::<u64>(), 500);
}

#[test]
fn the_program_of_the_book_runs() {
    let page = std::fs::read_to_string(format!("{ROOT}/../docs/embed.md")).expect("a page");
    let snippet =
        page.split("```c plan.c\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a snippet");
    let folder = tempfile::tempdir().expect("writable");
    let source = folder.path().join("snippet.c");
    std::fs::write(&source, snippet).expect("writable");
    for kind in KINDS {
        let program = compiled("cc", &source, kind, &["-std=c11"]);
        let output = program.run(&[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        // The height is the load, and x and z are live together.
        assert!(text(&output.stdout).starts_with("8192 bytes"), "{}", text(&output.stdout));
    }
}
