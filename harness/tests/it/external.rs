//! External planners: honest, lying, hanging, crashing and missing ones. Each has a row, and none harms another.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::common::{
    STACK, WAIT_TIMEOUT, assert_has, assert_tells, folder_with, has_ended, json, json_lines, outputs,
    planlab, planner_entry, run, start, wait_for, wait_with_more_time, write,
};

const TRACE: &str = "id,lower,upper,size\na,0,4,64\nb,2,6,32\nc,5,9,64\nd,0,9,16\n";

fn planner(key: &str, script: &str, more: &str) -> String {
    planner_entry(key, &[script, "{instance}", "{output}", "{capacity}", "{threads}"], more)
}

/// A folder with a trace, scripts and a `planners.toml`.
fn folder() -> TempDir {
    let folder = tempdir().expect("a folder");
    let mut file = String::new();
    for (key, script, more) in [
        (
            "stack",
            format!("{STACK}sleep 0.2\necho 'took 1.25 s, bound: 176'\n"),
            "time_after = \"took\"\nbound_after = \"bound:\"",
        ),
        (
            "overlap",
            "awk -F, 'NR == 1 { print \"id,offset\"; next } { print $1 \",0\" }' \"$1\" > \"$2\"\n"
                .to_owned(),
            "",
        ),
        ("hang", "sleep 1000 & echo $! > part; mv part sleeper; wait\n".to_owned(), ""),
        ("hang-with-plan", format!("{STACK}sleep 1000\n"), ""),
        ("anytime", format!("{STACK}exec sleep 1000\n"), "anytime = true"),
        ("crash", "echo 'out of luck' >&2\nkill -SEGV $$\n".to_owned(), ""),
        ("exit", "echo 'gave up here, not finished' >&2\nexit 7\n".to_owned(), ""),
        ("nonsense", "echo 'id,offset' > \"$2\"; echo '0,minus' >> \"$2\"\n".to_owned(), ""),
        ("silent", "exit 0\n".to_owned(), ""),
        ("no", "echo 'NO PLAN'; exit 1\n".to_owned(), "no_plan = [\"NO PLAN\"]"),
        ("late", "echo 'TOO LATE'; exit 1\n".to_owned(), "out_of_time = [\"TOO LATE\"]"),
        ("liar", format!("{STACK}echo 'bound: 999999'\n"), "bound_after = \"bound:\""),
        ("tell", format!("{STACK}echo \"$3 $4\" > told\n"), "honours = [\"threads\"]"),
    ] {
        write(folder.path(), &format!("{key}.sh"), script);
        file += &planner(key, &format!("{key}.sh"), more);
    }
    file += &planner("missing", "x", "").replace("\"sh\"", "\"./no/such/program\"");
    write(folder.path(), "planners.toml", file);
    write(folder.path(), "trace.csv", TRACE);
    folder
}

fn plan(folder: &Path, key: &str, more: &[&str], code: i32) -> Value {
    let key = format!("external/{key}");
    let mut all = vec!["plan", "trace.csv", "--planner", &key];
    all.extend(more);
    json(folder, &all, code)
}

#[test]
fn a_plan_is_verified_and_times_are_the_process_s() {
    let folder = folder();
    for more in [&[][..], &["--in-process"]] {
        let before = Instant::now();
        let row = plan(folder.path(), "stack", more, 0);
        let all = before.elapsed().as_secs_f64();
        assert_eq!((row["height"].as_u64(), row["load"].as_u64()), (Some(176), Some(112)), "{row}");
        // Its bound equals its height but proves nothing.
        assert_eq!((row["status"].as_str(), row["bound"].as_u64()), (Some("feasible"), Some(112)), "{row}");
        assert_eq!(row["reported_seconds"].as_f64(), Some(1.25));
        let seconds = row["seconds"].as_f64().expect("a time");
        assert!((0.2..all).contains(&seconds), "{seconds} of {all}");
    }
    run(folder.path(), &["plan", "trace.csv", "--planner", "external/stack", "-o", "plan.csv"], 0);
    run(folder.path(), &["verify", "trace.csv", "plan.csv"], 0);
}

