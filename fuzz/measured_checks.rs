// What holds for any profile of a net, in either format. The fuzz target `measured` calls this with what the fuzzer finds, and
// the tests of `planlab-graph` with the seeds in `corpus/measured`.

use std::sync::LazyLock;

use planlab_graph::{Machine, ProfileFormat, SchedulingProblem};

static MACHINE: LazyLock<Machine> = LazyLock::new(|| Machine::built_in("x86-pcie3").expect("built in"));

/// Checks that a profile is refused with a line, or becomes a net that comes back from its own text as it was. A format reads
/// what it does not recognise, too.
pub(crate) fn check_measured(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for format in [ProfileFormat::PipeDream, ProfileFormat::DnnPartitioning] {
        match format.read("input", text, 2) {
            Ok(net) => {
                let Ok(problem) = net.problem_at_batch("input", 3, MACHINE.clone()) else { continue };
                let written = problem.write_jsonl();
                let again = SchedulingProblem::read_jsonl("again", &written, Some(MACHINE.clone()));
                assert_eq!(again.as_ref(), Ok(&problem), "{written}");
            }
            Err(error) => assert!(error.line() >= 1, "{error}"),
        }
    }
}
