//! The commands of a page, run in order in a folder of its own.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::markdown::{Block, Page};

/// Files that a page takes to be there: the page, their names, and where they are in the repository.
const GIVEN: [(&str, &str, &str); 6] = [
    ("README.md", "snapshot.pickle", "workloads/data/samples/torch2.15_nullcuda_snapshot.pickle"),
    ("docs/out-of-memory.md", "snapshot.pickle", "workloads/data/samples/torch2.15_nullcuda_snapshot.pickle"),
    ("docs/own-net.md", "snapshot.pickle", "workloads/data/samples/torch2.15_nullcuda_snapshot.pickle"),
    ("docs/own-net.md", "profile.json", "workloads/data/samples/mlp_cpu_profiler_trace.json.zst"),
    ("docs/own-net.md", "model.onnx", "workloads/data/samples/squeezenet1_0_noweights.onnx"),
    (
        "docs/external-planners.md",
        "harness/external/planners.example.toml",
        "harness/external/planners.example.toml",
    ),
];

/// What is known of commands that are not run.
pub(super) struct Lists {
    /// How such a line begins.
    not_run: Vec<String>,
    recipes: BTreeSet<String>,
    root: std::path::PathBuf,
}

impl Lists {
    /// Reads the list `not-run.txt` and the justfile.
    pub(super) fn read(root: &Path) -> Self {
        let lines = include_str!("not-run.txt").lines().filter(|line| !line.starts_with('#'));
        let not_run = lines.map(|line| {
            let (begin, reason) = line.split_once('\t').expect("a tab before the reason");
            assert!(!reason.is_empty(), "`{begin}` has no reason");
            begin.to_owned()
        });
        let justfile = fs::read_to_string(root.join("justfile")).expect("a justfile");
        Self { not_run: not_run.collect(), recipes: recipes(&justfile), root: root.to_owned() }
    }

    /// Lines of the list that no page has.
    pub(super) fn stale(&self, pages: &[Page]) -> Vec<String> {
        let blocks: Vec<Block> = pages.iter().flat_map(Page::blocks).collect();
        let lines: Vec<&str> = blocks.iter().flat_map(|block| block.text.lines()).collect();
        let is_stale = |begin: &&String| !lines.iter().any(|line| line.starts_with(begin.as_str()));
        self.not_run
            .iter()
            .filter(is_stale)
            .map(|begin| format!("not-run.txt: no page has `{begin}`"))
            .collect()
    }

    /// Whether a command is run; an error if it names a recipe or a script that does not exist.
    fn is_run(&self, command: &str) -> Result<bool, String> {
        if self.not_run.iter().any(|begin| command.starts_with(begin)) {
            return Ok(false);
        }
        let mut words = command.split_whitespace();
        match (words.next().unwrap_or_default(), words.next().unwrap_or_default()) {
            ("just", recipe) if self.recipes.contains(recipe) => Ok(false),
            ("just", recipe) => Err(format!("there is no recipe `{recipe}`")),
            ("cargo" | "export", _) => Ok(false),
            (script, _)
                if script == "./setup" || script.contains("/external/") || script.starts_with("scripts/") =>
            {
                if self.root.join(script).exists() {
                    Ok(false)
                } else {
                    Err(format!("there is no `{script}`"))
                }
            }
            _ => Ok(true),
        }
    }
}

/// The public recipes of a justfile.
fn recipes(justfile: &str) -> BTreeSet<String> {
    let heads = justfile.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    let heads = heads.filter(|line| line.contains(':') && !line.contains(":="));
    heads.filter_map(|line| line.split([' ', ':']).next()).map(str::to_owned).collect()
}

/// What is wrong with the commands of a page, a line each.
pub(super) fn failures(page: &Page, lists: &Lists) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    for (_, name, source) in GIVEN.iter().filter(|(of, ..)| *of == page.name) {
        let target = folder.path().join(name);
        fs::create_dir_all(target.parent().expect("in the folder")).expect("writable");
        fs::copy(lists.root.join(source), target).expect("it can be copied");
    }
    link_libraries(folder.path(), &lists.root);
    let mut failures = Vec::new();
    let mut printed = None;
    for block in page.blocks() {
        let place = format!("{}:{}", page.name, block.line);
        match (block.language(), block.file()) {
            ("sh", _) => match run_block(folder.path(), &block, lists) {
                Ok(output) => printed = output,
                Err(reason) => failures.push(format!("{place}: {reason}")),
            },
            ("text", _) => {
                if let Some(Err(reason)) = printed.take().map(|output| compare(&block.text, &output)) {
                    failures.push(format!("{place}: {reason}"));
                }
            }
            (_, Some(name)) if !name.contains('/') => {
                fs::write(folder.path().join(name), &block.text).expect("writable");
            }
            _ => printed = None,
        }
    }
    failures
}

