//! `audit` and `merge`.

use planlab_results::audit::{Finding, audit as audit_rows, audit_replays};
use planlab_results::read_records;
use planlab_results::replay::read_rows;
use serde_json::{Value, json};

use crate::cli::AuditArgs;
use crate::exit::{Exit, Verdict};
use crate::output::Output;
use crate::view::JSON_VERSION;

pub(crate) fn audit(args: &AuditArgs, output: Output) -> Verdict {
    let (rows, replays) = (read_records(&args.results)?, read_rows(&args.results)?);
    let mut findings = audit_rows(&rows);
    findings.extend(audit_replays(&replays));
    #[cfg(feature = "reports")]
    findings.extend(planlab_results::audit::audit_plans(&args.results, &rows)?);
    let object =
        |finding: &Finding| json!({ "refutation": finding.is_refutation(), "message": finding.to_string() });
    let objects: Vec<Value> = findings.iter().map(object).collect();
    let value =
        json!({ "version": JSON_VERSION, "rows": rows.len(), "replays": replays.len(), "findings": objects });
    let mut text: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    text += &format!("{} rows, {} replays, {} findings\n", rows.len(), replays.len(), findings.len());
    output.put(&value, &text)?;
    Ok(match (findings.iter().any(Finding::is_refutation), findings.is_empty()) {
        (true, _) => Exit::Invalid,
        (false, true) => Exit::Complete,
        (false, false) => Exit::Incomplete,
    })
}

#[cfg(feature = "reports")]
pub(crate) fn merge(args: &crate::cli::MergeArgs, output: Output) -> Verdict {
    let merged = planlab_results::merge(&args.from, &args.output)?;
    let value = json!({
        "version": JSON_VERSION,
        "output": args.output,
        "read": merged.read,
        "changed": merged.changed,
        "files": merged.files,
    });
    let text = format!(
        "{}: {} rows read, {} of them new, {} files copied\n",
        args.output.display(),
        merged.read,
        merged.changed,
        merged.files
    );
    output.put(&value, &text)?;
    Ok(Exit::Complete)
}
