//! Times the Rust call that `benches/plan_calls.cpp` makes through C: `plan_calls FILE.csv CAPACITY CALLS` prints the
//! height, then the nanoseconds of each call, a line each. `scripts/bench-c` runs both in turns.
#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use std::error::Error;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use planlab_dsa::{Budget, Bytes, Columns, execute};
use planlab_workloads::formats::{ReadOptions, read_trace};

/// A value of a program, as the pass of `plan_memory.cpp` has it.
struct Value {
    begin: i64,
    end: i64,
    bytes: u64,
    alignment: u64,
}

/// The height and the offsets of a plan.
fn assign_offsets(values: &[Value], capacity: u64) -> Result<(u64, Vec<u64>), Box<dyn Error>> {
    let lower: Vec<i64> = values.iter().map(|value| value.begin).collect();
    let upper: Vec<i64> = values.iter().map(|value| value.end).collect();
    let size: Vec<u64> = values.iter().map(|value| value.bytes).collect();
    let align: Vec<u64> = values.iter().map(|value| value.alignment).collect();
    let columns =
        Columns { lower: &lower, upper: &upper, size: &size, align: Some(&align), ..Columns::default() };
    let instance = columns.build_instance()?;
    let planner = planlab_solvers::find_planner("portfolio").ok_or("the registry has no portfolio")?;
    let budget = Budget {
        wall: Some(Duration::from_secs(60)),
        target: (capacity > 0).then(|| Bytes::new(capacity)),
        threads: thread::available_parallelism().ok(),
        ..Budget::default()
    };
    let outcome = execute(&*planner, &instance, budget, 0);
    let plan = outcome.best.as_ref().ok_or("there is no plan")?;
    Ok((plan.height().get(), plan.offsets().iter().map(|offset| offset.get()).collect()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [file, capacity, calls] = &words[..] else {
        return Err("usage: plan_calls FILE.csv CAPACITY CALLS".into());
    };
    let trace = read_trace(file, &fs::read(file)?, &ReadOptions::default())?;
    let value = |buffer: &planlab_dsa::Buffer| Value {
        begin: buffer.live.start().get().into(),
        end: buffer.live.end().get().into(),
        bytes: buffer.size.get(),
        alignment: buffer.align.get(),
    };
    let values: Vec<Value> = trace.instance.buffers().iter().map(value).collect();
    for call in 0..calls.parse()? {
        let begin = Instant::now();
        let (height, _offsets) = assign_offsets(&values, capacity.parse()?)?;
        let time = begin.elapsed();
        if call == 0 {
            println!("{height}");
        }
        println!("{}", time.as_nanos());
    }
    Ok(())
}
