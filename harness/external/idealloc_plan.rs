//! Runs idealloc on an instance and writes the plan, which its own command line does not do.
//!
//! `idealloc-plan INSTANCE PLAN [LIVES]`: the instance in idealloc's CSV with both ends exclusive, the plan as
//! `id,offset`. LIVES is idealloc's number of tries to beat its own greedy start; the default is 1, as in its command
//! line. idealloc itself prints its time ("Total allocation time: N μs") and height.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use coreba::{JobGen, MinimalloCSVParser};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (instance, plan, lives) = match arguments.as_slice() {
        [instance, plan] => (instance, plan, Ok(1)),
        [instance, plan, lives] => (instance, plan, lives.parse()),
        _ => return refuse("usage: idealloc-plan INSTANCE PLAN [LIVES]"),
    };
    let Ok(lives) = lives else { return refuse("LIVES is a whole number") };
    let jobs = match MinimalloCSVParser::new(PathBuf::from(instance)).read_jobs(0) {
        Ok(jobs) if !jobs.is_empty() => jobs,
        Ok(_) => return refuse("an instance without buffers"),
        Err(error) => return refuse(&format!("{instance}: {error}")),
    };
    let jobs = match coreba::jobset::init(jobs) {
        Ok(jobs) => jobs,
        Err(error) => return refuse(&format!("{instance}: {}", error.message)),
    };
    let (placed, _) = coreba::algo::idealloc(jobs, 1.0, 0, lives);
    let offsets: BTreeMap<u32, usize> = placed.iter().map(|(&id, job)| (id, job.offset.get())).collect();
    let mut text = "id,offset\n".to_owned();
    for (id, offset) in offsets {
        let _ = writeln!(text, "{id},{offset}");
    }
    match std::fs::write(plan, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&format!("{plan}: {error}")),
    }
}

fn refuse(reason: &str) -> ExitCode {
    eprintln!("idealloc-plan: {reason}");
    ExitCode::from(2)
}
