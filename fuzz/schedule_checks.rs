// What holds for any file of a training net or of a schedule. The fuzz target `schedule` calls this with what the fuzzer
// finds, and the tests of `planlab-graph` with the seeds in `corpus/schedule`.

use planlab_graph::{Machine, Schedule, SchedulingProblem, simulate_schedule, validate_schedule};

/// The net whose schedules are among the seeds.
const NET: &str = include_str!("corpus/schedule/net");

fn machine() -> Option<Machine> {
    Machine::built_in("x86-pcie3")
}

/// Checks that a file is refused with a line, or comes back from its own text as it was. A schedule is simulated, and validated
/// against a net that may not be its own, without a panic.
pub(crate) fn check_schedule(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    check_net(text);
    let schedule = match Schedule::read_jsonl("input", text) {
        Ok(schedule) => schedule,
        Err(error) => return assert!(error.line() >= 1, "{error}"),
    };
    let written = schedule.write_jsonl();
    let again = Schedule::read_jsonl("again", &written).expect("what is written can be read");
    assert_eq!(again, schedule, "{written}");
    let timeline = simulate_schedule(&schedule, None);
    assert_eq!(simulate_schedule(&again, None), timeline);
    let problem = SchedulingProblem::read_jsonl("net", NET, machine()).expect("the seed is good");
    if let Ok(audited) = validate_schedule(&problem, &schedule, Some(problem.capacity)) {
        let timeline = timeline.expect("what is valid runs");
        assert!(audited.height >= timeline.peak && audited.height <= problem.capacity, "{written}");
    }
}

fn check_net(text: &str) {
    match SchedulingProblem::read_jsonl("input", text, machine()) {
        Ok(problem) => {
            let written = problem.write_jsonl();
            let again = SchedulingProblem::read_jsonl("again", &written, None);
            assert_eq!(again.as_ref(), Ok(&problem), "{written}");
        }
        Err(error) => assert!(error.line() >= 1, "{error}"),
    }
}
