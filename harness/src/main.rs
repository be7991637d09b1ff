//! `planlab`: plans the memory of deep nets, and says what each plan is worth.

mod baselines;
mod bench;
mod cache;
mod carried;
mod cell;
mod cli;
mod exit;
mod external;
mod hints;
mod input;
mod isolation;
mod judge;
mod markdown;
mod output;
mod planners;
mod provenance;
mod quantity;
mod ratios;
mod records;
mod replaying;
mod runner;
mod selection;
mod simulation;
mod table;
mod turns;
mod verbs;
mod view;

use std::io;
use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Verb};
use exit::{Exit, Failure, Verdict};
use output::{Output, note};

fn main() -> ExitCode {
    // clap ends the process itself: 2 for wrong usage, 0 for help.
    let cli = Cli::parse();
    let exit = match run(cli) {
        Ok(exit) => exit,
        Err(failure) if is_closed_pipe(&failure) => Exit::Complete,
        Err(failure) => {
            note(&failure.message());
            failure.exit
        }
    };
    ExitCode::from(exit.code())
}

/// A reader that has seen enough (`planlab list | head`) is no error.
fn is_closed_pipe(failure: &Failure) -> bool {
    let mut causes = failure.error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn run(cli: Cli) -> Verdict {
    let output = Output { json: cli.json };
    if cli.verb.needs_planners() {
        external::load(cli.planners_file.as_deref())?;
    }
    match cli.verb {
        Verb::List(args) => verbs::list::run(&args, output),
        Verb::Bench(args) => verbs::bench::run(&args, output),
        Verb::Plan(args) => verbs::plan::run(&args, output),
        Verb::Compare(args) => verbs::compare::run(&args, output),
        Verb::Verify(args) => verbs::check::verify(&args, output),
        Verb::Bound(args) => verbs::check::bound(&args, output),
        Verb::Simulate(args) => verbs::simulate::run(&args, output),
        Verb::Replay(args) => verbs::replay::run(&args, output),
        Verb::Generate(args) => verbs::convert::generate(&args, output),
        Verb::Import(args) => verbs::convert::import(&args, output),
        Verb::Export(args) => verbs::convert::export(&args, output),
        #[cfg(feature = "reports")]
        Verb::Show(args) => verbs::picture::show(&args, output),
        #[cfg(feature = "reports")]
        Verb::Report(args) => verbs::picture::report(&args, output),
        #[cfg(feature = "reports")]
        Verb::Merge(args) => verbs::store::merge(&args, output),
        Verb::Audit(args) => verbs::store::audit(&args, output),
        Verb::Ratios(args) => verbs::ratios::run(&args, output),
        Verb::Diff(args) => verbs::diff::run(&args, cli.planners_file.as_deref(), output),
        Verb::Scale(args) => verbs::scale::run(&args, output),
        Verb::Doctor => verbs::doctor::run(output),
        Verb::RunCells => isolation::child::serve(),
        Verb::RunReplay => replaying::child::serve(),
        Verb::RunDeviceReplay => replaying::device::child::serve(),
        Verb::ExecExternal(args) => external::launch::run(&args),
    }
}