#[test]
fn every_misdeed_is_a_row() {
    let folder = folder();
    for (key, code, detail, reason) in [
        ("overlap", 4, "invalid-overlap", "overlap"),
        ("crash", 3, "crashed", "signal: 11"),
        ("exit", 3, "crashed", "sh: exit status: 7: gave up here, not finished"),
        ("nonsense", 3, "bad-output", "minus"),
        ("silent", 3, "bad-output", "wrote no plan"),
        ("no", 3, "unknown", "proves nothing"),
        ("late", 3, "timeout", "before there was a plan"),
        ("liar", 4, "bound-refuted", "999999"),
    ] {
        let row = plan(folder.path(), key, &[], code);
        assert_eq!(row["detail"], detail, "{row}");
        assert!(row["reason"].as_str().is_some_and(|text| text.contains(reason)), "{reason}: {row}");
    }
}

#[test]
fn what_is_missing_is_named_once() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("bin")).expect("writable");
    for (name, mode) in [("script", 0o755), ("plain", 0o644), ("bin/nowhere", 0o755)] {
        write(folder.path(), name, "#!/no/such/interpreter\n");
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.path().join(name), permissions).expect("its owner may");
    }
    let entry = |key: &str, command: &str| {
        format!(
            "[[planner]]\nkey = \"external/{key}\"\ncommand = [{command}, \"{{instance}}\", \"{{output}}\"]\n\
             instance = \"lab\"\n"
        )
    };
    let file = [
        entry("gone", "\"sh\", \"/no/gone.sh\""),
        entry("script", "\"script\""),
        entry("plain", "\"plain\""),
        entry("path", "\"nowhere\""),
    ];
    write(folder.path(), "planners.toml", file.concat());
    let bin = folder.path().join("bin").display().to_string();
    let programs = format!("{bin}:{}", std::env::var("PATH").expect("it is set"));
    for (key, path, reason) in [
        ("gone", "/no/gone.sh", "exit status: "),
        ("script", "/script", "/script cannot be started: its interpreter or loader does not exist"),
        ("plain", "/plain", "/plain cannot be started: Permission denied"),
        ("path", "nowhere", "nowhere cannot be started: No such file"),
    ] {
        let key = format!("external/{key}");
        let words = ["plan", "trace.csv", "--planner", &key];
        let (text, _) = outputs(planlab(folder.path()).args(words).env("PATH", &programs), 3);
        assert!(text.contains(reason) && !text.contains("sh: exit status"), "{text}");
        let told = text.lines().filter(|line| !line.starts_with("planner")).collect::<Vec<_>>().join("\n");
        assert_eq!(told.matches(path).count(), 1, "{text}");
    }
}

#[test]
fn a_missing_program_has_no_missing_interpreter() {
    let folder = folder();
    // The system does not look for a bare name in the current folder.
    write(folder.path(), "beside", "");
    let parent = std::process::id().to_string();
    for program in ["./no/such/program", "beside"] {
        let (_, stderr) = run(folder.path(), &["exec-external", &parent, "stamp", program], 2);
        assert!(stderr.contains(&format!("{program}: No such file")), "{stderr}");
        let stamp = std::fs::read_to_string(folder.path().join("stamp")).expect("written");
        assert!(stamp.starts_with("refused: No such file"), "{stamp}");
    }
}

