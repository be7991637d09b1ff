//! `ratios` and `scale`: write tables that compare planners, and tables of how figures grow with the number of buffers.

use std::collections::BTreeSet;

use planlab_files::NewFolder;
use planlab_reports::{Named, ratio_files, scale_files};
use planlab_results::scale::growth_curves;
use planlab_workloads::{did_you_mean, matches_glob, nearest};
use serde_json::json;

use crate::cli::{RatiosArgs, TablesArgs};
use crate::inputs::records;
use crate::kinds::external;
use crate::kinds::placement::planners;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::target::write_tables;

pub(crate) fn write_ratios(RatiosArgs { of, over, tables }: &RatiosArgs, output: Output) -> Verdict {
    let folder = NewFolder::create(&tables.output, "ratios", &[&tables.results])?;
    let records::Rows { rows, missing } = records::read_suite(&tables.results, tables.suite.as_deref())?;
    let results = tables.results.display();
    if rows.is_empty() {
        return Err(Failure::from_usage(format!("{results} has no rows")));
    }
    let named = |flag: &str, globs: &[String]| globs.iter().map(|glob| format!(" --{flag} {glob}")).collect();
    let flags: [String; 2] = [named("of", of), named("over", over)];
    let there: BTreeSet<&str> = rows.iter().map(|row| row.planner.as_str()).collect();
    let (of, over) = (match_globs(of, &there), match_globs(over, &there));
    for name in of.iter().chain(&over).filter(|name| name.planners.is_empty()) {
        refuse_unknown(&name.name, &there)?;
        print_note(&format!("`{}` was not run", name.name));
    }
    if of.iter().chain(&over).all(|name| name.planners.is_empty()) {
        return Err(Failure::from_usage(format!("{results}: none of these planners was run")));
    }
    let (pairs, files) = ratio_files(&rows, &of, &over, &command_line("ratios", &flags.concat(), tables));
    if pairs == 0 {
        let nothing = "no two of these planners were run at a capacity: no ratios";
        if rows.iter().all(|row| row.target_bytes.is_some()) {
            return Err(Failure::from_usage(nothing));
        }
        print_note(nothing);
    }
    let about = json!({ "rows": rows.len(), "pairs": pairs, "missing": missing });
    let text = format!("{} rows", rows.len());
    let exit = write_tables(folder, &tables.output, &files, (about, &text), output)?;
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

fn command_line(verb: &str, flags: &str, TablesArgs { results, suite, output }: &TablesArgs) -> String {
    let suite = suite.as_ref().map(|suite| format!(" --suite {suite}")).unwrap_or_default();
    format!("planlab {verb} {}{flags}{suite} -o {}", results.display(), output.display())
}

pub(crate) fn write_scale(tables: &TablesArgs, output: Output) -> Verdict {
    let folder = NewFolder::create(&tables.output, "scale", &[&tables.results])?;
    let records::Rows { rows, missing } = records::read_suite(&tables.results, tables.suite.as_deref())?;
    let curves = growth_curves(&rows)?;
    if curves.is_empty() {
        let results = tables.results.display();
        return Err(Failure::from_usage(format!(
            "{results} has no planner that ran on two sizes of one family (keys like synthetic/chain/n1000/s0)"
        )));
    }
    let files = scale_files(&curves, &command_line("scale", "", tables));
    let about =
        json!({ "version": JSON_VERSION, "rows": rows.len(), "curves": curves.len(), "missing": missing });
    let text = format!("{} curves of {} rows", curves.len(), rows.len());
    let exit = write_tables(folder, &tables.output, &files, (about, &text), output)?;
    Ok(records::exit_with(exit, missing.is_empty()))
}
