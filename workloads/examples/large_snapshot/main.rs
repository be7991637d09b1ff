//! How much memory a long snapshot of PyTorch takes to read: `large_snapshot EVENTS`, or `large_snapshot EVENTS FILE`
//! to write it to a file. The snapshot is generated while it is read, so it takes no memory itself.

#![allow(clippy::cast_precision_loss, clippy::print_stdout, reason = "it prints figures")]

mod pickle;

use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::time::Instant;

use planlab_workloads::ReadOptions;
use planlab_workloads::formats::{InputLimits, import};

use pickle::LargeSnapshot;

/// The most memory that this process had, in bytes.
fn peak() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(1024 * line.trim().trim_end_matches(" kB").parse::<u64>()?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let events = arguments.next().ok_or("usage: large_snapshot EVENTS [FILE]")?.parse()?;
    if let Some(file) = arguments.next() {
        io::copy(&mut LargeSnapshot::new(events), &mut BufWriter::new(File::create(file)?))?;
        return Ok(());
    }
    let started = Instant::now();
    let options = ReadOptions { limits: InputLimits::new(u64::MAX), ..ReadOptions::default() };
    // A limit that is never reached counts what is read.
    let mut input = LargeSnapshot::new(events).take(u64::MAX);
    let imported = import::read("large.pickle", &mut input, None, &options)?;
    let (seconds, peak, bytes) = (started.elapsed().as_secs_f64(), peak()?, u64::MAX - input.limit());
    let trace = &imported.parts.first().ok_or("there is no device in it")?.trace;
    println!(
        "{events} events, {bytes} bytes, {} buffers: {seconds:.1} s, at most {peak} bytes of memory, {:.2} of the file",
        trace.instance.len(),
        peak as f64 / bytes as f64
    );
    Ok(())
}
