//! `list`: what there is, a line each, or one of it in full.

use planlab_dsa::{Descriptor, Honours};
use planlab_graph::{Machine, Scheduler};
use planlab_solvers::online;
use planlab_solvers::schedule::schedulers;
use planlab_workloads::formats::import::READERS;
use planlab_workloads::models::models;
use planlab_workloads::{Catalog, did_you_mean, matches_glob, nearest, suites, synthetic};
use serde_json::{Value, json};

use crate::cli::{ListArgs, Listing};
use crate::inputs;
use crate::kinds::external;
use crate::kinds::placement::planners;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, merge_objects, print_note};
use crate::shell::text::Text;
use planlab_results::table::{CellValue as Shown, Table};

/// What can be named.
struct Entry {
    key: String,
    /// The heading above it; may be empty.
    family: &'static str,
    /// The other cells of its line in a table.
    line: Vec<String>,
    /// What there is to say of it, by name.
    facts: Vec<(String, String)>,
    /// The same for programs.
    value: Value,
}

impl Entry {
    /// An entry with its description; `more` is added to its JSON.
    fn new(key: impl Into<String>, description: impl Into<String>, more: &Value) -> Self {
        let (key, description) = (key.into(), description.into());
        let value = merge_objects(json!({ "key": key, "description": description }), more);
        let facts = vec![("description".to_owned(), description.clone())];
        Self { key, family: "", line: vec![description], facts, value }
    }

    /// The same with one fact more.
    fn with_fact(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.facts.push((name.into(), text.into()));
        self
    }

    /// Everything, a line each.
    fn entry_card(&self) -> String {
        let width = self.facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(11);
        let line = |name: &str, text: &str| format!("{name:<width$}  {text}\n");
        let facts = self.facts.iter().map(|(name, text)| line(name, text));
        std::iter::once(line("key", &self.key)).chain(facts).collect()
    }

    /// Whether a word names it: its key, its family, or a glob that matches its key.
    fn is_named(&self, word: &str) -> bool {
        self.family == word || matches_glob(word, &self.key)
    }
}

pub(crate) fn run(args: &ListArgs, output: Output) -> Verdict {
    let mut entries = match args.what {
        Listing::Planners => planner_entries(),
        Listing::Workloads => workload_entries(args),
        Listing::Models => model_entries(),
        Listing::Suites => suite_entries(),
        Listing::Families => family_entries(),
        Listing::Formats => format_entries(),
        Listing::Allocators => allocator_entries(),
        Listing::Schedulers => scheduler_entries(),
        Listing::Machines => machine_entries(),
    };
    if let Some(key) = &args.key {
        if let Some(entry) = entries.iter().find(|entry| entry.key == *key) {
            return output.print_result(&entry.value, entry.entry_card(), Exit::Complete);
        }
        if !entries.iter().any(|entry| entry.is_named(key)) {
            return Err(unknown_key(key, &entries));
        }
        entries.retain(|entry| entry.is_named(key));
    }
    let text = if args.what == Listing::Planners { planner_table(&entries) } else { entry_table(&entries) };
    output.print_result(&entries.into_iter().map(|entry| entry.value).collect(), text, Exit::Complete)
}

fn unknown_key(key: &str, entries: &[Entry]) -> Failure {
    let near = nearest(key, entries.iter().map(|entry| entry.key.as_str()));
    Failure::from_usage(format!("there is no `{key}` in this list{}", did_you_mean(&near)))
}

