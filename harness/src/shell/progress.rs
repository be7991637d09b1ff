//! Progress of long verbs: a bar on a terminal, or a line at intervals if stderr is a log.

use std::io::{self, IsTerminal as _};
use std::ops::Deref;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::shell::output::note;

/// Sets the seconds between two lines in a log; 0 for none. Default: 30.
const SECONDS: &str = "PLANLAB_PROGRESS_SECONDS";

/// A bar that also writes lines, until it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Dropping this ends the lines.
    _lines: Option<Sender<()>>,
}

impl Progress {
    /// Progress over `count` items; `noun` names them: `cells`.
    pub(crate) fn new(count: u64, noun: &'static str) -> Self {
        let bar = ProgressBar::new(count);
        let style = ProgressStyle::with_template(&format!(
            "{{bar:30}} {{pos}}/{{len}} {noun}, {{eta}} left  {{msg}}"
        ));
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let lines =
            if io::stderr().is_terminal() { None } else { interval().map(|every| lines(&bar, every, noun)) };
        Self { bar, _lines: lines }
    }
}

impl Deref for Progress {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.bar
    }
}

fn interval() -> Option<Duration> {
    let set = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok());
    Duration::try_from_secs_f64(set.unwrap_or(30.0)).ok().filter(|every| !every.is_zero())
}

/// Writes a line at each interval until the sender is dropped.
fn lines(bar: &ProgressBar, every: Duration, noun: &'static str) -> Sender<()> {
    let (sender, end) = mpsc::channel();
    let bar = bar.clone();
    thread::spawn(move || {
        while end.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
            let (done, all) = (bar.position(), bar.length().unwrap_or(0));
            let left = if done > 0 { format!(", {} left", HumanDuration(bar.eta())) } else { String::new() };
            note(&format!("{done}/{all} {noun}{left}"));
        }
    });
    sender
}
