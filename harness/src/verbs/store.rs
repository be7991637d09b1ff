//! `audit` and `merge`: check and combine stores.

use std::path::Path;

use planlab_results::audit::{
    Finding, audit_ends, audit_frameworks, audit_replays, audit_schedules, audit_shards,
};
use planlab_results::framework::read_frameworks;
#[cfg(feature = "reports")]
use planlab_results::queries::Tables;
use planlab_results::replay::read_rows;
use planlab_results::schedule::read_schedules;
use planlab_results::{Repair, repair_store};
use serde_json::{Value, json};

use crate::cli::AuditArgs;
use crate::kinds::schedule;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};

pub(crate) fn audit_store(args: &AuditArgs, output: Output) -> Verdict {
    let repairs = if args.repair { repair_store(&args.results)? } else { Vec::new() };
    repairs.iter().for_each(|repair| print_note(&repair.to_string()));
    let (mut findings, rows) = audit_rows(&args.results)?;
    let replays = read_rows(&args.results)?;
    findings.extend(audit_replays(&replays));
    let schedules = read_schedules(&args.results)?;
    findings.extend(audit_schedules(&schedules));
    let frameworks = read_frameworks(&args.results)?;
    findings.extend(audit_frameworks(&frameworks));
    findings.extend(schedule::audit(&args.results, &schedules)?);
    findings.extend(audit_shards(&args.results, rows > 0 || !schedules.is_empty())?);
    findings.extend(audit_ends(&args.results)?);
    #[cfg(feature = "reports")]
    findings.extend(Tables::open(&args.results)?.audit_plans(&args.results)?);
    let object =
        |finding: &Finding| json!({ "refutation": finding.is_refutation(), "message": finding.to_string() });
    let objects: Vec<Value> = findings.iter().map(object).collect();
    let value = json!({
        "version": JSON_VERSION,
        "rows": rows,
        "replays": replays.len(),
        "schedules": schedules.len(),
        "frameworks": frameworks.len(),
        "findings": objects,
        "repairs": repairs.iter().map(repair_value).collect::<Vec<_>>(),
    });
    let mut text: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    let scheduled =
        if schedules.is_empty() { String::new() } else { format!(", {} schedules", schedules.len()) };
    let measured =
        if frameworks.is_empty() { String::new() } else { format!(", {} of frameworks", frameworks.len()) };
    text += &format!(
        "{rows} rows, {} replays{scheduled}{measured}, {} findings\n",
        replays.len(),
        findings.len()
    );
    output.print_either(&value, text)?;
    Ok(Exit::first_of([
        (Exit::Invalid, findings.iter().any(Finding::is_refutation)),
        (Exit::Incomplete, !findings.is_empty() || !repairs.is_empty()),
    ]))
}

/// The faults of the rows, and the number of rows.
#[cfg(feature = "reports")]
fn audit_rows(folder: &Path) -> Result<(Vec<Finding>, u64), Failure> {
    let tables = Tables::open(folder)?;
    Ok((tables.audit()?, tables.status_counts()?.iter().map(|(_, _, rows)| rows).sum()))
}

/// The faults of the rows, and the number of rows.
#[cfg(not(feature = "reports"))]
fn audit_rows(folder: &Path) -> Result<(Vec<Finding>, u64), Failure> {
    let rows = planlab_results::read_records(folder)?;
    Ok((planlab_results::audit::audit(&rows), rows.len() as u64))
}

fn repair_value(repair: &Repair) -> Value {
    let (path, aside, lines) = match repair {
        Repair::Lines { path, aside, lines } => (path, aside, Some(lines)),
        Repair::Shard { path, aside } | Repair::Manifest { path, aside } => (path, aside, None),
        Repair::Forgotten { shard, aside } => (&shard.path, aside, None),
        _ => return Value::Null,
    };
    json!({ "path": path, "aside": aside, "lines": lines, "message": repair.to_string() })
}

/// Reports the number of plans and instances that rows name and that cannot be read.
#[cfg(feature = "reports")]
fn tell_unreadable(folder: &Path) -> Result<(), Failure> {
    let findings = Tables::open(folder)?.audit_plans(folder)?;
    let folder = folder.display();
    if !findings.is_empty() {
        let count = findings.len();
        print_note(&format!(
            "{folder}: {count} plans or instances are missing or damaged; `planlab audit {folder}` names them"
        ));
    }
    Ok(())
}

#[cfg(feature = "reports")]
pub(crate) fn merge_stores(args: &crate::cli::MergeArgs, output: Output) -> Verdict {
    let mut missing = Vec::new();
    for folder in &args.from {
        missing.extend(crate::inputs::records::tell_missing(folder)?);
    }
    let merged = planlab_results::merge_stores(&args.from, &args.output)?;
    let value = json!({
        "version": JSON_VERSION,
        "output": args.output,
        "read": merged.read,
        "changed": merged.changed,
        "files": merged.files,
        "missing": missing,
    });
    let text = format!(
        "{}: {} rows read, {} of them new, {} files copied\n",
        args.output.display(),
        merged.read,
        merged.changed,
        merged.files
    );
    output.print_either(&value, text)?;
    tell_unreadable(&args.output)?;
    Ok(crate::inputs::records::exit_with(Exit::Complete, missing.is_empty()))
}
