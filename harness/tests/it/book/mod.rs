//! The documents are true: links resolve, blocks that show a file show it as it is, and commands do what is said.
//!
//! Every `sh` block of the README and of `docs` is run line by line in a folder of its page, and a `text` block behind it
//! is compared with what the commands print. Lines of `not-run.txt` are not run, for the reason given there. Of recipes
//! (`just ...`) and scripts only the existence is checked.

mod commands;
mod links;
mod markdown;
#[cfg(feature = "reports")]
mod options;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use markdown::Page;

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it lies in the repository").to_owned()
}

/// Folders that hold what programs make.
const MADE: [&str; 4] = ["target", "out", "store", "node_modules"];

/// Every Markdown file of the repository, but none of what a run or a build leaves there.
fn pages() -> Vec<Page> {
    let (root, mut folders, mut pages) = (root(), vec![root()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").filter_map(Result::ok) {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let is_made = name.starts_with('.') || MADE.iter().any(|made| name.starts_with(made));
            if path.is_dir() && !path.is_symlink() && !is_made {
                folders.push(path);
            } else if name.ends_with(".md") {
                let text = fs::read_to_string(&path).expect("text");
                let name = path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
                pages.push(Page { name, text });
            }
        }
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    pages
}

/// Those whose commands are run.
fn book() -> Vec<Page> {
    let is_book = |page: &Page| page.name == "README.md" || page.name.starts_with("docs/");
    pages().into_iter().filter(is_book).collect()
}

fn assert_none(failures: &[String]) {
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_link_and_anchor_resolves() {
    let pages = pages();
    assert!(pages.len() > 30, "{} pages", pages.len());
    assert_none(&links::broken(&root(), &pages));
}

#[test]
fn the_summary_has_every_page_of_the_book() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("a summary");
    let linked: BTreeSet<String> = markdown::links(&summary).into_iter().map(|(_, link)| link).collect();
    let names = book().into_iter().filter_map(|page| page.name.strip_prefix("docs/").map(str::to_owned));
    let missing: Vec<String> = names.filter(|name| name != "SUMMARY.md" && !linked.contains(name)).collect();
    assert_none(&missing);
}

#[test]
fn blocks_that_name_a_file_of_the_repository_show_it() {
    let mut failures = Vec::new();
    for page in book() {
        for block in page.blocks().into_iter().filter(|block| block.file().is_some()) {
            let name = block.file().expect("filtered");
            let Ok(text) = fs::read_to_string(root().join(name)) else { continue };
            if !text.contains(block.text.trim_end()) {
                failures.push(format!("{}:{}: {name} has other lines", page.name, block.line));
            }
        }
    }
    assert_none(&failures);
}

#[test]
fn the_reference_has_every_field_that_plan_prints() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan =
        crate::common::json(folder.path(), &["plan", "chainer/alexnet/infer/b1", "--planner", "best-fit"], 0);
    let reference = fs::read_to_string(root().join("docs/reference.md")).expect("a reference");
    let row =
        reference.lines().find(|line| line.starts_with("| `plan` | `version")).expect("a row of `plan`");
    let fields = row.split('`').nth(3).expect("the fields").split(", ").collect::<BTreeSet<_>>();
    assert_eq!(
        plan.as_object().expect("an object").keys().map(String::as_str).collect::<BTreeSet<_>>(),
        fields
    );
}

#[test]
fn commands_print_what_the_pages_show() {
    let lists = commands::Lists::read(&root());
    let pages = book();
    let mut failures: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            pages.iter().map(|page| scope.spawn(|| commands::failures(page, &lists))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    failures.extend(lists.stale(&pages));
    assert_none(&failures);
}
