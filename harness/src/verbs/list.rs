//! `list`: what there is, with one line each.

use planlab_dsa::Honours;
use planlab_solvers::online;
use planlab_workloads::{Catalog, suites, synthetic};
use serde_json::{Value, json};

use crate::cli::{ListArgs, Listing};
use crate::external;
use crate::inputs;
use crate::planning::planners;
use crate::shell::exit::{Exit, Verdict};
use crate::shell::output::{Output, note};
use crate::shell::table::Table;

/// A key, one line, and for programs the rest.
struct Entry {
    key: String,
    description: String,
    more: Value,
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
    let values = entries.iter().map(value).collect();
    let mut table = Table::new(&["key", "description"]);
    entries.iter().for_each(|entry| table.row([entry.key.clone(), entry.description.clone()]));
    output.put(&Value::Array(values), &table.render())?;
    Ok(Exit::Complete)
}

fn value(entry: &Entry) -> Value {
    let mut value = json!({ "key": entry.key, "description": entry.description });
    if let (Some(object), Some(more)) = (value.as_object_mut(), entry.more.as_object()) {
        object.extend(more.clone());
    }
    value
}

fn planner_entries() -> Vec<Entry> {
    let entry = |d: planlab_dsa::Descriptor| {
        let most = d.practical.map(|n| format!("; up to {n} buffers")).unwrap_or_default();
        let description = format!(
            "{} [{}; O({}){most}; honours {}; {}]",
            d.summary,
            d.guarantee,
            d.complexity,
            honoured(&d.honours),
            d.reference
        );
        Entry {
            key: d.key.to_string(),
            description,
            more: json!({
                "guarantee": d.guarantee.to_string(),
                "honours": d.honours,
                "randomized": d.randomized,
                "reference": d.reference,
                "complexity": d.complexity,
                "practical": d.practical,
            }),
        }
    };
    external::ask_versions(|_| true);
    let ours = planners::descriptors().into_iter().map(entry);
    let mut all: Vec<Entry> = ours.chain(external::entries().iter().map(external_entry)).collect();
    all.extend(external::all_absent().iter().map(|(key, reason)| Entry {
        key: key.clone(),
        description: format!("cannot run: {reason}"),
        more: json!({ "external": true, "absent": reason }),
    }));
    all
}

fn external_entry(entry: &external::Entry) -> Entry {
    let version = entry.says_version();
    let shown = if version.is_empty() { String::new() } else { format!("; {version}") };
    let description = format!("{} [external{shown}; honours {}]", entry.summary, honoured(&entry.honours));
    Entry {
        key: entry.key.clone(),
        description,
        more: json!({
            "external": true,
            "honours": entry.honours,
            "practical": entry.practical,
            "command": entry.command,
            "version": version,
            "digest": entry.version(),
        }),
    }
}

fn honoured(honours: &Honours) -> String {
    let all = [
        ("pins", honours.pins),
        ("alignment", honours.alignment),
        ("in-place", honours.in_place),
        ("pauses", honours.pauses),
        ("arenas", honours.arenas),
        ("keep-apart", honours.apart),
        ("hints", honours.hint),
        ("work limit", honours.work_limit),
        ("threads", honours.threads),
    ];
    let names: Vec<&str> = all.into_iter().filter(|&(_, yes)| yes).map(|(name, _)| name).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn workload_entries(args: &ListArgs) -> Vec<Entry> {
    let catalog = Catalog::new(args.corpus.corpus.clone()).with_limits(inputs::limits());
    catalog.notices().iter().for_each(|notice| note(notice));
    let entry = |key: String| {
        let description = catalog.describe(&key).unwrap_or_default();
        Entry { key, description, more: json!({}) }
    };
    catalog.keys().into_iter().map(entry).collect()
}

fn suite_entries() -> Vec<Entry> {
    let entry = |suite: &suites::Suite| Entry {
        key: suite.name.clone(),
        description: suite.analysis.split_whitespace().collect::<Vec<_>>().join(" "),
        more: json!({}),
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
        Entry {
            key: family.name.to_owned(),
            description: format!("{} ({})", family.summary, short.join(" ")),
            more: json!({ "parameters": parameters }),
        }
    };
    synthetic::families().iter().map(entry).collect()
}

fn allocator_entries() -> Vec<Entry> {
    let entry = |entry: &online::Entry| Entry {
        key: entry.key.to_owned(),
        description: entry.summary.to_owned(),
        more: json!({ "reference": entry.reference }),
    };
    online::registry().iter().map(entry).collect()
}

fn format_entries() -> Vec<Entry> {
    let rows = [
        ("lab", "the lab's trace CSV, buffers or events (import, export, with a plan too)"),
        ("minimalloc", "MiniMalloc's CSV (import, export)"),
        ("idealloc", "idealloc's CSV; --dialect says which ends it excludes (import, export)"),
    ];
    let entry = |(key, description): (&str, &str)| Entry {
        key: key.to_owned(),
        description: description.to_owned(),
        more: json!({}),
    };
    rows.into_iter().map(entry).collect()
}
