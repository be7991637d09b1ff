//! A new kind of cell, from its question to its end: finds the largest power of a number below a limit. The engine does
//! the rest; `main.rs` would serve it by a hidden verb of its own.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use planlab_dsa::CancelToken;
use serde::{Deserialize, Serialize};

use crate::cells::{CellContext, CellEnd, Kind, MailboxWriter, Order, Supervisor, latest, sabotage, serve};
use crate::process::Death;
use crate::shell::exit::Failure;

/// How long a child may take until it begins.
const TO_BEGIN: Duration = Duration::from_secs(60);

struct Powers;

/// What happens once the first power is kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Then {
    Continue,
    Hang,
    Crash,
    /// Answers, and then does not end.
    Linger,
}

impl Kind for Powers {
    /// For the test only: the test that is the child. Other kinds name their hidden verb.
    const VERB: &'static str = "kinds::example::child";

    /// The limit.
    type Source = String;
    type Problem = u64;
    /// The base, and what happens then.
    type Asked = (u64, Then);
    type Found = u64;
    type Kept = Option<Vec<u8>>;

    fn open(source: &String) -> Result<u64, Failure> {
        Ok(source.parse()?)
    }

    fn perform(limit: &u64, &(base, then): &(u64, Then), context: CellContext<'_>) -> Result<u64, Failure> {
        let mut writer = MailboxWriter::create(context.mailbox, "power")?;
        (context.begin)()?;
        let mut power = base;
        writer.put(power.to_string().as_bytes())?;
        match then {
            Then::Continue | Then::Linger => {}
            Then::Hang => sabotage::hang(),
            Then::Crash => std::process::abort(),
        }
        while power * base < *limit {
            power *= base;
        }
        Ok(power)
    }

    fn limit_to_begin(_: &(u64, Then)) -> Duration {
        TO_BEGIN
    }

    fn limit_from_begin(_: &String, &(_, then): &(u64, Then)) -> Duration {
        if then == Then::Hang { Duration::from_millis(300) } else { TO_BEGIN }
    }

    fn kept(_: &String, mailbox: &Path) -> Option<Vec<u8>> {
        latest(mailbox, "power", 20)
    }

    /// For the test only: gives the answers a stream of their own, because the test runner writes to stdout first.
    fn prepare(&(_, then): &(u64, Then), command: &mut Command) {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec \"$0\" --exact \"$1\" --nocapture 9>&1 1>&2"]);
        shell
            .arg(std::env::current_exe().expect("a path"))
            .arg(Self::VERB)
            .env("PLANLAB_EXAMPLE", format!("{then:?}"));
        shell.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        *command = shell;
    }
}

#[test]
fn child() {
    if let Some(then) = std::env::var_os("PLANLAB_EXAMPLE") {
        let answers = std::fs::OpenOptions::new().write(true).open("/proc/self/fd/9").expect("a stream");
        rustix::stdio::dup2_stdout(answers).expect("a stream");
        serve::<Powers>().expect("it answers");
        if then == "Linger" {
            sleep(TO_BEGIN);
        }
    }
}

fn run_cells(limit: &str, cells: &[(u64, Then)]) -> Vec<CellEnd<Powers>> {
    let supervisor = Supervisor::without_memory_limit(CancelToken::default()).expect("a folder");
    let order = Order { source: &limit.to_owned(), cells, memory: None, core: None };
    supervisor.run(&order).expect("children start")
}

#[test]
fn cells_that_share_a_child_end_on_their_own() {
    let cells = [(2, Then::Continue), (3, Then::Crash), (5, Then::Hang), (7, Then::Continue)];
    let ends = run_cells("1000", &cells);
    let found: Vec<Result<u64, Death>> = ends.iter().map(|cell| cell.end.clone()).collect();
    assert_eq!(found, [Ok(512), Err(Death::Signal(6)), Err(Death::Timeout), Ok(343)]);
    let kept: Vec<Option<&[u8]>> = ends.iter().map(|cell| cell.kept.as_deref()).collect();
    assert_eq!(kept[1..3], [Some(&b"3"[..]), Some(b"5")], "what a child kept survives it");
}

#[test]
fn source_that_cannot_be_read_is_named() {
    let end = run_cells("many", &[(2, Then::Continue)]).remove(0).end;
    assert!(matches!(end, Err(Death::Unreadable(reason)) if reason.contains("invalid digit")));
}

#[test]
fn child_that_hangs_after_its_answers_is_killed_soon() {
    let begun = Instant::now();
    assert_eq!(run_cells("1000", &[(2, Then::Linger)]).remove(0).end, Ok(512));
    assert!(begun.elapsed() < TO_BEGIN / 2);
}
