//! Reads the nets that the example `training_nets` of `planlab-workloads` writes: training-net JSON Lines, one net
//! after another.

use std::error::Error;
use std::io::BufRead;

use planlab_graph::{Machine, SchedulingProblem, TrainingNet};

/// The beginning of each net's header.
const HEADER: &str = r#"{"planlab":"training-net""#;

/// Reads the nets from some lines.
///
/// # Errors
///
/// A net that cannot be read, with its line.
pub(crate) fn read(lines: impl BufRead, machine: &Machine) -> Result<Vec<TrainingNet>, Box<dyn Error>> {
    let mut texts: Vec<String> = Vec::new();
    for line in lines.lines() {
        let line = line?;
        if line.starts_with(HEADER) || texts.is_empty() {
            texts.push(String::new());
        }
        if let Some(text) = texts.last_mut() {
            *text += &line;
            text.push('\n');
        }
    }
    let net = |(number, text): (usize, String)| {
        let problem = SchedulingProblem::read_jsonl(&format!("net {number}"), &text, Some(machine.clone()))?;
        Ok(problem.net)
    };
    (1..).zip(texts).map(net).collect()
}
