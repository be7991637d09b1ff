//! `ratios`: writes tables that compare planners.

use std::collections::BTreeSet;

use planlab_files::NewFolder;
use planlab_reports::{Named, ratio_files};
use planlab_workloads::{did_you_mean, matches_glob, nearest};
use serde_json::json;

use crate::cli::RatiosArgs;
use crate::inputs::records;
use crate::kinds::external;
use crate::kinds::placement::planners;
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::target::write_tables;

pub(crate) fn run(args: &RatiosArgs, output: Output) -> Verdict {
    let folder = NewFolder::create(&args.output, "ratios", &[&args.results])?;
    let records::Rows { rows, missing } = records::read_suite(&args.results, args.suite.as_deref())?;
    if rows.is_empty() {
        return Err(Failure::from_usage(format!("{} has no rows", args.results.display())));
    }
    let there: BTreeSet<&str> = rows.iter().map(|row| row.planner.as_str()).collect();
    let (of, over) = (match_globs(&args.of, &there), match_globs(&args.over, &there));
    for name in of.iter().chain(&over).filter(|name| name.planners.is_empty()) {
        refuse_unknown(&name.name, &there)?;
        print_note(&format!("`{}` was not run", name.name));
    }
    if of.iter().chain(&over).all(|name| name.planners.is_empty()) {
        return Err(Failure::from_usage(format!(
            "{}: none of these planners was run",
            args.results.display()
        )));
    }
    let (pairs, files) = ratio_files(&rows, &of, &over, &command_line(args));
    if pairs == 0 {
        let nothing = "no two of these planners were run at a capacity: no ratios";
        if rows.iter().all(|row| row.target_bytes.is_some()) {
            return Err(Failure::from_usage(nothing));
        }
        print_note(nothing);
    }
    let about = json!({ "rows": rows.len(), "pairs": pairs, "missing": missing });
    let text = format!("{} rows", rows.len());
    let exit = write_tables(folder, &args.output, &files, (about, &text), output)?;
    Ok(records::exit_with(exit, missing.is_empty()))
}

/// The planners that each glob matches.
fn match_globs(globs: &[String], there: &BTreeSet<&str>) -> Vec<Named> {
    let planners =
        |name: &str| there.iter().filter(|key| matches_glob(name, key)).map(ToString::to_string).collect();
    globs.iter().map(|name| Named { name: name.clone(), planners: planners(name) }).collect()
}

/// Refuses a name that is neither in the rows nor in the registry: it is misspelt. External planners are unknown here.
fn refuse_unknown(name: &str, there: &BTreeSet<&str>) -> Result<(), Failure> {
    let known = planners::keys();
    if name.starts_with(external::PREFIX) || known.iter().any(|key| matches_glob(name, key)) {
        return Ok(());
    }
    let keys: BTreeSet<&str> = there.iter().copied().chain(known.iter().map(String::as_str)).collect();
    let near = nearest(name, keys);
    Err(Failure::from_usage(format!("there is no planner `{name}`{}", did_you_mean(&near))))
}

fn command_line(args: &RatiosArgs) -> String {
    let named = |flag: &str, globs: &[String]| globs.iter().map(|glob| format!(" --{flag} {glob}")).collect();
    let (of, over): (String, String) = (named("of", &args.of), named("over", &args.over));
    let suite = args.suite.as_ref().map(|suite| format!(" --suite {suite}")).unwrap_or_default();
    format!("planlab ratios {}{of}{over}{suite} -o {}", args.results.display(), args.output.display())
}
