//! Tests of temporary files and folders, and of what is recognised as a leftover.

use super::*;

fn name(boot: &str, random: &str) -> String {
    format!("{PREFIX}{boot}-{random}")
}

/// The names in a folder.
fn there(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("readable").filter_map(Result::ok);
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn names_are_told_from_others() {
    assert!(is_temporary(OsStr::new(&name("0123abcd", "aB3xYz"))));
    assert!(is_temporary(OsStr::new(&name("0123abcd", "aB3xYzx"))));
    for other in [".planlab-tmp-", ".planlab-tmp-notes", ".planlab-notes", "0123abcd-aB3xYz"] {
        assert!(!is_temporary(OsStr::new(other)), "{other}");
    }
    assert!(!is_temporary(OsStr::new(&name("0123abcd", "notes.txt"))));
}

#[test]
fn what_is_dropped_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = TemporaryFile::create_in(folder.path()).expect("writable");
    let inner = TemporaryFolder::scratch_in(folder.path()).expect("writable");
    fs::write(inner.path().join("x"), "x").expect("writable");
    assert_eq!(there(folder.path()).len(), 2);
    drop((file, inner));
    assert!(there(folder.path()).is_empty());
}

#[test]
fn scratch_is_removed_whatever_was_done_to_it() {
    let root = tempfile::tempdir().expect("a folder");
    let scratch = || TemporaryFolder::scratch_in(root.path()).expect("writable");
    let moved = root.path().join("moved");
    type Deed<'d> = &'d dyn Fn(&Path);
    let deeds: [(&str, Deed<'_>); 4] = [
        ("moved", &|folder| fs::rename(folder, &moved).expect("ours")),
        ("without a lock", &|folder| fs::remove_file(folder.join(LOCK)).expect("ours")),
        ("a pipe", &|folder| {
            let path = folder.join("inner/pipe");
            fs::create_dir(path.parent().expect("a folder")).expect("ours");
            let is_made = std::process::Command::new("mkfifo").arg(path).status().expect("it runs");
            assert!(is_made.success());
        }),
        ("closed", &|folder| {
            fs::create_dir(folder.join("inner")).expect("ours");
            fs::write(folder.join("inner/x"), "x").expect("ours");
            fs::set_permissions(folder.join("inner"), Permissions::from_mode(0o0)).expect("ours");
            fs::set_permissions(folder, Permissions::from_mode(0o0)).expect("ours");
        }),
    ];
    for (what, deed) in deeds {
        let folder = scratch();
        fs::write(folder.path().join("file"), "x").expect("writable");
        deed(folder.path());
        drop(folder);
        assert_eq!(there(root.path()), [""; 0], "{what}");
    }
}

#[test]
fn foreign_folder_stays_if_scratch_is_gone() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = TemporaryFolder::scratch_in(root.path()).expect("writable");
    let foreign = root.path().join("foreign");
    fs::create_dir(&foreign).expect("writable");
    fs::rename(folder.path().join(LOCK), foreign.join(LOCK)).expect("ours");
    fs::remove_dir(folder.path()).expect("ours");
    drop(folder);
    assert_eq!(there(&foreign), [LOCK]);
}

#[test]
fn leftovers_go_and_all_else_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (dead, empty) = (name(boot_id(), "deadAA"), name(boot_id(), "deadBB"));
    fs::write(path(&dead), "half").expect("writable");
    fs::create_dir(path(&empty)).expect("writable");
    // A live one, whose lock another process holds; an open file of ours behaves alike.
    let (alive, busy) = (name(boot_id(), "aliveA"), name(boot_id(), "aliveB"));
    let held = File::create(path(&alive)).expect("writable");
    held.try_lock().expect("free");
    fs::create_dir(path(&busy)).expect("writable");
    let inside = new_lock(&path(&busy)).expect("writable");
    inside.try_lock().expect("free");
    // A recent one of another host, and foreign files.
    let elsewhere = name("ffffffff", "hostAA");
    fs::write(path(&elsewhere), "half").expect("writable");
    fs::write(path(".planlab-tmp-notes"), "mine").expect("writable");
    drop(TemporaryFile::create_in(folder.path()).expect("writable"));
    let mut left = vec![".planlab-tmp-notes".to_owned(), alive, busy, elsewhere.clone()];
    left.sort();
    assert_eq!(there(folder.path()), left);
    let long_ago = std::time::SystemTime::now() - 2 * FOREIGN_GRACE;
    let old = File::options().write(true).open(path(&elsewhere)).expect("ours");
    old.set_modified(long_ago).expect("ours");
    drop(old);
    lock_begun().swept.clear();
    drop(TemporaryFile::create_in(folder.path()).expect("writable"));
    assert!(!path(&elsewhere).exists());
}

