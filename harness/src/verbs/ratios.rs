//! `ratios`: the tables of planners side by side.

use std::collections::BTreeSet;

use planlab_files::NewFolder;
use planlab_results::Record;
use planlab_workloads::{did_you_mean, glob, nearest};
use serde_json::json;

use crate::cli::RatiosArgs;
use crate::external;
use crate::inputs::records;
use crate::planning::planners;
use crate::ratios::{Field, Pair, capacity_csv, minimised_csv, page};
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::{Output, note};
use crate::shell::target::write_tables;

pub(crate) fn run(args: &RatiosArgs, output: Output) -> Verdict {
    let folder = NewFolder::create(&args.output, "ratios", &[&args.results])?;
    let records::Rows { rows, missing } = records::read_suite(&args.results, args.suite.as_deref())?;
    let rows: Vec<&Record> = rows.iter().collect();
    if rows.is_empty() {
        return Err(Failure::usage(format!("{} has no rows", args.results.display())));
    }
    let field = Field::new(rows.iter().copied());
    for name in args.of.iter().chain(&args.over).filter(|name| !field.has(name)) {
        refuse_unknown(name, &field)?;
        note(&format!("`{name}` was not run"));
    }
    if !args.of.iter().chain(&args.over).any(|name| field.has(name)) {
        return Err(Failure::usage(format!("{}: none of these planners was run", args.results.display())));
    }
    let pairs = Pair::all(&field, &args.of, &args.over);
    if pairs.is_empty() {
        let nothing = "no two of these planners were run at a capacity: no ratios";
        if !field.has_minimised() {
            return Err(Failure::usage(nothing));
        }
        note(nothing);
    }
    let page = page(&field, &pairs, (&args.of, &args.over), &command(args), &machine(&rows));
    let files = [
        ("ratios.md", page),
        ("capacity.csv", capacity_csv(&pairs)),
        ("minimised.csv", minimised_csv(&field)),
    ];
    let about = json!({ "rows": rows.len(), "pairs": pairs.len(), "missing": missing });
    let text = format!("{} rows", rows.len());
    let exit = write_tables(folder, &args.output, &files, (about, &text), output)?;
    Ok(records::exit(exit, missing.is_empty()))
}

/// A name that neither the rows nor the registry have is misspelt. Which external planners there are is not
/// known here.
fn refuse_unknown(name: &str, field: &Field<'_>) -> Result<(), Failure> {
    let known = planners::keys();
    if name.starts_with(external::PREFIX) || known.iter().any(|key| glob(name, key)) {
        return Ok(());
    }
    let there = field.planners();
    let keys: BTreeSet<&str> = there.iter().copied().chain(known.iter().map(String::as_str)).collect();
    let near = nearest(name, keys);
    Err(Failure::usage(format!("there is no planner `{name}`{}", did_you_mean(&near))))
}

fn command(args: &RatiosArgs) -> String {
    let named = |flag: &str, globs: &[String]| globs.iter().map(|glob| format!(" --{flag} {glob}")).collect();
    let (of, over): (String, String) = (named("of", &args.of), named("over", &args.over));
    let suite = args.suite.as_ref().map(|suite| format!(" --suite {suite}")).unwrap_or_default();
    format!("planlab ratios {}{of}{over}{suite} -o {}", args.results.display(), args.output.display())
}

/// What the rows say of where they were made.
fn machine(rows: &[&Record]) -> String {
    let all = |part: fn(&Record) -> String| {
        let parts: BTreeSet<String> = rows.iter().map(|row| part(row)).collect();
        parts.into_iter().collect::<Vec<_>>().join("; ")
    };
    let load = rows.iter().map(|row| row.provenance.load_average_milli);
    let (least, most) = (load.clone().min().unwrap_or(0), load.max().unwrap_or(0));
    format!(
        "Machine: {}. Kernel {}. Build: commit {}, {}. Cells at a time: {}. Load average when cells began: \
         {}.{:02} to {}.{:02}.",
        all(|row| format!("{} cores of {}", row.provenance.cores, row.provenance.cpu)),
        all(|row| row.provenance.kernel.clone()),
        all(|row| {
            let dirty = if row.provenance.git_dirty { " with changes" } else { "" };
            format!("{}{dirty}", row.provenance.git_commit)
        }),
        all(|row| row.provenance.rustc.clone()),
        all(|row| row.provenance.concurrency.to_string()),
        least / 1000,
        least % 1000 / 10,
        most / 1000,
        most % 1000 / 10,
    )
}
