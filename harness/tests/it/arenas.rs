//! Several arenas: every buffer names its own, and figures and pictures are of each.

use std::process::Command;

use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::common::{assert_tells, folder_with, json, run, write};

const HEAD: &str = "# arena sram: 262144\n# arena dram: 16777216\n";
/// The load of `sram` is at step 2, that of `dram` at step 5.
const TWO: &str = "id,lower,upper,size,arena\na,0,4,100000,sram\nb,2,6,120000,sram\nc,0,1,3000000,dram\nd,5,6,8000000,dram\n";

/// A folder with the trace and a plan of it.
fn planned() -> TempDir {
    let folder = folder_with("t.csv", format!("{HEAD}{TWO}"));
    run(folder.path(), &["plan", "t.csv", "-o", "p.csv"], 0);
    folder
}

fn sizes(object: &Value, what: &str) -> Vec<Option<u64>> {
    object["arenas"].as_array().expect("a list").iter().map(|arena| arena[what].as_u64()).collect()
}

#[test]
fn a_buffer_without_an_arena_is_refused() {
    let folder = tempdir().expect("a folder");
    let named = |buffer: &str, line: u64, rest: &str| {
        format!(
            "t.csv:{line}: buffer `{buffer}` names no arena, but the trace has {rest}: the column `arena` names one in each \
             row, such as `sram`"
        )
    };
    for (text, message) in [
        (format!("{HEAD}id,lower,upper,size\na,0,2,8\n"), named("a", 4, "`sram`, `dram`")),
        (format!("{HEAD}{TWO}e,0,1,8,\n"), named("e", 8, "`sram`, `dram`")),
        (
            format!("{HEAD}step,event,id,size,arena\n0,alloc,x,8,sram\n1,alloc,y,8,\n"),
            named("y", 5, "`sram`, `dram`"),
        ),
        ("id,lower,upper,size,arena\na,0,1,8,sram\nb,0,1,8,\n".to_owned(), named("b", 3, "`sram`")),
        (
            "# arena sram: 9\nid,lower,upper,size,arena\na,0,1,8,\nb,0,1,8,dram\n".to_owned(),
            named("a", 3, "`sram`, `dram`"),
        ),
    ] {
        write(folder.path(), "t.csv", &text);
        assert_tells(&folder, &["plan", "t.csv"], 2, &[&message]);
    }
    // One arena is nobody's choice, and one without a name is named by an empty cell.
    for text in [
        "# arena sram: 9\nid,lower,upper,size\na,0,1,8\n",
        "# arena : 9\n# arena sram: 9\nid,lower,upper,size,arena\na,0,1,8,\nb,0,1,8,sram\n",
    ] {
        write(folder.path(), "t.csv", text);
        run(folder.path(), &["plan", "t.csv"], 0);
    }
}

#[test]
fn figures_are_of_each_arena() {
    let folder = planned();
    let plan = json(folder.path(), &["plan", "t.csv"], 0);
    let expected = json!([
        { "name": "sram", "capacity": 262_144, "height": 220_000, "load": 220_000 },
        { "name": "dram", "capacity": 16_777_216, "height": 8_000_000, "load": 8_000_000 },
    ]);
    assert_eq!(plan["arenas"], expected);
    assert_eq!((&plan["height"], &plan["load"]), (&json!(8_220_000), &json!(8_220_000)));
    assert_eq!(json(folder.path(), &["verify", "t.csv", "p.csv"], 0)["arenas"], expected);
    for picture in ["a.svg", "a.png", "a.html"] {
        assert_eq!(json(folder.path(), &["show", "t.csv", "p.csv", "-o", picture], 0)["arenas"], expected);
    }
    let bound = json(folder.path(), &["bound", "t.csv"], 0);
    assert_eq!(
        (sizes(&bound, "height"), sizes(&bound, "load")),
        (vec![None; 2], vec![Some(220_000), Some(8_000_000)])
    );
    let compared = json(folder.path(), &["compare", "t.csv", "--planner", "best-fit"], 0);
    assert_eq!(compared[0]["arenas"], expected);
}

