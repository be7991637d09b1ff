//! `scale`: writes tables of how time, memory and height grow with the number of buffers.

use planlab_files::NewFolder;
use planlab_reports::scale_files;
use planlab_results::scale::growth_curves;
use serde_json::json;

use crate::cli::ScaleArgs;
use crate::inputs::records;
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Failure, Verdict};
use crate::shell::output::Output;
use crate::shell::target::write_tables;

pub(crate) fn run(args: &ScaleArgs, output: Output) -> Verdict {
    let folder = NewFolder::create(&args.output, "scale", &[&args.results])?;
    let records::Rows { rows, missing } = records::read_suite(&args.results, args.suite.as_deref())?;
    let curves = growth_curves(&rows)?;
    if curves.is_empty() {
        let results = args.results.display();
        return Err(Failure::from_usage(format!(
            "{results} has no planner that ran on two sizes of one family (keys like synthetic/chain/n1000/s0)"
        )));
    }
    let files = scale_files(&curves, &command_line(args));
    let about =
        json!({ "version": JSON_VERSION, "rows": rows.len(), "curves": curves.len(), "missing": missing });
    let text = format!("{} curves of {} rows", curves.len(), rows.len());
    let exit = write_tables(folder, &args.output, &files, (about, &text), output)?;
    Ok(records::exit_with(exit, missing.is_empty()))
}

fn command_line(args: &ScaleArgs) -> String {
    let suite = args.suite.as_ref().map(|suite| format!(" --suite {suite}")).unwrap_or_default();
    format!("planlab scale {}{suite} -o {}", args.results.display(), args.output.display())
}
