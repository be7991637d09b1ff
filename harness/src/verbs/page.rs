//! The page of a trace and its placements, which `show` and `explain` write.

use std::path::Path;

use planlab_reports::{CallStacks, Held, OwnPlacement, ShowPage};
use planlab_workloads::Trace;
use planlab_workloads::formats::import::Framework;

use crate::shell::exit::Failure;

/// A page with what a framework says of itself: where it put the buffers, and who allocated them.
pub(super) fn framework_page<'a>(name: &str, trace: &'a Trace, framework: &'a Framework) -> ShowPage<'a> {
    let page = ShowPage::new(&trace.instance, &trace.labels, name, command_line());
    let stacks = framework.stacks.iter().map(|stack| &**stack).collect();
    let page = page.with_stacks(CallStacks::new(&framework.frames, stacks, &framework.stack_of));
    match own_placement(trace, framework) {
        Some(own) => page.with_own(&own),
        None => page,
    }
}

/// The page's file, which a browser must know as one.
pub(super) fn check_name(path: &Path) -> Result<(), Failure> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("html") => Ok(()),
        _ => Err(Failure::from_usage(format!("{}: a page ends in .html", path.display()))),
    }
}

fn own_placement(trace: &Trace, framework: &Framework) -> Option<OwnPlacement> {
    let count = trace.instance.len();
    if framework.placement.len() != count || framework.placement.iter().all(Option::is_none) {
        return None;
    }
    let ranks = Ranks::from_trace(trace);
    let held = framework.segments.iter().map(|segment| Held {
        address: segment.address,
        size: segment.size,
        steps: (ranks.rank_of(segment.steps.0), ranks.rank_of(segment.steps.1)),
    });
    let name = match framework.name {
        "" => "the framework's own placement".to_owned(),
        name => format!("{name}'s own placement"),
    };
    Some(OwnPlacement::new(name, framework.placement.clone(), held.collect()))
}

/// From steps as the file has them to those of the instance.
struct Ranks {
    /// Both, in the order of the file's.
    known: Vec<(u64, u32)>,
    horizon: u32,
}

impl Ranks {
    fn from_trace(trace: &Trace) -> Self {
        let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
        let ends = buffers.flat_map(|(buffer, label)| {
            let (start, end) = (buffer.live.start().get(), buffer.live.end().get());
            let (from, to) = label.original_steps.unwrap_or((start.into(), end.into()));
            [(from, start), (to, end)]
        });
        let mut known: Vec<(u64, u32)> = ends.collect();
        known.sort_unstable();
        known.dedup();
        Self { known, horizon: trace.instance.horizon().get() }
    }

    /// The first known step that is not before this one.
    fn rank_of(&self, step: u64) -> u32 {
        let at = self.known.partition_point(|&(known, _)| known < step);
        self.known.get(at).map_or(self.horizon, |&(_, rank)| rank)
    }
}

/// The command line of this process, as a shell reads it.
pub(super) fn command_line() -> String {
    let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let quoted = arguments.map(|argument| match shlex::try_quote(&argument) {
        Ok(quoted) => quoted.into_owned(),
        // Only a NUL, which no argument has.
        Err(_) => argument,
    });
    std::iter::once("planlab".to_owned()).chain(quoted).collect::<Vec<String>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_a_file_become_those_of_the_instance() {
        let ranks = Ranks { known: vec![(100, 0), (250, 1), (900, 2)], horizon: 3 };
        assert_eq!([0, 100, 101, 250, 900, 901].map(|step| ranks.rank_of(step)), [0, 0, 1, 1, 2, 3]);
    }
}
