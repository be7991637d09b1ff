//! `list`: what there is, a line each, or one of it in full.

use planlab_dsa::{Descriptor, Honours};
use planlab_solvers::online;
use planlab_workloads::{Catalog, did_you_mean, nearest, suites, synthetic};
use serde_json::{Value, json};

use crate::cli::{ListArgs, Listing};
use crate::external;
use crate::inputs;
use crate::planning::planners;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, note};
use crate::shell::table::Table;

/// What can be named: a line of a table, and all there is to say of it.
struct Entry {
    key: String,
    /// The other cells of its line.
    line: Vec<String>,
    /// What it is, in a sentence or a paragraph.
    description: String,
    /// The rest, by name.
    more: Value,
}

impl Entry {
    fn new(key: impl Into<String>, description: impl Into<String>, more: Value) -> Self {
        let (key, description) = (key.into(), description.into());
        Self { key, line: vec![description.clone()], description, more }
    }

    fn value(&self) -> Value {
        let mut value = json!({ "key": self.key, "description": self.description });
        if let (Some(object), Some(more)) = (value.as_object_mut(), self.more.as_object()) {
            object.extend(more.clone());
        }
        value
    }

    /// Everything, a line each.
    fn card(&self) -> String {
        let mut card = format!("{:<13}  {}\n", "key", self.key);
        let value = self.value();
        for (name, value) in value.as_object().into_iter().flatten().filter(|(name, _)| *name != "key") {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null => "-".to_owned(),
                Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
                Value::Object(marks) => named(marks),
                other => other.to_string(),
            };
            card += &format!("{name:<13}  {text}\n");
        }
        card
    }
}

