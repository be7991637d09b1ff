//! The rooms of `harness/src`: a file sees its own room and those below it (docs/adr/0012).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from the top down; those of one floor do not see each other.
const FLOORS: [&[&str]; 8] = [
    &["verbs"],
    &["bench"],
    &["planning", "playing"],
    &["external"],
    &["process"],
    &["inputs"],
    &["cli"],
    &["shell"],
];

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// The rooms that a text names by `crate::`, one by one or in braces.
fn rooms_named(text: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for after in text.split("crate::").skip(1) {
        let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        let first = |path: &str| path.trim().split(|c| !is_name(c)).next().unwrap_or_default().to_owned();
        match after.strip_prefix('{') {
            Some(group) => {
                rooms.extend(group.split('}').next().unwrap_or_default().split(',').map(first));
            }
            None => {
                rooms.insert(first(after));
            }
        }
    }
    rooms.remove("");
    rooms
}

/// How many `super::` follow each other at most.
fn most_supers(text: &str) -> usize {
    (1..).take_while(|&count| text.contains(&"super::".repeat(count))).count()
}

#[test]
fn a_room_sees_what_is_below_it_and_nothing_else() {
    let (source, mut all) = (source(), Vec::new());
    files(&source, &mut all);
    assert!(all.len() > 50, "{} files", all.len());
    for file in all {
        let inside = file.strip_prefix(&source).expect("a file of the folder");
        let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
        let text = fs::read_to_string(&file).expect("text");
        if parts == ["main.rs"] {
            continue;
        }
        let own = floor(parts[0]).unwrap_or_else(|| panic!("{} is in no room", inside.display()));
        for room in rooms_named(&text).iter().filter(|room| *room != parts[0]) {
            let seen = floor(room).unwrap_or_else(|| panic!("{}: `{room}` is no room", inside.display()));
            assert!(seen > own, "{}: {} sees {room}, which is not below it", inside.display(), parts[0]);
        }
        // `super` of the room itself is the crate. Modules of tests have one more.
        let depth = parts.len() - usize::from(parts.last() == Some(&"mod.rs"));
        assert!(most_supers(&text) <= depth, "{} leaves its room by `super`", inside.display());
    }
}

#[test]
fn every_form_of_an_arrow_is_seen() {
    let text = "use crate::shell::exit;\nuse crate::{cli, inputs::open};\nlet x = crate::bench::run();";
    assert_eq!(rooms_named(text), ["bench", "cli", "inputs", "shell"].map(str::to_owned).into());
    assert_eq!((most_supers("use super::x;"), most_supers("super::super::y"), most_supers("")), (1, 2, 0));
}
