//! Checks the rooms of `harness/src` and `reports/src`: a file sees its own room and those below it (docs/adr/0018).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms from the top down. Rooms on one floor do not see each other.
struct House {
    source: &'static str,
    /// How a file names another room.
    path: &'static str,
    floors: &'static [&'static [&'static str]],
    /// Modules that every room sees.
    ground: &'static [&'static str],
    /// Files above the rooms.
    entry: &'static [&'static str],
}

const HOUSES: [House; 3] = [
    House {
        source: "src",
        path: "crate::",
        floors: &[
            &["verbs"],
            &["bench"],
            &["kinds"],
            &["cells"],
            &["process"],
            &["inputs"],
            &["cli"],
            &["shell"],
        ],
        ground: &[],
        entry: &["main.rs"],
    },
    House {
        source: "src/kinds",
        path: "crate::kinds::",
        floors: &[&["schedule"], &["placement", "pool"], &["external"]],
        ground: &[],
        entry: &["example.rs", "mod.rs"],
    },
    House {
        source: "../reports/src",
        path: "crate::",
        floors: &[&["pages"], &["site"], &["data"], &["figures"]],
        ground: &["format"],
        entry: &["error.rs", "lib.rs", "report.rs"],
    },
];

impl House {
    fn floor(&self, room: &str) -> Option<usize> {
        self.floors.iter().position(|rooms| rooms.contains(&room))
    }
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

/// The rooms that a text names behind a path, alone or in braces.
fn rooms_named(text: &str, path: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for after in text.split(path).skip(1) {
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

/// The longest run of `super::`.
fn most_supers(text: &str) -> usize {
    (1..).take_while(|&count| text.contains(&"super::".repeat(count))).count()
}

#[test]
fn a_room_sees_what_is_below_it_and_nothing_else() {
    for house in HOUSES {
        let (source, mut all) = (Path::new(env!("CARGO_MANIFEST_DIR")).join(house.source), Vec::new());
        files(&source, &mut all);
        assert!(all.len() > 30, "{}: {} files", house.source, all.len());
        for file in all {
            let inside = file.strip_prefix(&source).expect("a file of the folder");
            check(&house, inside, &fs::read_to_string(&file).expect("text"));
        }
    }
}

fn check(house: &House, inside: &Path, text: &str) {
    let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
    let place = inside.display();
    let [room, _, ..] = parts.as_slice() else {
        return assert!(house.entry.contains(&parts[0]), "{place} is in no room");
    };
    let own = house.floor(room).unwrap_or_else(|| panic!("{place} is in no room"));
    let others = rooms_named(text, house.path).into_iter().filter(|other| other != room);
    for other in others.filter(|other| !house.ground.contains(&other.as_str())) {
        let seen = house.floor(&other).unwrap_or_else(|| panic!("{place}: `{other}` is no room"));
        assert!(seen > own, "{place}: {room} sees {other}, which is not below it");
    }
    // `super` of a room is the crate.
    let depth = parts.len() - usize::from(parts.last() == Some(&"mod.rs"));
    assert!(most_supers(text) <= depth, "{place} leaves its room by `super`");
}

#[test]
fn every_form_of_an_arrow_is_seen() {
    let text = "use crate::shell::exit;\nuse crate::{cli, inputs::open};\nlet x = crate::bench::run();";
    assert_eq!(rooms_named(text, "crate::"), ["bench", "cli", "inputs", "shell"].map(str::to_owned).into());
    assert_eq!((most_supers("use super::x;"), most_supers("super::super::y"), most_supers("")), (1, 2, 0));
}
