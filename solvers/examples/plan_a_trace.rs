//! Plans a trace with only the contract and the planners.
//!
//! ```text
//! cargo run -p planlab-solvers --no-default-features --example plan_a_trace < trace.txt
//! ```
//!
//! The trace has a line `lower,upper,size` for each buffer: its first step, the step after its last, its bytes. Lines
//! that do not begin with a digit are ignored. On a terminal it plans a small built-in trace.
#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::error::Error;
use std::io::{IsTerminal, Read};

use planlab_dsa::{Budget, Buffer, Bytes, Instance, LiveRange, execute, fragmentation};

const BUILT_IN: &str = "0,2,4096\n1,4,8192\n2,3,2048\n3,6,4096\n4,6,8192\n5,7,1024\n";

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = BUILT_IN.to_owned();
    if !std::io::stdin().is_terminal() {
        text.clear();
        std::io::stdin().read_to_string(&mut text)?;
    }
    let instance = Instance::from_buffers(read(&text)?)?;
    let best_fit = planlab_solvers::find_planner("best-fit").ok_or("best-fit is always there")?;
    let outcome = execute(&best_fit, &instance, Budget::default(), 0);
    let plan = outcome.best.as_ref().ok_or("there is no plan")?;
    let load = instance.load().bytes;
    println!("height {} load {load} fragmentation {:.4}", plan.height(), fragmentation(plan.height(), load));
    println!("bound {} optimal {}", outcome.bound_claim(), outcome.is_optimal());
    for (buffer, offset) in instance.buffers().iter().zip(plan.offsets()) {
        println!("{},{},{},{offset}", buffer.live.start(), buffer.live.end(), buffer.size);
    }
    Ok(())
}

fn read(text: &str) -> Result<Vec<Buffer>, Box<dyn Error>> {
    let rows =
        text.lines().zip(1..).filter(|(line, _)| line.starts_with(|first: char| first.is_ascii_digit()));
    let buffer = |(line, number): (&str, u32)| {
        parse(line).ok_or_else(|| format!("line {number}: `{line}` is not `lower,upper,size`").into())
    };
    rows.map(buffer).collect()
}

fn parse(line: &str) -> Option<Buffer> {
    let mut fields = line.split(',').map(str::trim);
    let live = LiveRange::new(fields.next()?.parse().ok()?, fields.next()?.parse().ok()?).ok()?;
    let size = Bytes::new(fields.next()?.parse().ok()?);
    fields.next().is_none().then(|| Buffer::new(size, live))
}