#[test]
fn a_replaced_folder_gets_its_name_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let left = folder.path().join(name(boot_id(), "deadAA"));
    fs::create_dir_all(left.join(OLD)).expect("writable");
    fs::write(left.join(OLD).join("page"), "old").expect("writable");
    fs::write(left.join(BACK), "out").expect("writable");
    new_lock(&left).expect("writable");
    drop(TemporaryFolder::scratch_in(folder.path()).expect("writable"));
    assert_eq!(there(folder.path()), [name(boot_id(), "deadAA")], "what is scratch gives no names");
    drop(TemporaryFile::create_in(folder.path()).expect("writable"));
    assert_eq!(there(folder.path()), ["out"]);
    assert_eq!(fs::read_to_string(folder.path().join("out/page")).expect("there"), "old");
}

/// A leftover that records this name for its folder.
fn planted(root: &Path, back: &str) -> PathBuf {
    let left = root.join(name(boot_id(), "deadAA"));
    fs::create_dir_all(left.join(OLD)).expect("writable");
    fs::write(left.join(BACK), back).expect("writable");
    new_lock(&left).expect("writable");
    left
}

#[test]
fn a_leftover_names_nothing_outside_its_folder() {
    let root = tempfile::tempdir().expect("a folder");
    let (shared, victim) = (root.path().join("shared"), root.path().join("victim"));
    fs::create_dir(&victim).expect("writable");
    let absolute = victim.join("planted");
    for back in ["../victim/planted", absolute.to_str().expect("text"), "..", ".", "", "x/", "x/../y"] {
        let left = planted(&shared, back);
        drop(TemporaryFile::create_in(&shared).expect("writable"));
        assert_eq!(there(&victim), [""; 0], "{back}");
        assert_eq!(there(&shared), [name(boot_id(), "deadAA")], "{back}");
        fs::remove_dir_all(left).expect("ours");
        lock_begun().swept.clear();
    }
}

#[test]
fn no_link_of_a_leftover_is_followed() {
    let root = tempfile::tempdir().expect("a folder");
    let (shared, victim) = (root.path().join("shared"), root.path().join("victim"));
    let link = |to: &Path, from: &Path| std::os::unix::fs::symlink(to, from).expect("writable");
    let folder = |random| shared.join(name(boot_id(), random));
    for path in [&victim, &folder("lockAA"), &folder("backAA")] {
        fs::create_dir_all(path).expect("writable");
    }
    fs::write(victim.join("precious"), "mine").expect("writable");
    link(&victim.join("made"), &folder("lockAA").join(LOCK));
    link(&victim, &folder("linkAA"));
    link(&victim.join("precious"), &folder("fileAA"));
    fs::create_dir(folder("backAA").join(OLD)).expect("writable");
    new_lock(&folder("backAA")).expect("writable");
    link(&victim.join("precious"), &folder("backAA").join(BACK));
    drop(TemporaryFile::create_in(&shared).expect("writable"));
    assert_eq!(there(&victim), ["precious"]);
    assert_eq!(there(&shared).len(), 4, "foreign files stay");
}

#[test]
fn what_belongs_to_another_user_is_left_alone() {
    let root = tempfile::tempdir().expect("a folder");
    let left = planted(root.path(), "out");
    let file = root.path().join(name(boot_id(), "deadBB"));
    fs::write(&file, "theirs").expect("writable");
    let gave = [&left, &file].map(|path| std::os::unix::fs::chown(path, Some(65534), None));
    // Only root can change a file's owner.
    if gave.iter().all(Result::is_ok) {
        drop(TemporaryFile::create_in(root.path()).expect("writable"));
        assert!(left.join(OLD).is_dir() && file.is_file());
    }
}

#[test]
fn temporary_folders_are_private() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = TemporaryFolder::scratch_in(root.path()).expect("writable");
    assert_eq!(fs::metadata(folder.path()).expect("there").mode() & 0o777, 0o700);
}

#[test]
fn a_folder_without_its_lock_is_removed_only_where_it_is_empty() {
    let root = tempfile::tempdir().expect("a folder");
    for (random, file) in [("emptyA", None), ("fullAA", Some("x"))] {
        let folder = root.path().join(name(boot_id(), random));
        fs::create_dir(&folder).expect("writable");
        if let Some(file) = file {
            fs::write(folder.join(file), "x").expect("writable");
        }
    }
    drop(TemporaryFile::create_in(root.path()).expect("writable"));
    assert_eq!(there(root.path()), [name(boot_id(), "fullAA")]);
}

#[test]
fn folders_that_were_made_go_where_nothing_is_in_them() {
    let root = tempfile::tempdir().expect("a folder");
    let nothing: [&Path; 0] = [];
    let place = ResolvedFolder::resolve_target(&root.path().join("a/b/c"), &nothing).expect("free");
    drop(TemporaryFolder::beside(&place).expect("writable"));
    assert_eq!(there(root.path()), [""; 0]);
    let temporary = TemporaryFolder::beside(&place).expect("writable");
    fs::write(root.path().join("a/notes"), "mine").expect("writable");
    drop(temporary);
    assert_eq!(there(&root.path().join("a")), ["notes"]);
}
