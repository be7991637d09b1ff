//! Tests the PTX with a small interpreter, lane by lane, because the tests need no compiler or device.

use std::collections::BTreeMap;

use super::*;
use crate::cuda::driver::pattern;

/// An instruction: predicate, operation, operands; or a label.
#[derive(Debug)]
struct Line {
    label: Option<String>,
    predicate: Option<String>,
    operation: String,
    operands: Vec<String>,
}

struct Function {
    parameters: Vec<String>,
    registers: BTreeMap<String, u64>,
    lines: Vec<Line>,
}

fn function(name: &str) -> Function {
    let (_, rest) = PTX.split_once(&format!(".visible .entry {name}(")).expect("the kernel is there");
    let (parameters, rest) = rest.split_once(")\n{\n").expect("a body");
    let (body, _) = rest.split_once("\n}").expect("an end");
    let mut function = Function {
        parameters: parameters.split(", ").map(|text| text.rsplit(' ').next().unwrap().to_owned()).collect(),
        registers: BTreeMap::new(),
        lines: Vec::new(),
    };
    for line in body.lines().map(str::trim) {
        match line.strip_prefix(".reg ") {
            Some(declared) => declare(&mut function.registers, declared),
            None => function.lines.push(parse(line)),
        }
    }
    function
}

fn declare(registers: &mut BTreeMap<String, u64>, text: &str) {
    let name = text.rsplit(' ').next().unwrap().strip_suffix(';').expect("a semicolon");
    match name.split_once('<') {
        None => drop(registers.insert(name.to_owned(), 0)),
        Some((stem, count)) => {
            let count: u32 = count.strip_suffix('>').unwrap().parse().unwrap();
            registers.extend((0..count).map(|number| (format!("{stem}{number}"), 0)));
        }
    }
}

fn parse(text: &str) -> Line {
    let empty = || Line { label: None, predicate: None, operation: String::new(), operands: Vec::new() };
    if let Some(label) = text.strip_suffix(':') {
        return Line { label: Some(label.to_owned()), ..empty() };
    }
    let text = text.strip_suffix(';').expect("a semicolon");
    let (predicate, text) = match text.strip_prefix('@') {
        Some(rest) => rest.split_once(' ').map(|(name, rest)| (Some(name.to_owned()), rest)).unwrap(),
        None => (None, text),
    };
    let (operation, operands) = text.split_once(' ').unwrap_or((text, ""));
    let operands = operands.replace(['{', '}', '[', ']'], "");
    let operands = operands.split(", ").filter(|operand| !operand.is_empty()).map(str::to_owned).collect();
    Line { predicate, operation: operation.to_owned(), operands, ..empty() }
}

/// A lane of a warp.
#[derive(Clone)]
struct Lane {
    registers: BTreeMap<String, u64>,
    special: BTreeMap<&'static str, u64>,
    at: usize,
    is_done: bool,
}

impl Lane {
    fn read(&self, operand: &str) -> u64 {
        if let Some(value) = self.registers.get(operand).or_else(|| self.special.get(operand)) {
            return *value;
        }
        let number = operand.parse::<i128>().unwrap_or_else(|_| panic!("{operand} is not declared"));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "two's complement")]
        let bits = number as u64;
        bits
    }

    fn write(&mut self, operand: &str, value: u64) {
        *self.registers.get_mut(operand).unwrap_or_else(|| panic!("{operand} is not declared")) = value;
    }
}

/// Runs one warp of a one-block grid on words of memory from address 0 and one counter behind them.
struct Machine<'a> {
    function: &'a Function,
    arguments: Vec<u64>,
    memory: Vec<u64>,
    clock: u64,
}

