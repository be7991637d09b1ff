//! `--table`: the tables of any verb as CSV, Markdown and LaTeX.

use crate::common::{assert_shows, assert_tells, folder_with, run};

const TRACE: &str = "id,lower,upper,size\na,0,3,64\nb,1,4,32\nc,3,5,48\n";

#[test]
fn a_verbs_table_leaves_in_every_form() {
    let folder = folder_with("t.csv", TRACE);
    let compare = |form: &str| {
        let planners = ["--planner", "bump", "--planner", "exact"];
        run(folder.path(), &[&["compare", "t.csv", "--table", form][..], &planners].concat(), 0)
    };
    let (csv, words) = compare("csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "planner,height,gap,fragmentation,time,status"), "{csv}");
    assert!(lines[1].starts_with("exact,96 B,"), "{csv}");
    assert!(words.contains("t.csv: 3 buffers, load 96 B"), "{words}");
    let (markdown, _) = compare("markdown");
    assert!(markdown.starts_with("| planner | height | gap "), "{markdown}");
    assert!(markdown.lines().all(|line| line.starts_with('|') && line.ends_with('|')), "{markdown}");
    let (latex, _) = compare("latex");
    assert!(latex.starts_with("\\begin{tabular}{llllll}\n\\hline\nplanner & height & "), "{latex}");
    assert!(latex.ends_with("\\hline\n\\end{tabular}\n") && latex.contains(" \\% & "), "{latex}");
}

#[test]
fn words_are_not_on_stdout_where_tables_are_alone() {
    let folder = folder_with("t.csv", TRACE);
    for (arguments, head, words) in [
        (&["bound", "t.csv"][..], "bound,evidence,holds for,how,time", "best: 96 B"),
        (&["list", "suites"], "key,description", ""),
        (&["list", "planners"], "key,guarantee,up to,honours", "buffers that it is practical for"),
        (&["simulate", "t.csv", "--allocator", "cupy*"], "allocator,", "3 buffers"),
        (&["replay", "t.csv", "--planner", "bump", "--seconds", "0.01"], "contender,", "t.csv"),
        (
            &["graph", "alexnet", "--mode", "infer", "--batch", "1", "--orders", "2", "--planner", "bump"],
            "plan,planner,",
            "operations",
        ),
        (
            &["sweep", "alexnet", "--mode", "infer", "--batch", "1..2", "--planner", "bump"],
            "batch,",
            "kept beside the plan",
        ),
    ] {
        let (stdout, stderr) = run(folder.path(), &[arguments, &["--table", "csv"]].concat(), 0);
        assert!(stdout.starts_with(head), "{arguments:?}: {stdout}");
        let cells = stdout.lines().next().expect("a head").matches(',').count();
        assert!(stdout.lines().all(|line| line.matches(',').count() >= cells), "{arguments:?}: {stdout}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}

#[test]
fn two_tables_have_a_blank_line_between_them() {
    let folder = folder_with("t.csv", TRACE);
    let arguments = ["simulate", "t.csv", "--allocator", "cupy*", "--samples", "--table", "markdown"];
    let (stdout, _) = run(folder.path(), &arguments, 0);
    let tables: Vec<&str> = stdout.split("\n\n").collect();
    assert_eq!(tables.len(), 2, "{stdout}");
    assert!(tables.iter().all(|table| table.starts_with("| allocator")), "{stdout}");
}

#[test]
fn verb_without_a_table_prints_its_usual_text() {
    let folder = folder_with("t.csv", TRACE);
    run(folder.path(), &["plan", "t.csv", "-o", "p.csv"], 0);
    assert_shows(&folder, &["verify", "t.csv", "p.csv", "--table", "latex"], 0, &["valid"]);
    assert_tells(&folder, &["compare", "t.csv", "--table", "csv", "--json"], 2, &["cannot be used with"]);
    assert_tells(&folder, &["compare", "t.csv", "--table", "html"], 2, &["csv, markdown, latex"]);
}
