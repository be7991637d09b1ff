//! Rows of all kinds look in files as they always did.

use crate::common::fixtures;
use planlab_results::framework::FrameworkRow;
use serde::Serialize;

fn json_text(row: &impl Serialize) -> String {
    serde_json::to_string(row).expect("plain data")
}

#[test]
fn fields_of_a_run_stand_between_those_of_its_row() {
    let framework = fixtures::framework("resnet18", "glibc", [4; 3], 1, "x");
    let framework: FrameworkRow = serde_json::from_str(&framework).expect("a row");
    for (text, first) in [
        (json_text(&fixtures::record("a", 0)), "lane"),
        (json_text(&fixtures::replay("a", 0)), "suite"),
        (json_text(&fixtures::schedule("a", "joint")), "suite"),
        (json_text(&framework.with(|row| row.cell = "a".to_owned())), "framework"),
    ] {
        let head = format!(r#"{{"schema":1,"cell":"a","repetition":0,"{first}":"#);
        assert!(text.starts_with(&head) && !text.contains(r#""run":"#), "{text}");
        let tail = text.split_once(r#","started_ns":1,"provenance":{"#).map(|(_, tail)| tail);
        assert!(tail.is_some_and(|tail| tail.ends_with("}}") && !tail.contains('{')), "{text}");
    }
}

#[test]
#[cfg(feature = "parquet")]
fn columns_of_a_run_stand_between_those_of_its_row() {
    let frame = planlab_results::frame::to_frame(&[fixtures::record("a", 0)]).expect("makes a table");
    let names: Vec<String> = frame.get_column_names().into_iter().map(ToString::to_string).collect();
    assert_eq!(names[..4], ["schema", "cell", "repetition", "lane"]);
    let started = names.iter().position(|name| name == "started_ns").expect("a column");
    assert_eq!(names[started - 1..started + 2], ["plan", "started_ns", "machine_host"]);
}
