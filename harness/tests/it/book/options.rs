//! The table of options in docs/reference.md, which `just bless` writes from the help texts.

use std::fmt::Write;
use std::fs;

use super::{assert_none, root};
use crate::common::run;

const BEGIN: &str = "<!-- made by `just bless` -->\n";
const END: &str = "<!-- end -->\n";

/// The long options in a help text that the verb does not share with all others.
fn own_options(help: &str) -> Vec<&str> {
    let mut options = Vec::new();
    // Descriptions are further to the right.
    let is_option = |line: &&str| line.starts_with("  -") || line.starts_with("      --");
    for line in help.lines().filter(is_option) {
        let mut words = line.split([' ', ',', '[', '.', '=']).filter(|word| !word.is_empty()).take(2);
        let option = words.find(|word| word.starts_with("--") && word.len() > 2);
        let is_shared = |option: &str| {
            ["--help", "--version", "--json", "--table", "--planners", "--input-limit"].contains(&option)
        };
        options.extend(option.filter(|option| !is_shared(option) && !options.contains(option)));
    }
    options
}

/// A row for each verb: its name and its options.
fn rows() -> Vec<(String, Vec<String>)> {
    let help = |words: &[&str]| run(&root(), words, 0).0;
    let all = help(&["--help"]);
    let verbs = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("     "));
    let verbs = verbs.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help");
    let row = |verb: &str| {
        let text = help(&[verb, "--help"]);
        (verb.to_owned(), own_options(&text).into_iter().map(str::to_owned).collect())
    };
    verbs.map(row).collect()
}

fn table(rows: &[(String, Vec<String>)]) -> String {
    let mut table = "| verb | options |\n|---|---|\n".to_owned();
    for (verb, options) in rows.iter().filter(|(_, options)| !options.is_empty()) {
        let _ = writeln!(table, "| `{verb}` | `{}` |", options.join("`, `"));
    }
    table
}

#[test]
fn the_reference_has_the_options_of_every_verb_and_no_others() {
    let (path, rows) = (root().join("docs/reference.md"), rows());
    let page = fs::read_to_string(&path).expect("a reference");
    let (before, rest) = page.split_once(BEGIN).expect("a table of options");
    let (blessed, after) = rest.split_once(END).expect("its end");
    let table = table(&rows);
    if std::env::var_os("PLANLAB_BLESS").is_some() {
        fs::write(&path, [before, BEGIN, &table, END, after].concat()).expect("writable");
    } else {
        assert_eq!(blessed, table, "`just bless` writes the table of options in docs/reference.md");
    }
    // What the rows of verbs say of options.
    let mut unknown = Vec::new();
    for line in before.lines().filter_map(|line| line.strip_prefix("| `")) {
        let verb = line.split([' ', '`']).next().unwrap_or_default();
        let Some((_, known)) = rows.iter().find(|(name, _)| name == verb) else { continue };
        let named = line.split(['`', ' ', '(', ')']).filter(|word| word.starts_with("--") && word.len() > 2);
        unknown.extend(
            named
                .filter(|name| !known.iter().any(|known| known == name))
                .map(|name| format!("{verb}: {name}")),
        );
    }
    assert_none(&unknown);
}
