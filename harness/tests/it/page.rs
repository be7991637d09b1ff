//! The page of `show` and `explain`.

use planlab_workloads::recorded::stored_file;
use serde_json::Value;

use crate::common::{folder_with, run};

const TRACE: &str = "id,lower,upper,size,category\na,0,3,4096,x\nb,1,2,1024,y\nc,2,5,4096,x\n";

fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("type=\"application/json\">").expect("has data");
    serde_json::from_str(rest.split_once("</script>").expect("ends").0).expect("JSON")
}

fn names(page: &str) -> Vec<String> {
    let data = data(page);
    let panels = data["panels"].as_array().expect("panels").iter();
    panels.map(|panel| panel["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn plans_stand_side_by_side_and_the_command_makes_the_page_again() {
    let folder = folder_with("t.csv", TRACE);
    let folder = folder.path();
    run(folder, &["plan", "t.csv", "-o", "p.csv"], 0);
    run(folder, &["plan", "t.csv", "--planner", "bump", "-o", "q.csv"], 0);
    run(folder, &["show", "t.csv", "p.csv", "q.csv", "-o", "a page.html"], 0);
    let page = std::fs::read_to_string(folder.join("a page.html")).expect("written");
    assert_eq!(names(&page), ["p.csv", "q.csv"]);
    assert!(page.contains("planlab show t.csv p.csv q.csv -o 'a page.html'"), "the command");
    assert!(page.contains("Why is it not lower?") && !page.contains("http"));
    let (_, stderr) = run(folder, &["show", "t.csv", "p.csv", "q.csv", "-o", "a.svg"], 2);
    assert!(stderr.contains("a picture shows one plan"), "{stderr}");
}

#[test]
fn an_explanation_has_a_page_with_the_frameworks_placement_beside_the_plan() {
    let snapshot = stored_file("samples/torch2.15_nullcuda_snapshot.pickle").expect("embedded");
    let folder = folder_with("s.pickle", snapshot);
    let folder = folder.path();
    run(folder, &["explain", "s.pickle", "-o", "page.txt"], 2);
    let (text, _) = run(folder, &["explain", "s.pickle", "-o", "page.html"], 0);
    let page = std::fs::read_to_string(folder.join("page.html")).expect("written");
    assert_eq!(names(&page), ["PyTorch's own placement", "portfolio's plan"]);
    for line in text.lines().filter(|line| !line.contains(['<', '>', '&', '"'])) {
        assert!(page.contains(line), "{line}");
    }
    let data = data(&page);
    // What it held at most lies between the load and the addresses that it ever used.
    let own = data["panels"][0]["height"].as_u64().expect("a number");
    assert!((113_246_208..200_000_000).contains(&own), "{own}");
    assert!(
        data["panels"][0]["held"].is_object()
            && !data["buffers"]["frames"].as_array().expect("frames").is_empty()
    );
    assert_eq!(data["load"]["bytes"], 60_882_560);
}
