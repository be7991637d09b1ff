//! `planlab`: plans the memory of deep nets, and says what each plan is worth.

mod bench;
mod cells;
mod cli;
mod inputs;
mod kinds;
mod process;
mod shell;
mod verbs;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use cli::{Cli, Verb};
use shell::exit::{Exit, Failure, Verdict};
use shell::output::{Output, print_note, printable};
use shell::signals;

const VERBLESS: &str = "no verb is named; `planlab --help` lists them";

fn main() -> ExitCode {
    #[cfg(feature = "reports")]
    silence_decoder_panics();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report_misuse(&error),
    };
    let json = cli.json;
    let verdict = run_verb(cli);
    // What goes wrong while an interrupted process is being ended is not reported.
    planlab_files::settle_after_abandon();
    let exit = match verdict {
        Ok(exit) => exit,
        Err(failure) if is_closed_pipe(&failure) => Exit::Complete,
        Err(failure) => {
            print_note(&failure.full_message());
            print_failure(&failure, json);
            failure.exit
        }
    };
    ExitCode::from(exit.code())
}

/// Hides the panic of the Parquet reader on a damaged file: the verb reports an error instead.
#[cfg(feature = "reports")]
fn silence_decoder_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !planlab_results::is_decoding() {
            tell(panic);
        }
    }));
}

/// Help and the version that were asked for, or what is wrong with the arguments.
fn report_misuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let is_plain = |word: OsString| matches!(printable(&word.to_string_lossy()), Cow::Borrowed(_));
    let is_verbless = matches!(
        error.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if error.kind() == ErrorKind::MissingSubcommand {
        // The parser's words name the verbs that are for planlab itself.
        print_note(VERBLESS);
    } else if std::env::args_os().all(is_plain) {
        // In colours. If stdout or stderr is closed, nobody can read a message.
        let _ = error.print();
    } else {
        print_note(&text);
    }
    if !error.use_stderr() {
        return ExitCode::from(Exit::Complete.code());
    }
    let asked = std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json");
    let reason = if is_verbless { VERBLESS } else { usage_reason(&text) };
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    print_failure(&Failure::from_usage(reason), asked);
    ExitCode::from(Exit::Usage.code())
}

/// What is wrong; tips and the usage are for people.
fn usage_reason(text: &str) -> &str {
    let after = ["\n\n  tip: ", "\n\nUsage:", "\n\nFor more information"];
    let end = after.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    text[..end].trim_start_matches("error: ")
}

/// Prints an error where programs look for it.
fn print_failure(failure: &Failure, json: bool) {
    if json {
        // The exit code says so, too.
        let _ = Output { json, tables: None }.print_value(&failure.as_json());
    }
}

/// A reader that has seen enough (`planlab list | head`) is no error.
fn is_closed_pipe(failure: &Failure) -> bool {
    let mut causes = failure.error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn run_verb(cli: Cli) -> Verdict {
    let output = Output { json: cli.json, tables: cli.table };
    if cli.verb.relays_signals() {
        signals::relay_signals()?;
    } else if !cli.verb.serves_parent() {
        signals::listen_for_signals(cli.verb.ends_by_itself(), process::end_all)?;
    }
    inputs::set_limit(cli.input_limit);
    if cli.verb.needs_planners() {
        kinds::external::load(cli.planners_file.as_deref())?;
    }
    match cli.verb {
        Verb::List(args) => verbs::list::run(&args, output),
        Verb::Bench(args) => verbs::bench::run(&args, output),
        Verb::Plan(args) => verbs::plan::run(&args, output),
        Verb::Compare(args) => verbs::compare::run(&args, output),
        Verb::Verify(args) => verbs::verify::run(&args, output),
        Verb::Bound(args) => verbs::bound::run(&args, output),
        Verb::Simulate(args) => verbs::simulate::run(&args, output),
        Verb::Replay(args) => verbs::replay::run(&args, output),
        Verb::Run(args) => verbs::run::run(&args, output),
        Verb::Generate(args) => verbs::convert::generate_trace(&args, output),
        Verb::Model(args) => verbs::model::run(&args, output),
        Verb::Graph(args) => verbs::graph::run(&args, output),
        Verb::Schedule(args) => verbs::schedule::run(&args, output),
        Verb::Sweep(args) => verbs::sweep::run(&args, output),
        Verb::Import(args) => verbs::convert::import_file(&args, output),
        Verb::Export(args) => verbs::convert::export_trace(&args, output),
        Verb::AddWorkload(args) => verbs::add_workload::run(&args, output),
        Verb::Explain(args) => verbs::explain::run(&args, output),
        #[cfg(feature = "reports")]
        Verb::Show(args) => verbs::picture::show_argument(&args, output),
        #[cfg(feature = "reports")]
        Verb::Report(args) => verbs::picture::write_report(&args, output),
        #[cfg(feature = "reports")]
        Verb::Merge(args) => verbs::store::merge_stores(&args, output),
        Verb::Audit(args) => verbs::store::audit_store(&args, output),
        #[cfg(feature = "reports")]
        Verb::Query(args) => verbs::query::run(&args, output),
        #[cfg(feature = "reports")]
        Verb::Ratios(args) => verbs::tables::write_ratios(&args, output),
        Verb::Diff(args) => verbs::diff::run(&args, cli.planners_file.as_deref(), output),
        #[cfg(feature = "reports")]
        Verb::Scale(args) => verbs::tables::write_scale(&args, output),
        Verb::Doctor => verbs::doctor::run(output),
        Verb::RunCells => cells::serve::<kinds::placement::Placement>(),
        Verb::RunSchedule => cells::serve::<kinds::schedule::Scheduling>(),
        Verb::RunReplay => cells::serve::<kinds::pool::host::HostReplay>(),
        Verb::RunDeviceReplay => cells::serve::<kinds::pool::device::DeviceReplay>(),
        #[cfg(feature = "reports")]
        Verb::RunQuery => verbs::query::serve(),
        Verb::ExecExternal(args) => kinds::external::launch::become_program(&args),
    }
}