#[test]
fn a_hanging_program_ends_with_the_limit_and_so_does_what_it_started() {
    let folder = folder();
    wait_with_more_time("the program", |limit| {
        let row = plan(folder.path(), "hang", &["--time-limit", limit], 3);
        assert_eq!(row["detail"], "timeout", "{row}");
        folder.path().join("sleeper").exists()
    });
    // A busy machine may end it before it has a plan: then with more time.
    wait_with_more_time("a plan", |limit| {
        let words = ["plan", "trace.csv", "--planner", "external/hang-with-plan", "--json", "--time-limit"];
        let output = planlab(folder.path()).args(words).arg(limit).output().expect("the binary runs");
        let row: Value = serde_json::from_slice(&output.stdout).expect("one object");
        (row["height"].as_u64(), row["status"].as_str()) == (Some(176), Some("feasible"))
    });
    let sleeper = std::fs::read_to_string(folder.path().join("sleeper")).expect("it began");
    wait_for("the sleeper's end", || has_ended(sleeper.trim()));
}

#[test]
fn a_program_does_not_outlive_a_killed_bench() {
    let folder = folder();
    write(folder.path(), "hang.sh", "echo $$ > sleeper.part; mv sleeper.part sleeper; exec sleep 1000\n");
    let words = ["plan", "trace.csv", "--planner", "external/hang", "--time-limit", "60s"];
    let mut bench = start(folder.path(), &words);
    let file = folder.path().join("sleeper");
    wait_for("the program", || file.exists());
    bench.kill().expect("killed");
    bench.wait().expect("reaped");
    let pid = std::fs::read_to_string(file).expect("written");
    wait_for("the program's end", || has_ended(pid.trim()));
}

#[test]
fn program_receives_capacity_and_threads() {
    let folder = folder();
    let told = || std::fs::read_to_string(folder.path().join("told")).expect("told").trim().to_owned();
    plan(folder.path(), "tell", &["--threads", "1"], 0);
    // Without a capacity, the program gets what our own quick planners reach: here the load.
    assert_eq!(told(), "112 1");
    let row = plan(folder.path(), "tell", &["--capacity", "200", "--threads", "2"], 0);
    assert_eq!(told(), "200 2");
    assert_eq!((row["stop"].as_str(), row["threads"].as_u64()), (Some("target-reached"), Some(2)), "{row}");
    // A plan that does not fit is not an answer; a capacity below the load needs no program.
    assert_eq!(plan(folder.path(), "tell", &["--capacity", "150"], 3)["status"], "unknown");
    assert_eq!(plan(folder.path(), "tell", &["--capacity", "100"], 3)["status"], "infeasible");
}