#[test]
fn sum_of_arenas_has_no_step() {
    let folder = planned();
    let said = |words: &[&str]| run(folder.path(), words, 0).0;
    let line = |text: &str, start: &str| {
        let line = text.lines().find(|line| line.starts_with(start));
        line.unwrap_or_else(|| panic!("{start}: {text}")).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let plan = said(&["plan", "t.csv"]);
    assert_eq!(line(&plan, "height"), "height 7.84 MiB (8220000), the sum of 2 arenas");
    assert_eq!(line(&plan, "sram"), "sram 256 KiB (262144) 215 KiB (220000) 215 KiB (220000) 2");
    assert_eq!(line(&plan, "dram"), "dram 16.0 MiB (16777216) 7.63 MiB (8000000) 7.63 MiB (8000000) 5");
    let bound = said(&["bound", "t.csv"]);
    assert!(bound.contains("sum of the loads of 2 arenas, each at a step of its own"), "{bound}");
    assert_eq!(line(&bound, "sram"), "sram 256 KiB (262144) 215 KiB (220000) 2");
    assert_eq!(
        line(&said(&["verify", "t.csv", "p.csv"]), "dram"),
        "dram 16.0 MiB (16777216) 7.63 MiB (8000000) 7.63 MiB (8000000) 5"
    );
    let compared = said(&["compare", "t.csv", "--planner", "best-fit", "--planner", "bump"]);
    assert!(
        compared.starts_with("t.csv: 4 buffers, load 7.84 MiB (8220000), the sum of 2 arenas\n"),
        "{compared}"
    );
    let (_, each) = compared.split_once("heights by arena:").expect("a table of heights");
    assert_eq!(line(each, "planner"), "planner sram dram");
    assert_eq!(line(each, "bump"), "bump 215 KiB (220000) 10.5 MiB (11000000)");
}

#[test]
fn pictures_have_an_axis_for_each_arena() {
    let folder = planned();
    for words in [&["t.csv", "p.csv"][..], &["t.csv"]] {
        run(folder.path(), &[&["show"][..], words, &["-o", "t.svg"]].concat(), 0);
        let svg = std::fs::read_to_string(folder.path().join("t.svg")).expect("written");
        assert!(svg.contains("arena sram<") && svg.contains("arena dram<"), "{svg}");
        assert_eq!(svg.matches(">step<").count(), 2, "two axes of time");
        assert!(svg.contains("capacity 256 KiB") && svg.contains("capacity 16.0 MiB"), "{svg}");
        assert!(svg.contains("load 215 KiB") && svg.contains("load 7.63 MiB"), "{svg}");
    }
    run(folder.path(), &["show", "t.csv", "p.csv", "-o", "t.html"], 0);
    let page = std::fs::read_to_string(folder.path().join("t.html")).expect("written");
    assert_eq!(page.matches("<figure class=\"viewer\"").count(), 2);
    for said in [
        "Arena sram",
        "Arena dram",
        "215 KiB (220\u{202f}000 bytes) at step 2",
        "(8\u{202f}000\u{202f}000 bytes) at step 5",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("8\u{202f}220\u{202f}000 bytes) at step"), "no step of a sum");
}

#[test]
fn one_memory_refuses_several_arenas() {
    let folder = planned();
    for (words, reason) in [
        (&["simulate", "t.csv", "--allocator", "cupy2rc1-pool"][..], "a simulated allocator has one memory"),
        (&["replay", "t.csv", "--allocator", "glibc"], "a replay has one memory"),
        (&["explain", "t.csv"], "`explain` has one memory"),
        (
            &["export", "c-header", "t.csv", "p.csv", "-o", "t.h"],
            "a C header has no way to say which arena a buffer lies in",
        ),
        (&["export", "tflite-micro", "t.csv", "p.csv", "-o", "t.bin"], "which arena a buffer lies in"),
        (&["export", "requests", "t.csv", "p.csv", "-o", "t.txt"], "which arena a buffer lies in"),
        (&["export", "minimalloc", "t.csv", "-o", "m.csv"], "which arena a buffer lies in"),
    ] {
        assert_tells(&folder, words, 2, &[reason]);
    }
}

#[test]
fn a_picture_has_no_thousand_maps() {
    let rows: String = (0..1_000).map(|number| format!("b{number},0,1,8,a{number}\n")).collect();
    let folder = folder_with("t.csv", format!("id,lower,upper,size,arena\n{rows}"));
    let (_, stderr) = run(folder.path(), &["show", "t.csv", "-o", "t.png"], 2);
    assert!(stderr.contains("t.csv has 1000 arenas, and a picture shows at most 64"), "{stderr}");
}

/// Every name that is written for people has its letters shown, and every picture is XML.
#[test]
fn names_reach_files_with_every_letter_shown() {
    let folder = tempdir().expect("a folder");
    let name = "a\u{202e}b\u{2066}\u{1}\u{feff}\u{fffe}\u{ffff}\u{2028}*/ int x; /*";
    let mark = "\u{202e}w\u{ffff}";
    write(
        folder.path(),
        "t.csv",
        format!(
            "# workload: {mark}\nid,lower,upper,size,category,op\n\"{name}\",0,2,80000,{mark},{mark}\nc,1,3,90000,,\n"
        ),
    );
    run(folder.path(), &["plan", "t.csv", "-o", "p.csv"], 0);
    for (words, file) in [
        (&["export", "c-header", "t.csv", "p.csv"][..], "t.h"),
        (&["export", "perfetto", "t.csv", "p.csv"], "t.json"),
        (&["show", "t.csv", "p.csv"], "t.svg"),
        (&["show", "t.csv"], "u.svg"),
        (&["show", "t.csv", "p.csv"], "t.html"),
    ] {
        run(folder.path(), &[words, &["-o", file]].concat(), 0);
        let text = std::fs::read_to_string(folder.path().join(file)).expect("written");
        let is_bad = |letter: &char| !matches!(letter, '\n' | '\t') && planlab_dsa::is_unprintable(*letter);
        assert_eq!(text.chars().find(is_bad), None, "{file}");
        assert!(file == "u.svg" || text.contains("u{202e}"), "{file} has the name, written out");
    }
    let is_xml = "import sys, xml.dom.minidom as dom; [dom.parse(name) for name in sys.argv[1:]]";
    let parsed =
        Command::new("python3").args(["-c", is_xml, "t.svg", "u.svg"]).current_dir(folder.path()).output();
    let parsed = parsed.expect("python3, which ./setup installs");
    assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
    let compiled = Command::new("cc")
        .args(["-std=c99", "-fsyntax-only", "-x", "c", "t.h"])
        .current_dir(folder.path())
        .output();
    let compiled = compiled.expect("a C compiler, which ./setup installs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    // The trace itself keeps its names.
    let plan = std::fs::read_to_string(folder.path().join("p.csv")).expect("written");
    assert!(plan.contains(name), "{plan}");
}