fn entry_table(entries: &[Entry]) -> Text {
    let mut table = Table::new(&["key", "description"]);
    entries
        .iter()
        .for_each(|entry| table.push_texts([entry.key.clone()].into_iter().chain(entry.line.clone())));
    table.into()
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
fn planner_table(entries: &[Entry]) -> Text {
    let mut table = Table::new(&["key", "guarantee", "up to", "honours"]);
    let mut family = "";
    for entry in entries {
        if entry.family != family {
            table.push_texts([entry.family.to_uppercase(), String::new(), String::new(), String::new()]);
            family = entry.family;
        }
        table.push_texts(std::iter::once(entry.key.clone()).chain(entry.line.iter().cloned()));
    }
    let legend = |marks: &[Mark]| {
        marks.iter().map(|mark| format!("{} {}", mark.letter, mark.name)).collect::<Vec<_>>().join(", ")
    };
    let (first, second) = MARKS.split_at(5);
    let legend = format!(
        "\nup to    buffers that it is practical for\nhonours  {},\n         {}\n\
        `planlab list planners KEY` shows one in full\n",
        legend(first),
        legend(second)
    );
    Text::from(table) + legend
}

fn honour_marks(honours: &Honours) -> String {
    MARKS.iter().map(|mark| if (mark.is_honoured)(honours) { mark.letter } else { '-' }).collect()
}

fn honour_words(honours: &Honours) -> String {
    let honoured = MARKS.iter().filter(|mark| (mark.is_honoured)(honours));
    let names: Vec<&str> = honoured.map(|mark| mark.name).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn planner_entries() -> Vec<Entry> {
    external::ask_versions(|_| true);
    let ours = planners::descriptors().into_iter().map(planner_entry);
    let absent = external::all_absent().iter().map(|(key, reason)| {
        let more = json!({ "family": EXTERNAL, "external": true, "absent": reason });
        let line = vec!["cannot run".to_owned(), String::new(), String::new()];
        Entry { family: EXTERNAL, line, ..Entry::new(key.clone(), format!("cannot run: {reason}"), &more) }
    });
    ours.chain(external::entries().iter().map(external_entry)).chain(absent).collect()
}

/// The family of planners that are programs of other people.
const EXTERNAL: &str = "external";

fn planner_entry(d: Descriptor) -> Entry {
    let most = d.practical.map(|n| format!("; up to {n} buffers")).unwrap_or_default();
    let honours = honour_words(&d.honours);
    let description = format!(
        "{} [{}; O({}){most}; honours {honours}; {}]",
        d.summary, d.guarantee, d.complexity, d.reference
    );
    let family = planlab_solvers::family(&d.key).unwrap_or_default();
    let more = json!({
        "family": family,
        "guarantee": d.guarantee.to_string(),
        "honours": d.honours,
        "randomized": d.randomized,
        "reference": d.reference,
        "complexity": d.complexity,
        "practical": d.practical,
    });
    let line = vec![d.guarantee.to_string(), up_to(d.practical), honour_marks(&d.honours)];
    let entry = Entry { family, line, facts: Vec::new(), ..Entry::new(d.key.clone(), description, &more) };
    entry
        .with_fact("description", d.summary)
        .with_fact("family", family)
        .with_fact("guarantee", d.guarantee.to_string())
        .with_fact("honours", honours)
        .with_fact("up to", size_words(d.practical))
        .with_fact("complexity", format!("O({})", d.complexity))
        .with_fact("randomized", if d.randomized { "yes" } else { "no" })
        .with_fact("reference", d.reference)
}

fn up_to(practical: Option<u32>) -> String {
    practical.map(|most| most.to_string()).unwrap_or_default()
}

fn size_words(practical: Option<u32>) -> String {
    practical.map_or_else(|| "any size".to_owned(), |most| format!("{most} buffers"))
}

fn external_entry(entry: &external::Entry) -> Entry {
    let version = entry.says_version();
    let honours = honour_words(&entry.honours);
    let shown = if version.is_empty() { String::new() } else { format!("; {version}") };
    let description = format!("{} [external{shown}; honours {honours}]", entry.summary);
    let line = vec![
        if entry.exact { "exact" } else { "heuristic" }.to_owned(),
        up_to(entry.practical),
        honour_marks(&entry.honours),
    ];
    let more = json!({
        "family": EXTERNAL,
        "external": true,
        "honours": entry.honours,
        "practical": entry.practical,
        "command": entry.command,
        "version": version,
        "digest": entry.version(),
    });
    let bare = Entry::new(entry.key.clone(), description, &more);
    Entry { family: EXTERNAL, line, facts: Vec::new(), ..bare }
        .with_fact("description", entry.summary.clone())
        .with_fact("family", EXTERNAL)
        .with_fact("version", version)
        .with_fact("honours", honours)
        .with_fact("up to", size_words(entry.practical))
        .with_fact("command", entry.command.join(" "))
}

fn workload_entries(args: &ListArgs) -> Vec<Entry> {
    let catalog = Catalog::new(args.corpus.corpus.clone()).with_limits(inputs::input_limits());
    if args.key.is_none() {
        catalog.notices().iter().for_each(|notice| print_note(notice));
    }
    let entry = |key: String| {
        let description = catalog.describe(&key).unwrap_or_default();
        Entry::new(key, description, &json!({}))
    };
    catalog.keys().into_iter().map(entry).collect()
}

fn model_entries() -> Vec<Entry> {
    let entry = |model: &planlab_workloads::models::Model| {
        let (published, input) = (&model.published, model.input.to_string());
        let more = json!({
            "input": input,
            "parameters_published": published.parameters,
            "flops_published": published.flops,
            "source": published.source,
        });
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        Entry::new(model.name, model.summary, &more)
            .with_fact("input", input)
            .with_fact("parameters", format!("{} (published)", number(published.parameters)))
            .with_fact("flops", format!("{} (published; one forward propagation)", number(published.flops)))
            .with_fact("source", published.source)
    };
    models().map(entry).collect()
}

fn suite_entries() -> Vec<Entry> {
    let words = |suite: &suites::Suite| suite.analysis.split_whitespace().collect::<Vec<_>>().join(" ");
    let entry = |suite: &suites::Suite| {
        let cells = format!("planlab bench --suite {} --dry-run", suite.name);
        Entry::new(suite.name.clone(), words(suite), &json!({})).with_fact("its cells", cells)
    };
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
        let entry = Entry::new(family.name, description, &json!({ "parameters": parameters }));
        let entry = Entry { facts: Vec::new(), ..entry }.with_fact("description", family.summary);
        let parameters = family.parameters.iter();
        parameters.fold(entry, |entry, p| entry.with_fact(format!("{}={}", p.name, p.default), p.summary))
    };
    synthetic::all_families().iter().map(entry).collect()
}

fn allocator_entries() -> Vec<Entry> {
    let entry = |entry: &online::Entry| {
        let more = json!({ "reference": entry.reference });
        Entry::new(entry.key, entry.summary, &more).with_fact("reference", entry.reference)
    };
    online::registry().iter().map(entry).collect()
}

fn scheduler_entries() -> Vec<Entry> {
    let entry = |scheduler: &dyn Scheduler| {
        let descriptor = scheduler.descriptor();
        let more = json!({ "reference": descriptor.reference, "complexity": descriptor.complexity });
        Entry::new(descriptor.key, descriptor.summary, &more)
            .with_fact("reference", descriptor.reference)
            .with_fact("complexity", descriptor.complexity)
    };
    schedulers().iter().map(|scheduler| entry(&**scheduler)).collect()
}

fn machine_entries() -> Vec<Entry> {
    let machines = Machine::BUILT_IN.into_iter().filter_map(Machine::built_in);
    let entry = |machine: Machine| {
        let rate = |rate: f64| format!("{:.0} GB/s", rate / 1e9);
        let memory = Shown::Bytes(machine.capacity.get()).shown();
        let summary = format!(
            "{memory}, {:.1} TFLOP/s, memory {}, copies {} out and {} in",
            machine.flops / 1e12,
            rate(machine.memory),
            rate(machine.copy_out),
            rate(machine.copy_in)
        );
        let fields = machine.to_toml();
        let fields = fields.lines().filter_map(|line| line.split_once(" = "));
        fields.fold(Entry::new(&machine.name, summary, &json!(machine)), |entry, (name, value)| {
            entry.with_fact(name, value)
        })
    };
    machines.map(entry).collect()
}

fn format_entries() -> Vec<Entry> {
    let rows = [
        ("lab", "the lab's trace CSV, buffers or events (import, export, with a plan too)"),
        ("minimalloc", "MiniMalloc's CSV (import, export)"),
        ("graph", "operations as JSON Lines, read as their live ranges (`model --emit graph` writes them)"),
        ("idealloc", "idealloc's CSV; --dialect says which ends it excludes (import, export)"),
        ("plan-json", "a plan as one JSON object (export)"),
        ("tflite-micro", "the offline plan of TensorFlow Lite Micro, alone or --into a model (export)"),
        ("c-header", "a C header with the offsets of a plan (export)"),
        ("perfetto", "JSON for ui.perfetto.dev: load, height, a track for each arena (export)"),
        ("requests", "sizes and offsets in order of request, for a caching allocator (export)"),
    ];
    let foreign = READERS.into_iter().map(|reader| (reader.key, format!("{} (import)", reader.title)));
    let rows = rows.into_iter().map(|(key, description)| (key, description.to_owned())).chain(foreign);
    rows.map(|(key, description)| Entry::new(key, description, &json!({}))).collect()
}