#[test]
fn compare_runs_them_beside_ours() {
    let folder = folder();
    let of_two =
        planner("stack", "stack.sh", "") + &planner("missing", "x", "").replace("\"sh\"", "\"./none\"");
    write(folder.path(), "planners.toml", of_two + &planner("small", "stack.sh", "practical = 3"));
    let output = planlab(folder.path()).args(["compare", "trace.csv", "--json"]).output().expect("it runs");
    let rows: Value = serde_json::from_slice(&output.stdout).expect("an array");
    let rows = rows.as_array().expect("an array");
    let planners: Vec<&str> = rows.iter().filter_map(|row| row["planner"].as_str()).collect();
    assert!(planners.contains(&"external/stack") && planners.contains(&"best-fit"), "{planners:?}");
    assert!(!planners.contains(&"external/small"), "practical for 3 buffers only: {planners:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("`external/missing` cannot run: "), "{stderr}");
}

#[test]
fn what_it_does_not_honour_is_refused() {
    let folder = folder();
    write(folder.path(), "trace.csv", "id,lower,upper,size,alignment\na,0,4,64,64\n");
    assert_eq!(plan(folder.path(), "stack", &[], 3)["detail"], "unsupported");
}

/// Runs the CP-SAT script if OR-Tools is installed: by `harness/external/setup-cp-sat`, or in the Python that
/// `PLANLAB_CP_SAT_PYTHON` names.
#[test]
fn cp_sat_reaches_a_small_optimum_with_pins_and_alignment() {
    let external = Path::new(env!("CARGO_MANIFEST_DIR")).join("external");
    let python = std::env::var("PLANLAB_CP_SAT_PYTHON").map_or(external.join("venv/bin/python"), Into::into);
    if !python.is_file() {
        eprintln!("skipped: no OR-Tools, run harness/external/setup-cp-sat");
        return;
    }
    let file = std::fs::read_to_string(external.join("planners.example.toml")).expect("it is there");
    let script = external.join("cp_sat.py").display().to_string();
    let file = file.replace("venv/bin/python", &python.display().to_string()).replace("cp_sat.py", &script);
    let folder = folder_with("planners.toml", file);
    // Below the pin at 96 there are 96 bytes: either `a` or `c` lies there, and `a` lies at a multiple of 64.
    let trace =
        "id,lower,upper,size,alignment,offset\np,0,9,32,1,96\na,0,4,80,64,\nb,4,9,96,1,\nc,0,4,64,1,\n";
    write(folder.path(), "trace.csv", trace);
    let row = plan(folder.path(), "cp-sat", &["--threads", "2"], 0);
    assert_eq!((row["height"].as_u64(), row["threads"].as_u64()), (Some(192), Some(2)), "{row}");
    let row = plan(folder.path(), "cp-sat-fit", &["--capacity", "192"], 0);
    assert_eq!(row["stop"], "target-reached", "{row}");
    let row = plan(folder.path(), "cp-sat-fit", &["--capacity", "191"], 3);
    assert!(row["height"].is_null() && row["status"] != "feasible", "{row}");
}

#[test]
fn a_missing_program_is_listed_and_not_run() {
    let folder = folder();
    let listed = json(folder.path(), &["list", "planners"], 0);
    let find = |key: &str| {
        let mut all = listed.as_array().expect("a list").iter();
        all.find(|entry| entry["key"] == key).unwrap_or_else(|| panic!("no {key}")).clone()
    };
    assert!(find("external/missing")["absent"].as_str().is_some_and(|reason| reason.contains("no/such")));
    assert_eq!(find("external/stack")["external"], true);
    let suite = "name = \"x\"\nanalysis = \"x\"\n[[group]]\nworkloads = [\"chainer/alexnet/infer/b1\"]\n\
                 planners = [\"bump\", \"external/missing\"]\ncapacities = [1, 100000000]\n";
    write(folder.path(), "suite.toml", suite);
    let arguments = ["bench", "--suite", "./suite.toml", "--out", "store", "--json"];
    let (stdout, stderr) = run(folder.path(), &arguments, 0);
    assert!(stderr.contains("`external/missing` is not given"), "{stderr}");
    let rows = json_lines(&stdout);
    let mut ends: Vec<_> = rows.iter().map(|row| (row["capacity"].as_u64(), row["status"].clone())).collect();
    ends.sort_by_key(|(capacity, _)| *capacity);
    assert_eq!(ends, [(Some(1), "infeasible".into()), (Some(100_000_000), "feasible".into())]);
}

#[test]
fn without_a_file_there_are_none() {
    let folder = tempdir().expect("a folder");
    let (_, stderr) = run(folder.path(), &["plan", "chainer/alexnet/infer/b1", "--planner", "external/x"], 2);
    assert!(stderr.contains("docs/external-planners.md"), "{stderr}");
    assert_tells(&folder, &["list", "--planners", "nowhere.toml"], 2, &["nowhere.toml"]);
}

#[test]
fn another_program_is_another_cell_and_ratios_compare() {
    let folder = folder();
    let bench = |planner: &str, code: i32| {
        let arguments = ["bench", "--workload", "synthetic/uniform/n40/s1", "--planner", planner, "--json"];
        let limits = ["--out", "store", "--capacity", "1GiB", "--reps", "3", "--time-limit", "10s"];
        let (stdout, stderr) = run(folder.path(), &[&arguments[..], &limits].concat(), code);
        (stderr.contains(" 3 run now"), json_lines(&stdout).len())
    };
    assert_eq!(bench("external/stack", 0), (true, 3));
    assert_eq!(bench("external/stack", 0), (false, 3));
    write(folder.path(), "stack.sh", format!("{STACK}echo 'took 2 s'\n"));
    assert_eq!(bench("external/stack", 0), (true, 3));
    assert_eq!(bench("first-fit/size", 0), (true, 3));
    assert_eq!(bench("external/crash", 3), (true, 3));
    let arguments =
        ["ratios", "store", "--of", "first-fit/size", "--over", "external/*", "--over", "external/none"];
    run(folder.path(), &[&arguments[..], &["-o", "tables"]].concat(), 0);
    let page = std::fs::read_to_string(folder.path().join("tables/ratios.md")).expect("written");
    assert_has(
        &page,
        &["first-fit/size over external/stack", "external/none`: not run", "crashed", "2.000 s"],
    );
    assert_has(&page, &["** over 1 instances"]);
    let latex = std::fs::read_to_string(folder.path().join("tables/ratios.tex")).expect("written");
    assert!(latex.contains("\\begin{tabular}") && latex.contains("external/stack"), "{latex}");
    let csv = std::fs::read_to_string(folder.path().join("tables/capacity.csv")).expect("written");
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let number = figures_of_stack(&csv);
    assert!((number(12) - number(5) / number(8)).abs() < 0.05 * number(12), "{csv}");
    assert!((number(13) - number(5) / 2.0).abs() < 1e-5, "{csv}");
}

/// The numbers of a table in the row of `external/stack`, by column.
fn figures_of_stack(csv: &str) -> impl Fn(usize) -> f64 {
    let row = csv.lines().find(|line| line.contains("external/stack")).expect("a row");
    move |at: usize| -> f64 {
        row.split(',').nth(at).and_then(|cell| cell.parse().ok()).unwrap_or_else(|| panic!("{row}"))
    }
}

#[test]
fn ratios_of_nothing_are_refused() {
    let folder = folder();
    let bench = ["bench", "--workload", "synthetic/uniform/n40/s1", "--out", "store", "--planner"];
    run(folder.path(), &[&bench[..], &["best-fit", "--planner", "external/stack"]].concat(), 0);
    let ratios = |of: &str, over: &str, code: i32| {
        run(folder.path(), &["ratios", "store", "--of", of, "--over", over, "-o", "tables"], code).1
    };
    let told = ratios("best-fti", "external/stack", 2);
    assert!(told.contains("did you mean") && told.contains("`best-fit`"), "{told}");
    let told = ratios("bump", "external/none", 2);
    assert!(told.contains("`bump` was not run") && told.contains("none of these planners"), "{told}");
    let (_, told) = run(folder.path(), &["ratios", "nowhere", "--of", "a", "--over", "b", "-o", "tables"], 2);
    assert_eq!(told.matches("No such file").count(), 1, "{told}");
    assert!(!folder.path().join("tables").exists());
    ratios("best-fit", "external/stack", 0);
    let csv = std::fs::read_to_string(folder.path().join("tables/minimised.csv")).expect("written");
    let number = figures_of_stack(&csv);
    assert!(number(10) <= number(9), "the best plan comes no later than the end: {csv}");
}

#[test]
fn missing_program_and_misspelt_planner_have_different_errors() {
    let folder = folder();
    let told = |words: &[&str]| run(folder.path(), words, 2).1;
    let bench = ["bench", "--workload", "synthetic/uniform/n40/s1", "--dry-run", "--planner"];
    for words in [
        vec!["plan", "trace.csv", "--planner", "external/missing"],
        [&bench[..], &["external/miss*"]].concat(),
    ] {
        let told = told(&words);
        assert_has(&told, &["`external/missing` cannot run: ", "no/such/program"]);
    }
    let told = told(&["plan", "trace.csv", "--planner", "external/stak"]);
    assert!(told.contains("did you mean `external/stack`"), "{told}");
    assert_tells(&folder, &[&bench[..], &["external/*"]].concat(), 0, &["`external/missing` cannot run: "]);
}

const INPUT_AND_OUTPUT: [&str; 2] = ["{instance}", "{output}"];

/// What `list` says of the external planners in `versions.toml`, and its stderr.
fn listed_versions(folder: &Path, patience: &str) -> (Vec<Value>, String) {
    let mut command = planlab(folder);
    command.args(["list", "planners", "--planners", "versions.toml", "--json"]);
    command.env("PLANLAB_VERSION_PATIENCE", patience).timeout(WAIT_TIMEOUT);
    let (stdout, stderr) = outputs(&mut command, 0);
    let entries: Vec<Value> = serde_json::from_str(&stdout).expect("an array");
    let is_external = |entry: &Value| entry["key"].as_str().is_some_and(|key| key.starts_with("external/"));
    (entries.into_iter().filter(is_external).collect(), stderr)
}

#[test]
fn a_version_command_that_hangs_is_ended_with_all_that_it_started() {
    let folder = folder();
    let planners = |version: &str| {
        let asks = format!("version = [\"sh\", \"-c\", \"{version}\"]");
        write(folder.path(), "versions.toml", planner_entry("slow", &INPUT_AND_OUTPUT, &asks));
    };
    let said = |patience: &str| listed_versions(folder.path(), patience).0[0]["version"].clone();
    planners("echo 1.2; echo 1.3");
    assert_eq!(said("300000"), "1.2");
    // A busy machine may end it before it has written: then with more patience.
    planners("sleep 1000 & echo $$ $! > pids.part; mv pids.part pids; echo 1.2; wait");
    let pids = folder.path().join("pids");
    let mut patience = (0..).map(|doubled| (300_u64 << doubled).to_string());
    wait_for("the version command", || {
        assert_eq!(said(&patience.next().expect("endless")), "version unknown");
        pids.exists()
    });
    let pids = std::fs::read_to_string(pids).expect("it was started");
    wait_for("the end of both", || pids.split_whitespace().all(has_ended));
}

#[test]
fn versions_are_asked_all_at_once_and_an_unknown_one_is_left_out() {
    let folder = folder();
    let list = |versions: &[(&str, &str)], patience: &str| {
        let planner = |(key, version): &(&str, &str)| planner_entry(key, &INPUT_AND_OUTPUT, version);
        write(folder.path(), "versions.toml", versions.iter().map(planner).collect::<String>());
        listed_versions(folder.path(), patience)
    };
    // Each waits until the other was started.
    let waits = |own: &str, other: &str| {
        let script = format!("touch {own}; until [ -e {other} ]; do sleep 0.02; done; echo {own}");
        format!("version = [\"sh\", \"-c\", \"{script}\"]")
    };
    let (both, told) = list(&[("a", &waits("one", "two")), ("b", &waits("two", "one"))], "300000");
    assert_eq!((&both[0]["version"], &both[1]["version"]), (&"one".into(), &"two".into()), "{told}");
    let (hung, told) = list(&[("a", "version = [\"sleep\", \"1000\"]")], "100");
    assert_eq!(hung[0]["version"], "version unknown");
    assert!(told.contains("external/a: its version command did not end within 100ms"), "{told}");
    let (silent, told) = list(&[("a", "")], "100");
    assert_eq!(silent[0]["digest"], hung[0]["digest"]);
    assert!(told.is_empty(), "{told}");
}

#[test]
fn every_workload_that_is_not_there_is_named() {
    let folder = folder();
    let names = ["minimalloc/A", "synthetic/uniform/n40/s1", "nonsense/foo", "idealloc/*"];
    let mut words = vec!["bench", "--planner", "best-fit", "--dry-run"];
    names.iter().for_each(|name| words.extend(["--workload", name]));
    let (_, told) = run(folder.path(), &words, 2);
    assert!(told.contains("3 of 4 workloads") && told.contains("`nonsense/foo`"), "{told}");
    assert_has(&told, &["`minimalloc/A`, `idealloc/*` need the folder", "--corpus"]);
}
