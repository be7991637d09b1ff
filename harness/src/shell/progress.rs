//! Progress of long verbs: a bar on a terminal, or a line at intervals if stderr is a log.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use crate::shell::output::print_note;

/// Sets the seconds between two lines in a log; 0 for none. Default: 30.
const SECONDS: &str = "PLANLAB_PROGRESS_SECONDS";

/// A bar that also writes lines, until it is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Items that took no time, since they were done before.
    skipped: Arc<AtomicU64>,
    /// Dropping this ends the lines.
    _lines: Option<Sender<()>>,
}

impl Progress {
    /// Progress over `count` items; `noun` names them: `cells`.
    pub(crate) fn new(count: u64, noun: &'static str) -> Self {
        let bar = ProgressBar::new(count);
        let skipped = Arc::new(AtomicU64::new(0));
        let style =
            ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {noun}{{left}}  {{msg}}"));
        if let Ok(style) = style {
            let skipped = Arc::clone(&skipped);
            let write = move |state: &ProgressState, out: &mut dyn fmt::Write| {
                let counts = (state.pos(), skipped.load(Ordering::Relaxed), state.len().unwrap_or(0));
                // A bar without its time still shows where the run is.
                let _ = out.write_str(&time_left(state.elapsed(), counts));
            };
            bar.set_style(style.with_key("left", write));
        }
        let mut this = Self { bar, skipped, _lines: None };
        if !io::stderr().is_terminal() {
            this._lines = print_interval().map(|every| this.print_at_intervals(every, noun));
        }
        this
    }

    /// Counts an item that was done before.
    pub(crate) fn count_skipped(&self) {
        self.skipped.fetch_add(1, Ordering::Relaxed);
        self.bar.inc(1);
    }

    /// Writes a line at each interval until the sender is dropped.
    fn print_at_intervals(&self, every: Duration, noun: &'static str) -> Sender<()> {
        let (sender, end) = mpsc::channel();
        let (bar, skipped) = (self.bar.clone(), Arc::clone(&self.skipped));
        thread::spawn(move || {
            while end.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let (done, all) = (bar.position(), bar.length().unwrap_or(0));
                let left = time_left(bar.elapsed(), (done, skipped.load(Ordering::Relaxed), all));
                print_note(&format!("{done}/{all} {noun}{left}"));
            }
        });
        sender
    }
}

impl Deref for Progress {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.bar
    }
}

fn print_interval() -> Option<Duration> {
    let set = std::env::var(SECONDS).ok().and_then(|text| text.parse().ok());
    Duration::try_from_secs_f64(set.unwrap_or(30.0)).ok().filter(|every| !every.is_zero())
}

/// The time left after `done` of `all` items, if each further one takes as long as the mean of those that were not skipped;
/// empty before the first of these. The bar's own estimate follows the last few seconds, so that items of a minute turn it into
/// weeks.
fn time_left(elapsed: Duration, (done, skipped, all): (u64, u64, u64)) -> String {
    let fresh = done.saturating_sub(skipped);
    if fresh == 0 {
        return String::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let rest = all.saturating_sub(done) as f64 / fresh as f64;
    let left = Duration::try_from_secs_f64(elapsed.as_secs_f64() * rest).unwrap_or(Duration::MAX);
    format!(", {} left", HumanDuration(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_done() {
        assert_eq!(time_left(Duration::from_mins(2), (2, 0, 10)), ", 8 minutes left");
        assert_eq!(time_left(Duration::from_mins(2), (901, 900, 910)), ", 18 minutes left");
        assert_eq!(time_left(Duration::from_mins(2), (10, 0, 10)), ", 0 seconds left");
        assert_eq!(time_left(Duration::from_mins(2), (900, 900, 910)), "");
    }
}