/// Puts the header and the libraries for C where a clone has them after `just build`. Cargo builds the libraries for tests
/// into the folder of the tests.
fn link_libraries(folder: &Path, root: &Path) {
    let tests = std::env::current_exe().expect("a test has a file");
    symlink(root.join("capi"), folder.join("capi")).expect("writable");
    fs::create_dir(folder.join("target")).expect("writable");
    symlink(tests.parent().expect("in a folder"), folder.join("target/release")).expect("writable");
}

/// Runs the lines of a block; returns what they print, without stderr. `None` if no line is run.
fn run_block(folder: &Path, block: &Block, lists: &Lists) -> Result<Option<String>, String> {
    let mut output = None;
    for line in block.text.replace("\\\n", " ").lines() {
        let (command, comment) = line.split_once("  #").unwrap_or((line, ""));
        let is_run: Result<Vec<bool>, String> =
            command.split("&&").map(|part| lists.is_run(part.trim())).collect();
        if is_run?.iter().all(|&is_run| is_run) && !command.trim().is_empty() {
            let code =
                comment.split_once("exit code ").and_then(|(_, code)| code.trim().parse().ok()).unwrap_or(0);
            output.get_or_insert_with(String::new).push_str(&run_line(folder, command.trim(), code)?);
        }
    }
    Ok(output)
}

fn run_line(folder: &Path, command: &str, code: i32) -> Result<String, String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_planlab")).parent().expect("in a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", binary.display()))
        .env_remove("PLANLAB_CORPUS")
        .env_remove("PLANLAB_PLANNERS")
        .env_remove("PLANLAB_INPUT_LIMIT")
        .output()
        .map_err(|error| format!("bash: {error}"))?;
    if output.status.code() != Some(code) {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{command}`: {} instead of exit code {code}: {stderr}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Compares a block with what was printed. A line `...` stands for any lines, a word `...` for any words; spaces do
/// not count, and neither do the digits of a time.
fn compare(shown: &str, printed: &str) -> Result<(), String> {
    let lines = |text: &str| -> Vec<Vec<String>> {
        text.lines().map(words).filter(|words| !words.is_empty()).collect()
    };
    let (shown, printed) = (lines(shown), lines(printed));
    let is_gap = |line: &Vec<String>| line.len() == 1 && line[0] == "...";
    if matches(&shown, &printed, &is_gap, &|line, printed| {
        matches(line, printed, &|word: &String| word == "...", &|a, b| a == b)
    }) {
        return Ok(());
    }
    let text: Vec<String> = printed.iter().map(|line| line.join(" ")).collect();
    Err(format!("the block is not what is printed:\n{}", text.join("\n")))
}

/// Whether a sequence equals another, if a gap in it stands for any elements.
fn matches<T>(
    shown: &[T],
    printed: &[T],
    is_gap: &dyn Fn(&T) -> bool,
    equal: &dyn Fn(&T, &T) -> bool,
) -> bool {
    match (shown, printed) {
        ([], rest) => rest.is_empty(),
        ([gap, shown @ ..], rest) if is_gap(gap) => {
            (0..=rest.len()).any(|skipped| matches(shown, &rest[skipped..], is_gap, equal))
        }
        ([first, shown @ ..], [next, rest @ ..]) => equal(first, next) && matches(shown, rest, is_gap, equal),
        _ => false,
    }
}

/// The words of a line; a time is the word `TIME`.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let is_number = words.last().is_some_and(|last| last.parse::<f64>().is_ok());
        if is_number && matches!(word.trim_end_matches([')', ',']), "ns" | "us" | "ms" | "s") {
            words.pop();
            words.push("TIME".to_owned());
        } else {
            words.push(word.to_owned());
        }
    }
    words
}

#[test]
fn output_is_compared_without_times_and_spaces() {
    assert_eq!(compare("height  7\n...\ntime 1.5 us\n", "height 7\nload 7\ngap 0 %\ntime 88 ms\n"), Ok(()));
    assert_eq!(compare("best 3 ... optimal\n", "best   3  0.1 %  optimal\n"), Ok(()));
    assert!(compare("height 7\n", "height 8\n").is_err());
    assert!(compare("height 7\n", "height 7\nload 7\n").is_err());
    assert!(compare("height 7\n...\n", "load 7\n").is_err());
}

#[test]
fn recipes_are_known() {
    let known =
        recipes("a := \"b\"\n# text: no\nbuild:\n    run: x\nnew NAME=\"y\": build\nset shell := [1]\n");
    assert_eq!(known, ["build", "new"].map(str::to_owned).into());
}
