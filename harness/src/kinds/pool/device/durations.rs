//! The times of a trace's operations, for `--work operations`.
//!
//! A step is a rank, a line number or a time; only the trace can declare which. If it declares a time (`# step-unit:
//! ns`), an operation lasts from its request to the next one, the last one until the last buffer's end.

use planlab_dsa::Digest;
use planlab_workloads::Trace;

use crate::inputs::Source;
use crate::shell::exit::Failure;

/// The time after each request in nanoseconds, by buffer id: all the same, or as recorded.
///
/// # Errors
///
/// The reason why the times are unknown.
pub(super) fn request_durations(trace: &Trace, same: Option<u64>) -> Result<Vec<u64>, String> {
    match same {
        Some(nanoseconds) => Ok(vec![nanoseconds; trace.instance.len()]),
        None => recorded_durations(trace),
    }
}

fn recorded_durations(trace: &Trace) -> Result<Vec<u64>, String> {
    let unit = trace.step_nanoseconds().ok_or("it does not give the time of a step (`# step-unit: ns`)")?;
    let steps = original_steps(trace);
    let last = steps.iter().map(|&(_, end)| end).max().unwrap_or(0);
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by_key(|&buffer| (steps[buffer].0, buffer));
    let nexts = order.iter().skip(1).map(|&buffer| steps[buffer].0).chain([last]);
    let mut times = vec![0; steps.len()];
    for (&buffer, next) in order.iter().zip(nexts) {
        let lasts = next.saturating_sub(steps[buffer].0);
        let time = lasts.checked_mul(unit);
        times[buffer] = time.ok_or_else(|| format!("an operation of {lasts} steps is too long"))?;
    }
    Ok(times)
}

/// First and last step of each buffer as in the file, because ranks are not times.
fn original_steps(trace: &Trace) -> Vec<(u64, u64)> {
    let buffers = trace.instance.buffers().iter().zip(&trace.labels.buffers);
    let own = |(start, end): (u32, u32)| (u64::from(start), u64::from(end));
    buffers.map(|(buffer, label)| label.original_steps.unwrap_or_else(|| own(buffer.live.into()))).collect()
}

/// Refuses traces whose operations have unknown times; returns a digest of the recorded times.
///
/// # Errors
///
/// [`Failure`] with exit code 2 and the trace's name.
pub(super) fn require_durations(
    sources: &[Source],
    traces: &[Trace],
    same: Option<u64>,
) -> Result<Option<Digest>, Failure> {
    if same.is_some() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for (source, trace) in sources.iter().zip(traces) {
        let times = recorded_durations(trace).map_err(|reason| {
            let says = "--operation-time TIME gives all operations the same";
            Failure::from_usage(format!("{}: its operations have no times: {reason}; {says}", source.name))
        })?;
        all.extend(times.into_iter().flat_map(u64::to_le_bytes));
    }
    Ok(Some(Digest::of_bytes(&all)))
}

#[cfg(test)]
mod tests {
    use planlab_workloads::ReadOptions;
    use planlab_workloads::formats::read_trace;

    use super::*;

    fn trace(head: &str, rows: &str) -> Trace {
        let text = format!("{head}id,lower,upper,size\n{rows}");
        read_trace("t", text.as_bytes(), &ReadOptions::default()).expect("a trace")
    }

    const ROWS: &str = "a,1000,9000,8\nb,4000,5000,8\nc,4000,7000,8\n";

    #[test]
    fn an_operation_lasts_until_the_next_request() {
        for rank in ["", "# rank-steps: yes\n"] {
            let recorded = request_durations(&trace(&format!("{rank}# step-unit: us\n"), ROWS), None);
            assert_eq!(recorded, Ok(vec![3_000_000, 0, 5_000_000]), "{rank}");
        }
        let late = trace("# step-unit: ns\n", "a,5000000000,5000000007,8\n");
        assert_eq!(
            request_durations(&late, None),
            Ok(vec![7]),
            "steps past 32 bits are ranked, and stay times"
        );
    }

    #[test]
    fn steps_that_are_no_times_say_nothing() {
        for head in ["", "# rank-steps: yes\n"] {
            let untold = trace(head, ROWS);
            assert!(
                request_durations(&untold, None).is_err_and(|reason| reason.contains("# step-unit: ns")),
                "{head}"
            );
            assert_eq!(request_durations(&untold, Some(5)), Ok(vec![5; 3]));
        }
    }

    #[test]
    fn an_operation_of_centuries_is_refused() {
        let long = trace("# step-unit: s\n", "a,0,4000000000000000000,8\n");
        assert!(request_durations(&long, None).is_err_and(|reason| reason.contains("too long")));
    }
}
