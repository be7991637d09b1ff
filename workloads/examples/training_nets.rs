//! Writes every net of `planlab list models` as training-net JSON Lines, for the example `compare_checkpoints` of
//! `planlab-solvers`.
//!
//! ```sh
//! cargo run -p planlab-workloads --example training_nets -- 32 |
//!     cargo run -p planlab-solvers --example compare_checkpoints -- articulation
//! ```
//!
//! The arguments are the batch sizes.

use std::error::Error;
use std::io::{Write, stdout};

use planlab_workloads::models::{Mode, Spec, models};

fn main() -> Result<(), Box<dyn Error>> {
    let batches: Vec<u64> = std::env::args().skip(1).map(|batch| batch.parse()).collect::<Result<_, _>>()?;
    let batches = if batches.is_empty() { vec![32] } else { batches };
    let mut out = stdout().lock();
    for model in models() {
        for &batch in &batches {
            let net = Spec::new(model, Mode::Train, batch).feature_maps()?;
            out.write_all(net.write_jsonl().as_bytes())?;
        }
    }
    Ok(())
}