/// The names of an object's true members.
fn named(marks: &serde_json::Map<String, Value>) -> String {
    let names: Vec<String> =
        marks.iter().filter(|(_, is)| **is == true).map(|(name, _)| name.replace('_', " ")).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

pub(crate) fn run(args: &ListArgs, output: Output) -> Verdict {
    let entries = match args.what {
        Listing::Planners => planner_entries(),
        Listing::Workloads => workload_entries(args),
        Listing::Suites => suite_entries(),
        Listing::Families => family_entries(),
        Listing::Formats => format_entries(),
        Listing::Allocators => allocator_entries(),
        // There are none in this version.
        Listing::Schedulers => Vec::new(),
    };
    if entries.is_empty() {
        note("there are none in this version");
    }
    if let Some(key) = &args.key {
        let entry = entries.iter().find(|entry| entry.key == *key).ok_or_else(|| unknown(key, &entries))?;
        output.put(&entry.value(), &entry.card())?;
        return Ok(Exit::Complete);
    }
    let values = entries.iter().map(Entry::value).collect();
    let text = if args.what == Listing::Planners { planner_table(&entries) } else { table(&entries) };
    output.put(&Value::Array(values), &text)?;
    Ok(Exit::Complete)
}

fn unknown(key: &str, entries: &[Entry]) -> Failure {
    let near = nearest(key, entries.iter().map(|entry| entry.key.as_str()));
    Failure::usage(format!("the list has no `{key}`{}", did_you_mean(&near)))
}

fn table(entries: &[Entry]) -> String {
    let mut table = Table::new(&["key", "description"]);
    entries.iter().for_each(|entry| table.row([entry.key.clone(), entry.description.clone()]));
    table.render()
}

/// Something that a planner may honour, and its letter in the table.
struct Mark {
    letter: char,
    name: &'static str,
    is_honoured: fn(&Honours) -> bool,
}

const MARKS: [Mark; 9] = [
    Mark { letter: 'p', name: "pins", is_honoured: |honours| honours.pins },
    Mark { letter: 'a', name: "alignment", is_honoured: |honours| honours.alignment },
    Mark { letter: 'i', name: "in-place", is_honoured: |honours| honours.in_place },
    Mark { letter: 'P', name: "pauses", is_honoured: |honours| honours.pauses },
    Mark { letter: 'A', name: "arenas", is_honoured: |honours| honours.arenas },
    Mark { letter: 'k', name: "keep-apart", is_honoured: |honours| honours.apart },
    Mark { letter: 'h', name: "hints", is_honoured: |honours| honours.hint },
    Mark { letter: 'w', name: "work limit", is_honoured: |honours| honours.work_limit },
    Mark { letter: 't', name: "threads", is_honoured: |honours| honours.threads },
];

/// A line a planner, under its family, in 80 columns.
fn planner_table(entries: &[Entry]) -> String {
    let mut table = Table::new(&["key", "guarantee", "up to", "honours"]);
    let mut family = "";
    for entry in entries {
        let own = entry.more["family"].as_str().unwrap_or_default();
        if own != family {
            table.row([own.to_uppercase(), String::new(), String::new(), String::new()]);
            family = own;
        }
        table.row(std::iter::once(entry.key.clone()).chain(entry.line.iter().cloned()));
    }
    let legend = |marks: &[Mark]| {
        marks.iter().map(|mark| format!("{} {}", mark.letter, mark.name)).collect::<Vec<_>>().join(", ")
    };
    let (first, second) = MARKS.split_at(5);
    format!(
        "{}\nup to    buffers that it is practical for\nhonours  {},\n         {}\n\
        `planlab list planners KEY` says all of one\n",
        table.render(),
        legend(first),
        legend(second)
    )
}

fn marks(honours: &Honours) -> String {
    MARKS.iter().map(|mark| if (mark.is_honoured)(honours) { mark.letter } else { '-' }).collect()
}

fn honoured(honours: &Honours) -> String {
    let honoured = MARKS.iter().filter(|mark| (mark.is_honoured)(honours));
    let names: Vec<&str> = honoured.map(|mark| mark.name).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn planner_entries() -> Vec<Entry> {
    external::ask_versions(|_| true);
    let ours = planners::descriptors().into_iter().map(planner_entry);
    let absent = external::all_absent().iter().map(|(key, reason)| {
        let more = json!({ "family": "external", "external": true, "absent": reason });
        let line = vec!["cannot run".to_owned(), String::new(), String::new()];
        Entry { line, ..Entry::new(key.clone(), format!("cannot run: {reason}"), more) }
    });
    ours.chain(external::entries().iter().map(external_entry)).chain(absent).collect()
}

fn planner_entry(d: Descriptor) -> Entry {
    let most = d.practical.map(|n| format!("; up to {n} buffers")).unwrap_or_default();
    let description = format!(
        "{} [{}; O({}){most}; honours {}; {}]",
        d.summary,
        d.guarantee,
        d.complexity,
        honoured(&d.honours),
        d.reference
    );
    let line = vec![
        d.guarantee.to_string(),
        d.practical.map(|most| most.to_string()).unwrap_or_default(),
        marks(&d.honours),
    ];
    let more = json!({
        "family": planlab_solvers::family(&d.key),
        "guarantee": d.guarantee.to_string(),
        "honours": d.honours,
        "randomized": d.randomized,
        "reference": d.reference,
        "complexity": d.complexity,
        "practical": d.practical,
    });
    Entry { line, ..Entry::new(d.key, description, more) }
}

fn external_entry(entry: &external::Entry) -> Entry {
    let version = entry.says_version();
    let shown = if version.is_empty() { String::new() } else { format!("; {version}") };
    let description = format!("{} [external{shown}; honours {}]", entry.summary, honoured(&entry.honours));
    let most = entry.practical.map(|most| most.to_string()).unwrap_or_default();
    let line = vec![if entry.exact { "exact" } else { "heuristic" }.to_owned(), most, marks(&entry.honours)];
    let more = json!({
        "family": "external",
        "external": true,
        "honours": entry.honours,
        "practical": entry.practical,
        "command": entry.command,
        "version": version,
        "digest": entry.version(),
    });
    Entry { line, ..Entry::new(entry.key.clone(), description, more) }
}

fn workload_entries(args: &ListArgs) -> Vec<Entry> {
    let catalog = Catalog::new(args.corpus.corpus.clone()).with_limits(inputs::limits());
    catalog.notices().iter().for_each(|notice| note(notice));
    let entry = |key: String| {
        let description = catalog.describe(&key).unwrap_or_default();
        Entry::new(key, description, json!({}))
    };
    catalog.keys().into_iter().map(entry).collect()
}

fn suite_entries() -> Vec<Entry> {
    let words = |suite: &suites::Suite| suite.analysis.split_whitespace().collect::<Vec<_>>().join(" ");
    let entry = |suite: &suites::Suite| Entry::new(suite.name.clone(), words(suite), json!({}));
    suites::builtin().iter().map(entry).collect()
}

fn family_entries() -> Vec<Entry> {
    let entry = |family: &synthetic::Family| {
        let parameters: Vec<Value> = family
            .parameters
            .iter()
            .map(|p| json!({ "name": p.name, "default": p.default, "description": p.summary }))
            .collect();
        let short: Vec<String> =
            family.parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
        let description = format!("{} ({})", family.summary, short.join(" "));
        Entry::new(family.name, description, json!({ "parameters": parameters }))
    };
    synthetic::families().iter().map(entry).collect()
}

fn allocator_entries() -> Vec<Entry> {
    let entry =
        |entry: &online::Entry| Entry::new(entry.key, entry.summary, json!({ "reference": entry.reference }));
    online::registry().iter().map(entry).collect()
}

fn format_entries() -> Vec<Entry> {
    let rows = [
        ("lab", "the lab's trace CSV, buffers or events (import, export, with a plan too)"),
        ("minimalloc", "MiniMalloc's CSV (import, export)"),
        ("idealloc", "idealloc's CSV; --dialect says which ends it excludes (import, export)"),
    ];
    rows.into_iter().map(|(key, description)| Entry::new(key, description, json!({}))).collect()
}
