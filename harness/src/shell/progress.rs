//! Progress of long verbs: a bar on a terminal, or a line at intervals if stderr is a log.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::ops::Deref;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

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
        let style =
            ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {noun}{{left}}  {{msg}}"));
        if let Ok(style) = style {
            let write = |state: &ProgressState, out: &mut dyn fmt::Write| {
                // A bar without its time still shows where the run is.
                let _ = out.write_str(&left(state.elapsed(), state.pos(), state.len().unwrap_or(0)));
            };
            bar.set_style(style.with_key("left", write));
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
            note(&format!("{done}/{all} {noun}{}", left(bar.elapsed(), done, all)));
        }
    });
    sender
}

/// The time left if each further item takes as long as the mean so far; empty if nothing is done. The bar's own estimate
/// follows the last few seconds, so that one item of a minute turns it into weeks.
fn left(elapsed: Duration, done: u64, all: u64) -> String {
    if done == 0 {
        return String::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let rest = all.saturating_sub(done) as f64 / done as f64;
    let left = Duration::try_from_secs_f64(elapsed.as_secs_f64() * rest).unwrap_or(Duration::MAX);
    format!(", {} left", HumanDuration(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_done() {
        assert_eq!(left(Duration::from_mins(2), 2, 10), ", 8 minutes left");
        assert_eq!(left(Duration::from_mins(2), 10, 10), ", 0 seconds left");
        assert_eq!(left(Duration::from_mins(2), 0, 10), "");
    }
}