impl Machine<'_> {
    fn run(&mut self, lanes: u64) {
        let lane = |tid| Lane {
            registers: self.function.registers.clone(),
            special: [("%tid.x", tid), ("%ntid.x", lanes), ("%ctaid.x", 0), ("%nctaid.x", 1)].into(),
            at: 0,
            is_done: false,
        };
        let mut warp: Vec<Lane> = (0..lanes).map(lane).collect();
        while warp.iter().any(|lane| !lane.is_done) {
            for lane in warp.iter_mut().filter(|lane| !lane.is_done) {
                while !lane.is_done && !self.is_shuffle(lane) {
                    self.step(lane);
                }
            }
            self.shuffle(&mut warp);
        }
    }

    fn is_shuffle(&self, lane: &Lane) -> bool {
        self.function.lines[lane.at].operation.starts_with("shfl")
    }

    /// Exchanges values once all lanes have reached the same exchange, or the end.
    fn shuffle(&self, warp: &mut [Lane]) {
        let waiting = warp.iter().filter(|lane| !lane.is_done).count();
        assert!(waiting == 0 || waiting == warp.len(), "a lane left before the exchange");
        let before = warp.to_vec();
        for (number, lane) in warp.iter_mut().enumerate().filter(|(_, lane)| !lane.is_done) {
            let line = &self.function.lines[lane.at];
            assert_eq!(line.operation, "shfl.sync.down.b32");
            assert_eq!(line.operands[3..], ["31", "-1"]);
            let from = number + usize::try_from(lane.read(&line.operands[2])).unwrap();
            let source = &before[if from < 32 { from } else { number }];
            let value = source.read(&line.operands[1]);
            lane.write(&line.operands[0], value);
            lane.at += 1;
        }
    }

    fn step(&mut self, lane: &mut Lane) {
        let line = &self.function.lines[lane.at];
        lane.at += 1;
        if line.label.is_some() || line.predicate.as_ref().is_some_and(|name| lane.read(name) == 0) {
            return;
        }
        let operand = |index: usize| line.operands[index].as_str();
        let value = |index: usize| lane.read(operand(index));
        let result = match line.operation.as_str() {
            "ret" => return lane.is_done = true,
            "bra" => return lane.at = self.label(operand(0)),
            "ld.param.u64" => {
                let index = self.function.parameters.iter().position(|name| name == operand(1));
                self.arguments[index.expect("a parameter")]
            }
            "mov.u32" | "mov.u64" if operand(1) == "%globaltimer" => {
                self.clock += 32;
                self.clock
            }
            "mov.b64" => return self.pack(lane, line),
            "mov.u32" | "mov.u64" | "cvta.to.global.u64" | "cvt.u64.u32" => value(1),
            "mul.wide.u32" | "mul.lo.u64" => value(1).wrapping_mul(value(2)),
            "add.u64" => value(1).wrapping_add(value(2)),
            "sub.u64" => value(1).wrapping_sub(value(2)),
            "shl.b64" => value(1) << value(2),
            "shr.u32" => value(1) >> value(2),
            "and.b32" => value(1) & value(2),
            "setp.ge.u64" => u64::from(value(1) >= value(2)),
            "setp.lt.u64" => u64::from(value(1) < value(2)),
            "setp.ne.u64" | "setp.ne.u32" => u64::from(value(1) != value(2)),
            "setp.ne.or.u64" => u64::from(value(1) != value(2) || value(3) != 0),
            "selp.u64" => [value(2), value(1)][usize::from(value(3) != 0)],
            "ld.global.v2.u64" => {
                let word = self.word(value(2));
                let (low, high) = (self.memory[word], self.memory[word + 1]);
                lane.write(operand(1), high);
                low
            }
            "st.global.v2.u64" => {
                let word = self.word(value(0));
                (self.memory[word], self.memory[word + 1]) = (value(1), value(2));
                return;
            }
            "red.global.add.u64" => {
                let slot = usize::try_from(value(0) / 8).unwrap();
                self.memory[slot] = self.memory[slot].wrapping_add(value(1));
                return;
            }
            other => panic!("{other}: unknown"),
        };
        lane.write(operand(0), result);
    }

    fn pack(&self, lane: &mut Lane, line: &Line) {
        let value = |index: usize| lane.read(&line.operands[index]);
        if line.operands[0].starts_with("%r") {
            let whole = value(2);
            lane.write(&line.operands[0], whole & 0xffff_ffff);
            lane.write(&line.operands[1], whole >> 32);
        } else {
            let whole = value(1) | value(2) << 32;
            lane.write(&line.operands[0], whole);
        }
    }

    fn label(&self, name: &str) -> usize {
        let found = self.function.lines.iter().position(|line| line.label.as_deref() == Some(name));
        found.unwrap_or_else(|| panic!("{name}: no such label"))
    }

    /// An address of a 16-byte word, as an index into halves.
    fn word(&self, address: u64) -> usize {
        assert_eq!(address % 16, 0, "an access of 16 bytes");
        usize::try_from(address / 8).unwrap()
    }
}

