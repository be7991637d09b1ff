//! Makes the files of `dsa/testdata`: instances with known optima.
//!
//! ```sh
//! cargo run --release -p planlab-dsa --example make_testdata -- all
//! ```
//!
//! makes them all; each file contains the command that makes it alone.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use planlab_dsa::Bytes;
use planlab_dsa::testing::{CaseFile, FileCase, brute_force, guillotine_instance};

mod greedy;
mod search;
mod shapes;

const COMMAND: &str = "cargo run --release -p planlab-dsa --example make_testdata --";
/// The height of the rectangles to cut, in bytes.
const SHEET: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["all"] => all(),
        ["shapes"] => save("shapes", "shapes", shapes::shapes()),
        ["above-load", seed] => save("above-load", &format!("above-load {seed}"), above_load(seed.parse()?)),
        ["adversaries", seed] => {
            save("adversaries", &format!("adversaries {seed}"), adversaries(seed.parse()?))
        }
        ["guillotine", buffers, seed] => save_cut(buffers.parse()?, seed.parse()?),
        _ => {
            Err("usage: make_testdata all | shapes | above-load SEED | adversaries SEED | guillotine N SEED"
                .into())
        }
    }
}

fn all() -> Result<(), Box<dyn Error>> {
    save("shapes", "shapes", shapes::shapes())?;
    save("above-load", "above-load 1", above_load(1))?;
    save("adversaries", "adversaries 1", adversaries(1))?;
    for (buffers, seed) in [(10, 1), (100, 2), (1000, 3), (10_000, 4)] {
        save_cut(buffers, seed)?;
    }
    Ok(())
}

/// Writes a file with one line per case.
fn save(name: &str, arguments: &str, cases: Vec<FileCase>) -> Result<(), Box<dyn Error>> {
    let file = CaseFile { command: format!("{COMMAND} {arguments}"), cases };
    let mut text = format!("{{\"command\":{},\"cases\":[", serde_json::to_string(&file.command)?);
    for (case, number) in file.cases.iter().zip(0..) {
        write!(text, "{}\n{}", if number == 0 { "" } else { "," }, serde_json::to_string(case)?)?;
    }
    text.push_str("\n]}\n");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    fs::write(folder.join(name).with_extension("json"), text)?;
    Ok(())
}

fn above_load(seed: u64) -> Vec<FileCase> {
    let sizes = (0..8).map(|_| 8).chain((0..16).map(|i| 9 + i * 11 / 15));
    let case = |(buffers, number): (usize, u64)| {
        let (instance, optimum) = search::above_load(buffers, seed * 1000 + number);
        let load = instance.load().bytes;
        let how = if brute_force_can(buffers) { "brute force" } else { "an exhausted branch and bound" };
        if brute_force_can(buffers) {
            assert_eq!(brute_force(&instance), Some(optimum), "two exact methods agree");
        }
        let why = format!("the load is {load}, and no plan reaches it; optimum by {how}");
        FileCase::from_instance(&format!("above-load-{buffers}-{number}"), &why, &instance)
            .with_optimum(optimum.get(), optimum.get())
    };
    sizes.zip(0..).map(case).collect()
}

fn brute_force_can(buffers: usize) -> bool {
    buffers <= 8
}

fn adversaries(seed: u64) -> Vec<FileCase> {
    let case = |&(key, heuristic): &greedy::Greedy| {
        let (instance, optimum) = search::worst(9, seed, 60_000, heuristic);
        let height = heuristic(&instance);
        let why = format!("{key} comes to {height} where {optimum} is enough; optimum by branch and bound");
        FileCase::from_instance(&format!("worst-{}", key.replace('/', "-")), &why, &instance)
            .with_optimum(optimum.get(), optimum.get())
    };
    greedy::ALL.iter().map(case).collect()
}

fn save_cut(buffers: u32, seed: u64) -> Result<(), Box<dyn Error>> {
    let (instance, _) = guillotine_instance(buffers, Bytes::new(SHEET), seed);
    let why = format!("cut from a rectangle of {SHEET} bytes, which is the load and the optimum");
    let name = format!("guillotine-{buffers}");
    let case = FileCase::from_instance(&name, &why, &instance).with_optimum(SHEET, SHEET);
    save(&name, &format!("guillotine {buffers} {seed}"), vec![case])
}