/// Runs a kernel on 32 lanes; returns the memory afterwards.
fn run(name: &str, arguments: &[u64], memory: Vec<u64>) -> Vec<u64> {
    let function = function(name);
    let mut machine = Machine { function: &function, arguments: arguments.to_vec(), memory, clock: 1000 };
    machine.run(32);
    machine.memory
}

#[test]
#[cfg_attr(miri, ignore = "an interpreter in an interpreter, that touches no memory, takes too long")]
fn the_ptx_writes_adds_and_checks_as_the_pattern_says() {
    for words in [0, 1, 31, 32, 33, 100] {
        let (seed, slot) = (pattern::block_seed(5, 1), 16 * words);
        let room = usize::try_from(2 * words + 2).unwrap();
        let filled = run("planlab_fill", &[0, words, seed], vec![0; room]);
        let expected: Vec<u64> =
            (0..words).flat_map(|index| pattern::pattern_word(seed, index)).chain([0, 0]).collect();
        assert_eq!(filled, expected, "{words}");
        let added = run("planlab_sum", &[0, words, slot], filled.clone());
        assert_eq!(added[room - 2], pattern::pattern_sum(seed, words), "{words}");
        let right = run("planlab_verify", &[0, words, seed, slot], filled.clone());
        assert_eq!(right[room - 2], 0, "{words}");
        let wrong = run("planlab_verify", &[0, words, seed + 1, slot], filled);
        assert_eq!(wrong[room - 2], words, "{words}");
    }
}

#[test]
fn each_half_of_a_word_is_looked_at() {
    let seed = pattern::block_seed(0, 0);
    let filled = run("planlab_fill", &[0, 40, seed], vec![0; 82]);
    for half in [0, 1, 62, 79] {
        let mut damaged = filled.clone();
        damaged[half] ^= 1 << 40;
        assert_eq!(run("planlab_verify", &[0, 40, seed, 640], damaged)[80], 1, "{half}");
    }
}

#[test]
fn the_ptx_waits_as_long_as_it_should() {
    let function = function("planlab_spin");
    let mut machine = Machine { function: &function, arguments: vec![10_000], memory: Vec::new(), clock: 5 };
    machine.run(1);
    assert!((10_000..10_100).contains(&machine.clock), "{}", machine.clock);
}

#[test]
fn both_texts_have_all_kernels() {
    for name in NAMES.map(|name| name.to_str().expect("ASCII")) {
        assert!(CUDA_C.contains(&format!("extern \"C\" __global__ void {name}(")), "{name}");
        assert!(PTX.contains(&format!(".visible .entry {name}(")), "{name}");
    }
    assert!(CUDA_C.contains(&format!("{:#x}ull", pattern::FACTOR)));
    assert!(PTX.contains(&format!(" {};", i128::from(pattern::FACTOR) - (1 << 64))));
    assert!(PTX.is_ascii() && CUDA_C.is_ascii());
}
